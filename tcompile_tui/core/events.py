"""Every record that goes over the wire and into `events.jsonl`.

One frozen dataclass per kind. On disk and on the wire a record is a JSON object with `v` (the schema version),
`kind`, and the fields. Readers skip kinds they do not know and count them, so that an old program opens a newer
run. Times are seconds since the start of the run on one monotonic clock; `process` is the ordinal of the worker
that speaks, 0 for the supervisor. A value that could not be had is None, never 0.

The compiler's own kinds are written in `core/compiler_events.py`, those about outputs in `core/output_events.py`, those
of `tcompile-tui inspect` in `core/inspection.py`; all are named here, so that one import has the whole vocabulary.
Standard library only: the worker imports this module. Decoding lives in `core/codec.py`.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, fields, is_dataclass
from json import JSONEncoder
from typing import ClassVar

from .batch_events import BatchFitted as BatchFitted, LoaderTimed as LoaderTimed
from .compile_options import CompiledBlocks as CompiledBlocks
from .compiler_events import (
    ArtifactCount as ArtifactCount,
    ArtifactsMoved as ArtifactsMoved,
    CacheKind as CacheKind,
    CacheLookup as CacheLookup,
    CacheOutcome as CacheOutcome,
    CodeGenerated as CodeGenerated,
    CompilerCallback as CompilerCallback,
    CompilerSummary as CompilerSummary,
    CompilerWarning as CompilerWarning,
    CompileSpan as CompileSpan,
    CompileStage as CompileStage,
    CudagraphSkipped as CudagraphSkipped,
    DynamicShape as DynamicShape,
    Explained as Explained,
    ExplainedBreak as ExplainedBreak,
    FrameCompiled as FrameCompiled,
    FrameStarted as FrameStarted,
    FullgraphProbed as FullgraphProbed,
    GraphBreak as GraphBreak,
    GraphCaptured as GraphCaptured,
    GuardFailure as GuardFailure,
    Recompiled as Recompiled,
    RecompileLimitHit as RecompileLimitHit,
)
from .decode_events import PrefillsTimed as PrefillsTimed
from .epoch_events import UnlikeBatchFailed as UnlikeBatchFailed, UsualEpochEnd as UsualEpochEnd
from .event import AnyEvent as AnyEvent, Event as Event, stamp as stamp
from .inspection import InputsInspected as InputsInspected, ModelInspected as ModelInspected
from .output_events import (
    ComparisonKind as ComparisonKind,
    LeafComparison as LeafComparison,
    LeafSpread as LeafSpread,
    OutputsCompared as OutputsCompared,
    RandomOutputsCompared as RandomOutputsCompared,
    ReferenceErrors as ReferenceErrors,
    RunStatistic as RunStatistic,
)
from .shape_events import ReplayStarted as ReplayStarted
from .spec import Arm, Mode, Phase, RunSpec

SCHEMA_VERSION = 1


class Outcome(str, enum.Enum):
    """How a worker process ended."""

    OK = "ok"
    ERROR = "error"  # it said what went wrong
    KILLED = "killed"  # a signal that the supervisor did not send
    EXITED = "exited"  # it left without its final record
    TIMED_OUT = "timed-out"  # the supervisor ended it at a time limit
    STOPPED = "stopped"  # the user asked


class BlockRole(str, enum.Enum):
    """Why a block of steps was run."""

    WARMUP = "warmup"  # from the first call on, until steady
    SETTLE = "settle"  # before pairs: bring an arm up, not compared
    PAIR = "pair"  # one half of an eager/compiled pair
    LATENCY = "latency"  # each step waited for before the next one is issued
    APART = "apart"  # of an arm that has its process for itself, compared with those of other processes
    REPLAY = "replay"  # batches of a sequence of shapes


class Steadiness(str, enum.Enum):
    """What the steady-state gate says of an arm's warm-up."""

    WARMING_UP = "warming up"
    STEADY = "steady"
    NOISE_LIMITED = "noise-limited"  # no steady level in the budget: only the paired ratio can be trusted


