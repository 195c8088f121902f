"""What the statistical benchmarks share: their two arguments, and one table as RESULTS.md has it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence


def arguments(description: str | None, runs: int, seed: int) -> tuple[int, int]:
    """(runs, seed) from the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--seed", type=int, default=seed)
    read = parser.parse_args()
    return read.runs, read.seed


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Markdown; numbers to the right."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' if column == 0 else '---:' for column in range(len(heads)))}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    for line in table_lines(heads, rows):
        print(line, flush=True)


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "n/a"
