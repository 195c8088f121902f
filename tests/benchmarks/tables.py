"""What the benchmarks share: Markdown tables, and the two arguments of the statistical ones."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence


def statistical(parser: argparse.ArgumentParser, runs: int, seed: int = 2026) -> argparse.Namespace:
    """The command line with `runs` and `seed`."""
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--seed", type=int, default=seed)
    return parser.parse_args()


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Numbers to the right."""
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join('---:' if column else '---' for column in range(len(heads)))}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(markdown_table(heads, rows), flush=True)


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "n/a"
