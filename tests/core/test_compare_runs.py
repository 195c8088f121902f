"""Two runs side by side: what counts as a change, and what the intervals allow for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core import events as ev
from tcompile_tui.core.compare_runs import ComparedRun, Comparison, Trend, compare_runs, ratio_of_speedups
from tcompile_tui.core.pairs import SpeedupInterval, paired_interval
from tcompile_tui.core.results import HostDependence
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import decide
from tests.core.streams import Compiled, both, eager_process, replay
from tests.ui.verdict_cases import failing, with_breaks

PLAIN = Compiled(speedup=1.8)


def side(*runs: Compiled, name: str = "run", **started: Any) -> ComparedRun:
    processes = [process for run in runs for process in both(run)]
    state = replay(eager_process(), *processes, modes=tuple(run.mode for run in runs))
    return of(state, name, **started)


def of(state: RunState, name: str = "run", **started: Any) -> ComparedRun:
    if started:
        assert state.run is not None
        state.run = replace(state.run, **started)
    return ComparedRun(name, state, decide(state), "host")


def compared(before: Compiled, after: Compiled) -> Comparison:
    return compare_runs(side(before), side(after))


def test_a_run_against_itself_has_not_changed() -> None:
    found = compared(PLAIN, PLAIN)
    assert found.differences == () and found.worse == () and found.better == ()
    assert found.modes[0].speedup.trend is Trend.UNCLEAR and found.modes[0].memory.trend is Trend.SAME
    assert found.summary == "no change beyond the intervals" and not found.is_regression


def test_a_speedup_that_fell_beyond_the_intervals_is_a_regression() -> None:
    found = compared(PLAIN, replace(PLAIN, speedup=1.5))
    assert found.is_regression and "the speedup is 0.833x" in found.worse[0] and "default" in found.worse[0]
    assert "1.000x the time in eager and 1.20x compiled" in found.worse[0]
    assert not compared(replace(PLAIN, speedup=1.5), PLAIN).is_regression


def test_narrow_intervals_around_one_say_the_same() -> None:
    assert ratio_of_speedups(interval(1.8, 0.005), interval(1.8, 0.005)).trend is Trend.SAME


def test_where_eager_waits_for_the_host_a_change_is_not_blamed_on_the_compiler() -> None:
    before, after = side(PLAIN), side(replace(PLAIN, speedup=1.5))
    (judged,) = after.verdict.modes
    waits = HostDependence(9.0, 12.0, 1.4, 1.3)
    waiting = replace(judged, result=replace(judged.result, host_dependence=waits))
    found = compare_runs(before, replace(after, verdict=replace(after.verdict, modes=(waiting,))))
    assert found.modes[0].speedup.trend is Trend.HOST and not found.is_regression


def test_a_difference_within_the_intervals_is_none() -> None:
    noisy = replace(PLAIN, noise=0.1)
    found = compared(noisy, replace(noisy, speedup=1.75))
    assert found.modes[0].speedup.trend is Trend.UNCLEAR and not found.is_regression


def test_one_start_differs_from_another_by_more_than_a_tenth_by_chance() -> None:
    assert compared(PLAIN, replace(PLAIN, compile_s=24.0)).modes[0].cold_start.trend is Trend.UNCLEAR
    slow = compared(PLAIN, replace(PLAIN, compile_s=60.0))
    assert slow.is_regression and any("cold start" in text for text in slow.worse)


def test_recompiles_breaks_and_memory_are_told() -> None:
    found = compared(PLAIN, replace(PLAIN, recompiles=2))
    assert any("2 more recompiles" in text for text in found.worse)
    site = ev.GraphBreak(compile_id="0/0", file="net.py", line=3, function="forward", reason="print")
    found = compare_runs(of(with_breaks()), of(with_breaks(site)))
    assert any("1 more graph breaks" in text for text in found.worse)
    assert any("1 fewer graph breaks" in text for text in compare_runs(of(with_breaks(site)), of(with_breaks())).better)


def test_what_was_different_is_named_and_another_torch_may_still_be_a_regression() -> None:
    found = compare_runs(side(PLAIN), side(replace(PLAIN, speedup=1.5), torch_version="2.14.0"))
    (torch,) = found.differences
    assert (torch.name, torch.before, torch.after) == ("torch", "2.13.0", "2.14.0")
    assert found.same_question and found.is_regression


def test_another_device_is_no_regression() -> None:
    found = compare_runs(side(PLAIN), side(replace(PLAIN, speedup=1.5), device_name="NVIDIA H200"))
    assert not found.is_regression and found.worse and found.summary.startswith("another device. worse: ")
    assert found.modes[0].memory.trend is Trend.UNKNOWN


def test_another_model_is_not_judged() -> None:
    before, after = side(PLAIN), side(replace(PLAIN, speedup=1.5))
    assert after.state.run is not None
    spec = replace(after.state.run.spec, dtype="bfloat16")
    found = compare_runs(before, of(after.state, spec=spec))
    assert not found.same_question and not found.is_regression
    assert "dtype" in found.summary and "no judgement" in found.summary


def test_a_mode_that_fails_now_is_a_regression_and_one_that_was_not_asked_for_is_none() -> None:
    failed = of(replay(eager_process(), failing(Phase.COLD, "compiler", Mode.DEFAULT)))
    found = compare_runs(side(PLAIN), failed)
    assert any("measured, now failed" in text for text in found.worse)
    more = compare_runs(side(PLAIN), side(PLAIN, Compiled(Mode.MAX_AUTOTUNE, speedup=1.8)))
    assert more.modes[1].before is None and more.worse == ()


def test_an_empty_run_compares_as_unknown() -> None:
    found = compare_runs(of(RunState()), of(RunState()))
    assert found.modes == () and not found.is_regression


def interval(value: float, half: float) -> SpeedupInterval:
    plain = paired_interval([0.0] * 20)
    assert plain is not None
    return replace(plain, value=value, lo=value * math.exp(-half), hi=value * math.exp(half), half_width=half)


@given(*[st.floats(0.1, 10)] * 2, *[st.floats(0, 0.5)] * 2)
def test_swapping_the_runs_turns_the_ratio_round(a: float, b: float, half_a: float, half_b: float) -> None:
    there = ratio_of_speedups(interval(a, half_a), interval(b, half_b))
    back = ratio_of_speedups(interval(b, half_b), interval(a, half_a))
    assert there.value is not None and there.lo is not None and there.hi is not None and back.value is not None
    assert there.lo <= there.value * (1 + 1e-9) and there.value <= there.hi * (1 + 1e-9)
    assert there.value * back.value == pytest.approx(1)
    assert math.log(there.hi / there.lo) >= 2 * max(half_a, half_b) - 1e-9
    opposite = {Trend.BETTER: Trend.WORSE, Trend.WORSE: Trend.BETTER}
    assert Trend.SAME in (there.trend, back.trend) or back.trend is opposite.get(there.trend, there.trend)
