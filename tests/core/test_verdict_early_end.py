"""What is decided for runs that end before eager and compiled steps were compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, ExitCode, Verdict, decide
from tcompile_tui.host.event_log import read_events
from tests.core.streams import DATA, Compiled, Process, both, cold_process, done, eager_process, ended, replay, started


def outcome(verdict: Verdict) -> tuple[Decision, ExitCode]:
    """Decision and exit code, of a verdict that must not advise anything."""
    assert (verdict.best_mode, verdict.paste_line) == (None, None)
    return verdict.decision, verdict.exit_code


def failed_process(phase: Phase, fault: str, mode: Mode | None = None) -> Process:
    failure = ev.WorkerFailed(
        stage="steps",
        error_type="RuntimeError",
        message="shapes (3x4) and (5x6) do not fit\nmore lines",
        file="net.py",
        line=12,
        fault=fault,
    )
    return [started(phase, mode), failure, ended(phase, mode, ev.Outcome.ERROR)]


def cut_process(phase: Phase, how: ev.Outcome, detail: str, mode: Mode | None = None) -> Process:
    return [started(phase, mode), ended(phase, mode, how, detail)]


# ---------------------------------------------------------------- the eager model


def test_an_eager_model_that_fails_is_shown_with_its_place() -> None:
    verdict = decide(replay(failed_process(Phase.EAGER, "model")))
    assert outcome(verdict) == (Decision.FAILED, ExitCode.EAGER_FAILS)
    assert verdict.headline == (
        "the model fails without torch.compile: RuntimeError: shapes (3x4) and (5x6) do not fit (net.py:12)"
    )
    assert verdict.exit_code == 3


def test_a_fault_of_the_input_is_bad_input() -> None:
    verdict = decide(replay(failed_process(Phase.EAGER, "input")))
    assert outcome(verdict) == (Decision.FAILED, ExitCode.BAD_INPUT)
    assert "net.py:12" in verdict.headline
    assert verdict.exit_code == 2


def test_a_fault_of_our_own_is_failed() -> None:
    assert outcome(decide(replay(failed_process(Phase.EAGER, "program")))) == (
        Decision.FAILED,
        ExitCode.FAILED,
    )


def test_an_eager_process_killed_by_a_signal_names_it() -> None:
    verdict = decide(replay(cut_process(Phase.EAGER, ev.Outcome.KILLED, "killed by SIGSEGV")))
    assert outcome(verdict) == (Decision.FAILED, ExitCode.EAGER_FAILS)
    assert "SIGSEGV" in verdict.headline


# ---------------------------------------------------------------- the compiled model


@pytest.mark.parametrize("phase", [Phase.COLD, Phase.WARM])
def test_a_worker_killed_by_a_signal_names_it(phase: Phase) -> None:
    killed = cut_process(phase, ev.Outcome.KILLED, "killed by SIGKILL", Mode.DEFAULT)
    before = [] if phase is Phase.COLD else [cold_process(Compiled())]
    verdict = decide(replay(eager_process(), *before, killed))
    assert outcome(verdict) == (Decision.FAILED, ExitCode.FAILED)
    assert verdict.headline == f"default: the {phase.value} process: killed by SIGKILL"
    assert verdict.exit_code == 6


def test_what_was_measured_before_a_kill_stands() -> None:
    cold, warm = both(Compiled(speedup=2.0))
    cut = [*warm[:-2], ended(Phase.WARM, Mode.DEFAULT, ev.Outcome.KILLED, "killed by SIGKILL")]
    assert decide(replay(eager_process(), cold, cut)).decision is Decision.ENABLE


def test_without_an_eager_start_the_cost_of_a_compiled_one_is_not_known() -> None:
    eager = [started(Phase.EAGER), *done(Phase.EAGER)]
    verdict = decide(replay(eager, *both(Compiled(speedup=2.0))))
    assert verdict.decision is Decision.TEST_CAREFULLY
    assert "its start was not measured" in verdict.headline
    assert verdict.best is not None
    assert (verdict.best.result.cold_start, verdict.best.result.break_even_cold) == (None, None)


def test_all_modes_failed() -> None:
    modes = (Mode.DEFAULT, Mode.REDUCE_OVERHEAD)
    failed = [failed_process(Phase.COLD, "compiler", mode) for mode in modes]
    verdict = decide(replay(eager_process(), *failed, modes=modes))
    assert outcome(verdict) == (Decision.FAILED, ExitCode.FAILED)
    assert verdict.headline.startswith("default: RuntimeError: shapes")
    assert "; reduce-overhead: RuntimeError" in verdict.headline


def test_nothing_compiled_ran_eager() -> None:
    frame = ev.FrameStarted(compile_id="0/0", function="forward", file="net.py", line=3)
    dropped = ev.FrameCompiled(compile_id="0/0", backward=False, fail_type="Unsupported", fail_reason="generator\nmore")
    cold = [started(Phase.COLD, Mode.DEFAULT), frame, dropped, *done(Phase.COLD, Mode.DEFAULT)]
    verdict = decide(replay(eager_process(), cold))
    assert outcome(verdict) == (Decision.RAN_EAGER, ExitCode.DECIDED)
    assert "Dynamo gave up on forward: generator" in verdict.headline
    assert "frame-runs-eager" in {finding.id for finding in verdict.findings}
    assert verdict.exit_code == 0


def test_a_switched_off_compiler_ran_eager() -> None:
    summary = ev.CompilerSummary(
        frames_seen=0,
        frames_compiled=0,
        unique_graphs=0,
        disabled_by="TORCHDYNAMO_DISABLE",
        handler_s=0.0,
        handler_errors=0,
    )
    cold = [started(Phase.COLD, Mode.DEFAULT), summary, *done(Phase.COLD, Mode.DEFAULT)]
    verdict = decide(replay(eager_process(), cold))
    assert verdict.decision is Decision.RAN_EAGER
    assert "switched off by TORCHDYNAMO_DISABLE" in verdict.headline


# ---------------------------------------------------------------- the machine


def test_a_preflight_that_fails_cannot_compile_here() -> None:
    verdict = decide(replay(eager_process(), failed_process(Phase.PREFLIGHT, "environment")))
    assert outcome(verdict) == (Decision.CANNOT_COMPILE, ExitCode.CANNOT_COMPILE)
    assert verdict.exit_code == 4


def test_a_mode_that_the_machine_cannot_compile() -> None:
    failed = failed_process(Phase.COLD, "environment", Mode.DEFAULT)
    assert outcome(decide(replay(eager_process(), failed))) == (
        Decision.CANNOT_COMPILE,
        ExitCode.CANNOT_COMPILE,
    )


# ---------------------------------------------------------------- stopped


@pytest.mark.parametrize(
    "processes",
    [
        [],
        [[started(Phase.EAGER)]],
        [cut_process(Phase.EAGER, ev.Outcome.STOPPED, "stopped on request")],
        [eager_process()[:-2]],
        [eager_process(), [started(Phase.PREFLIGHT)]],
        [eager_process(), cut_process(Phase.PREFLIGHT, ev.Outcome.STOPPED, "stopped on request")],
        [eager_process(), [started(Phase.COLD, Mode.DEFAULT)]],
        [eager_process(), cut_process(Phase.COLD, ev.Outcome.STOPPED, "stopped on request", Mode.DEFAULT)],
        [eager_process(), cold_process(Compiled())],
    ],
)
def test_a_stop_before_the_comparison(processes: list[Process]) -> None:
    verdict = decide(replay(*processes))
    assert outcome(verdict) == (Decision.STOPPED, ExitCode.STOPPED)
    assert verdict.exit_code == 5


def test_no_record_at_all() -> None:
    assert outcome(decide(RunState())) == (Decision.STOPPED, ExitCode.STOPPED)


# ---------------------------------------------------------------- a real run


def test_a_recorded_run_is_read_as_it_was() -> None:
    state = RunState()
    for event in read_events(DATA / "runs" / "mlp_smoke.jsonl"):
        state.apply(event)
    processes = list(state.processes.values())
    assert [process.phase for process in processes] == [Phase.EAGER, Phase.COLD, Phase.WARM]
    assert all(process.done and not process.running for process in processes)
    cold, warm = processes[1], processes[2]
    assert (len(warm.pairs), cold.compile.graphs, warm.pair_compiles) == (10, 1, 0)
    assert warm.compile.cache_count(ev.CacheOutcome.MISS) == 0 < warm.compile.cache_count(ev.CacheOutcome.HIT)
    verdict = decide(state)
    assert verdict.decision is Decision.TEST_CAREFULLY
    assert verdict.best is not None
    result = verdict.best.result
    assert result.speedup is not None and result.gain is not None
    assert result.speedup.lo < 1 < result.speedup.hi
    assert result.cold_start is not None and result.warm_start is not None
    assert result.warm_start.total_s < result.cold_start.total_s
    assert result.eager_mean_ms is not None and result.compiled_mean_ms is not None
    assert result.gain.mean_ns == pytest.approx(1e6 * (result.eager_mean_ms - result.compiled_mean_ms))


def test_what_a_failure_leaves_behind_is_no_fault_of_the_model() -> None:
    """Inductor's pool of compile processes lives on where a compile fails; only a model's own are told of."""

    def told(process: Process) -> bool:
        *before, end = process
        assert isinstance(end, ev.PhaseEnded)
        process = [*before, replace(end, reclaimed=2)]
        findings = decide(replay(eager_process(), process)).findings
        return "process-left-behind" in {finding.id for finding in findings}

    assert told(cold_process(Compiled()))
    assert not told(failed_process(Phase.COLD, "compiler", Mode.DEFAULT))


@pytest.mark.parametrize("fault", ["compiler", "model", "memory", "environment"])
def test_a_mode_that_failed_has_a_next_step(fault: str) -> None:
    verdict = decide(replay(eager_process(), failed_process(Phase.COLD, fault, Mode.DEFAULT)))
    (found,) = [finding for finding in verdict.findings if finding.id == "mode-failed"]
    assert found.advice


def test_a_mode_that_died_without_a_word_has_a_next_step_too() -> None:
    died = cut_process(Phase.COLD, ev.Outcome.KILLED, "killed by SIGSEGV", Mode.DEFAULT)
    (found,) = [f for f in decide(replay(eager_process(), died)).findings if f.id == "mode-failed"]
    assert "log.txt" in found.advice
