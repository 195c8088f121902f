"""Memory that goes back to the system after each step, as a reason for processes that differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.findings import Finding
from tcompile_tui.core.spec import Arm
from tcompile_tui.core.verdict import decide
from tests.core.streams import Compiled, Process, cold_process, eager_process, replay, warm_process


def _faulting(process: Process, eager: int, compiled: int) -> Process:
    """With so many faults a step."""
    faults = {Arm.EAGER: eager, Arm.COMPILED: compiled}
    return [
        replace(event, minor_faults=faults[event.arm] * event.steps) if isinstance(event, ev.Block) else event
        for event in process
    ]


def _found(speedups: tuple[float, ...], eager: tuple[int, ...], device: str = "cpu") -> Finding | None:
    warm = [
        _faulting(warm_process(Compiled(speedup=speedup)), faults, 90)
        for speedup, faults in zip(speedups, eager, strict=True)
    ]
    state = replay(_faulting(eager_process(), 76, 0), cold_process(Compiled()), *warm, device=device)
    return next((finding for finding in decide(state).findings if finding.id == "page-faults"), None)


def test_processes_that_differ_by_their_pages_have_a_reason_and_a_remedy() -> None:
    found = _found((1.5, 2.0, 1.2), (300, 42_900, 120))
    assert found is not None
    assert found.evidence == "eager 76 to 42,900, compiled 90 page faults a step"
    assert "MALLOC_TRIM_THRESHOLD_=" in found.advice and "jemalloc" in found.advice


@pytest.mark.parametrize(
    ("speedups", "eager", "device"),
    [
        ((1.5, 1.5, 1.5), (42_900, 42_900, 42_900), "cpu"),  # the interval is narrow all the same
        ((1.5, 2.0, 1.2), (300, 90, 120), "cpu"),  # too few pages to matter
        ((1.5, 2.0, 1.2), (300, 42_900, 120), "cuda"),  # a GPU's step gets none of them
    ],
)
def test_pages_that_explain_nothing_are_not_told(
    speedups: tuple[float, ...], eager: tuple[int, ...], device: str
) -> None:
    assert _found(speedups, eager, device) is None


def test_records_without_faults_say_nothing_of_them() -> None:
    state = replay(eager_process(), cold_process(Compiled()), warm_process(Compiled()))
    assert all(arm.page_faults is None for process in state.processes.values() for arm in process.arms.values())
