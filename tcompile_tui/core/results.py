"""What was measured of one mode, as numbers: from the records to the inputs of the decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from tcompile_tui.core import events as ev
from tcompile_tui.core.accuracy import Accuracy, Agreement, judge
from tcompile_tui.core.apart import ApartComparison, apart_of, compiled_apart
from tcompile_tui.core.breakeven import BreakEven, Cost, break_even, cost_of_starts, start_cost
from tcompile_tui.core.compile_log import CompilePart
from tcompile_tui.core.course import Course, course_of
from tcompile_tui.core.decode_results import DecodeSpeed, decode_speed
from tcompile_tui.core.end_to_end import DataTime, data_time, gain_with_data, speedup_with_data
from tcompile_tui.core.energy import StepEnergy, step_energy
from tcompile_tui.core.fit_results import BatchFit, batch_fit
from tcompile_tui.core.headroom import DeviceTimes, Headroom, device_times, headroom
from tcompile_tui.core.latency import Latency, latency
from tcompile_tui.core.mode_status import ModeStatus, mode_status
from tcompile_tui.core.pairs import Pair, SpeedupInterval, TimeGain, drifted, paired_time_gain
from tcompile_tui.core.serve_results import Serving, share_over
from tcompile_tui.core.spec import ONE_COLD_START, Arm, Mode, Phase, Starts, Task
from tcompile_tui.core.spread import MeanSpeedup, between_processes, mean_speedup, mean_time_gain
from tcompile_tui.core.state import ArmSteps, ProcessState, RunState
from tcompile_tui.core.steady import level_held
from tcompile_tui.core.warm_up import warmed_up, warmup_extra_ns

# A pair is clean when the timing thread had the CPU nearly all of the time.
_MAX_LOST_SHARE = 0.03
_MIN_CLEAN_SHARE = 0.5
# An arm waits for the host when issuing its steps takes nearly all of their time, for the device when it does not.
_HOST_BOUND_SHARE = 0.9
_DEVICE_BOUND_SHARE = 0.7
# The profile's ratio rests on few steps: a smaller distance from the interval is none.
_SAME_RATIO = 1.05
# More of an accepted window than this say nothing more, and a screen asks often.
_JUDGED_STEPS = 512


@dataclass(frozen=True)
class StartCost:
    """Starts of the compiled program. `total_s`: compiler import and warm-up beyond the steady step time, the mean.
    `extra`: the same, without what an eager start costs. `logging_s`, what listening to the compiler cost, is in
    neither."""

    total_s: float
    extra: Cost
    logging_s: float = 0.0
    starts: int = 1


@dataclass(frozen=True)
class StepProof:
    """What a profile of steady compiled steps showed, for each step. `guard_us` is the host time of the guard checks
    that every call of a compiled frame pays. The device's side is None on CPU, or where it could not be seen."""

    guard_us: float
    guard_checks: float
    regions: int
    program_calls: float | None
    kernels: float | None
    graph_launches: float | None


@dataclass(frozen=True)
class HostDependence:
    """Eager waits for the host and the compiled arm for the device, so a host that slows down moves the ratio, and
    pairing cannot cancel that. The step times are eager's own lowest and highest levels among the run's processes;
    `speedup_at_fastest` is what the interval's `value` and `lo` come to with the lowest."""

    fastest_eager_ms: float
    slowest_eager_ms: float
    speedup_at_fastest: float
    lo_at_fastest: float


