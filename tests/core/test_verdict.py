"""What is decided for whole runs, as the records of their processes tell them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Arm, Mode, Phase, Plan, Preset
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, ExitCode, Verdict, decide
from tcompile_tui.host.event_log import read_events
from tests.core.streams import (
    DATA,
    EAGER_MS,
    Compiled,
    Process,
    block,
    both,
    cold_process,
    eager_process,
    ended,
    leaf,
    replay,
    started,
    warm_process,
)

TWO_MODES = (Mode.DEFAULT, Mode.REDUCE_OVERHEAD)


def verdict_of(run: Compiled, steps: int = 1_000_000, preset: Preset = Preset.STANDARD) -> Verdict:
    return decide(replay(eager_process(), *both(run), plan=Plan(steps=steps), preset=preset))


def ids(verdict: Verdict) -> set[str]:
    return {finding.id for finding in verdict.findings}


# ---------------------------------------------------------------- one mode that was measured


def test_a_clear_win_is_enabled_with_its_break_even() -> None:
    verdict = verdict_of(Compiled(speedup=2.0, compile_s=20.0))
    assert (verdict.decision, verdict.exit_code) == (Decision.ENABLE, ExitCode.DECIDED)
    assert verdict.best_mode is Mode.DEFAULT
    assert verdict.paste_line == "model.compile()"
    assert verdict.best is not None
    found = verdict.best.result.break_even_cold
    # 20 s compile and 2 s imports, less the 0.5 s that an eager start costs too, at 5 ms saved a step.
    assert found is not None
    assert found.steps == pytest.approx(21.5 / 5e-3, rel=0.01)
    assert "cold start is paid back after 4,3" in verdict.headline
    assert "the planned 1.00 million steps" in verdict.headline
    assert verdict.best.planned_gain == pytest.approx(0.5, abs=0.01)


def test_a_warm_start_is_paid_back_sooner() -> None:
    best = verdict_of(Compiled(speedup=2.0, compile_s=20.0)).best
    assert best is not None
    cold, warm = best.result.break_even_cold, best.result.break_even_warm
    assert cold is not None and warm is not None and cold.steps is not None
    assert warm.steps == pytest.approx(3.5 / 5e-3, rel=0.02)


@pytest.mark.parametrize(
    ("steps", "decision", "reason"),
    [
        (2_000, Decision.SKIP, "the run ends before the break-even"),
        (4_300, Decision.TEST_CAREFULLY, "the run ends near the break-even"),
        (7_000, Decision.ENABLE_WITH_CARE, "not much longer than the break-even"),
        (50_000, Decision.ENABLE, ""),
    ],
)
def test_the_planned_run_decides(steps: int, decision: Decision, reason: str) -> None:
    verdict = verdict_of(Compiled(speedup=2.0, compile_s=20.0), steps)
    assert verdict.decision is decision
    assert reason in verdict.headline


def test_slower_is_skipped() -> None:
    verdict = verdict_of(Compiled(speedup=0.9))
    assert verdict.decision is Decision.SKIP
    assert "slower in steady state" in verdict.headline
    assert verdict.paste_line is None


def test_no_difference_is_skipped() -> None:
    verdict = verdict_of(Compiled(speedup=1.0))
    assert verdict.decision is Decision.SKIP
    assert "no gain larger than" in verdict.headline


def test_noise_names_the_smallest_difference_that_could_be_seen() -> None:
    verdict = verdict_of(Compiled(speedup=1.02, noise=0.08))
    assert verdict.decision is Decision.TEST_CAREFULLY
    assert verdict.best is not None and verdict.best.result.speedup is not None
    smallest = verdict.best.result.speedup.smallest_detectable
    assert 0.03 < smallest < 0.15
    assert f"a difference below {100 * smallest:.1f} % could not be seen" in verdict.headline


def test_a_gain_in_the_median_but_not_in_the_mean_has_no_break_even() -> None:
    """Rare slow steps of the compiled arm eat what its usual step saves."""
    process = warm_process(Compiled(speedup=1.1))
    for i, event in enumerate(process):
        if isinstance(event, ev.Block) and event.role is ev.BlockRole.PAIR and event.arm is Arm.COMPILED:
            process[i] = replace(event, step_ns=(*event.step_ns[:-1], event.step_ns[-1] * 3))
    verdict = decide(replay(eager_process(), cold_process(Compiled(speedup=1.1)), process))
    assert verdict.decision is Decision.TEST_CAREFULLY
    assert "too uncertain to name a break-even" in verdict.headline


def test_a_small_gain_is_enabled_with_care() -> None:
    verdict = verdict_of(Compiled(speedup=1.03, noise=0.001), steps=10_000_000)
    assert verdict.decision is Decision.ENABLE_WITH_CARE
    assert "the gain is small" in verdict.headline
    assert verdict.paste_line == "model.compile()"


def test_other_outputs_are_never_enabled() -> None:
    verdict = verdict_of(Compiled(speedup=2.0, output=leaf(0.3)))
    assert verdict.decision is Decision.TEST_CAREFULLY
    assert "outputs differ from eager" in verdict.headline
    assert "outputs-different" in ids(verdict)


def test_doubtful_outputs_are_enabled_with_care() -> None:
    verdict = verdict_of(Compiled(speedup=2.0, output=leaf(2e-3)))
    assert verdict.decision is Decision.ENABLE_WITH_CARE
    assert "could not be established" in verdict.headline


def test_recompiling_in_the_comparison_is_to_be_tested() -> None:
    verdict = verdict_of(Compiled(speedup=2.0, broken_pairs=(3, 9, 20)))
    assert verdict.decision is Decision.TEST_CAREFULLY
    assert "it keeps recompiling" in verdict.headline
    assert "compiled-while-measuring" in ids(verdict)
    assert verdict.best is not None and verdict.best.result.speedup is not None
    assert verdict.best.result.speedup.pairs == 37


@pytest.mark.parametrize(
    ("speedup", "lost", "decision"),
    [
        (1.15, 0.01, Decision.ENABLE),
        (1.15, 0.10, Decision.TEST_CAREFULLY),
        (1.00, 0.10, Decision.TEST_CAREFULLY),
        (0.90, 0.10, Decision.TEST_CAREFULLY),
        (0.60, 0.10, Decision.SKIP),
        (2.00, 0.10, Decision.ENABLE_WITH_CARE),
    ],
)
def test_on_a_busy_host_only_a_large_effect_stands(speedup: float, lost: float, decision: Decision) -> None:
    verdict = verdict_of(Compiled(speedup=speedup, lost=lost), steps=100_000_000)
    assert verdict.decision is decision
    assert ("host-contended" in ids(verdict)) == (lost > 0.03)
    assert ("other work on this machine" in verdict.headline) == (lost > 0.03 and decision is not Decision.SKIP)


@pytest.mark.parametrize(
    ("eager_alone_ms", "speedup", "compiled_host_share", "decision", "found"),
    [
        (10.0, 4.0, 0.4, Decision.ENABLE, False),  # the host was as fast in every process
        (6.0, 4.0, 0.4, Decision.ENABLE, True),  # on the faster host still 2.4x
        (5.0, 2.0, 0.4, Decision.ENABLE_WITH_CARE, True),  # on the faster host nothing is left
        (5.0, 2.0, 1.0, Decision.ENABLE, False),  # both arms wait for the host: the ratio is not moved
    ],
)
def test_a_host_that_slowed_down_under_a_launch_bound_eager_arm_is_told(
    eager_alone_ms: float, speedup: float, compiled_host_share: float, decision: Decision, found: bool
) -> None:
    shares = {Arm.EAGER: 1.0, Arm.COMPILED: compiled_host_share}
    warm = [
        replace(event, host_ns=tuple(round(shares[event.arm] * step) for step in event.step_ns))
        if isinstance(event, ev.Block)
        else event
        for event in warm_process(Compiled(speedup=speedup))
    ]
    verdict = decide(replay(eager_process(eager_alone_ms), cold_process(Compiled(speedup=speedup)), warm))
    assert verdict.decision is decision
    assert ("host-speed-moved" in ids(verdict)) is found
    if found:
        (finding,) = (finding for finding in verdict.findings if finding.id == "host-speed-moved")
        assert f"about {speedup * eager_alone_ms / EAGER_MS:.1f}" in finding.evidence


def test_a_busy_gpu_keeps_enable_away() -> None:
    sample = ev.GpuSample(other_utilisation_percent=30.0, other_pids=(7,))
    state = replay(eager_process(), *both(Compiled(speedup=2.0)), samples=[sample] * 3)
    verdict = decide(state)
    assert verdict.decision is Decision.ENABLE_WITH_CARE
    assert "another process computed on this GPU" in verdict.headline


def test_an_assumed_plan_is_said_and_is_a_day() -> None:
    verdict = decide(replay(eager_process(), *both(Compiled(speedup=2.0)), plan=Plan()))
    assert verdict.assumed_plan
    assert verdict.planned_steps == pytest.approx(24 * 3600 / (EAGER_MS / 1e3), rel=0.01)
    assert "an assumed 24 h of eager steps" in verdict.headline
    assert not verdict_of(Compiled()).assumed_plan


def test_deciding_twice_gives_the_same() -> None:
    state = replay(eager_process(), *both(Compiled(speedup=1.3, noise=0.02)))
    assert decide(state) == decide(state)


def test_a_run_that_goes_on_is_decided_without_a_fault() -> None:
    """The screen asks after every record."""
    state = RunState()
    for event in read_events(DATA / "runs" / "mlp_smoke.jsonl"):
        state.apply(event)
        decide(state)
    assert state.events > 100


# ---------------------------------------------------------------- several modes


def test_the_mode_with_the_larger_gain_over_the_plan_is_best() -> None:
    quick = Compiled(speedup=1.5, compile_s=10.0)
    strong = Compiled(Mode.REDUCE_OVERHEAD, speedup=2.0, compile_s=60.0)
    processes = (eager_process(), *both(quick), *both(strong))
    long_run = decide(replay(*processes, modes=TWO_MODES, plan=Plan(steps=1_000_000)))
    assert (long_run.decision, long_run.best_mode) == (Decision.ENABLE, Mode.REDUCE_OVERHEAD)
    assert long_run.paste_line == 'model.compile(mode="reduce-overhead")'
    short_run = decide(replay(*processes, modes=TWO_MODES, plan=Plan(steps=26_000)))
    assert (short_run.decision, short_run.best_mode) == (Decision.ENABLE, Mode.DEFAULT)


def test_a_mode_that_fails_is_a_finding_and_does_not_decide() -> None:
    failed: Process = [
        started(Phase.COLD, Mode.REDUCE_OVERHEAD),
        ev.WorkerFailed(stage="compiled steps", error_type="BackendCompilerFailed", message="no", fault="compiler"),
        ended(Phase.COLD, Mode.REDUCE_OVERHEAD, ev.Outcome.ERROR),
    ]
    verdict = decide(replay(eager_process(), *both(Compiled(speedup=2.0)), failed, modes=TWO_MODES))
    assert (verdict.decision, verdict.best_mode) == (Decision.ENABLE, Mode.DEFAULT)
    finding = next(finding for finding in verdict.findings if finding.id == "mode-failed")
    assert finding.title == "reduce-overhead failed"
    assert "BackendCompilerFailed: no" in finding.evidence


def test_wrong_outputs_of_one_mode_do_not_touch_the_other() -> None:
    wrong = Compiled(Mode.REDUCE_OVERHEAD, speedup=3.0, output=leaf(0.5))
    verdict = decide(replay(eager_process(), *both(Compiled(speedup=2.0)), *both(wrong), modes=TWO_MODES))
    assert (verdict.decision, verdict.best_mode) == (Decision.ENABLE, Mode.DEFAULT)
    assert "outputs-different" in ids(verdict)


def test_each_reason_to_skip_a_cudagraph_is_told() -> None:
    run = Compiled(Mode.REDUCE_OVERHEAD)
    cold, warm = both(run)
    skips: Process = [ev.CudagraphSkipped(reason=reason) for reason in ("cpu device", "mutated inputs")]
    verdict = decide(replay(eager_process(), [cold[0], *skips, *cold[1:]], warm, modes=(run.mode,)))
    told = {finding.evidence for finding in verdict.findings if finding.id == "cudagraphs-skipped"}
    assert told == {"cpu device", "mutated inputs"}


def test_warnings_of_the_compiler_are_told_once_and_not_without_end() -> None:
    cold, warm = both(Compiled())
    texts = ("complex operators run eager\nmore", "complex operators run eager\nother", "b", "c", "d")
    warnings: Process = [ev.CompilerWarning(logger="torch._inductor", text=text) for text in texts]
    verdict = decide(replay(eager_process(), [cold[0], *warnings, *cold[1:]], warm))
    told = [finding.title for finding in verdict.findings if finding.id == "compiler-warning"]
    assert told == [f"the compiler warns: {text}" for text in ("complex operators run eager", "b", "c")]


def test_max_autotune_that_was_not_finished_leaves_the_answer_of_the_others() -> None:
    modes = (Mode.DEFAULT, Mode.MAX_AUTOTUNE)
    slow: Process = [
        started(Phase.COLD, Mode.MAX_AUTOTUNE),
        ended(Phase.COLD, Mode.MAX_AUTOTUNE, ev.Outcome.TIMED_OUT, "not finished in 450 s"),
    ]
    verdict = decide(replay(eager_process(), *both(Compiled(speedup=2.0)), slow, modes=modes))
    assert (verdict.decision, verdict.best_mode) == (Decision.ENABLE, Mode.DEFAULT)
    finding = next(finding for finding in verdict.findings if finding.id == "mode-not-finished")
    assert "not finished in 450 s" in finding.evidence
    alone = decide(replay(eager_process(), slow, modes=(Mode.MAX_AUTOTUNE,)))
    assert (alone.decision, alone.exit_code) == (Decision.STOPPED, ExitCode.STOPPED)
    assert "not finished in 450 s" in alone.headline


def test_one_slow_step_at_the_end_of_a_short_warm_up_is_not_taken_for_the_level() -> None:
    """A warm-up that ends at its time limit may hold four steps; one of them must not make the start cheap."""

    def cold_start_s(last_ms: float) -> float:
        cold = cold_process(Compiled(compile_s=20.0))
        at = next(i for i, event in enumerate(cold) if isinstance(event, ev.Block) and event.first_index == 1)
        cold[at] = block(Arm.COMPILED, ev.BlockRole.WARMUP, 1, [6.0, 6.0, last_ms])
        cold = [event for event in cold if not isinstance(event, ev.SteadyJudged)]
        verdict = decide(replay(eager_process(), cold, warm_process(Compiled())))
        start = verdict.modes[0].result.cold_start
        assert start is not None
        return start.total_s

    assert cold_start_s(1000.0) == pytest.approx(cold_start_s(6.0), rel=0.1)