class Level(str, enum.Enum):
    INFO = "info"
    WARNING = "warning"


# ---------------------------------------------------------------- from the supervisor


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """The first record."""

    kind: ClassVar[str] = "run_started"
    run_id: str
    spec: RunSpec
    python: str
    torch_version: str
    device: str
    device_name: str


class StartMethod(str, enum.Enum):
    """How a worker process came to be."""

    FRESH = "fresh"  # an interpreter of its own
    FORKED = "forked"  # from one that has imported torch and its compiler, and done nothing else


@dataclass(frozen=True, kw_only=True)
class PhaseStarted(Event):
    """A worker process starts; its records carry this record's `process`."""

    kind: ClassVar[str] = "phase_started"
    phase: Phase
    mode: Mode | None = None
    pid: int
    limit_s: float
    how: StartMethod = StartMethod.FRESH


@dataclass(frozen=True, kw_only=True)
class PhaseEnded(Event):
    """A worker process is gone. `detail` says which signal, limit or exit status; `reclaimed` counts processes
    that it left behind and that were killed."""

    kind: ClassVar[str] = "phase_ended"
    phase: Phase
    mode: Mode | None = None
    outcome: Outcome
    seconds: float
    detail: str = ""
    reclaimed: int = 0


@dataclass(frozen=True, kw_only=True)
class SteadyJudged(Event):
    """The gate's judgement of one arm's warm-up in one worker process. Steps from `start_index` on are steady to
    within `bound` (a relative change between the halves of the window); None where no window was judged."""

    kind: ClassVar[str] = "steady_judged"
    of_process: int
    arm: Arm
    steadiness: Steadiness
    start_index: int | None = None
    bound: float | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class CompileStopped(Event):
    """A compile was ended in its first step, because the start could not pay off in the planned run. `start_s`: what
    it had cost beyond an eager start."""

    kind: ClassVar[str] = "compile_stopped"
    of_process: int
    start_s: float


@dataclass(frozen=True, kw_only=True)
class GpuSample(Event):
    """One NVML sample of the device under test; a field that the driver does not give is None. `energy_j` is the
    board's counter, read at `energy_read_s` (only differences of it mean anything), while an EnergyWindow is open."""

    kind: ClassVar[str] = "gpu_sample"
    utilisation_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    sm_clock_mhz: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    other_pids: tuple[int, ...] | None = None
    other_memory_bytes: int | None = None
    other_utilisation_percent: float | None = None
    energy_j: float | None = None
    energy_read_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class HostSample(Event):
    """CPU and memory of the host, and of the worker's process tree. `busiest` names the program in that tree that used
    most of the CPU since the last sample, or waits for it or for a disk; None if all sleep."""

    kind: ClassVar[str] = "host_sample"
    cpu_percent: float
    load_1m: float | None = None
    memory_used_bytes: int
    memory_total_bytes: int
    worker_cpu_percent: float | None = None
    worker_rss_bytes: int | None = None
    busiest: str | None = None


@dataclass(frozen=True, kw_only=True)
class Notice(Event):
    """One line that a person should read, from either side. `code` is stable, `text` is for people."""

    kind: ClassVar[str] = "notice"
    level: Level
    code: str
    text: str


@dataclass(frozen=True, kw_only=True)
class RunEnded(Event):
    """The last record of a run that ended by itself."""

    kind: ClassVar[str] = "run_ended"
    decision: str
    headline: str
    exit_code: int


# ---------------------------------------------------------------- from the worker