@dataclass(frozen=True)
class ModeResult:
    """One mode's facts; None where the run did not get that far. Figures of the comparison are those of the average
    warm process: `speedup` and `gain` hold what differs between processes, step times are means over processes.
    Where both arms did not fit side by side they are those of `apart`. All of these are of a step alone; with `data`,
    what a start is worth is that of `end_to_end`."""

    mode: Mode
    status: ModeStatus
    reason: str = ""
    speedup: MeanSpeedup | None = None
    gain: TimeGain | None = None
    eager_ms: float | None = None
    compiled_ms: float | None = None
    eager_mean_ms: float | None = None
    compiled_mean_ms: float | None = None
    cold_start: StartCost | None = None
    warm_start: StartCost | None = None
    break_even_cold: BreakEven | None = None
    break_even_warm: BreakEven | None = None
    accuracy: Accuracy | None = None
    peak_memory_bytes: int | None = None
    eager_peak_memory_bytes: int | None = None
    graphs: int | None = None
    graph_breaks: int | None = None
    recompiles: int | None = None
    steadiness: ev.Steadiness | None = None
    compiles_while_measuring: int = 0
    ratio_drifted: bool = False
    host_contended: bool = False
    warm_cache_hits: int | None = None
    warm_cache_misses: int | None = None
    host_dependence: HostDependence | None = None
    wrapped: bool = False
    blocks: ev.CompiledBlocks | None = None
    proof: StepProof | None = None
    cudagraph_recordings: int | None = None
    forward_compile_s: Mapping[CompilePart, float] = field(default_factory=dict)
    backward_compile_s: Mapping[CompilePart, float] = field(default_factory=dict)
    course: Course | None = None
    throttled_pairs: int = 0
    kept_pairs: int = 0
    latency: Mapping[Arm, Latency] = field(default_factory=dict)
    energy: StepEnergy | None = None
    headroom: Headroom | None = None
    device_times: DeviceTimes | None = None
    decode: DecodeSpeed | None = None
    serving: Serving | None = None
    data: DataTime | None = None
    apart: ApartComparison | None = None
    fit: BatchFit | None = None

    @property
    def end_to_end(self) -> ModeResult:
        """The same with steps that wait for their data, which is what a run gains; itself where none is known. The
        break-evens are of such steps already."""
        if self.data is None or self.speedup is None or self.gain is None:
            return self
        if self.eager_ms is None or self.eager_mean_ms is None or self.compiled_mean_ms is None:
            return self
        data_ms = self.data.step_ms
        return replace(
            self,
            speedup=speedup_with_data(self.speedup, self.eager_ms, data_ms),
            gain=gain_with_data(self.gain, self.eager_mean_ms, data_ms),
            eager_ms=max(self.eager_ms, data_ms),
            compiled_ms=max(self.compiled_ms, data_ms) if self.compiled_ms is not None else None,
            eager_mean_ms=max(self.eager_mean_ms, data_ms),
            compiled_mean_ms=max(self.compiled_mean_ms, data_ms),
        )

    @property
    def waits_for_data(self) -> bool:
        """Does an arm have to wait for its data?"""
        if self.data is None or self.eager_ms is None or self.compiled_ms is None:
            return False
        return self.data.step_ms > min(self.eager_ms, self.compiled_ms)

    @property
    def mostly_throttled(self) -> bool:
        """Was more than half of what should be compared left out, because the GPU was throttled?"""
        compared = self.kept_pairs + self.throttled_pairs
        return bool(compared) and self.kept_pairs < _MIN_CLEAN_SHARE * compared

    @property
    def device_ratio_differs(self) -> bool:
        """Does the GPU alone gain another factor than the step does on this host?"""
        if self.device_times is None or self.speedup is None:
            return False
        found, lo, hi = self.device_times.ratio, self.speedup.lo, self.speedup.hi
        return not lo / _SAME_RATIO <= found <= hi * _SAME_RATIO


