"""What the compiler tells, through the worker: one frozen dataclass per kind (see `core/events.py`).

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from .event import Event


class CompileStage(str, enum.Enum):
    """What the compiler is doing, in the order in which it does it."""

    FRAME = "frame"
    DYNAMO = "dynamo tracing"
    GUARDS = "guards"
    BACKEND = "backend"
    AOT = "AOTAutograd"
    PARTITION = "partition"
    CACHE_LOAD = "cache load"
    FX_PASSES = "graph passes"
    INDUCTOR = "Inductor"
    LOWERING = "lowering"
    SCHEDULING = "scheduling"
    CODEGEN = "code generation"
    KERNELS = "kernel compile"
    KERNEL_LOAD = "kernel load"
    AUTOTUNE = "autotune"
    CUDAGRAPH = "cudagraph recording"
    BACKWARD = "backward"


class CacheKind(str, enum.Enum):
    FX = "fx"
    AOT_AUTOGRAD = "aot"


class CacheOutcome(str, enum.Enum):
    HIT = "hit"
    MISS = "miss"
    BYPASS = "bypass"


@dataclass(frozen=True, kw_only=True)
class CompileSpan(Event):
    """A stage of the compiler begins or ends. `stage_name` is torch's own name for it; `detail` says what is worked
    on, where torch tells: the shapes that are autotuned, or the kernel."""

    kind: ClassVar[str] = "compile_span"
    begins: bool
    stage: CompileStage
    stage_name: str
    compile_id: str | None = None
    thread: int = 0
    detail: str | None = None


@dataclass(frozen=True, kw_only=True)
class FrameStarted(Event):
    """Dynamo starts on a Python frame. `compile_id` is "frame/attempt", for example "0/1"."""

    kind: ClassVar[str] = "frame_started"
    compile_id: str
    function: str | None
    file: str | None
    line: int | None


@dataclass(frozen=True, kw_only=True)
class GraphCaptured(Event):
    """Dynamo hands one graph to the backend."""

    kind: ClassVar[str] = "graph_captured"
    compile_id: str | None
    ops: int | None


@dataclass(frozen=True, kw_only=True)
class CodeGenerated(Event):
    """Inductor wrote one module: kernels to compile, library calls, operators without a kernel of its own."""

    kind: ClassVar[str] = "code_generated"
    compile_id: str | None
    kernels: int
    kernel_languages: tuple[str, ...]
    library_calls: tuple[str, ...]
    fallback_ops: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CacheLookup(Event):
    """One look into the compiler's on-disk caches."""

    kind: ClassVar[str] = "cache_lookup"
    cache: CacheKind
    outcome: CacheOutcome
    compile_id: str | None = None
    reason: str | None = None
    saved_ms: float | None = None


@dataclass(frozen=True)
class ArtifactCount:
    """Entries of one kind in a file of portable caches; `kind` is torch's own name for it."""

    kind: str
    entries: int


@dataclass(frozen=True, kw_only=True)
class ArtifactsMoved(Event):
    """torch's portable caches were written to a file (`saved`), or loaded from one."""

    kind: ClassVar[str] = "artifacts_moved"
    saved: bool
    seconds: float
    bytes: int
    counts: tuple[ArtifactCount, ...]


@dataclass(frozen=True, kw_only=True)
class GraphBreak(Event):
    """Dynamo stopped tracing. `file`:`line` is the innermost frame outside torch. `frame_dropped` means that
    the whole function runs eager from now on."""

    kind: ClassVar[str] = "graph_break"
    compile_id: str | None
    file: str | None
    line: int | None
    function: str | None = None
    source: str | None = None
    reason: str = ""
    explanation: str | None = None
    hints: tuple[str, ...] = ()
    gb_id: str | None = None
    url: str | None = None
    frame_dropped: bool = False


@dataclass(frozen=True)
class GuardFailure:
    """Why a cached entry did not fit: `entry` is its compile id, `where` the guard's origin in source."""

    guard: str
    entry: str | None = None
    where: str | None = None


@dataclass(frozen=True, kw_only=True)
class Recompiled(Event):
    """A frame is compiled again."""

    kind: ClassVar[str] = "recompiled"
    compile_id: str | None
    failures: tuple[GuardFailure, ...]


@dataclass(frozen=True, kw_only=True)
class DynamicShape(Event):
    """A size that was a constant becomes a symbol."""

    kind: ClassVar[str] = "dynamic_shape"
    compile_id: str | None
    name: str
    reason: str | None = None
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True, kw_only=True)
class FrameCompiled(Event):
    """torch's own metrics at the end of one compile (forward or backward), in seconds. `fail_type` set means
    that the frame was not compiled."""

    kind: ClassVar[str] = "frame_compiled"
    compile_id: str | None
    backward: bool
    function: str | None = None
    file: str | None = None
    line: int | None = None
    ops: int | None = None
    guards: int | None = None
    fail_type: str | None = None
    fail_reason: str | None = None
    fail_file: str | None = None
    fail_line: int | None = None
    total_s: float | None = None
    backend_s: float | None = None
    inductor_s: float | None = None
    codegen_s: float | None = None
    cudagraph_skip_reason: str | None = None
    logging_overhead_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class RecompileLimitHit(Event):
    """A code object was recompiled too often: what is not cached yet runs eager from now on."""

    kind: ClassVar[str] = "recompile_limit_hit"
    compile_id: str | None
    text: str


@dataclass(frozen=True, kw_only=True)
class CudagraphSkipped(Event):
    kind: ClassVar[str] = "cudagraph_skipped"
    reason: str


@dataclass(frozen=True, kw_only=True)
class CompilerCallback(Event):
    """torch's coarse compile callback; `trigger` is DYNAMO, LAZY_BACKWARD or CUDAGRAPH_RECORDING."""

    kind: ClassVar[str] = "compiler_callback"
    begins: bool
    trigger: str | None
    compile_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class CompilerWarning(Event):
    kind: ClassVar[str] = "compiler_warning"
    logger: str
    text: str


@dataclass(frozen=True)
class ExplainedBreak:
    """One place where torch._dynamo.explain saw a graph end."""

    file: str | None
    line: int | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class FullgraphProbed(Event):
    """One step compiled with fullgraph=True, in a process of its own. It counts graphs by itself: this setting also
    captures scalars (`.item()`), so the run's own breaks do not tell. If it does not hold: the first thing that is in
    the way, in torch's words, and where."""

    kind: ClassVar[str] = "fullgraph_probed"
    holds: bool
    error_type: str = ""
    message: str = ""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, kw_only=True)
class Explained(Event):
    """What torch._dynamo.explain says of one forward call, in a process of its own: it runs the model for real and
    resets Dynamo. `graphs` may be 0: nothing was captured. Its own count of breaks (graphs - 1) is not taken over."""

    kind: ClassVar[str] = "explained"
    graphs: int
    ops: int
    breaks: tuple[ExplainedBreak, ...]


@dataclass(frozen=True, kw_only=True)
class CompilerSummary(Event):
    """Counters at the end of the process, a second source beside the events. None: this torch has no such counter."""

    kind: ClassVar[str] = "compiler_summary"
    frames_seen: int | None
    frames_compiled: int | None
    unique_graphs: int | None
    disabled_by: str | None
    handler_s: float
    handler_errors: int
