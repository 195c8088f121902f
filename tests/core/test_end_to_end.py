"""Steps that wait for their data: what is left of the gain, and what is decided."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core import events as ev
from tcompile_tui.core.data_spec import DataSpec, read_data
from tcompile_tui.core.end_to_end import gain_with_data, speedup_with_data
from tcompile_tui.core.pairs import TimeGain
from tcompile_tui.core.spec import Phase, Plan, SpecError
from tcompile_tui.core.spread import MeanSpeedup, between_processes, mean_speedup
from tcompile_tui.core.state import RunState
from tcompile_tui.core.step_spec import FileFunction, StepSpec
from tcompile_tui.core.verdict import Decision, Verdict, decide
from tcompile_tui.core.verdict_json import verdict_document
from tcompile_tui.report.text import verdict_text
from tests.core.streams import Compiled, Process, both, done, eager_process, ended, model_ready, replay, started

_MS = st.floats(0.01, 1000.0)
_LOADER = DataSpec(loader=FileFunction("data.py", "loader"))


def _speedup(value: float, error: float = 0.01) -> MeanSpeedup:
    state = replay(eager_process(), *both(Compiled(speedup=value)))
    (interval,) = [process.interval for process in state.processes.values() if process.interval is not None]
    interval = replace(interval, value=value, standard_error=error)
    found = mean_speedup([interval], between_processes([[interval]]))
    assert found is not None
    return found


@given(st.floats(0.2, 5.0), st.floats(1e-4, 0.2), _MS, _MS)
def test_a_step_is_never_faster_than_its_data(ratio: float, error: float, eager_ms: float, data_ms: float) -> None:
    alone = _speedup(ratio, error)
    found = speedup_with_data(alone, eager_ms, data_ms)
    assert found.lo <= found.value <= found.hi
    assert abs(math.log(found.value)) <= abs(math.log(ratio)) + 1e-9, "data only takes from an effect"
    if data_ms <= eager_ms / alone.hi and data_ms <= eager_ms:
        assert (found.lo, found.value, found.hi) == pytest.approx((alone.lo, alone.value, alone.hi))
    if data_ms >= max(eager_ms, eager_ms / alone.lo):
        assert found.lo == found.value == found.hi == 1.0


@given(st.floats(-50.0, 50.0), st.floats(0.0, 20.0), _MS, _MS)
def test_a_step_saves_at_most_what_it_saves_without_data(
    saved_ms: float, error_ms: float, eager_ms: float, data_ms: float
) -> None:
    gain = TimeGain(1e6 * min(saved_ms, 0.9 * eager_ms), 1e6 * error_ms)
    found = gain_with_data(gain, eager_ms, data_ms)
    assert abs(found.mean_ns) <= abs(gain.mean_ns) * (1 + 1e-9) + 1e-3
    assert 0 <= found.standard_error_ns <= gain.standard_error_ns * (1 + 1e-9) + 1e-3
    assert gain_with_data(found, max(eager_ms, data_ms), data_ms).mean_ns == pytest.approx(found.mean_ns, abs=1e-2)


# ---------------------------------------------------------------- the decision: 10 ms eager, 5 ms compiled


def _run(data: DataSpec | None, *others: Process, steps: int = 1_000_000, step: StepSpec = StepSpec()) -> RunState:  # noqa: B008
    return replay(eager_process(), *others, *both(Compiled(speedup=2.0)), plan=Plan(steps=steps), data=data, step=step)


def _ids(verdict: Verdict) -> dict[str, str]:
    return {finding.id: f"{finding.title} {finding.evidence} {finding.advice}" for finding in verdict.findings}


def test_data_slower_than_the_step_leaves_nothing_to_gain() -> None:
    verdict = decide(_run(DataSpec(batch_ms=20.0)))
    assert verdict.decision is Decision.SKIP and verdict.paste_line is None
    assert (
        "2.00x" in verdict.headline
        and "1.000x end to end" in verdict.headline
        and "fix the loader first" in verdict.headline
    )
    assert "20.0 ms, longer than the step" in _ids(verdict)["data-limits"]
    assert verdict.speedup is not None and verdict.speedup.value == 1.0


def test_a_speedup_that_is_not_known_does_not_matter_where_both_wait() -> None:
    noisy = Compiled(speedup=1.05, noise=0.3, lost=0.1)
    verdict = decide(replay(eager_process(), *both(noisy), data=DataSpec(batch_ms=100.0)))
    assert verdict.decision is Decision.SKIP and "fix the loader first" in verdict.headline
    assert "data-limits" in _ids(verdict)
    assert decide(replay(eager_process(), *both(noisy))).decision is Decision.TEST_CAREFULLY


def test_where_nothing_is_gained_the_data_is_not_the_reason() -> None:
    verdict = decide(replay(eager_process(), *both(Compiled(speedup=0.8)), data=DataSpec(batch_ms=100.0)))
    assert verdict.decision is Decision.SKIP and "fix the loader first" not in verdict.headline


def test_a_part_of_the_gain_is_counted_as_a_part() -> None:
    state = _run(DataSpec(batch_ms=8.0))
    verdict = decide(state)
    assert verdict.decision is Decision.ENABLE and verdict.best is not None
    assert verdict.best.planned_gain == pytest.approx(0.2, abs=0.01)
    found = verdict.best.result.break_even_cold
    assert found is not None and found.steps == pytest.approx(21.5 / 2e-3, rel=0.01)
    assert "60 % of its gain waits for 8.00 ms" in _ids(verdict)["data-limits"]
    mode = verdict_document(state, verdict)["per_mode"]["default"]
    assert mode["end_to_end_speedup"]["value"] == pytest.approx(1.25, rel=0.01)
    assert mode["speedup"]["value"] == pytest.approx(2.0, rel=0.01)
    assert mode["planned_time_s"]["eager"] == pytest.approx(1e4, rel=0.01)
    assert "end to end 1.25x" in verdict_text(state, verdict)


def test_a_run_that_would_pay_by_its_steps_may_not_pay_with_its_data() -> None:
    assert decide(_run(None, steps=12_000)).decision is Decision.ENABLE
    assert decide(_run(DataSpec(batch_ms=9.0), steps=12_000)).decision is Decision.SKIP, "21.5 s for 1 ms a step"


def test_fast_data_changes_nothing() -> None:
    fast, without = decide(_run(DataSpec(batch_ms=1.0))), decide(_run(None))
    assert (fast.decision, fast.headline) == (without.decision, without.headline)
    assert "data-limits" not in _ids(fast)


def test_hours_are_those_of_steps_that_wait() -> None:
    state = replay(eager_process(), *both(Compiled(speedup=2.0)), plan=Plan(hours=1.0), data=DataSpec(batch_ms=20.0))
    assert decide(state).planned_steps == pytest.approx(3600 / 20e-3)


def test_a_step_of_several_micro_batches_waits_for_each() -> None:
    verdict = decide(_run(DataSpec(batch_ms=4.0), step=StepSpec(accumulate=3)))
    assert verdict.decision is Decision.SKIP and "12.0 ms" in verdict.headline


# ---------------------------------------------------------------- a loader that was timed


def _timed(samples: int | None = None) -> Process:
    timed = ev.LoaderTimed(batches=100, batch_ns=20e6, workers=0, samples=samples)
    return [started(Phase.LOADER), timed, *done(Phase.LOADER)]


def test_a_timed_loader_is_named_with_what_was_seen_of_it() -> None:
    state = _run(_LOADER, _timed())
    verdict = decide(state)
    assert verdict.decision is Decision.SKIP
    text = _ids(verdict)["data-limits"]
    assert "data.py:loader" in text and "100 batches" in text and "timed alone" in text and "num_workers" in text
    assert verdict_document(state, verdict)["data"]["timed_batches"] == 100


def test_a_loader_that_fails_leaves_the_decision_to_the_steps() -> None:
    failure = ev.WorkerFailed(
        stage="loader", error_type="OSError", message="no data", file="data.py", line=3, fault="model"
    )
    failed = [started(Phase.LOADER), failure, ended(Phase.LOADER, outcome=ev.Outcome.ERROR)]
    verdict = decide(_run(_LOADER, failed))
    assert verdict.decision is Decision.ENABLE
    assert "OSError: no data (data.py:3)" in _ids(verdict)["loader-not-timed"]


def test_a_loader_of_other_batches_is_told() -> None:
    for samples, told in ((64, True), (8, False), (None, False)):
        eager = eager_process(model=model_ready(training=True))
        state = replay(eager, _timed(samples), *both(Compiled(speedup=2.0)), data=_LOADER)
        assert ("loader-other-batch" in _ids(decide(state))) is told


@pytest.mark.parametrize(
    ("given_ms", "loader", "words"),
    [("0", None, "no time"), ("nan", None, "no time"), ("3", "d.py:f", "not both"), (None, "d.py", "file.py:function")],
)
def test_what_cannot_be_read_is_refused(given_ms: str | None, loader: str | None, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        read_data(given_ms, loader)
