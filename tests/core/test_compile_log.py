"""What CompileLog makes of the compiler's records."""

from __future__ import annotations

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.compile_log import CompileLog
from tcompile_tui.core.events import CacheKind, CacheOutcome, CompileStage


def log_of(*events: ev.Event) -> CompileLog:
    log = CompileLog()
    for event in events:
        log.apply(event)
    return log


def span(
    begins: bool,
    stage: CompileStage,
    t_s: float,
    name: str = "",
    thread: int = 0,
    compile_id: str | None = None,
) -> ev.CompileSpan:
    return ev.CompileSpan(
        begins=begins,
        stage=stage,
        stage_name=name or stage.value,
        t_s=t_s,
        thread=thread,
        compile_id=compile_id,
    )


def started(compile_id: str, function: str = "forward") -> ev.FrameStarted:
    return ev.FrameStarted(compile_id=compile_id, function=function, file="model.py", line=3)


def graph_break(line: int = 7, reason: str = "call to print", compile_id: str = "0/0") -> ev.GraphBreak:
    return ev.GraphBreak(compile_id=compile_id, file="model.py", line=line, reason=reason)


def failed(compile_id: str, fail_type: str, reason: str) -> ev.FrameCompiled:
    return ev.FrameCompiled(compile_id=compile_id, backward=False, fail_type=fail_type, fail_reason=reason, t_s=9.0)


# ---------------------------------------------------------------- stages


def test_nested_spans_of_one_stage_count_once() -> None:
    inductor, lowering = CompileStage.INDUCTOR, CompileStage.LOWERING
    log = log_of(
        *(span(True, inductor, 1.0, "outer"), span(True, inductor, 2.0, "inner")),
        *(span(True, lowering, 3.0), span(False, lowering, 4.5)),
        *(span(False, inductor, 5.0, "inner"), span(False, inductor, 6.0, "outer")),
        *(span(True, inductor, 10.0, "outer"), span(False, inductor, 11.0, "outer")),
    )
    assert log.seconds_by_stage == {lowering: pytest.approx(1.5), inductor: pytest.approx(6.0)}
    assert log.current_stages == ()


def test_spans_nest_by_thread() -> None:
    kernels = CompileStage.KERNELS
    log = log_of(
        *(span(True, kernels, 1.0, thread=1), span(True, kernels, 2.0, thread=2)),
        *(span(False, kernels, 3.0, thread=1), span(False, kernels, 5.0, thread=2)),
    )
    assert log.seconds_by_stage == {kernels: pytest.approx(5.0)}


def test_the_end_of_an_outer_span_closes_what_an_exception_left_open() -> None:
    frame, dynamo = CompileStage.FRAME, CompileStage.DYNAMO
    log = log_of(span(True, frame, 0.0), span(True, dynamo, 1.0), span(False, frame, 2.0))
    assert log.current_stages == ()
    assert log.seconds_by_stage == {frame: pytest.approx(2.0)}


def test_an_end_without_a_begin_is_ignored() -> None:
    log = log_of(span(False, CompileStage.FRAME, 1.0))
    assert (log.seconds_by_stage, log.current_stages, log.open_stages) == ({}, (), {})


def test_the_open_stages_and_their_frame_are_current() -> None:
    frame, inductor, kernels = CompileStage.FRAME, CompileStage.INDUCTOR, CompileStage.KERNELS
    log = log_of(
        *(started("0/0", "outer"), span(True, frame, 1.0, compile_id="0/0")),
        *(started("1/0", "inner"), span(True, inductor, 2.0), span(True, kernels, 2.5, thread=7)),
    )
    assert [stage.stage for stage in log.current_stages] == [frame, inductor]
    assert log.current_frame is not None
    assert log.current_frame.function == "outer"
    log.apply(span(False, frame, 3.0))
    log.apply(span(False, kernels, 3.0, thread=7))
    assert log.current_frame is None


# ---------------------------------------------------------------- graph breaks and frames


def test_a_break_told_again_is_the_same_place() -> None:
    log = log_of(graph_break(), graph_break(compile_id="1/0"), graph_break(line=8), graph_break(reason="other"))
    sites = list(log.break_sites.values())
    assert [(site.place, site.first.reason, site.times) for site in sites] == [
        ("model.py:7", "call to print", 2),
        ("model.py:8", "call to print", 1),
        ("model.py:7", "other", 1),
    ]
    assert sites[0].first.compile_id == "0/0"


