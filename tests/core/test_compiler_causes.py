"""What is told of the compiled program, from what the compiler said and from what was seen to run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.findings import Finding, Severity
from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.core.verdict import Verdict, decide
from tests.core.streams import Compiled, Process, cold_process, done, eager_process, replay, started, warm_process

PROOF = ev.StepsProfiled(
    arm=Arm.COMPILED, steps=10, wall_ns=10_000_000, lookups=10, lookup_ns=200_000, regions=("0/0",), program_calls=20,
    kernels=400, triton_kernels=100, graph_launches=20, device_busy_ns=9_000_000, library_ns=5_000_000,
)  # fmt: skip
RECORDED: Process = [
    ev.CompilerCallback(begins=True, trigger="CUDAGRAPH_RECORDING"),
    ev.CompilerCallback(begins=False, trigger="CUDAGRAPH_RECORDING"),
]


def _verdict(
    mode: Mode = Mode.REDUCE_OVERHEAD,
    proof: ev.StepsProfiled | None = PROOF,
    told: Process | None = None,
    extra: tuple[Process, ...] = (),
    silent: bool = False,
    run: Compiled | None = None,
) -> Verdict:
    """Of a run with one mode; `told` is added to what its cold process says, `silent` takes the graphs away."""
    compiled = run or Compiled(mode=mode)
    cold = cold_process(compiled)
    if silent:
        cold = [event for event in cold if not isinstance(event, (ev.GraphCaptured, ev.FrameStarted))]
    cold[-2:-2] = told or []
    warm = warm_process(compiled)
    if silent:
        warm = [event for event in warm if not isinstance(event, ev.CacheLookup)]
    warm[-2:-2] = [proof] if proof is not None else []
    if silent and proof is not None:
        cold[-2:-2] = [proof]
    return decide(replay(eager_process(), cold, warm, *extra, modes=(mode,), device="cuda"))


def _only(verdict: Verdict, id: str) -> Finding:
    (finding,) = (finding for finding in verdict.findings if finding.id == id)
    return finding


def _ids(verdict: Verdict) -> set[str]:
    return {finding.id for finding in verdict.findings}


def test_replayed_cudagraphs_are_no_cause() -> None:
    assert not {id for id in _ids(_verdict(told=RECORDED)) if "cudagraph" in id}


def test_a_cudagraph_that_nobody_recorded_is_told_without_a_reason_from_the_compiler() -> None:
    verdict = _verdict(proof=replace(PROOF, graph_launches=0))
    assert "none was recorded" in _only(verdict, "cudagraphs-not-captured").title


def test_the_compilers_reason_is_told_in_place_of_ours() -> None:
    told: Process = [ev.CudagraphSkipped(reason="skipping cudagraphs due to mutated inputs")]
    verdict = _verdict(proof=replace(PROOF, graph_launches=0), told=told)
    assert "mutated inputs" in _only(verdict, "cudagraphs-skipped").evidence
    assert "cudagraphs-not-captured" not in _ids(verdict)


def test_programs_outside_a_cudagraph_are_counted() -> None:
    verdict = _verdict(proof=replace(PROOF, graph_launches=10), told=RECORDED)
    assert "1 of 2 compiled programs of a step" in _only(verdict, "cudagraphs-partly").title


@pytest.mark.parametrize("proof", [None, replace(PROOF, graph_launches=None)], ids=["no profile", "device not seen"])
def test_what_was_not_seen_is_not_told(proof: ev.StepsProfiled | None) -> None:
    assert not {id for id in _ids(_verdict(proof=proof, told=RECORDED)) if "cudagraph" in id}


def test_cudagraphs_are_no_matter_of_the_default_mode() -> None:
    verdict = _verdict(Mode.DEFAULT, proof=replace(PROOF, graph_launches=0))
    assert not {id for id in _ids(verdict) if "cudagraph" in id}


def test_compiled_programs_that_no_step_runs_are_a_warning() -> None:
    verdict = _verdict(Mode.DEFAULT, proof=replace(PROOF, program_calls=0, regions=(), lookups=0, lookup_ns=0))
    assert _only(verdict, "compiled-but-not-running").severity is Severity.WARNING


def test_a_program_that_was_compiled_elsewhere_is_not_called_eager() -> None:
    verdict = _verdict(Mode.DEFAULT, silent=True)
    assert verdict.modes[0].result.speedup is not None
    assert "compiled-elsewhere" in _ids(verdict)


def test_without_a_record_and_without_a_program_it_ran_eager() -> None:
    nothing = replace(PROOF, program_calls=0, regions=(), lookups=0, lookup_ns=0)
    assert _verdict(Mode.DEFAULT, silent=True, proof=nothing).decision.value == "RAN EAGER"


def test_guard_checks_are_told_where_they_are_a_part_of_the_step() -> None:
    slow = replace(PROOF, lookup_ns=10_000_000)  # 1 ms of a step of 6.7 ms
    assert "15 % of every step" in _only(_verdict(Mode.DEFAULT, proof=slow), "guards-cost").title
    assert "guards-cost" not in _ids(_verdict(Mode.DEFAULT))
    guard_us = _verdict(Mode.DEFAULT).modes[0].result.proof
    assert guard_us is not None and guard_us.guard_us == pytest.approx(20.0)


def test_a_wrapped_model_is_advised_as_it_was_measured() -> None:
    verdict = _verdict(told=[ev.ModelCompiled(wrapped=True)])
    assert verdict.paste_line == 'model = torch.compile(model, mode="reduce-overhead")'
    assert _verdict(told=[ev.ModelCompiled(wrapped=False)]).paste_line == 'model.compile(mode="reduce-overhead")'


def test_a_guards_place_is_found_though_torch_cuts_long_paths() -> None:
    def recompiled(where: str) -> Process:
        failure = ev.GuardFailure("self.step == 1", where=where)
        frame = ev.FrameStarted(compile_id="1/0", function="forward", file="/home/u/models/net.py", line=3)
        return [frame, ev.Recompiled(compile_id="0/1", failures=(failure,))]

    found = _only(_verdict(told=recompiled("me/u/models/net.py:12 in forward")), "recompiles")
    assert (found.file, found.line) == ("/home/u/models/net.py", 12)
    unknown = _only(_verdict(told=recompiled("me/u/models/other.py:12 in forward")), "recompiles")
    assert (unknown.file, unknown.line) == (None, None)


@pytest.mark.parametrize(
    ("theirs", "evidence"),
    [(7, "the run saw the same places"), (9, "only there: net.py:9; only in the run: net.py:7")],
)
def test_a_second_opinion_is_laid_beside_what_the_run_saw(theirs: int, evidence: str) -> None:
    told: Process = [ev.GraphBreak(compile_id="0/0", file="net.py", line=7, reason="print")]
    explained = ev.Explained(graphs=2, ops=5, breaks=(ev.ExplainedBreak("net.py", theirs, "print"),))
    process = [started(Phase.EXPLAIN), explained, *done(Phase.EXPLAIN)]
    found = _only(_verdict(told=told, extra=(process,)), "explain")
    assert found.evidence == evidence
    assert "2 graphs with 5 ops" in found.title


def test_the_seconds_of_a_compile_are_split_without_counting_any_twice() -> None:
    def span(t_s: float, begins: bool, stage: ev.CompileStage, thread: int = 0) -> ev.CompileSpan:
        return ev.CompileSpan(t_s=t_s, begins=begins, stage=stage, stage_name=stage.value, thread=thread)

    frame, aot, kernels, backward = (
        ev.CompileStage.FRAME, ev.CompileStage.AOT, ev.CompileStage.KERNELS, ev.CompileStage.BACKWARD,
    )  # fmt: skip
    from tcompile_tui.core.compile_log import CompileLog, CompilePart

    log = CompileLog()
    for event in (
        span(0.0, True, frame), span(1.0, True, aot), span(2.0, True, kernels), span(2.5, True, kernels, thread=9),
        span(6.0, False, kernels), span(6.0, False, kernels, thread=9), span(6.5, False, aot), span(7.0, False, frame),
        span(8.0, True, backward), span(8.5, True, kernels), span(9.5, False, kernels), span(10.0, False, backward),
    ):  # fmt: skip
        log.apply(event)
    assert log.forward_s == {CompilePart.KERNELS: 4.0, CompilePart.AUTOGRAD: 1.5, CompilePart.TRACING: 1.5}
    assert log.backward_s == {CompilePart.KERNELS: 1.0, CompilePart.INDUCTOR: 1.0}


def test_what_listening_cost_is_taken_off_the_start() -> None:
    def total_s(overhead_s: float) -> float:
        metrics = ev.FrameCompiled(compile_id="0/0", backward=False, logging_overhead_s=overhead_s)
        both = [metrics, replace(metrics, backward=True, logging_overhead_s=1.5 * overhead_s)]
        start = _verdict(told=both).modes[0].result.cold_start  # the second figure holds the first
        assert start is not None and start.logging_s == 1.5 * overhead_s
        return start.total_s

    assert total_s(0.0) - total_s(2.0) == pytest.approx(3.0)
