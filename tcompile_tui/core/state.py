"""RunState: the one place where records become what a person sees.

Everything is kept by worker process, because a process is the unit of measuring: it has a phase, a mode, caches
that were cold or warm, and arms with step times. Views by mode are methods.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import singledispatchmethod
from statistics import fmean, median

from tcompile_tui.core import events as ev
from tcompile_tui.core.compile_log import CompileLog
from tcompile_tui.core.energy import EnergyLog
from tcompile_tui.core.pairs import (
    DISCARDED_AFTER_SWITCH,
    BlockLevel,
    Pair,
    SpeedupInterval,
    make_pair,
    paired_interval,
)
from tcompile_tui.core.replay import Replay
from tcompile_tui.core.series import StepSeries
from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.core.throttling import ThrottleLog, overlap

_SAMPLES_KEPT = 1_200  # four minutes at five samples a second


@dataclass
class ArmSteps:
    """One arm in one process. `series` holds every step in order; the warm-up comes first. `later_compile_ns` is what
    further shapes cost: the time of steps that compiled after the warm-up and before the comparison."""

    series: StepSeries = field(default_factory=StepSeries)
    warmup_steps: int = 0
    first_step_ns: int | None = None
    start_was_suspended: bool = False
    suspensions: int = 0
    compiled_at: list[int] = field(default_factory=list)
    later_compile_ns: int = 0
    recent_step_ns: float | None = None
    host_shares: list[float] = field(default_factory=list)
    recent_faults: float | None = None
    compared_faults: list[float] = field(default_factory=list)
    steadiness: ev.Steadiness = ev.Steadiness.WARMING_UP
    steady_from: int | None = None

    @property
    def host_share(self) -> float | None:
        """The part of a compared block in which the host issues steps, rather than waits for the device: the median
        of the pair blocks. None before the first, and on CPU."""
        return median(self.host_shares) if self.host_shares else None

    @property
    def page_faults(self) -> float | None:
        """Pages that a step gets from the system: the median of the compared blocks, else of the latest block."""
        return median(self.compared_faults) if self.compared_faults else self.recent_faults


@dataclass
class ProcessState:
    """One worker process, from its start to its end."""

    process: int
    phase: Phase
    mode: Mode | None
    pid: int
    started_s: float
    limit_s: float
    heard_s: float = 0.0
    ended: ev.PhaseEnded | None = None
    facts: ev.WorkerReady | None = None
    imports: ev.ImportsDone | None = None
    model: ev.ModelReady | None = None
    failure: ev.WorkerFailed | None = None
    done: bool = False
    arms: dict[Arm, ArmSteps] = field(default_factory=dict)
    memory: dict[Arm, ev.MemoryPeak] = field(default_factory=dict)
    comparisons: dict[ev.ComparisonKind, ev.OutputsCompared] = field(default_factory=dict)
    random_outputs: ev.RandomOutputsCompared | None = None
    compiled: ev.ModelCompiled | None = None
    latencies_ns: dict[Arm, list[int]] = field(default_factory=dict)
    profiles: dict[Arm, ev.StepsProfiled] = field(default_factory=dict)
    energy: EnergyLog = field(default_factory=EnergyLog)
    explained: ev.Explained | None = None
    fullgraph: ev.FullgraphProbed | None = None
    prefills: dict[Arm, ev.PrefillsTimed] = field(default_factory=dict)
    compile_stopped: ev.CompileStopped | None = None
    artifacts_saved: ev.ArtifactsMoved | None = None
    artifacts_loaded: ev.ArtifactsMoved | None = None
    replay: Replay | None = None
    loader: ev.LoaderTimed | None = None
    batch: ev.BatchFitted | None = None
    unlike_batch_failures: list[ev.UnlikeBatchFailed] = field(default_factory=list)
    compile: CompileLog = field(default_factory=CompileLog)
    pairs: list[Pair] = field(default_factory=list)
    apart: dict[Arm, list[BlockLevel]] = field(default_factory=dict)
    pair_compiles: int = 0
    throttled_pairs: int = 0
    _half_pair: ev.Block | None = None
    _interval: SpeedupInterval | None = None
    _interval_pairs: int = 0

    @property
    def running(self) -> bool:
        return self.ended is None

    @property
    def compiled_anything(self) -> bool:
        """By any evidence: what the compiler said, or a compiled program that was seen to run."""
        profile = self.profiles.get(Arm.COMPILED)
        ran = profile is not None and bool(profile.program_calls or profile.regions)
        return ran or self.compile.compiled_anything

    def arm(self, arm: Arm) -> ArmSteps:
        return self.arms.setdefault(arm, ArmSteps())

    def leave_out(self, throttled_s: tuple[float, float]) -> None:
        """Take away the pairs that ran in a span in which the GPU was throttled."""
        for blocks in self.apart.values():
            blocks[:] = [block for block in blocks if not overlap(block.span_s, throttled_s)]
        clean = [pair for pair in self.pairs if not overlap(pair.span_s, throttled_s)]
        if len(clean) < len(self.pairs):
            self.throttled_pairs += len(self.pairs) - len(clean)
            self.pairs[:] = clean
            self._interval_pairs = -1

    @property
    def interval(self) -> SpeedupInterval | None:
        """The paired speedup so far; None below the smallest number of pairs that gives one."""
        if self._interval_pairs != len(self.pairs):
            self._interval = paired_interval([pair.log_ratio for pair in self.pairs])
            self._interval_pairs = len(self.pairs)
        return self._interval


@dataclass
class RunState:
    """A run as far as its records tell. `apply` every record in order; nothing else changes it."""

    run: ev.RunStarted | None = None
    ended: ev.RunEnded | None = None
    processes: dict[int, ProcessState] = field(default_factory=dict)
    throttling: ThrottleLog = field(default_factory=ThrottleLog)
    gpu: deque[ev.GpuSample] = field(default_factory=lambda: deque(maxlen=_SAMPLES_KEPT))
    host: deque[ev.HostSample] = field(default_factory=lambda: deque(maxlen=_SAMPLES_KEPT))
    notices: list[ev.Notice] = field(default_factory=list)
    now_s: float = 0.0
    events: int = 0

    # ------------------------------------------------------------ views

    @property
    def current(self) -> ProcessState | None:
        """The worker that runs now."""
        return next((process for process in reversed(self.processes.values()) if process.running), None)

    @property
    def modes(self) -> tuple[Mode, ...]:
        return self.run.spec.modes if self.run is not None else ()

    @property
    def reads_energy(self) -> bool:
        """Does an arm run alone now, so that the energy counter is to be read? May be asked from any thread."""
        latest = list(self.processes.values())[-1:]  # a copy: another thread may add one meanwhile
        return any(process.energy.open_arm is not None for process in latest)

    def process_of(self, phase: Phase, mode: Mode | None = None) -> ProcessState | None:
        """The latest process of a phase (and mode, for the compiled phases)."""
        found = self.processes_of(phase, mode)
        return found[-1] if found else None

    def processes_of(self, phase: Phase, mode: Mode | None = None) -> list[ProcessState]:
        """Every process of a phase (and mode), in the order of their starts."""
        return [p for p in self.processes.values() if p.phase is phase and (mode is None or p.mode is mode)]

    @property
    def eager_step_ns(self) -> float | None:
        """The eager arm's step time: from the latest process that ran it, at the run's batch."""
        for process in reversed(self.processes.values()):
            arm = process.arms.get(Arm.EAGER) if process.phase is not Phase.FIT else None
            if arm is not None and arm.recent_step_ns is not None:
                return arm.recent_step_ns
        return None

    # ------------------------------------------------------------ records

    def apply(self, event: ev.Event) -> None:
        """Take in one record. A record that does not fit (of a worker that never started) is ignored."""
        self.events += 1
        self.now_s = max(self.now_s, event.t_s)
        process = self.processes.get(event.process)
        if process is not None:
            process.heard_s = max(process.heard_s, event.t_s)
            process.compile.apply(event)
        self._apply(event)

    @singledispatchmethod
    def _apply(self, event: ev.Event) -> None:
        pass

    @_apply.register
    def _run_started(self, event: ev.RunStarted) -> None:
        self.run = event

    @_apply.register
    def _run_ended(self, event: ev.RunEnded) -> None:
        self.ended = event

    @_apply.register
    def _phase_started(self, event: ev.PhaseStarted) -> None:
        self.processes[event.process] = ProcessState(
            event.process, event.phase, event.mode, event.pid, started_s=event.t_s, limit_s=event.limit_s
        )

    @_apply.register
    def _phase_ended(self, event: ev.PhaseEnded) -> None:
        process = self.processes.get(event.process)
        if process is not None:
            process.ended = event
            process.compile.open_stages.clear()
            process.energy.open_arm = None

    @_apply.register
    def _gpu(self, event: ev.GpuSample) -> None:
        self.gpu.append(event)
        if self.current is not None:
            self.current.energy.take_sample(event)
        span = self.throttling.take(event)
        if span is not None:
            for process in self.processes.values():
                process.leave_out(span)

    @_apply.register
    def _host(self, event: ev.HostSample) -> None:
        self.host.append(event)

    @_apply.register
    def _notice(self, event: ev.Notice) -> None:
        self.notices.append(event)

    @_apply.register
    def _steady(self, event: ev.SteadyJudged) -> None:
        process = self.processes.get(event.of_process)
        if process is not None:
            arm = process.arm(event.arm)
            arm.steadiness, arm.steady_from = event.steadiness, event.start_index

    @_apply.register
    def _compile_stopped(self, event: ev.CompileStopped) -> None:
        process = self.processes.get(event.of_process)
        if process is not None:
            process.compile_stopped = event

    @_apply.register
    def _facts(self, event: ev.WorkerReady) -> None:
        if event.process in self.processes:
            self.processes[event.process].facts = event

    @_apply.register
    def _imports(self, event: ev.ImportsDone) -> None:
        if event.process in self.processes:
            self.processes[event.process].imports = event

    @_apply.register
    def _model(self, event: ev.ModelReady) -> None:
        if event.process in self.processes:
            self.processes[event.process].model = event

    @_apply.register
    def _model_compiled(self, event: ev.ModelCompiled) -> None:
        if event.process in self.processes:
            self.processes[event.process].compiled = event

    @_apply.register
    def _profiled(self, event: ev.StepsProfiled) -> None:
        if event.process in self.processes:
            self.processes[event.process].profiles[event.arm] = event

    @_apply.register
    def _explained(self, event: ev.Explained) -> None:
        if event.process in self.processes:
            self.processes[event.process].explained = event

    @_apply.register
    def _fullgraph_probed(self, event: ev.FullgraphProbed) -> None:
        if event.process in self.processes:
            self.processes[event.process].fullgraph = event

    @_apply.register
    def _prefills_timed(self, event: ev.PrefillsTimed) -> None:
        if event.process in self.processes:
            self.processes[event.process].prefills[event.arm] = event

    @_apply.register
    def _unlike_batch_failed(self, event: ev.UnlikeBatchFailed) -> None:
        if event.process in self.processes:
            self.processes[event.process].unlike_batch_failures.append(event)

    @_apply.register
    def _artifacts(self, event: ev.ArtifactsMoved) -> None:
        process = self.processes.get(event.process)
        if process is not None and event.saved:
            process.artifacts_saved = event
        elif process is not None:
            process.artifacts_loaded = event

    @_apply.register
    def _replay_started(self, event: ev.ReplayStarted) -> None:
        if event.process in self.processes and event.sequence.sound:
            self.processes[event.process].replay = Replay(event)

    @_apply.register
    def _loader(self, event: ev.LoaderTimed) -> None:
        if event.process in self.processes:
            self.processes[event.process].loader = event

    @_apply.register
    def _batch(self, event: ev.BatchFitted) -> None:
        if event.process in self.processes:
            self.processes[event.process].batch = event

    @_apply.register
    def _failed(self, event: ev.WorkerFailed) -> None:
        if event.process in self.processes:
            self.processes[event.process].failure = event

    @_apply.register(ev.MeasurementDone)
    @_apply.register(ev.WorkerDone)
    def _done(self, event: ev.MeasurementDone | ev.WorkerDone) -> None:
        if event.process in self.processes:
            self.processes[event.process].done = True

    @_apply.register
    def _energy_window(self, event: ev.EnergyWindow) -> None:
        if event.process in self.processes:
            self.processes[event.process].energy.take_window(event)

    @_apply.register
    def _memory(self, event: ev.MemoryPeak) -> None:
        if event.process in self.processes:
            self.processes[event.process].memory[event.arm] = event

    @_apply.register
    def _compared(self, event: ev.OutputsCompared) -> None:
        if event.process in self.processes:
            self.processes[event.process].comparisons[event.comparison] = event

    @_apply.register
    def _random_outputs(self, event: ev.RandomOutputsCompared) -> None:
        if event.process in self.processes:
            self.processes[event.process].random_outputs = event

    @_apply.register
    def _block(self, event: ev.Block) -> None:
        process = self.processes.get(event.process)
        if process is None:
            return
        steps = step_times(event)
        if not steps:
            return
        if event.role is ev.BlockRole.LATENCY:
            process.latencies_ns.setdefault(event.arm, []).extend(steps)
            return
        if event.role is ev.BlockRole.REPLAY:
            if process.replay is not None:
                process.replay.take(event)
            return
        arm = process.arm(event.arm)
        if arm.first_step_ns is None:
            # The first step's cost is what the user waits for, also where the device's own share is small.
            arm.first_step_ns = max(steps[0], event.wall_ns if event.steps == 1 else 0)
        arm.start_was_suspended |= event.role is ev.BlockRole.WARMUP and len(steps) == len(event.suspended_at)
        arm.suspensions += len(event.suspended_at)
        arm.series.extend(steps)
        arm.compiled_at.extend(event.compiled_at)
        arm.recent_step_ns = block_step_ns(event)
        if event.minor_faults is not None:
            arm.recent_faults = event.minor_faults / len(steps)
            if event.role in (ev.BlockRole.PAIR, ev.BlockRole.APART):
                arm.compared_faults.append(arm.recent_faults)
        if event.host_ns and event.role is ev.BlockRole.PAIR:
            arm.host_shares.append(min(1.0, sum(event.host_ns) / max(1, event.wall_ns)))
        if event.role is ev.BlockRole.WARMUP:
            arm.warmup_steps += event.steps
        elif event.role is ev.BlockRole.SETTLE:
            at = (index - event.first_index for index in event.compiled_at)
            compiling = [steps[position] for position in at if 0 <= position < len(steps)]
            arm.later_compile_ns += sum(ns - min(steps) for ns in compiling)
        elif event.role is ev.BlockRole.APART:
            process.pair_compiles += len(event.compiled_at)
            self._take_apart(process, event)
        elif event.role is ev.BlockRole.PAIR:
            process.pair_compiles += len(event.compiled_at)
            self._pair_up(process, event)

    def _take_apart(self, process: ProcessState, event: ev.Block) -> None:
        """As with pairs, only a block in which nothing else happened is compared."""
        span_s = (_begin_s(event), event.t_s)
        if not (event.compiled_at or event.suspended_at or self.throttling.touches(*span_s)):
            steps = compared_steps(event)
            level = BlockLevel(float(median(steps)), fmean(steps), span_s)
            process.apart.setdefault(event.arm, []).append(level)

    def _pair_up(self, process: ProcessState, event: ev.Block) -> None:
        """Two blocks of one pair, in either order, make a pair. A pair in which the compiler worked, the process was
        stopped or the GPU was throttled is no pair."""
        half, process._half_pair = process._half_pair, event
        if half is None or half.pair != event.pair or half.arm is event.arm:
            return
        process._half_pair = None
        if half.compiled_at or event.compiled_at or half.suspended_at or event.suspended_at:
            return
        eager, compiled = (half, event) if half.arm is Arm.EAGER else (event, half)
        lost = [share for share in (lost_share(eager), lost_share(compiled)) if share is not None]
        span_s = (min(_begin_s(half), _begin_s(event)), max(half.t_s, event.t_s))
        if self.throttling.touches(*span_s):
            process.throttled_pairs += 1
            return
        pair = make_pair(compared_steps(eager), compared_steps(compiled), max(lost, default=None), span_s)
        process.pairs.append(pair)


def _begin_s(block: ev.Block) -> float:
    """When its first step began: it is sent when it is over."""
    return block.t_s - block.wall_ns / 1e9


def step_times(block: ev.Block) -> tuple[int, ...]:
    """The block's step times; for a summarised block its minimum, medians and maximum, so that counts, level and
    extremes stay right. A step in which the process was stopped counts as one at the level of the others."""
    if block.step_ns and block.suspended_at:
        return _without_suspensions(block)
    if block.step_ns or block.summary_ns is None:
        return block.step_ns
    low, middle, high, _ = block.summary_ns
    return (low, *[middle] * (block.steps - 2), high)[: block.steps]


def _without_suspensions(block: ev.Block) -> tuple[int, ...]:
    stopped = {index - block.first_index for index in block.suspended_at}
    others = [ns for index, ns in enumerate(block.step_ns) if index not in stopped]
    level = round(median(others)) if others else None
    return tuple(level if level is not None and i in stopped else ns for i, ns in enumerate(block.step_ns))


def compared_steps(block: ev.Block) -> tuple[int, ...]:
    """The steps of a pair block that are compared: without the ones right after the switch of arms."""
    steps = step_times(block)
    return steps[DISCARDED_AFTER_SWITCH:] or steps


def lost_share(block: ev.Block) -> float | None:
    """The part of the block in which the timing thread was kept from running. None on CUDA, where it waits."""
    if block.host_ns or block.cpu_ns is None:
        return None
    return max(0.0, 1 - block.cpu_ns / max(1, block.wall_ns))


def block_step_ns(block: ev.Block) -> float:
    """The level of one step in a block: the median."""
    ordered = sorted(step_times(block))
    middle = len(ordered) // 2
    return float(ordered[middle]) if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
