"""The step series as CSV, for a plot or a statistic of one's own."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from tcompile_tui.core.spec import Arm
from tcompile_tui.core.state import ProcessState, RunState

COLUMNS = ("process", "phase", "mode", "arm", "step", "step_ns", "warm_up", "compiler_active")


def series_csv(state: RunState) -> str:
    """One row a step, in the order of time within each process and arm; `warm_up` and `compiler_active` are 0 or 1.

    The first step has the time that a person waits for it. Of a block past the run folder's size limit only the
    smallest, middle and largest step are known: its rows repeat the middle one.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for process in state.processes.values():
        for arm in process.arms:
            writer.writerows(step_rows(process, arm))
    return text.getvalue()


def step_rows(process: ProcessState, arm: Arm, start: int = 0) -> Iterator[tuple[int | str, ...]]:
    """The rows of one arm in one process, from step `start` on."""
    steps, mode = process.arms[arm], process.mode.value if process.mode is not None else ""
    active = frozenset(steps.compiled_at)
    for index, step_ns in enumerate(steps.series.slice(start), start):
        shown_ns = steps.first_step_ns if index == 0 and steps.first_step_ns is not None else step_ns
        flags = int(index < steps.warmup_steps), int(index in active)
        yield (process.process, process.phase.value, mode, arm.value, index, shown_ns, *flags)
