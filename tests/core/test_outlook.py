"""Whether another warm process can change the decision."""

from __future__ import annotations

import pytest

from tcompile_tui.core.outlook import further_process_matters
from tcompile_tui.core.spec import Mode, Plan
from tcompile_tui.core.state import RunState
from tests.core.streams import Compiled, cold_process, eager_process, leaf, replay, warm_process


def run_of(run: Compiled, processes: int = 1, steps: int = 100_000_000) -> RunState:
    warm = [warm_process(run)] * processes
    return replay(eager_process(), cold_process(run), *warm, plan=Plan(steps=steps))


@pytest.mark.parametrize(
    ("speedup", "matters"),
    [(0.6, False), (0.9, False), (0.985, False), (1.0, True), (1.02, True), (1.07, True), (1.12, False), (2.0, False)],
)
def test_only_what_lies_near_a_border_is_measured_again(speedup: float, matters: bool) -> None:
    assert further_process_matters(run_of(Compiled(speedup=speedup)), Mode.DEFAULT, 3) is matters


def test_near_the_break_even_it_matters() -> None:
    """1.2x saves 1.67 ms a step and its start costs 21.5 s: 12,900 steps, twice that for safety."""
    run = Compiled(speedup=1.2)
    assert [further_process_matters(run_of(run, steps=n), Mode.DEFAULT, 3) for n in (2_000, 32_000, 1_000_000)] == [
        False,
        True,
        False,
    ]


def test_noise_that_three_processes_would_narrow_matters() -> None:
    assert further_process_matters(run_of(Compiled(speedup=1.12, noise=0.09)), Mode.DEFAULT, 3)


def test_three_are_enough() -> None:
    near = Compiled(speedup=1.01)
    assert [further_process_matters(run_of(near, n), Mode.DEFAULT, 3) for n in (1, 2, 3)] == [True, True, False]
    assert further_process_matters(run_of(near, 3), Mode.DEFAULT, 5)


def test_a_class_that_the_speedup_does_not_decide_stays() -> None:
    wrong = Compiled(speedup=1.02, output=leaf(0.3))
    assert not further_process_matters(run_of(wrong), Mode.DEFAULT, 3)


def test_before_a_comparison_there_is_nothing_to_settle() -> None:
    assert not further_process_matters(RunState(), Mode.DEFAULT, 3)
    assert not further_process_matters(replay(eager_process(), cold_process(Compiled())), Mode.DEFAULT, 3)
