"""Every condition of the gate: one run that trips it, and one that holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.compare_runs import ComparedRun
from tcompile_tui.core.gate import FailOn, Gate, GateCheck, check_gate, gated_exit_code
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import ExitCode, decide
from tests.core.streams import Compiled, Process, both, done, eager_process, ended, leaf, replay, started

PLAIN = Compiled(speedup=1.8)


def run_of(state: RunState, name: str = "run") -> ComparedRun:
    return ComparedRun(name, state, decide(state))


def one_mode(run: Compiled = PLAIN, *told: ev.Event, device: str = "cpu") -> ComparedRun:
    """A run of one mode; the compiler tells `told` in its cold process."""
    cold, warm = both(run)
    return run_of(replay(eager_process(), [*cold[:4], *told, *cold[4:]], warm, modes=(run.mode,), device=device))


def ran_eager() -> ComparedRun:
    frame = ev.FrameStarted(compile_id="0/0", function="forward", file="net.py", line=3)
    dropped = ev.FrameCompiled(compile_id="0/0", backward=False, fail_type="Unsupported", fail_reason="generator")
    cold: Process = [started(Phase.COLD, Mode.DEFAULT), frame, dropped, *done(Phase.COLD, Mode.DEFAULT)]
    return run_of(replay(eager_process(), cold))


BREAK = ev.GraphBreak(compile_id="0/0", file="net.py", line=7, function="forward", source="print(x)", reason="a print")
CUDAGRAPHS = replace(PLAIN, mode=Mode.REDUCE_OVERHEAD)
SKIPPED = ev.CudagraphSkipped(reason="skipping cudagraphs due to mutated inputs")

TRIPPED = [
    (FailOn.GRAPH_BREAKS, one_mode(PLAIN, BREAK), "net.py:7: graph break: a print (print(x))"),
    (FailOn.RECOMPILES, one_mode(replace(PLAIN, recompiles=3)), "compiled again 3 times"),
    (FailOn.RECOMPILES, one_mode(replace(PLAIN, broken_pairs=(3, 4))), "the compiler worked while its steps"),
    (FailOn.RAN_EAGER, ran_eager(), "net.py:3: forward was not compiled at all"),
    (FailOn.SLOWER, one_mode(replace(PLAIN, speedup=0.8)), "default: it runs at 0.800x"),
    (FailOn.SLOWER, ran_eager(), "default: no speedup was measured"),
    (FailOn.ACCURACY, one_mode(replace(PLAIN, output=leaf(0.3))), "default: output is different"),
    (FailOn.ACCURACY, one_mode(replace(PLAIN, output=leaf(2e-3))), "larger than rounding usually is"),
    (FailOn.CUDAGRAPH_SKIPS, one_mode(CUDAGRAPHS, SKIPPED, device="cuda"), "mutated inputs"),
    (FailOn.CUDAGRAPH_SKIPS, one_mode(PLAIN), "there were no cudagraphs to look at"),
]  # fmt: skip
HELD = [*((what, one_mode()) for what in FailOn if what is not FailOn.CUDAGRAPH_SKIPS),
        (FailOn.CUDAGRAPH_SKIPS, one_mode(CUDAGRAPHS, device="cuda"))]  # fmt: skip


def check(gate: Gate, run: ComparedRun) -> GateCheck:
    """The condition that was asked for, beside the one that all was measured."""
    measured, asked = check_gate(gate, run)
    assert measured == GateCheck("measured", ())
    return asked


@pytest.mark.parametrize(("what", "run", "words"), TRIPPED)
def test_what_is_refused_is_named(what: FailOn, run: ComparedRun, words: str) -> None:
    found = check(Gate(fail_on=(what,)), run)
    assert found.name == what.value and any(words in reason for reason in found.reasons), found.reasons
    assert gated_exit_code(run.verdict, [found]) is ExitCode.GATE


@pytest.mark.parametrize(("what", "run"), HELD)
def test_what_holds_passes(what: FailOn, run: ComparedRun) -> None:
    found = check(Gate(fail_on=(what,)), run)
    assert found == GateCheck(what.value, ())
    assert gated_exit_code(run.verdict, [found]) is ExitCode.DECIDED


def test_the_speedup_is_held_by_the_interval_s_lower_end() -> None:
    run = one_mode()
    speedup = run.verdict.modes[0].result.speedup
    assert speedup is not None and speedup.lo < speedup.value
    assert check(Gate(min_speedup=speedup.lo), run).passed
    (reason,) = check(Gate(min_speedup=speedup.value), run).reasons
    assert "default: the speedup is 1.8" in reason and "its lower end is below" in reason
    assert "no speedup" in check(Gate(min_speedup=1.0), ran_eager()).reasons[0]


def test_a_cold_start_has_a_limit() -> None:
    run = one_mode()  # 20 s of compiling, and the import
    assert check(Gate(max_cold_start_s=25.0), run).passed
    assert check(Gate(max_cold_start_s=15.0), run).reasons == ("default: a cold start takes 22.0 s, over 15 s",)


def test_a_baseline_is_the_same_question_answered_no_worse() -> None:
    before = one_mode()
    assert check(Gate(baseline=before), one_mode()).passed
    (slower, *_) = check(Gate(baseline=before), one_mode(replace(PLAIN, speedup=1.5))).reasons
    assert "the speedup is 0.833x" in slower
    assert check(Gate(baseline=before), one_mode(CUDAGRAPHS)).reasons == ("reduce-overhead: not in run",)


def test_another_device_cannot_be_compared() -> None:
    before = one_mode()
    assert before.state.run is not None
    elsewhere = replace(before.state, run=replace(before.state.run, device_name="another"))
    (reason,) = check(Gate(baseline=before), run_of(elsewhere)).reasons
    assert reason == "run cannot be compared with (device: a device, now another)"


def test_a_mode_that_was_not_finished_does_not_pass() -> None:
    cold: Process = [started(Phase.COLD, Mode.MAX_AUTOTUNE)]
    cold += [ended(Phase.COLD, Mode.MAX_AUTOTUNE, ev.Outcome.TIMED_OUT, "not finished in 28 s")]
    run = run_of(replay(eager_process(), *both(PLAIN), cold, modes=(Mode.DEFAULT, Mode.MAX_AUTOTUNE)))
    measured, breaks = check_gate(Gate(fail_on=(FailOn.GRAPH_BREAKS,)), run)
    assert measured.reasons == ("max-autotune: not finished: the cold process: not finished in 28 s",)
    assert breaks.passed and gated_exit_code(run.verdict, [measured, breaks]) is ExitCode.GATE


def test_a_run_without_a_decision_keeps_its_own_status() -> None:
    run = run_of(replay([started(Phase.EAGER), ended(Phase.EAGER, None, ev.Outcome.KILLED, "signal 9")]))
    checks = check_gate(Gate(fail_on=(FailOn.SLOWER,)), run)
    assert not checks[0].passed and gated_exit_code(run.verdict, checks) is ExitCode.EAGER_FAILS


def test_a_gate_that_asks_nothing_checks_nothing() -> None:
    assert check_gate(Gate(), ran_eager()) == () and gated_exit_code(ran_eager().verdict, ()) is ExitCode.DECIDED


def test_a_reason_is_one_printable_line() -> None:
    told = replace(BREAK, reason="a \x1b[31mprint", source="print(\n    x)")
    (reason,) = check(Gate(fail_on=(FailOn.GRAPH_BREAKS,)), one_mode(PLAIN, told)).reasons
    assert reason == "net.py:7: graph break: a [31mprint (print( x))"