def test_a_dropped_frame_is_told_apart_from_the_recompile_limit() -> None:
    log = log_of(
        *(started(f"{frame}/0") for frame in range(5)),
        failed("0/0", "Unsupported", "generator"),
        failed("1/8", "Unsupported", "Dynamo recompile limit exceeded"),
        started("2/8"),
        failed("2/8", "Unsupported", "Dynamo recompile limit exceeded\n  Explanation: ..."),
        failed("3/0", "RecompileLimitExceeded", "recompile_limit reached"),
        failed("4/0", "FailOnRecompileLimitHit", "Hard failure due to fullgraph=True"),
        ev.RecompileLimitHit(compile_id="2/8", text="hit"),
    )
    assert [(frame.compile_id, frame.fail_reason) for frame in log.dropped_frames] == [("0/0", "generator")]
    assert log.frames["0/0"].ended_s == 9.0
    assert [hit.compile_id for hit in log.limit_hits] == ["2/8"]


def test_the_backward_does_not_end_the_frame() -> None:
    log = log_of(started("0/0"), ev.FrameCompiled(compile_id="0/0", backward=True, fail_type="X", t_s=2.0))
    assert log.frames["0/0"].ended_s is None
    assert log.dropped_frames == ()


def test_graphs_and_kernels_count_in_all_and_by_frame() -> None:
    def code(compile_id: str | None, kernels: int, *fallbacks: str) -> ev.CodeGenerated:
        return ev.CodeGenerated(
            compile_id=compile_id,
            kernels=kernels,
            kernel_languages=(),
            library_calls=(),
            fallback_ops=fallbacks,
        )

    log = log_of(
        started("0/0"),
        ev.GraphCaptured(compile_id="0/0", ops=5),
        ev.GraphCaptured(compile_id="0/0", ops=None),
        ev.GraphCaptured(compile_id=None, ops=2),
        code("0/0", 3, "aten.sort", "aten.sort"),
        code(None, 1, "aten.unique"),
    )
    frame = log.frames["0/0"]
    assert (log.graphs, log.ops, log.kernels) == (3, 7, 4)
    assert (frame.graphs, frame.ops, frame.kernels) == (2, 5, 3)
    assert log.fallback_ops == {"aten.sort": 2, "aten.unique": 1}


# ---------------------------------------------------------------- recordings, caches, lists


@pytest.mark.parametrize(("spans", "callbacks", "recordings"), [(1, 1, 2), (1, 0, 2), (0, 1, 2), (0, 0, 0)])
def test_a_cudagraph_told_twice_is_one_recording(spans: int, callbacks: int, recordings: int) -> None:
    begin, end = (ev.CompilerCallback(begins=begins, trigger="CUDAGRAPH_RECORDING") for begins in (True, False))
    enter, leave = (span(begins, CompileStage.CUDAGRAPH, 1.0, "CUDAGraphNode.record") for begins in (True, False))
    one = [*[begin] * callbacks, *[enter, leave] * spans, *[end] * callbacks]
    log = log_of(*one, ev.CompilerCallback(begins=True, trigger="DYNAMO"), *one)
    assert log.cudagraph_recordings == recordings


def test_silence_is_told_from_work() -> None:
    def lookup(outcome: CacheOutcome) -> ev.CacheLookup:
        return ev.CacheLookup(cache=CacheKind.FX, outcome=outcome)

    silent, missed = log_of(ev.WorkerDone()), log_of(lookup(CacheOutcome.MISS))
    hit = log_of(lookup(CacheOutcome.HIT), lookup(CacheOutcome.HIT))
    assert [log.compiler_active for log in (silent, missed, hit)] == [False, True, True]
    assert [log.compiled_anything for log in (silent, missed, hit)] == [False, False, True]
    assert (hit.cache_count(CacheOutcome.HIT), hit.cache_count(CacheOutcome.MISS)) == (2, 0)


def test_lists_stay_bounded_while_recompiles_are_all_counted() -> None:
    log = log_of(
        *(ev.Recompiled(compile_id="0/1", failures=()) for _ in range(1000)),
        *(ev.CompilerWarning(logger="torch", text=str(i)) for i in range(1000)),
        *(ev.CudagraphSkipped(reason="cpu device") for _ in range(3)),
    )
    assert log.recompile_count == 1000
    assert len(log.recompiles) < 1000
    assert len(log.warnings) < 1000
    assert log.cudagraph_skips == ["cpu device"]


def test_the_break_of_a_frame_that_failed_dropped_it() -> None:
    log = log_of(
        *(started("0/0"), graph_break(7), failed("0/0", "SkipFrame", "call to print")),
        *(started("1/0"), graph_break(9, compile_id="1/0"), ev.FrameCompiled(compile_id="1/0", backward=False)),
    )
    assert [site.first.frame_dropped for site in log.break_sites.values()] == [True, False]