@dataclass(frozen=True, kw_only=True)
class ImportsDone(Event):
    """Seconds spent in importing, by what was imported; `compiler` is what only a compiled run pays. In a forked
    process those of the process it was forked from. `torch_s` None: the target imported torch, in its own seconds.
    `environment_changed` names variables that the target changes and that torch reads when it is imported."""

    kind: ClassVar[str] = "imports_done"
    torch_s: float | None
    compiler_s: float | None = None
    target_s: float | None = None
    environment_changed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkerReady(Event):
    """Facts about the process that measures. `capabilities` names the compiler signals this torch gives."""

    kind: ClassVar[str] = "worker_ready"
    python_version: str
    torch_version: str
    cuda_version: str | None
    device_name: str
    sm_count: int | None = None
    threads: int
    matmul_precision: str
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True)
class TensorInfo:
    """One tensor among the inputs: where it is in them, and what it is."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    device: str


@dataclass(frozen=True, kw_only=True)
class ModelReady(Event):
    """The model stands on its device with its inputs. `second_copy` tells how the other arm got its model,
    `repeated` which block most of it is made of."""

    kind: ClassVar[str] = "model_ready"
    class_name: str
    file: str | None
    line: int | None
    parameters: int
    parameter_bytes: int
    training: bool
    inputs: tuple[TensorInfo, ...]
    input_batches: int
    second_copy: str | None = None
    optimizer: str | None = None
    loss: str | None = None
    forward_file: str | None = None
    forward_line: int | None = None
    repeated: CompiledBlocks | None = None


@dataclass(frozen=True, kw_only=True)
class ModelCompiled(Event):
    """The model was handed to torch.compile. In place is `model.compile()`. `wrapped` is `torch.compile(model)`, for
    a model whose forward is torch's own: in place, Dynamo skips it without a word. `blocks`: only these were, or were
    marked as what repeats; None for the model as it is."""

    kind: ClassVar[str] = "model_compiled"
    wrapped: bool
    blocks: CompiledBlocks | None = None


@dataclass(frozen=True, kw_only=True)
class Block(Event):
    """Steps of one arm, timed without interruption and sent when the block was over.

    `step_ns` is the time from one step boundary to the next: device time between events on CUDA, wall time on
    CPU. `host_ns` is the time the host needed to issue each step (CUDA only). `wall_ns` covers the whole block
    with its final synchronisation. `first_index` counts the arm's steps in this process from 0. `compiled_at`
    lists the steps (by that count) in which the compiler worked. `loop` is the ordinal of the worker's loop that
    ran the block, `pair` that of the pair. The first steps of a PAIR block, right after the switch of arms, are
    in it but not compared. Steps too short to be timed one by one without slowing them down are timed in groups of
    `group_steps`, and each has its group's mean. In the steps of `suspended_at` the process was stopped and continued:
    their times say nothing. `minor_faults` counts the pages that the process got from the system meanwhile. A block
    past the run folder's size limit has `step_ns` empty and `summary_ns` = (min, median, max, sum).
    """

    kind: ClassVar[str] = "block"
    arm: Arm
    role: BlockRole
    loop: int = 0
    pair: int | None = None
    first_index: int
    steps: int
    step_ns: tuple[int, ...]
    host_ns: tuple[int, ...] = ()
    wall_ns: int
    cpu_ns: int | None = None
    involuntary_switches: int | None = None
    compiled_at: tuple[int, ...] = ()
    group_steps: int = 1
    summary_ns: tuple[int, int, int, int] | None = None
    suspended_at: tuple[int, ...] = ()
    minor_faults: int | None = None


@dataclass(frozen=True, kw_only=True)
class EnergyWindow(Event):
    """One arm runs alone and without a pause: sent when that begins, and when it is over with what was run."""

    kind: ClassVar[str] = "energy_window"
    arm: Arm
    steps: int | None = None
    wall_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class MemoryPeak(Event):
    """Peak memory of one arm in its own process: first step (with compile or set-up) apart from steady steps."""

    kind: ClassVar[str] = "memory_peak"
    arm: Arm
    first_allocated_bytes: int | None = None
    steady_allocated_bytes: int | None = None
    steady_reserved_bytes: int | None = None
    host_rss_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class StepsProfiled(Event):
    """A few steady steps of one arm under torch's profiler: proof of what ran. All figures are totals over `steps`.

    `lookups` and `lookup_ns` are the guard checks that every call of a compiled frame pays on the host. `regions`
    are the compile ids whose code ran, `program_calls` the calls of Inductor's programs (None before torch 2.9, which
    does not mark them). The device's side is None
    on CPU and where the profiler may not see the device: `kernels` that ran (`triton_kernels` among them),
    `graph_launches` (replayed cudagraphs), `device_busy_ns`, and `fused_ns`, the longest kernel of each run of kernels
    between two library calls, all of these together. `library_ns` is the time in matrix products,
    convolutions and attention, of the device or, on CPU, of the host. `wall_ns` includes the profiler's own cost.
    """

    kind: ClassVar[str] = "steps_profiled"
    arm: Arm
    steps: int
    wall_ns: int
    lookups: int
    lookup_ns: int
    regions: tuple[str, ...]
    program_calls: int | None
    kernels: int | None = None
    triton_kernels: int | None = None
    graph_launches: int | None = None
    device_busy_ns: int | None = None
    library_ns: int | None = None
    fused_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class MeasurementDone(Event):
    """All that the decision needs from this process was sent: what comes after it (a profile) may fail without loss."""

    kind: ClassVar[str] = "measurement_done"


@dataclass(frozen=True, kw_only=True)
class WorkerFailed(Event):
    """The worker could not go on. `file` and `line` are the innermost frame of the user's own code."""

    kind: ClassVar[str] = "worker_failed"
    stage: str
    error_type: str
    message: str
    file: str | None = None
    line: int | None = None
    source: str | None = None
    fault: str = "model"  # "input", "model", "compiler", "memory", "environment", "program"
    traceback: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkerDone(Event):
    """The final record: only with it a worker's results count. `records_dropped` were too large to send."""

    kind: ClassVar[str] = "worker_done"
    records_dropped: int = 0


