"""What a measured mode comes to over a run: its total time, its starts, and the decision for usual lengths."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from tcompile_tui.core.projections import PROJECTED_STEPS, decisions_by_horizon, total_time, total_times
from tcompile_tui.core.results import ModeResult, planned_break_even, planned_gain
from tcompile_tui.core.spec import Mode, Plan, Starts
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, decide, decide_for
from tcompile_tui.core.verdict_json import encode_verdict, verdict_document
from tests.core.streams import EAGER_MS, Compiled, cold_process, eager_process, replay, warm_process

TWICE = Compiled(speedup=2.0, compile_s=20.0)  # cold 21.5 s and warm 3.5 s beyond an eager start, 5 ms saved a step


def run_of(run: Compiled, plan: Plan, processes: int = 3) -> RunState:
    return replay(eager_process(), cold_process(run), *[warm_process(run)] * processes, plan=plan)


def result_of(run: Compiled = TWICE) -> ModeResult:
    (judged,) = decide(run_of(run, Plan())).modes
    return judged.result


# ---------------------------------------------------------------- total times


def test_total_time_is_the_starts_and_the_steps() -> None:
    row = total_time(result_of(), 10_000)
    assert row is not None
    assert row.eager_s == pytest.approx(10_000 * EAGER_MS / 1e3, rel=1e-3)
    assert row.compiled_s == pytest.approx(21.5 + 50.0, rel=1e-3)
    assert row.compiled_lo_s < row.compiled_s < row.compiled_hi_s


def test_every_planned_start_is_in_it() -> None:
    once, often = (total_time(result_of(), 10_000, starts) for starts in (Starts(1, 0), Starts(1, 20)))
    assert once is not None and often is not None
    assert often.compiled_s - once.compiled_s == pytest.approx(20 * 3.5, rel=0.01)
    assert often.eager_s == once.eager_s


def test_rows_are_powers_of_ten_and_cross_at_the_break_even() -> None:
    result = result_of()
    rows = total_times(result)
    assert tuple(row.steps for row in rows) == PROJECTED_STEPS == (100, 1_000, 10_000, 100_000, 1_000_000)
    assert all(first.compiled_s < second.compiled_s for first, second in pairwise(rows))
    assert result.break_even_cold is not None and result.break_even_cold.steps is not None
    crossing = total_time(result, result.break_even_cold.steps)
    assert crossing is not None
    assert crossing.compiled_s == pytest.approx(crossing.eager_s)


def test_what_was_not_measured_is_not_projected() -> None:
    state = replay(eager_process(), cold_process(TWICE))
    (judged,) = decide(state).modes
    assert total_times(judged.result) == ()
    cold_only = ModeResult(Mode.DEFAULT, result_of().status, gain=result_of().gain, cold_start=result_of().cold_start)
    assert planned_break_even(cold_only, Starts(1, 0)) is not None
    assert planned_break_even(cold_only, Starts(1, 1)) is None
    assert planned_gain(cold_only, 1e6, Starts(1, 1)) is None


# ---------------------------------------------------------------- starts decide


@pytest.mark.parametrize(
    ("starts", "decision"),
    [
        (Starts(1, 0), Decision.ENABLE),
        (Starts(0, 1), Decision.ENABLE),
        (Starts(1, 20), Decision.ENABLE_WITH_CARE),
        (Starts(20, 0), Decision.SKIP),
    ],
)
def test_the_sum_of_the_starts_decides(starts: Starts, decision: Decision) -> None:
    """30,000 steps save 150 s: one start is paid for, 20 cold ones are not."""
    verdict = decide(run_of(TWICE, Plan(steps=30_000, starts=starts)))
    assert verdict.decision is decision


def test_the_headline_names_the_starts() -> None:
    verdict = decide(run_of(TWICE, Plan(steps=1_000_000, starts=Starts(1, 20))))
    assert "1 cold and 20 warm starts are paid back after 18," in verdict.headline
    only_warm = decide(run_of(TWICE, Plan(steps=1_000_000, starts=Starts(0, 1))))
    assert "1 warm start is paid back after 701 steps" in only_warm.headline


def test_one_cold_start_is_the_default() -> None:
    verdict = decide(run_of(TWICE, Plan(steps=1_000_000)))
    assert verdict.best is not None
    assert verdict.best.planned_break_even == verdict.best.result.break_even_cold


# ---------------------------------------------------------------- other plans


def test_usual_lengths_are_decided_each() -> None:
    """1.3x that costs 1,500 s to start: an hour of eager steps saves 830 s."""
    slow = Compiled(speedup=1.3, compile_s=1_500.0)
    assert decisions_by_horizon(run_of(slow, Plan())) == {
        "1 h": Decision.SKIP,
        "1 day": Decision.ENABLE,
        "1 week": Decision.ENABLE,
    }


def test_deciding_for_another_plan_leaves_the_run_alone() -> None:
    state = run_of(TWICE, Plan(steps=100))
    assert decide_for(state, Plan(steps=1_000_000)).decision is Decision.ENABLE
    assert decide(state).decision is Decision.SKIP
    assert decide_for(RunState(), Plan()) == decide(RunState())


def test_the_document_tells_all_of_it() -> None:
    state = run_of(TWICE, Plan(starts=Starts(1, 2)))
    document = msgspec.json.decode(encode_verdict(verdict_document(state, decide(state))))
    mode = document["per_mode"]["default"]
    assert document["planned_starts"] == {"cold": 1, "warm": 2}
    assert document["decision_by_horizon"] == {"1 h": "ENABLE", "1 day": "ENABLE", "1 week": "ENABLE"}
    assert (mode["speedup"]["processes"], mode["speedup"]["pairs"]) == (3, 120)
    assert 0 < mode["speedup"]["within_sd"] < mode["speedup"]["between_sd"] < 0.01
    assert [row["steps"] for row in mode["total_time_s"]] == list(PROJECTED_STEPS)
    assert (mode["steadiness"], mode["course"]) == ("steady", "flat")
    assert mode["planned_time_s"]["steps"] == document["planned_steps"]
    assert mode["planned_break_even_steps"] == pytest.approx(28.5 / 5e-3, rel=0.01)


def test_with_a_plan_no_other_lengths_are_decided() -> None:
    state = run_of(TWICE, Plan(steps=100_000))
    assert verdict_document(state, decide(state))["decision_by_horizon"] is None
    empty = verdict_document(RunState(), decide(RunState()))
    assert empty["planned_starts"] == {"cold": 1, "warm": 0}