def mode_result(state: RunState, mode: Mode) -> ModeResult:
    """Everything that the records tell about one mode."""
    colds, warm = state.processes_of(Phase.COLD, mode), state.processes_of(Phase.WARM, mode)
    # One that failed and was tried again is not the one that counts.
    cold = next((process for process in colds if process.done), colds[-1] if colds else None)
    first_warm = warm[0] if warm else None
    eager = state.process_of(Phase.EAGER)
    apart = apart_of(state, mode)
    status, reason = mode_status(state, cold, warm, compared_apart=apart is not None)
    eager_arm = eager.arms.get(Arm.EAGER) if eager is not None else None
    cold_start = _start_cost([process for process in colds if process.done or process is cold], eager_arm)
    # Later ones find what the first one left.
    warm_start = _start_cost(warm[:1], eager_arm) or _start_cost(compiled_apart(state, mode)[:1], eager_arm)
    between = between_processes([_intervals(state.processes_of(Phase.WARM, each)) for each in state.modes])
    speedup = mean_speedup(_intervals(warm), between, len(state.modes))
    eager_ms = _step_ms(warm, lambda pair: pair.eager_ns, median)
    compiled_mean_ms = _step_ms(warm, lambda pair: pair.compiled_mean_ns, fmean)
    gains = [gain for process in warm if (gain := paired_time_gain(process.pairs)) is not None]
    gain = mean_time_gain(gains, 1e6 * compiled_mean_ms, between) if compiled_mean_ms is not None else None
    compile_log = cold.compile if cold is not None and cold.compile_stopped is None else None
    training = bool(cold and cold.model and cold.model.training)
    lost = [pair.lost_share > _MAX_LOST_SHARE for p in warm for pair in p.pairs if pair.lost_share is not None]
    result = ModeResult(
        mode=mode,
        status=status,
        reason=reason,
        speedup=speedup,
        gain=gain,
        eager_ms=eager_ms,
        compiled_ms=_step_ms(warm, lambda pair: pair.compiled_ns, median),
        eager_mean_ms=_step_ms(warm, lambda pair: pair.eager_mean_ns, fmean),
        compiled_mean_ms=compiled_mean_ms,
        cold_start=cold_start,
        warm_start=warm_start,
        accuracy=_accuracy(warm, training),
        peak_memory_bytes=_peak_bytes(cold, Arm.COMPILED),
        eager_peak_memory_bytes=_peak_bytes(eager, Arm.EAGER),
        graphs=compile_log.graphs if compile_log is not None else None,
        graph_breaks=len(compile_log.break_sites) if compile_log is not None else None,
        recompiles=compile_log.recompile_count if compile_log is not None else None,
        steadiness=_steadiness(warm or ([cold] if cold is not None else [])),
        compiles_while_measuring=sum(process.pair_compiles for process in warm),
        ratio_drifted=any(drifted([pair.log_ratio for pair in process.pairs]) for process in warm),
        host_contended=bool(lost) and sum(lost) / len(lost) > 1 - _MIN_CLEAN_SHARE,
        warm_cache_hits=first_warm.compile.cache_count(ev.CacheOutcome.HIT) if first_warm is not None else None,
        warm_cache_misses=first_warm.compile.cache_count(ev.CacheOutcome.MISS) if first_warm is not None else None,
        host_dependence=_host_dependence(state, warm, speedup),
        course=_course(first_warm or cold),
        throttled_pairs=sum(process.throttled_pairs for process in warm),
        kept_pairs=sum(len(process.pairs) for process in warm),
        latency=_latencies(warm),
        energy=step_energy(first_warm.energy) if first_warm is not None else None,
        headroom=headroom(_profile(first_warm, Arm.EAGER), eager_ms),
        device_times=device_times(_profile(first_warm, Arm.EAGER), _profile(first_warm, Arm.COMPILED)),
        decode=_decode(first_warm),
        serving=_serving(state, eager_arm, cold, warm),
        wrapped=bool(cold and cold.compiled and cold.compiled.wrapped),
        blocks=cold.compiled.blocks if cold is not None and cold.compiled is not None else None,
        proof=_proof(first_warm),
        cudagraph_recordings=compile_log.cudagraph_recordings if compile_log is not None else None,
        forward_compile_s=dict(compile_log.forward_s) if compile_log is not None else {},
        backward_compile_s=dict(compile_log.backward_s) if compile_log is not None else {},
        data=data_time(state),
    )
    if apart is not None:
        result = _with_blocks_apart(result, apart)
    gain = result.end_to_end.gain
    return replace(
        result,
        fit=batch_fit(state, mode, result.eager_mean_ms, result.compiled_mean_ms),
        break_even_cold=break_even(cold_start.extra, gain) if cold_start and gain else None,
        break_even_warm=break_even(warm_start.extra, gain) if warm_start and gain else None,
    )


def _decode(process: ProcessState | None) -> DecodeSpeed | None:
    """Of the process that timed the prefills, so that a generation and its prefill are of the same minutes."""
    if process is None or not process.prefills:
        return None
    eager_ms, compiled_ms = (
        _step_ms([process], of_pair, median) for of_pair in (lambda p: p.eager_ns, lambda p: p.compiled_ns)
    )
    return decode_speed(process.prefills, {Arm.EAGER: eager_ms, Arm.COMPILED: compiled_ms})


def _serving(
    state: RunState, eager: ArmSteps | None, cold: ProcessState | None, warm: Sequence[ProcessState]
) -> Serving | None:
    """None where nothing is served."""
    spec = state.run.spec if state.run is not None else None
    if spec is None or spec.task is not Task.SERVE:
        return None
    firsts = [process.arms.get(Arm.COMPILED) if process is not None else None for process in (cold, *warm[:1])]
    first_cold_s, first_warm_s = ([_first_step_s(arm) for arm in firsts] + [None])[:2]
    steps = {arm: [ns for process in warm for ns in process.latencies_ns.get(arm, ())] for arm in Arm}
    over = {arm: share_over(steps[arm], spec.slo_ms) for arm in Arm}
    return Serving(spec.slo_ms, _first_step_s(eager), first_cold_s, first_warm_s, over)


