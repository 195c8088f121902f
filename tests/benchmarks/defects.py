"""Which wrong outputs the accuracy check finds: defects put into what really compiled sample models return.

    python -m tests.benchmarks.defects [MODEL...] [--device D] [--rows FILE] [--seconds S] [--jobs N] [--table-only]

Each sample model is compiled once for each way to calculate, its outputs (for training the smallest large gradient)
are spoilt, and the worker's comparison and the judgement are asked as in a run: with the reference in higher
precision, and without one as in the quick preset. The column "none" is what torch.compile itself returned: all that
is not fine there is a false alarm. A row is kept in FILE (default: defects.jsonl beside this file) when it is done,
those that are there are not run again, and RESULTS_DEFECTS.md beside this file shows them all.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

import torch

from tcompile_tui.core.accuracy import Agreement
from tcompile_tui.worker.reference import Reference
from tests.benchmarks.injected import DEFECTS, MODELS, WAYS, Outputs, judged, outputs_of, spoil
from tests.benchmarks.record import Figure, Record, device_here, parser, publish, record, table
from tests.benchmarks.rows import add_row, place_of, read_rows, today
from tests.benchmarks.tables import markdown_table

_HERE = Path(__file__).parent
_ROWS, _PAGE = _HERE / "defects.jsonl", _HERE / "RESULTS_DEFECTS.md"
_NONE = "none"
_CAUGHT, _UNCERTAIN, _PASSED, _NO_CHANGE = "caught", "uncertain", "passed", "no change"
_MARKS = {
    Agreement.DIFFERENT: _CAUGHT,
    Agreement.UNCERTAIN: _UNCERTAIN,
    Agreement.WITHIN_ROUNDING: _PASSED,
    Agreement.SAME: _PASSED,
}

_SUMMARY_HEADS = ("calculates in", "reference", *DEFECTS)

Row: TypeAlias = dict[str, Any]
# (model, index of the way, device)
Cell: TypeAlias = tuple[str, int, str]


def measure(cell: Cell) -> tuple[Cell, list[Row] | str]:
    """The rows of one model in one way to calculate, or why there are none."""
    name, number, device = cell
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):  # a sample prints
            outputs = outputs_of(name, WAYS[number], Path(folder), torch.device(device))
            # Without a reference there is nothing that the second row could add.
            references = {id(each): each for each in (outputs.reference, None)}.values()
            rows = [_row(cell, outputs, reference) for reference in references]
        return cell, rows
    except Exception as error:
        return cell, f"{type(error).__name__}: {str(error)[:300]}"


def _row(cell: Cell, outputs: Outputs, reference: Reference | None) -> Row:
    name, number, device = cell
    marks, alarm = {}, None
    for label, defect in DEFECTS.items():
        spoilt = spoil(outputs.compiled, defect, outputs.bench.training)
        unchanged = label != _NONE and all(_same(spoilt[path], outputs.compiled[path]) for path in spoilt)
        found = judged(outputs, spoilt, reference)
        marks[label] = _NO_CHANGE if unchanged else _MARKS[found.agreement]
        if label == _NONE and marks[label] != _PASSED:
            alarm = f"{found.path}: {found.detail}"
    return {
        "place": place_of(device),
        "date": today(),
        "model": name,
        "way": WAYS[number].name,
        "reference": None if reference is None else reference.dtype,
        "marks": marks,
        "alarm": alarm,
    }


def _same(leaf: Any, other: Any) -> bool:
    return leaf is other or (isinstance(leaf, torch.Tensor) and torch.equal(leaf, other))


# ---------------------------------------------------------------- the page


def page(rows: Sequence[Row]) -> str:
    """Markdown: for each place a summary, the alarms, and every row."""
    lines = ["# Injected defects", "", "`python -m tests.benchmarks.defects`"]
    for place in sorted({row["place"] for row in rows}):
        lines += ["", *_section(place, [row for row in rows if row["place"] == place])]
    return "\n".join(lines) + "\n"


def _section(place: str, rows: Sequence[Row]) -> Iterator[str]:
    cells = {(row["model"], row["way"]) for row in rows}
    missing = [model for model in MODELS for way in WAYS if (model, way.name) not in cells]
    alarms = [row for row in rows if row["alarm"] is not None]
    yield from (f"## {place}", "", f"{max(row['date'] for row in rows)}. Caught, of the outputs that a defect changed:")
    yield from ("", markdown_table(_SUMMARY_HEADS, _summary(rows)), "")
    wrong = sum(row["marks"][_NONE] == _CAUGHT for row in alarms)
    yield f"{wrong} false alarms and {len(alarms) - wrong} right results called uncertain, in {len(rows)} rows."
    yield from (f"- {row['model']}, {row['way']}: {row['alarm']}" for row in alarms)
    if missing:
        yield f"Not run: {len(missing)} of {len(MODELS) * len(WAYS)} (of {', '.join(dict.fromkeys(missing))})."
    heads = ["model", "calculates in", "reference", *DEFECTS]
    every = [[row["model"], row["way"], row["reference"] or "none", *_marks(row)] for row in rows]
    yield from ("", markdown_table(heads, every))


def _marks(row: Row) -> list[str]:
    return [row["marks"][label] for label in DEFECTS]


def _summary(rows: Sequence[Row]) -> Iterator[list[str]]:
    """For each way to calculate: how often each defect was caught, of those that changed anything."""
    for way in WAYS:
        for referenced in (True, False):
            own = [row for row in rows if row["way"] == way.name and (row["reference"] is not None) is referenced]
            if own:
                counts = [_count([row["marks"][label] for row in own]) for label in DEFECTS]
                yield [way.name, "yes" if referenced else "no", *counts]


def _count(marks: Sequence[str]) -> str:
    changed = [mark for mark in marks if mark != _NO_CHANGE]
    uncertain = changed.count(_UNCERTAIN)
    return f"{changed.count(_CAUGHT)}/{len(changed)}" + (f" +{uncertain} uncertain" if uncertain else "")


# ---------------------------------------------------------------- all of them


def _run(cells: Sequence[Cell], jobs: int, seconds: float, file: Path) -> None:
    """Several at a time: nothing is timed here."""
    until = monotonic() + seconds
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # so that a job is one process
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:  # left with terminate()
        done = pool.imap_unordered(measure, cells)
        for _ in cells:
            try:
                (name, number, _), found = done.next(timeout=max(0.0, until - monotonic()))
            except multiprocessing.TimeoutError:
                print(f"{seconds:.0f} s are over", file=sys.stderr)
                return
            print(f"{name}, {WAYS[number].name}: {found if isinstance(found, str) else 'done'}", file=sys.stderr)
            for row in found if isinstance(found, list) else ():
                add_row(file, row)


def as_record(rows: Sequence[Row], device: str) -> Record:
    """The figures that count are those with a reference, as the standard preset has it."""
    alarms = sum(row["marks"][_NONE] == _CAUGHT for row in rows)
    figures = [Figure("false alarms on the sample models", f"{alarms} of {len(rows)}", "none", not alarms)]
    referenced = [row for row in rows if row["reference"] is not None]
    figures += [
        Figure(f"caught with a reference: {label}", _count([row["marks"][label] for row in referenced]))
        for label in DEFECTS
        if label != _NONE
    ]
    every = table(_SUMMARY_HEADS, list(_summary(rows)))
    return record("defects", figures, [every], [f"Every row in [{_PAGE.name}]({_PAGE.name})."], device=device)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    options.add_argument("--device", default=device_here())
    options.add_argument("--rows", type=Path, default=_ROWS, metavar="FILE", help="one row of JSON a line")
    options.add_argument("--seconds", type=float, default=3600.0, help="what is not done then is left out")
    options.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 3))
    options.add_argument("--table-only", action="store_true", help="run nothing, write the page again")
    asked = options.parse_args()
    place = place_of(asked.device)
    if not asked.table_only:
        known = {(row["model"], row["way"]) for row in read_rows(asked.rows) if row["place"] == place}
        # The main ways of every model first.
        cells = [
            (model, number, asked.device)
            for numbers in ((0, 1, 3, 4), (2, 5))
            for model in asked.models
            for number in numbers
            if (model, WAYS[number].name) not in known
        ]
        _run(cells, asked.jobs, asked.seconds, asked.rows)
    rows = read_rows(asked.rows)
    _PAGE.write_text(page(rows))
    if not asked.table_only:
        publish(as_record([row for row in rows if row["place"] == place], asked.device), asked.json)


if __name__ == "__main__":
    main()
