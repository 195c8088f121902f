"""SKIP in mid-compile: only where no speedup could pay for the start."""

from __future__ import annotations

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.answer_time import first_answer_s
from tcompile_tui.core.early_answer import PlannedRun, mean_at_most, planned_run
from tcompile_tui.core.projections import decisions_by_horizon
from tcompile_tui.core.spec import Mode, Phase, Plan, Starts
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, ExitCode, decide, decide_for
from tests.core.streams import EAGER_MS, Compiled, Process, both, eager_process, ended, replay, started

EAGER_START_S = 0.5 - EAGER_MS / 1e3  # as eager_process has it
MODES = (Mode.DEFAULT, Mode.REDUCE_OVERHEAD)


def _stopped(start_s: float, process: int, mode: Mode = Mode.DEFAULT) -> Process:
    return [
        started(Phase.COLD, mode),
        ev.ImportsDone(torch_s=1.0, compiler_s=2.0),
        ev.ModelCompiled(wrapped=False),
        ev.CompileStopped(of_process=process, start_s=start_s),
        ended(Phase.COLD, mode, ev.Outcome.STOPPED),
    ]


def _after_eager(plan: Plan) -> RunState:
    return replay(eager_process(), plan=plan)


def test_the_planned_run_is_that_of_the_plan_that_was_given() -> None:
    by_steps = planned_run(_after_eager(Plan(steps=500)))
    assert by_steps is not None
    assert by_steps.eager_s == pytest.approx(500 * EAGER_MS / 1e3)
    assert by_steps.eager_start_s == pytest.approx(EAGER_START_S)
    by_hours = planned_run(_after_eager(Plan(hours=2, starts=Starts(cold=3, warm=1))))
    assert by_hours is not None and (by_hours.eager_s, by_hours.cold_starts) == (7200.0, 3)


def test_no_answer_is_early_for_an_assumed_plan_or_without_eager_steps() -> None:
    assert planned_run(_after_eager(Plan())) is None
    assert planned_run(replay(eager_process()[:2], plan=Plan(steps=20))) is None


@pytest.mark.parametrize(
    ("start_s", "cold", "certain"),
    [(10.0, 1, False), (12.0, 1, False), (13.0, 1, True), (13.0, 0, False), (4.0, 2, False), (7.0, 2, True)],
)
def test_a_start_cannot_pay_off_only_beyond_its_spread(start_s: float, cold: int, certain: bool) -> None:
    assert PlannedRun(eager_s=10.0, eager_start_s=0.0, cold_starts=cold).cannot_pay(start_s) is certain


def test_certain_means_that_measuring_on_at_any_speedup_would_say_skip_too() -> None:
    state = replay(eager_process(), *both(Compiled(speedup=500, compile_s=30)), plan=Plan(steps=1))
    cold = decide(state).modes[0].result.cold_start
    assert cold is not None
    for steps in range(100, 6_000, 50):
        planned = planned_run(replay(eager_process(), plan=Plan(steps=steps)))
        assert planned is not None
        if planned.cannot_pay(cold.extra.mean_s):
            assert decide_for(state, Plan(steps=steps)).decision is Decision.SKIP
    assert not planned.cannot_pay(cold.extra.mean_s), "the longest of these runs was not certain"


def test_what_a_start_has_cost_is_known_in_its_first_step_only() -> None:
    planned = PlannedRun(eager_s=1.0, eager_start_s=0.5, cold_starts=1)
    waiting = replay(eager_process(), _stopped(1.0, 2)[:2]).processes[2]
    assert planned.start_so_far_s(waiting, 30.0) is None
    compiling = replay(eager_process(), _stopped(1.0, 2)[:3]).processes[2]  # which began at 2.0 s
    assert planned.start_so_far_s(compiling, 30.0) == pytest.approx(2.0 + 28.0 - 0.5)
    over = replay(eager_process(), both(Compiled())[0]).processes[2]
    over.compiled = ev.ModelCompiled(wrapped=False)
    assert planned.start_so_far_s(over, 30.0) is None


def test_skip_is_decided_from_the_records_with_its_figures() -> None:
    state = replay(eager_process(), _stopped(3.0, 2), plan=Plan(steps=20))
    verdict = decide(state)
    assert (verdict.decision, verdict.exit_code) == (Decision.SKIP, ExitCode.DECIDED)
    assert "3.00 s" in verdict.headline and "200 ms in eager" in verdict.headline
    (finding,) = (finding for finding in verdict.findings if finding.id == "start-outlasts-run")
    assert "--starts cold=0,warm=1" in finding.advice
    assert first_answer_s(state, verdict) == 2.0
    state.apply(ev.stamp(ev.RunEnded(decision="SKIP", headline="", exit_code=0), 9.0, 0))
    assert first_answer_s(state, verdict) == 2.0


def test_a_longer_plan_has_no_answer_in_a_compile_that_was_stopped() -> None:
    state = replay(eager_process(), _stopped(3.0, 2), plan=Plan(steps=20))
    longer = decide_for(state, Plan(steps=100_000))
    assert longer.decision is Decision.STOPPED and "planned then" in longer.headline
    assert set(decisions_by_horizon(state).values()) == {Decision.STOPPED}


def test_every_mode_must_be_certain_for_an_early_answer() -> None:
    plan = Plan(steps=100)
    one = replay(eager_process(), *both(Compiled()), _stopped(3.0, 4, MODES[1]), modes=MODES, plan=plan)
    assert decide(one).decision is Decision.SKIP
    assert first_answer_s(one, decide(one)) is None, "default had to be measured, and the run has not ended"
    both_stopped = replay(eager_process(), _stopped(3.0, 2), _stopped(4.0, 3, MODES[1]), modes=MODES, plan=plan)
    assert first_answer_s(both_stopped, decide(both_stopped)) == 3.0


def test_a_run_without_a_decision_has_no_answer() -> None:
    state = replay(eager_process())
    state.apply(ev.stamp(ev.RunEnded(decision="STOPPED", headline="", exit_code=5), 9.0, 0))
    assert first_answer_s(state, decide(state)) is None
    decided = replay(eager_process(), *both(Compiled()))
    decided.apply(ev.stamp(ev.RunEnded(decision="ENABLE", headline="", exit_code=0), 9.0, 0))
    assert first_answer_s(decided, decide(decided)) == 9.0


def test_the_mean_is_at_most_its_upper_end() -> None:
    assert mean_at_most([1.0, 2.0]) is None
    assert mean_at_most([1.0, 2.0, 3.0]) == pytest.approx(2 + 4.303 / 3**0.5, rel=1e-3)
    assert mean_at_most([5.0] * 100) == 5.0
    drifting = [float(i // 100) for i in range(1000)]
    assert mean_at_most(drifting) == pytest.approx(4.5 + 2.262 * 3.0277 / 10**0.5, rel=1e-3)