def _first_step_s(arm: ArmSteps | None) -> float | None:
    return arm.first_step_ns / 1e9 if arm is not None and arm.first_step_ns is not None else None


def _with_blocks_apart(result: ModeResult, apart: ApartComparison) -> ModeResult:
    return replace(
        result,
        apart=apart,
        speedup=apart.speedup,
        gain=apart.gain,
        eager_ms=apart.eager_ms,
        compiled_ms=apart.compiled_ms,
        eager_mean_ms=apart.eager_mean_ms,
        compiled_mean_ms=apart.compiled_mean_ms,
    )


def _latencies(warm: Sequence[ProcessState]) -> dict[Arm, Latency]:
    """Of each arm, over all processes that measured them."""
    steps = {arm: [ns for process in warm for ns in process.latencies_ns.get(arm, ())] for arm in Arm}
    return {arm: found for arm, each in steps.items() if (found := latency(each)) is not None}


def _intervals(processes: Iterable[ProcessState]) -> list[SpeedupInterval]:
    return [process.interval for process in processes if process.interval is not None]


def _step_ms(
    processes: Iterable[ProcessState], of_pair: Callable[[Pair], float], reduce: Callable[[Sequence[float]], float]
) -> float | None:
    """One step in ms: `reduce` over a process's pairs, then the mean over the processes."""
    levels = [reduce([of_pair(pair) for pair in process.pairs]) for process in processes if process.pairs]
    return fmean(levels) / 1e6 if levels else None


def planned_cost(result: ModeResult, starts: Starts) -> Cost | None:
    """What all the starts cost; None where a kind of start that is planned was not measured."""
    planned = [
        (number, start) for number, start in ((starts.cold, result.cold_start), (starts.warm, result.warm_start))
    ]
    kinds = [(number, start.extra) for number, start in planned if number and start is not None]
    return cost_of_starts(kinds) if len(kinds) == sum(number > 0 for number, _ in planned) else None


def planned_break_even(result: ModeResult, starts: Starts) -> BreakEven | None:
    """After how many steps, counted over all the starts, these are paid for."""
    cost, gain = planned_cost(result, starts), result.end_to_end.gain
    return break_even(cost, gain) if cost is not None and gain is not None else None


def planned_gain(result: ModeResult, steps: float | None, starts: Starts = ONE_COLD_START) -> float | None:
    """The share of an eager run of `steps` steps that compiling saves, with the starts paid; negative if it costs
    time, None where it is not known."""
    cost, result = planned_cost(result, starts), result.end_to_end
    if not steps or result.gain is None or result.eager_mean_ms is None or cost is None:
        return None
    saved_s = steps * result.gain.mean_ns / 1e9 - cost.mean_s
    return saved_s / (steps * result.eager_mean_ms / 1e3)


def _start_cost(processes: Iterable[ProcessState], eager: ArmSteps | None) -> StartCost | None:
    """Without an eager arm its extra cost cannot be taken off, and the figure is left out."""
    started = [process for process in processes if _start_is_known(process.arms.get(Arm.COMPILED))]
    if not started or eager is None or not warmed_up(eager):
        return None
    totals_s = [_start_s(process) for process in started]
    eager_s = warmup_extra_ns(eager) / 1e9
    return StartCost(
        total_s=max(0.0, fmean(totals_s)),
        extra=start_cost([total_s - eager_s for total_s in totals_s]),
        logging_s=fmean(process.compile.logging_s for process in started),
        starts=len(started),
    )


def _start_is_known(arm: ArmSteps | None) -> bool:
    return arm is not None and warmed_up(arm) and not arm.start_was_suspended


def compiled_start_s(process: ProcessState) -> float | None:
    """What one start of the compiled program costs, as in StartCost, with the loading of portable caches; None where
    it is not known."""
    return max(0.0, _start_s(process)) if _start_is_known(process.arms.get(Arm.COMPILED)) else None


def _start_s(process: ProcessState) -> float:
    imports_s = (process.imports.compiler_s or 0.0) if process.imports is not None else 0.0
    loading_s = process.artifacts_loaded.seconds if process.artifacts_loaded is not None else 0.0
    compile_s = warmup_extra_ns(process.arms[Arm.COMPILED]) / 1e9 - process.compile.logging_s
    return imports_s + loading_s + compile_s


