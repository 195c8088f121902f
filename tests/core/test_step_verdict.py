"""What the answer says of the step that was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.findings import Severity
from tcompile_tui.core.spec import Arm
from tcompile_tui.core.state import RunState
from tcompile_tui.core.step_spec import Epoch, FileFunction, StepSpec
from tcompile_tui.core.verdict import Verdict, decide
from tcompile_tui.core.verdict_json import verdict_document
from tcompile_tui.report.text import verdict_text
from tests.core.streams import Compiled, block, both, eager_process, replay

FIRST_CALL_GUARD = ev.GuardFailure("len(self.state[list(dict.keys(self.state))[0]]) != 0")


def _run(step: StepSpec, recompiled: bool = False) -> tuple[RunState, Verdict]:
    cold, warm = both(Compiled(speedup=2.0))
    if recompiled:
        cold = [*cold[:-2], ev.Recompiled(compile_id="2/1", failures=(FIRST_CALL_GUARD,)), *cold[-2:]]
    state = replay(eager_process(), cold, warm, step=step)
    return state, decide(state)


def _with_usual_end(*failures: ev.UnlikeBatchFailed, eager: tuple[ev.UnlikeBatchFailed, ...] = ()) -> Verdict:
    cold, warm = both(Compiled(speedup=2.0))
    at_end = [
        ev.UsualEpochEnd(begins=True, last=16, evaluations=2),
        ev.GraphCaptured(compile_id="0/1", ops=3),
        ev.Recompiled(compile_id="0/1", failures=(ev.GuardFailure("size of x"),)),
        replace(block(Arm.COMPILED, ev.BlockRole.SETTLE, 1000, [5.0, 2005.0]), compiled_at=(1001,)),
        *failures,
        ev.UsualEpochEnd(begins=False, last=16, evaluations=2),
    ]
    alone = eager_process()
    return decide(replay([*alone[:-2], *eager, *alone[-2:]], [*cold[:-2], *at_end, *cold[-2:]], warm))


def test_what_the_usual_end_of_an_epoch_compiles_is_a_part_of_the_start_and_no_recompile() -> None:
    verdict = _with_usual_end()
    (found,) = [finding for finding in verdict.findings if finding.id == "epoch-end-compiled"]
    assert "a last batch of 16 and evaluation, compiled 1 graph more" in found.title
    assert found.evidence.startswith("2.00 s of the cold start")
    assert verdict.modes[0].result.recompiles == 0 and "recompiles" not in _ids(verdict)
    assert "epoch-end-compiled" not in _ids(_run(StepSpec())[1])


def test_a_last_batch_that_fails_is_blamed_on_the_compiler_only_if_eager_takes_it() -> None:
    failure = ev.UnlikeBatchFailed(
        batch="a last batch of 16", error_type="RuntimeError", message="no", file="net.py", line=9
    )
    (found,) = [f for f in _with_usual_end(failure).findings if f.id == "unlike-batch-fails"]
    assert found.severity is Severity.WARNING and "runs in eager and fails compiled" in found.title
    assert (found.file, found.line) == ("net.py", 9) and found.evidence == "RuntimeError: no"
    (found,) = [f for f in _with_usual_end(failure, eager=(failure,)).findings if f.id == "unlike-batch-fails"]
    assert found.severity is Severity.NOTE and "in eager either" in found.title


def _ids(verdict: Verdict) -> set[str]:
    return {finding.id for finding in verdict.findings}


def test_a_compiled_optimizer_is_a_part_of_what_is_pasted() -> None:
    _, verdict = _run(StepSpec(compile_optimizer=True))
    assert verdict.paste_line == "model.compile(); optimizer.step = torch.compile(optimizer.step)"


def test_the_second_compile_of_an_optimizer_is_no_fault_of_the_model() -> None:
    _, verdict = _run(StepSpec(compile_optimizer=True), recompiled=True)
    assert "optimizer-compiled-twice" in _ids(verdict) and "recompiles" not in _ids(verdict)
    _, verdict = _run(StepSpec(), recompiled=True)
    assert "recompiles" in _ids(verdict)


def test_the_step_is_written_where_people_and_programs_read() -> None:
    step = StepSpec(own=FileFunction("train.py", "step"), tf32=True, channels_last=True)
    state, verdict = _run(step)
    document = verdict_document(state, verdict)
    assert document["step"]["own"] == "train.py:step" and document["step"]["tf32"] is True
    assert "--step train.py:step" in document["command"]
    assert "step: your own step train.py:step, channels_last, TF32" in verdict_text(state, verdict)
    (shared,) = [finding for finding in verdict.findings if finding.id == "shared-settings"]
    assert "set_float32_matmul_precision" in shared.title and "channels_last" in shared.title


def _run_with_epoch(before_ms: float, later_compile_ms: float = 0.0, lost: float = 0.0) -> Verdict:
    """Of a program that takes 5 ms a step when it is compared."""
    run = Compiled(speedup=2.0, lost=lost)
    cold, warm = both(run)
    odd = ev.DynamicShape(compile_id="0/1", name="L['x']", old="8", new="5")
    further = block(Arm.COMPILED, ev.BlockRole.SETTLE, 1000, [5.0, 5.0 + later_compile_ms])
    cold = [*cold[:-2], odd, replace(further, compiled_at=(1001,)), *cold[-2:]]
    at = max(i for i, e in enumerate(warm) if isinstance(e, ev.Block) and e.role is ev.BlockRole.WARMUP)
    slow = block(Arm.COMPILED, ev.BlockRole.WARMUP, 0, [before_ms] * 3000)
    warm = [*warm[: at + 1], slow, *warm[at + 1 :]]
    return decide(replay(eager_process(), cold, warm, step=StepSpec(epoch=Epoch(last=5))))


def test_a_graph_that_an_odd_batch_made_slower_has_a_way_out() -> None:
    (found,) = [f for f in _run_with_epoch(before_ms=4.0).findings if f.id == "dynamic-after-epoch"]
    assert "drop_last" in found.advice and found.evidence == "4 ms before, 5 ms after"
    assert "dynamic-after-epoch" not in _ids(_run_with_epoch(before_ms=5.0))
    busy = _run_with_epoch(before_ms=4.0, lost=0.1)
    assert "dynamic-after-epoch" not in _ids(busy), "the work of others may have made it slower"


def test_what_further_shapes_cost_is_a_part_of_the_start() -> None:
    def start_s(later_compile_ms: float) -> float:
        start = _run_with_epoch(5.0, later_compile_ms).modes[0].result.cold_start
        assert start is not None
        return start.total_s

    assert start_s(3000.0) - start_s(0.0) == pytest.approx(3.0, rel=0.01)


def test_a_usual_step_is_not_worth_a_word() -> None:
    state, verdict = _run(StepSpec())
    assert "step:" not in verdict_text(state, verdict)
    assert "shared-settings" not in _ids(verdict)


def test_a_start_is_counted_in_epochs_where_their_length_is_known() -> None:
    step = StepSpec(epoch=Epoch(last=5, train=1999))
    verdict = decide(replay(eager_process(), *both(Compiled(speedup=2.0)), step=step))
    (found,) = [finding for finding in verdict.findings if finding.id == "epochs-to-break-even"]
    cold = verdict.modes[0].result.break_even_cold
    assert cold is not None and cold.steps is not None and step.epoch is not None and step.epoch.steps == 2000
    assert f"after {cold.steps / 2000:.1f} epochs (" in found.title and "2,000 training steps" in found.evidence
    assert "epochs-to-break-even" not in _ids(_run_with_epoch(5.0))
