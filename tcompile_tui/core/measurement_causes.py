"""Causes in the results and in what surrounded the measurement: memory, noise, the GPU, settings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from statistics import median

from tcompile_tui.core import events as ev
from tcompile_tui.core.apart import ran_out_side_by_side
from tcompile_tui.core.findings import MEMORY_DOWN, Finding, Rule, Severity
from tcompile_tui.core.input_spec import InputSpec, TensorSpec, read_input, tensors_in
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Phase, Preset, SpecError
from tcompile_tui.core.state import RunState
from tcompile_tui.core.step_spec import USUAL_STEP
from tcompile_tui.core.throttling import is_throttled
from tcompile_tui.core.units import percent, plural, ratio, size

_MIN_BIG_GPU_SMS = 68  # torch._inductor.utils.is_big_gpu
_MEMORY_UP, _MEMORY_DOWN = 1.10, 0.90
_BUSY_OTHER_PERCENT = 2.0
_HOST_MOVED = 1.15
_TOLD_AGAIN = ("another-run", "compile-workers-hang", "caches-damaged", "record-incomplete")


def _memory(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    on_gpu = any(p.memory and any(m.steady_reserved_bytes for m in p.memory.values()) for p in state.processes.values())
    training = any(process.model is not None and process.model.training for process in state.processes.values())
    for result in results:
        compiled, eager = result.peak_memory_bytes, result.eager_peak_memory_bytes
        if on_gpu and compiled and eager and compiled > _MEMORY_UP * eager:
            yield Finding(
                "memory-up",
                Severity.WARNING,
                f"{result.mode.value} needs {size(compiled - eager)} more GPU memory at its peak",
                evidence=f"{size(eager)} eager, {size(compiled)} compiled",
            )
        if on_gpu and training and compiled and eager and compiled <= _MEMORY_DOWN * eager:
            yield Finding(
                MEMORY_DOWN,
                Severity.ADVICE,
                f"{result.mode.value} needs {percent(1 - compiled / eager)} less GPU memory at its peak: its gain at"
                " the same batch leaves out that a larger one fits",
                evidence=f"{size(eager)} eager, {size(compiled)} compiled",
                advice="measure each arm at its largest batch: --fit-batch" if result.fit is None else "",
                mode=result.mode,
            )


def _side_by_side(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """No fault of the model's, nor of what it was compiled to."""
    for result in results:
        if not ran_out_side_by_side(state, result.mode):
            continue
        failure = next(p.failure for p in state.processes_of(Phase.WARM, result.mode) if p.failure is not None)
        compared = result.apart.text if result.apart is not None else "they could not be compared apart either"
        yield Finding(
            "no-room-side-by-side",
            Severity.NOTE,
            f"{result.mode.value}: eager and compiled do not fit into memory together, which only this comparison asks"
            f" for: {compared}",
            evidence=f"memory ran out in: {failure.stage}",
            advice="a smaller batch leaves room for pairs, whose interval is narrower",
            mode=result.mode,
        )


