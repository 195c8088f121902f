"""Training with cudagraphs: every sample model in mode reduce-overhead, and again with four micro-batches a step.

    python -m tests.benchmarks.training [NAME...] [--device D] [--rows FILE] [--seconds S] [--jobs N]

Cudagraphs write each result to the address of the one before. A harness that holds on to a step's outputs makes torch
raise "overwritten by a subsequent run"; gradients that add up over micro-batches may raise it too, or come out wrong.
So each model must end in a decision without that text anywhere in the run, and with micro-batches in right gradients
or in a finding that names the cause; the mode's gradients are compared with eager's. Several jobs at a time disturb
each other's speed, which is not what counts here. A row is kept in FILE (default: training.jsonl beside this file) when
it is done, and RESULTS_TRAINING.md shows them all.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from tests.benchmarks.program import run_program
from tests.benchmarks.record import Figure, Record, parser, publish, record, table
from tests.benchmarks.rows import add_row, read_rows, today
from tests.benchmarks.tables import markdown_table

_HERE = Path(__file__).parent
_ROWS, _PAGE = _HERE / "training.jsonl", _HERE / "RESULTS_TRAINING.md"
_SAMPLES = (
    "transformer_block",
    "convnet",
    "mlp",
    "tiny_launch_bound",
    "pointwise_chain",
    "graph_break",
    "dynamic_shape",
)
_MICRO_BATCHES = (1, 4)
_MODE = "reduce-overhead"
_OVERWRITTEN = "overwritten by a subsequent run"
_RIGHT = ("same", "within rounding", "random, with the same distribution")
_NAMED = ("cudagraph-accumulation", "outputs-different", "outputs-uncertain")
_BUDGET_S = 150.0
_MIN_S = 30.0

_HEADS = ("model", "micro-batches", "decision", "gradients", "graphs recorded", "findings", "as it must be")

Row: TypeAlias = dict[str, Any]


def measure(name: str, micro_batches: int, device: str, budget_s: float) -> Row:
    options = ["--task", "train", "--mode", _MODE, "--preset", "smoke", "--budget", f"{budget_s:.0f}"]
    more = ["--accumulate", str(micro_batches)] if micro_batches > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        arguments = [f"sample_models/{name}.py", *options, *more, "--device", device]
        ran = run_program(arguments, Path(folder), budget_s + _MIN_S)
        overwritten = any(_OVERWRITTEN in path.read_text(errors="replace") for path in Path(folder).rglob("*.jsonl"))
    mode = ran.mode(_MODE)
    return {
        "place": f"{ran.verdict.get('device')}, torch {ran.verdict.get('torch')}",
        "date": today(),
        "model": name,
        "micro_batches": micro_batches,
        "status": ran.status,
        "decision": ran.decision,
        "headline": ran.headline,
        "agreement": mode.get("agreement"),
        "cudagraph_recordings": mode.get("cudagraph_recordings"),
        "overwritten": overwritten,
        "findings": [finding["id"] for finding in ran.findings],
        "seconds": round(ran.seconds),
    }


def fault(row: Row) -> str | None:
    """What is not as it must be."""
    named = [finding for finding in row["findings"] if finding in _NAMED]
    wrong = row["agreement"] not in _RIGHT
    if wrong and (row["decision"] or "").startswith("ENABLE"):
        return f"{row['decision']}, although the gradients are {row['agreement'] or 'not compared'}"
    if row["micro_batches"] > 1:
        return None if named or not wrong else "neither right gradients nor a finding"
    if row["overwritten"]:
        return _OVERWRITTEN
    return None if row["status"] == 0 else f"no decision (exit {row['status']})"


def page(rows: Sequence[Row]) -> str:
    lines = ["# Training with cudagraphs", "", "`python -m tests.benchmarks.training`"]
    for place in sorted({row["place"] for row in rows}):
        lines += ["", *_section(place, [row for row in rows if row["place"] == place])]
    return "\n".join(lines) + "\n"


def _section(place: str, rows: Sequence[Row]) -> Iterator[str]:
    faults = [row for row in rows if fault(row) is not None]
    missing = len(_SAMPLES) * len(_MICRO_BATCHES) - len(rows)
    yield from (f"## {place}", "", f"{max(row['date'] for row in rows)}. {len(rows) - len(faults)} of {len(rows)} as")
    yield from (f"they must be, {missing} not run.", "")
    yield markdown_table(_HEADS, map(_cells, rows))


def _cells(row: Row) -> list[str]:
    recorded = row["cudagraph_recordings"]
    decision = row["decision"] or row["headline"][:100].replace("|", "\\|").replace("\n", " ")
    return [
        row["model"],
        str(row["micro_batches"]),
        decision,
        row["agreement"] or "n/a",
        "n/a" if recorded is None else str(recorded),
        ", ".join(row["findings"]),
        f"no: {why}" if (why := fault(row)) is not None else "yes",
    ]


def as_record(rows: Sequence[Row], device: str) -> Record:
    right, all_of_them = sum(fault(row) is None for row in rows), len(_SAMPLES) * len(_MICRO_BATCHES)
    name = f"training in {_MODE} ends in a decision, with micro-batches in right gradients or a finding"
    figure = Figure(name, f"{right} of {len(rows)} that were run", "all", right == len(rows) == all_of_them)
    return record("training", [figure], [table(_HEADS, list(map(_cells, rows)))], device=device)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("models", nargs="*", default=_SAMPLES, metavar="NAME")
    options.add_argument("--device", default="cuda", help="without cudagraphs (cpu) only the harness is tried")
    options.add_argument("--rows", type=Path, default=_ROWS, metavar="FILE", help="one row of JSON a line")
    options.add_argument("--seconds", type=float, default=3600.0, help="what is not begun then is left out")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--table-only", action="store_true", help="run nothing, write the page again")
    asked = options.parse_args()
    until = monotonic() + asked.seconds
    known = {(row["model"], row["micro_batches"]) for row in read_rows(asked.rows)}
    cells = [(name, count) for count in _MICRO_BATCHES for name in asked.models if (name, count) not in known]

    def work(name: str, count: int) -> Row | None:
        left_s = until - monotonic() - _MIN_S
        return measure(name, count, asked.device, min(_BUDGET_S, left_s)) if left_s > _MIN_S else None

    with ThreadPoolExecutor(asked.jobs) as pool:
        for done in as_completed([pool.submit(work, *cell) for cell in cells if not asked.table_only]):
            row = done.result()
            if row is not None:
                add_row(asked.rows, row)
                print(f"{row['seconds']:>4} s  {' | '.join(_cells(row))}", file=sys.stderr, flush=True)
    rows = read_rows(asked.rows)
    _PAGE.write_text(page(rows))
    if not asked.table_only:
        publish(as_record(rows, asked.device), asked.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
