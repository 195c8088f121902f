"""What the compiler did in one worker process, accumulated from its records."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod

from tcompile_tui.core import events as ev

_MAX_RECOMPILES_KEPT = 200
_MAX_WARNINGS_KEPT = 100


@dataclass(frozen=True)
class OpenStage:
    """A stage that has begun and not ended. `nested_s` was spent in stages inside it that have ended."""

    stage: ev.CompileStage
    stage_name: str
    compile_id: str | None
    since_s: float
    nested_s: float = 0.0
    detail: str | None = None


@dataclass(frozen=True)
class FrameState:
    """One frame that Dynamo worked on; `compile_id` is "frame/attempt"."""

    compile_id: str
    function: str | None
    file: str | None
    line: int | None
    started_s: float
    ended_s: float | None = None
    graphs: int = 0
    ops: int = 0
    kernels: int = 0
    fail_type: str | None = None
    fail_reason: str | None = None


@dataclass(frozen=True)
class BreakSite:
    """One place where Dynamo stops tracing, however often it was told."""

    first: ev.GraphBreak
    times: int

    @property
    def place(self) -> str:
        return f"{self.first.file}:{self.first.line}" if self.first.file else "an unknown place"


class CompilePart(str, enum.Enum):
    """The stages as a person sums them up."""

    TRACING = "tracing"
    AUTOGRAD = "AOTAutograd"
    INDUCTOR = "Inductor"
    KERNELS = "kernels"
    AUTOTUNE = "autotune"
    CUDAGRAPHS = "cudagraphs"


_PART_OF_STAGE = {
    ev.CompileStage.FRAME: CompilePart.TRACING, ev.CompileStage.DYNAMO: CompilePart.TRACING,
    ev.CompileStage.GUARDS: CompilePart.TRACING, ev.CompileStage.BACKEND: CompilePart.AUTOGRAD,
    ev.CompileStage.AOT: CompilePart.AUTOGRAD, ev.CompileStage.PARTITION: CompilePart.AUTOGRAD,
    ev.CompileStage.CACHE_LOAD: CompilePart.AUTOGRAD, ev.CompileStage.KERNELS: CompilePart.KERNELS,
    ev.CompileStage.KERNEL_LOAD: CompilePart.KERNELS, ev.CompileStage.AUTOTUNE: CompilePart.AUTOTUNE,
    ev.CompileStage.CUDAGRAPH: CompilePart.CUDAGRAPHS,
}  # fmt: skip


@dataclass(frozen=True)
class EpochCompiles:
    """What was compiled for the usual end of an epoch, by now."""

    last: int | None
    evaluations: int
    over: bool = False
    graphs: int = 0
    recompiles: int = 0


@dataclass
class CompileLog:
    """Counts and lists; everything starts empty, and `heard_anything` tells silence from zero."""

    frames: dict[str, FrameState] = field(default_factory=dict)
    open_stages: dict[int, list[OpenStage]] = field(default_factory=dict)
    seconds_by_stage: dict[ev.CompileStage, float] = field(default_factory=dict)
    forward_s: dict[CompilePart, float] = field(default_factory=dict)
    backward_s: dict[CompilePart, float] = field(default_factory=dict)
    logging_by_frame_s: dict[str, float] = field(default_factory=dict)
    break_sites: dict[tuple[str | None, int | None, str], BreakSite] = field(default_factory=dict)
    recompiles: list[ev.Recompiled] = field(default_factory=list)
    recompile_attempts: int = 0
    dynamic_shapes: list[ev.DynamicShape] = field(default_factory=list)
    limit_hits: list[ev.RecompileLimitHit] = field(default_factory=list)
    cache_counts: dict[tuple[ev.CacheKind, ev.CacheOutcome], int] = field(default_factory=dict)
    cudagraph_spans: int = 0
    cudagraph_callbacks: int = 0
    cudagraph_skips: list[str] = field(default_factory=list)
    fallback_ops: dict[str, int] = field(default_factory=dict)
    warnings: list[ev.CompilerWarning] = field(default_factory=list)
    graphs: int = 0
    ops: int = 0
    kernels: int = 0
    autotunes: int = 0
    epoch_end: EpochCompiles | None = None
    last_frame_id: str | None = None
    summary: ev.CompilerSummary | None = None

    @singledispatchmethod
    def apply(self, event: ev.Event) -> None:
        """Take in one compiler record; other records are ignored."""

    @property
    def current_stages(self) -> tuple[OpenStage, ...]:
        """The open stages of the busiest thread, outermost first; empty when the compiler is idle."""
        return max((tuple(stack) for stack in self.open_stages.values()), key=len, default=())

    @property
    def current_frame(self) -> FrameState | None:
        stages = self.current_stages
        ids = [stage.compile_id for stage in reversed(stages) if stage.compile_id] + [self.last_frame_id]
        return next((self.frames[i] for i in ids if i in self.frames), None) if stages else None

    @property
    def recompile_count(self) -> int:
        """Recompiles that took place, without those for the usual end of an epoch, which everyone has once. An attempt
        that hits the limit compiles nothing."""
        return max(0, self.recompile_attempts - len(self.limit_hits))

    @property
    def dropped_frames(self) -> tuple[FrameState, ...]:
        """Frames that run eager as a whole. The recompile limit is told apart."""
        return tuple(
            frame
            for frame in self.frames.values()
            if frame.fail_type and "limit exceeded" not in (frame.fail_reason or "") and "Limit" not in frame.fail_type
        )

    @property
    def compiled_anything(self) -> bool:
        """By any evidence: a graph, a program loaded from a cache, or torch's own counter."""
        counted = self.summary is not None and bool(self.summary.frames_compiled)
        return counted or self.graphs > 0 or self.cache_count(ev.CacheOutcome.HIT) > 0

    @property
    def logging_s(self) -> float:
        """What listening cost during the compile: torch builds its records only for a listener."""
        told_s = sum(self.logging_by_frame_s.values())
        return max(told_s, self.summary.handler_s if self.summary is not None else 0.0)

    @property
    def compiler_active(self) -> bool:
        """Was there any sign of the compiler at all?"""
        return bool(self.frames or self.graphs or self.cache_counts)

    @property
    def cudagraph_recordings(self) -> int:
        """Recorded CUDA graphs. A recording is told by a span, by a callback or by both."""
        return max(self.cudagraph_spans, self.cudagraph_callbacks)

    def cache_count(self, outcome: ev.CacheOutcome) -> int:
        return sum(count for (_, told), count in self.cache_counts.items() if told is outcome)

    # ------------------------------------------------------------ one method a record

    @apply.register
    def _span(self, event: ev.CompileSpan) -> None:
        stack = self.open_stages.setdefault(event.thread, [])
        if event.begins:
            stack.append(OpenStage(event.stage, event.stage_name, event.compile_id, event.t_s, detail=event.detail))
            self.autotunes += event.stage is ev.CompileStage.AUTOTUNE
            self.cudagraph_spans += event.stage_name == "CUDAGraphNode.record"
            return
        for depth in range(len(stack) - 1, -1, -1):
            if stack[depth].stage_name == event.stage_name:
                ended = stack[depth]
                del stack[depth:]
                self._add_own_seconds(ended, event.t_s - ended.since_s, stack)
                # Nested spans of one stage count once.
                if all(outer.stage is not ended.stage for outer in stack):
                    spent = self.seconds_by_stage.get(ended.stage, 0.0) + event.t_s - ended.since_s
                    self.seconds_by_stage[ended.stage] = spent
                break
        if not stack:
            del self.open_stages[event.thread]

    def _add_own_seconds(self, ended: OpenStage, spent_s: float, outer: list[OpenStage]) -> None:
        """To the part's sum without what nested stages took. A thread that does nothing else than compile kernels
        works beside the one that waits for it, and is not counted."""
        outermost = outer[0].stage if outer else ended.stage
        if outermost is ev.CompileStage.KERNELS:
            return
        sums = self.backward_s if outermost is ev.CompileStage.BACKWARD else self.forward_s
        part = _PART_OF_STAGE.get(ended.stage, CompilePart.INDUCTOR)
        sums[part] = sums.get(part, 0.0) + max(0.0, spent_s - ended.nested_s)
        if outer:
            outer[-1] = replace(outer[-1], nested_s=outer[-1].nested_s + spent_s)

    @apply.register
    def _frame_started(self, event: ev.FrameStarted) -> None:
        self.last_frame_id = event.compile_id
        self.frames[event.compile_id] = FrameState(
            event.compile_id, event.function, event.file, event.line, started_s=event.t_s
        )

    @apply.register
    def _usual_epoch_end(self, event: ev.UsualEpochEnd) -> None:
        if event.begins:
            self.epoch_end = EpochCompiles(event.last, event.evaluations)
        elif self.epoch_end is not None:
            self.epoch_end = replace(self.epoch_end, over=True)

    @property
    def _at_epoch_end(self) -> EpochCompiles | None:
        return self.epoch_end if self.epoch_end is not None and not self.epoch_end.over else None

    @apply.register
    def _graph(self, event: ev.GraphCaptured) -> None:
        self.graphs += 1
        if (end := self._at_epoch_end) is not None:
            self.epoch_end = replace(end, graphs=end.graphs + 1)
        self.ops += event.ops or 0
        frame = self.frames.get(event.compile_id or "")
        if frame is not None:
            self.frames[frame.compile_id] = replace(frame, graphs=frame.graphs + 1, ops=frame.ops + (event.ops or 0))

    @apply.register
    def _code(self, event: ev.CodeGenerated) -> None:
        self.kernels += event.kernels
        for op in event.fallback_ops:
            self.fallback_ops[op] = self.fallback_ops.get(op, 0) + 1
        frame = self.frames.get(event.compile_id or "")
        if frame is not None:
            self.frames[frame.compile_id] = replace(frame, kernels=frame.kernels + event.kernels)

    @apply.register
    def _cache(self, event: ev.CacheLookup) -> None:
        key = (event.cache, event.outcome)
        self.cache_counts[key] = self.cache_counts.get(key, 0) + 1

    @apply.register
    def _break(self, event: ev.GraphBreak) -> None:
        key = (event.file, event.line, event.reason)
        seen = self.break_sites.get(key)
        self.break_sites[key] = BreakSite(seen.first if seen else event, (seen.times if seen else 0) + 1)

    @apply.register
    def _recompiled(self, event: ev.Recompiled) -> None:
        if (end := self._at_epoch_end) is not None:
            self.epoch_end = replace(end, recompiles=end.recompiles + 1)
            return
        self.recompile_attempts += 1
        if len(self.recompiles) < _MAX_RECOMPILES_KEPT:
            self.recompiles.append(event)

    @apply.register
    def _dynamic(self, event: ev.DynamicShape) -> None:
        if len(self.dynamic_shapes) < _MAX_RECOMPILES_KEPT:
            self.dynamic_shapes.append(event)

    @apply.register
    def _compiled(self, event: ev.FrameCompiled) -> None:
        if event.cudagraph_skip_reason:
            self._note_skip(event.cudagraph_skip_reason)
        if event.logging_overhead_s is not None:
            # Counted on and on: the backward's figure holds the forward's.
            known_s = self.logging_by_frame_s.get(event.compile_id or "", 0.0)
            self.logging_by_frame_s[event.compile_id or ""] = max(known_s, event.logging_overhead_s)
        frame = self.frames.get(event.compile_id or "")
        if frame is not None and not event.backward:
            self.frames[frame.compile_id] = replace(
                frame, ended_s=event.t_s, fail_type=event.fail_type, fail_reason=event.fail_reason
            )
        if event.fail_type and event.compile_id:
            self._mark_dropped(event.compile_id)

    def _mark_dropped(self, compile_id: str) -> None:
        """Not every torch says at the break itself that the frame runs eager from now on."""
        for key, site in self.break_sites.items():
            if site.first.compile_id == compile_id:
                self.break_sites[key] = replace(site, first=replace(site.first, frame_dropped=True))

    @apply.register
    def _limit(self, event: ev.RecompileLimitHit) -> None:
        if len(self.limit_hits) < _MAX_RECOMPILES_KEPT:
            self.limit_hits.append(event)

    @apply.register
    def _skip(self, event: ev.CudagraphSkipped) -> None:
        self._note_skip(event.reason)

    def _note_skip(self, reason: str) -> None:
        if reason not in self.cudagraph_skips and len(self.cudagraph_skips) < _MAX_WARNINGS_KEPT:
            self.cudagraph_skips.append(reason)

    @apply.register
    def _callback(self, event: ev.CompilerCallback) -> None:
        self.cudagraph_callbacks += event.begins and event.trigger == "CUDAGRAPH_RECORDING"

    @apply.register
    def _warning(self, event: ev.CompilerWarning) -> None:
        if len(self.warnings) < _MAX_WARNINGS_KEPT:
            self.warnings.append(event)

    @apply.register
    def _summary(self, event: ev.CompilerSummary) -> None:
        self.summary = event