def _profile(process: ProcessState | None, arm: Arm) -> ev.StepsProfiled | None:
    return process.profiles.get(arm) if process is not None else None


def _proof(process: ProcessState | None) -> StepProof | None:
    seen = _profile(process, Arm.COMPILED)
    if seen is None or seen.steps == 0:
        return None
    return StepProof(
        guard_us=seen.lookup_ns / 1e3 / seen.steps,
        guard_checks=seen.lookups / seen.steps,
        regions=len(seen.regions),
        program_calls=seen.program_calls / seen.steps if seen.program_calls is not None else None,
        kernels=seen.kernels / seen.steps if seen.kernels is not None else None,
        graph_launches=seen.graph_launches / seen.steps if seen.graph_launches is not None else None,
    )


def _host_dependence(
    state: RunState, warm: Sequence[ProcessState], speedup: MeanSpeedup | None
) -> HostDependence | None:
    """None where both arms wait for the same side, or where that is not known (CPU)."""
    eager_share, compiled_share = (_host_share(warm, arm) for arm in (Arm.EAGER, Arm.COMPILED))
    if speedup is None or eager_share is None or compiled_share is None:
        return None
    if eager_share < _HOST_BOUND_SHARE or compiled_share > _DEVICE_BOUND_SHARE:
        return None
    own_ms = _step_ms(warm, lambda pair: pair.eager_ns, median)
    every_ms = [_step_ms([process], lambda pair: pair.eager_ns, median) for process in state.processes.values()]
    alone = state.process_of(Phase.EAGER)
    alone_step_ns = alone.arm(Arm.EAGER).recent_step_ns if alone is not None else None
    every_ms.append(alone_step_ns / 1e6 if alone_step_ns is not None else None)
    levels_ms = [level for level in every_ms if level is not None]
    assert own_ms is not None
    slower_by = own_ms / min(levels_ms)
    return HostDependence(min(levels_ms), max(levels_ms), speedup.value / slower_by, speedup.lo / slower_by)


def _host_share(processes: Iterable[ProcessState], arm: Arm) -> float | None:
    shares = [process.arms[arm].host_share for process in processes if arm in process.arms]
    known = [share for share in shares if share is not None]
    return median(known) if known else None


def _steadiness(processes: Sequence[ProcessState]) -> ev.Steadiness | None:
    """That of the first process whose compiled arm is not steady, if there is one."""
    found = [_arm_steadiness(process) for process in processes if Arm.COMPILED in process.arms]
    return next((each for each in found if each is not ev.Steadiness.STEADY), ev.Steadiness.STEADY) if found else None


def _arm_steadiness(process: ProcessState) -> ev.Steadiness:
    """What the gate said, unless the pairs took it back: then the arm was still warming up."""
    arm = process.arms[Arm.COMPILED]
    if arm.steadiness is not ev.Steadiness.STEADY or arm.steady_from is None:
        return arm.steadiness
    window = arm.series.slice(max(arm.steady_from, arm.warmup_steps - _JUDGED_STEPS), arm.warmup_steps)
    held = level_held(window, [pair.compiled_ns for pair in process.pairs])
    return arm.steadiness if held else ev.Steadiness.WARMING_UP


def _course(process: ProcessState | None) -> Course | None:
    """Of the compiled arm, once its process has ended."""
    arm = process.arms.get(Arm.COMPILED) if process is not None and not process.running else None
    return course_of(arm.series.slice(0), arm.compiled_at) if arm is not None else None


def _accuracy(warm: Sequence[ProcessState], training: bool) -> Accuracy | None:
    """The worst of the processes that compared outputs: each may have chosen other kernels."""
    compared = [process for process in warm if ev.ComparisonKind.COMPILED in process.comparisons]
    judged = [judge(process.comparisons, process.random_outputs, training) for process in compared or warm[:1]]
    order = list(Agreement)
    return max(judged, key=lambda accuracy: order.index(accuracy.agreement), default=None)


def _peak_bytes(process: ProcessState | None, arm: Arm) -> int | None:
    """Reserved GPU memory (allocated memory leaves out what cudagraphs hold), else the process's resident set."""
    peak = process.memory.get(arm) if process is not None else None
    if peak is None:
        return None
    return peak.steady_reserved_bytes if peak.steady_reserved_bytes is not None else peak.host_rss_bytes