EVENT_TYPES: tuple[type[Event], ...] = (
    RunStarted, PhaseStarted, PhaseEnded, SteadyJudged, CompileStopped, GpuSample, HostSample, Notice, RunEnded,
    ImportsDone, WorkerReady, ModelReady, ModelCompiled, Block, EnergyWindow, MemoryPeak, OutputsCompared,
    RandomOutputsCompared, StepsProfiled, MeasurementDone, WorkerFailed, WorkerDone,
    CompileSpan, FrameStarted, GraphCaptured, CodeGenerated, CacheLookup, GraphBreak, Recompiled, DynamicShape,
    FrameCompiled, RecompileLimitHit, CudagraphSkipped, CompilerCallback, CompilerWarning, CompilerSummary,
    Explained, FullgraphProbed, PrefillsTimed, ArtifactsMoved, ModelInspected, InputsInspected, ReplayStarted,
    LoaderTimed, BatchFitted, UsualEpochEnd, UnlikeBatchFailed,
)  # fmt: skip


# Bound here, so that user code which patches the json module cannot change what is recorded.
_ENCODER = JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def encode_event(event: Event) -> bytes:
    """One record as a single line of JSON in UTF-8, without the line end."""
    body = {"v": SCHEMA_VERSION, "kind": event.kind, **_plain_fields(event)}
    return _ENCODER.encode(body).encode("utf-8")


def _plain_fields(value: object) -> dict[str, object]:
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}  # type: ignore[arg-type]


def _plain(value: object) -> object:
    """A value as JSON knows it. NaN and the infinities, which JSON lacks, travel as the strings 'nan', 'inf' and
    '-inf'; lone surrogates (from undecodable file names), which UTF-8 lacks, as their escapes."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, (bool, int)) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, (tuple, list)):
        return value if value and type(value[0]) is int else [_plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value)
    raise TypeError(f"a record cannot hold a {type(value).__name__}")