def _noise(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    compared = [result for result in results if result.speedup is not None]
    for result in compared:
        if result.host_contended:
            yield Finding(
                "host-contended",
                Severity.WARNING,
                f"{result.mode.value}: other work on this machine disturbed most of the comparison",
                evidence="the timing thread was kept from running for more than 3 % of the time in most pairs",
                advice="measure again on an idle machine",
            )
        if result.steadiness is ev.Steadiness.NOISE_LIMITED:
            yield Finding(
                "noise-limited",
                Severity.NOTE,
                f"{result.mode.value}: step times never settled; the comparison rests on "
                + (
                    "the levels of different processes, which is not safe"
                    if result.apart
                    else "neighbouring blocks alone"
                ),
            )
        if result.ratio_drifted:
            yield Finding(
                "ratio-drifted",
                Severity.WARNING,
                f"{result.mode.value}: the speedup itself moved while it was measured",
                advice="measure longer (--preset thorough)",
            )
        if result.compiles_while_measuring:
            yield Finding(
                "compiled-while-measuring",
                Severity.WARNING,
                f"{result.mode.value}: the compiler worked while its steps were measured",
                evidence=f"in {plural(result.compiles_while_measuring, 'step')}; their pairs were left out",
            )
        if result.warm_cache_hits == 0 and result.warm_cache_misses:
            yield Finding(
                "warm-start-was-cold",
                Severity.NOTE,
                f"{result.mode.value}: the second start found nothing in the compile caches",
                evidence=f"{plural(result.warm_cache_misses, 'miss')}, no hit",
            )
    if any(result.speedup is not None and result.speedup.one_process for result in compared):
        yield Finding(
            "one-process",
            Severity.NOTE,
            "one process was measured: another process of the same program may differ by about 1 %",
            advice="" if _measures_several(state) else "use --preset standard or thorough for small gains",
        )


def _measures_several(state: RunState) -> bool:
    """Where more processes could have changed the decision, they were measured."""
    return state.run is not None and state.run.spec.preset in (Preset.STANDARD, Preset.THOROUGH)


def _host_speed(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for result in results:
        host = result.host_dependence
        if host is not None and host.slowest_eager_ms > _HOST_MOVED * host.fastest_eager_ms:
            fastest, slowest = host.fastest_eager_ms, host.slowest_eager_ms
            yield Finding(
                "host-speed-moved",
                Severity.WARNING,
                f"{result.mode.value}: the speedup hangs on how fast this machine's CPU is, and that moved",
                evidence=f"eager waits for the CPU and took {fastest:.3g} to {slowest:.3g} ms a step in this run;"
                f" at its fastest the speedup is about {ratio(host.speedup_at_fastest)}",
                advice="count on the smaller figure, or measure again on an idle machine",
                mode=result.mode,
            )


def _gpu(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    samples = list(state.gpu)
    throttled = [sample for sample in samples if is_throttled(sample)]
    if throttled:
        yield Finding(
            "gpu-throttled",
            Severity.WARNING,
            f"the GPU was throttled in {percent(len(throttled) / len(samples))} of the samples",
            evidence=", ".join(sorted({reason for s in throttled for reason in s.throttle_reasons or ()})),
            advice="check cooling and power, then measure again",
        )
    for result in results:
        if result.throttled_pairs:
            compared = result.throttled_pairs + result.kept_pairs
            yield Finding(
                "pairs-throttled",
                Severity.WARNING,
                f"{result.mode.value}: {result.throttled_pairs:,} of {plural(compared, 'pair')} left out,"
                " because the GPU was throttled while they ran",
                evidence="with more than half of them left out, the answer is at most TEST CAREFULLY"
                if result.mostly_throttled
                else "",
                advice="check cooling and power, then measure again",
                mode=result.mode,
            )
    busy = [s.other_utilisation_percent for s in samples if s.other_utilisation_percent is not None]
    if busy and median(busy) > _BUSY_OTHER_PERCENT:
        yield Finding(
            "gpu-shared",
            Severity.BLOCKER,
            "another process computed on this GPU during the measurement",
            evidence=f"{median(busy):.0f} % of its time in the median",
            advice="measure on a free GPU (--device cuda:N)",
        )
    held = [s.other_memory_bytes for s in samples if s.other_memory_bytes]
    if held:
        yield Finding("gpu-memory-held", Severity.NOTE, f"other processes hold {size(max(held))} of this GPU's memory")


def _settings(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    facts = next((p.facts for p in reversed(state.processes.values()) if p.facts is not None), None)
    model = next((p.model for p in reversed(state.processes.values()) if p.model is not None), None)
    if facts is None or facts.sm_count is None:
        return
    spec = state.run.spec if state.run is not None else None
    in_float32 = spec is not None and spec.amp is None and spec.dtype in (None, "float32")
    halves = model is not None and any(tensor.dtype in ("float16", "bfloat16") for tensor in model.inputs)
    if in_float32 and not halves and facts.matmul_precision == "highest":
        yield Finding(
            "tf32-off",
            Severity.ADVICE,
            "float32 matrix products run without tensor cores, in both arms",
            evidence="torch.get_float32_matmul_precision() is 'highest'",
            advice="if your model allows TF32, measure again with --tf32; in your code that is"
            " torch.set_float32_matmul_precision('high')",
        )
    autotuned = any(result.mode.options.autotunes for result in results)
    if autotuned and facts.sm_count < _MIN_BIG_GPU_SMS:
        yield Finding(
            "too-few-sms",
            Severity.NOTE,
            f"max-autotune does not tune matrix products on this GPU ({facts.sm_count} of {_MIN_BIG_GPU_SMS} SMs)",
        )


def _tensors(given: InputSpec) -> Iterator[TensorSpec]:
    """None where a recorded run holds what no run was started with."""
    with contextlib.suppress(SpecError):
        yield from tensors_in(read_input(given)[1])


def _inputs(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    given = state.run.spec.inputs if state.run is not None else ()
    zeros = [str(tensor) for each in given for tensor in _tensors(each) if tensor.distribution == "zeros"]
    if zeros:
        yield Finding(
            "inputs-zeros",
            Severity.WARNING,
            "the model was measured on zeros, on which a processor needs less power and clocks higher than on data",
            evidence=", ".join(zeros),
            advice="leave @zeros out, unless the real inputs are zeros",
        )


def _shared_settings(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """What was switched on for both arms is part of what the speedup means."""
    step = state.run.spec.step if state.run is not None else USUAL_STEP
    needed = ["torch.set_float32_matmul_precision('high')"] if step.tf32 else []
    needed += ["model.to(memory_format=torch.channels_last)"] if step.channels_last else []
    if needed and any(result.speedup is not None for result in results):
        yield Finding(
            "shared-settings",
            Severity.NOTE,
            f"eager and compiled both ran with {' and '.join(needed)}",
            advice="the figures hold for code that does the same",
        )


def _partly_compiled(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    eager = state.process_of(Phase.EAGER)
    if eager is not None and eager.compile.compiler_active:
        yield Finding(
            "already-compiled",
            Severity.WARNING,
            "the model already compiles a part of itself: the eager arm is your current code (partly compiled)",
            advice="take torch.compile out of the model file to compare with plain eager",
        )


def _left_behind(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """Only where a process came to its own end. One that failed or was ended leaves Inductor's pool of compile
    processes behind, and that is no fault of the model."""
    endings = [process.ended for process in state.processes.values() if process.done and process.ended is not None]
    left = sum(ending.reclaimed for ending in endings)
    killed = [ending for ending in endings if "had to be killed" in ending.detail]
    if left or killed:
        yield Finding(
            "process-left-behind",
            Severity.NOTE,
            f"the model's processes did not end by themselves: {plural(left + len(killed), 'process')} killed",
        )


def _suspended(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    times = sum(arm.suspensions for process in state.processes.values() for arm in process.arms.values())
    if times:
        yield Finding(
            "suspended",
            Severity.NOTE,
            f"the measured process was stopped and continued {plural(times, 'time')}; those steps are not counted",
        )


def _noticed(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """What the supervisor met that a reader of the verdict should know."""
    for notice in state.notices:
        if notice.code in _TOLD_AGAIN:
            yield Finding(notice.code, Severity.WARNING, notice.text)


RULES: tuple[Rule, ...] = (
    _suspended, _noticed, _memory, _side_by_side, _noise, _host_speed, _gpu, _settings,
    _shared_settings, _inputs, _partly_compiled, _left_behind,
)  # fmt: skip
