"""A run that is measured now, as a Prometheus textfile: what its worker does, and how the device is."""

from __future__ import annotations

from collections.abc import Iterator

from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.report.exposition import Metric, Sample, exposition


def live_metrics_text(state: RunState) -> str:
    """Empty before the run has started."""
    return exposition(_metrics(state), str(state.run.spec.target)) if state.run is not None else ""


def _metrics(state: RunState) -> Iterator[Metric]:
    yield Metric("live_elapsed_seconds", "Time since the start of the run.", (({}, state.now_s),))
    process = state.current
    if process is not None:
        yield from _of_process(state, process)
    yield from _of_machine(state)


def _of_process(state: RunState, process: ProcessState) -> Iterator[Metric]:
    about = {"phase": process.phase.value, "mode": process.mode.value if process.mode is not None else ""}
    by_arm = [({**about, "arm": arm.value}, steps) for arm, steps in process.arms.items()]
    counted: tuple[Sample, ...] = tuple((labels, float(len(steps.series))) for labels, steps in by_arm)
    recent = tuple((labels, steps.recent_step_ns / 1e9) for labels, steps in by_arm if steps.recent_step_ns is not None)
    yield Metric("live_phase_seconds", "Time since the start of this worker process.",
                 ((about, state.now_s - process.started_s),))  # fmt: skip
    yield Metric("live_steps_total", "Steps of this worker process.", counted, "counter")
    yield Metric("live_step_seconds", "Time of a step in the latest block.", recent)
    yield Metric("live_pairs_total", "Pairs of blocks compared.", ((about, float(len(process.pairs))),), "counter")
    interval = process.interval
    if interval is not None:
        for name, value in (("", interval.value), ("_low", interval.lo), ("_high", interval.hi)):
            yield Metric(f"live_speedup_ratio{name}", "Of these pairs so far, 95 % interval.", ((about, value),))
    stages = process.compile.current_stages
    compiling = tuple(({**about, "stage": each.stage.value}, state.now_s - each.since_s) for each in stages[-1:])
    yield Metric("live_compile_stage_seconds", "How long the compiler has been in this stage.", compiling)


def _of_machine(state: RunState) -> Iterator[Metric]:
    if state.gpu:
        gpu = state.gpu[-1]
        yield _gauge(
            "live_gpu_utilisation_ratio", "Share of time in which a kernel ran.", gpu.utilisation_percent, 0.01
        )
        yield _gauge("live_gpu_memory_used_bytes", "On the device, of all processes.", gpu.memory_used_bytes)
        yield _gauge("live_gpu_sm_clock_hertz", "Clock of the multiprocessors.", gpu.sm_clock_mhz, 1e6)
        yield _gauge("live_gpu_power_watts", "Of the board.", gpu.power_w)
        yield _gauge("live_gpu_temperature_celsius", "Of the device.", gpu.temperature_c)
    if state.host:
        host = state.host[-1]
        yield _gauge("live_host_cpu_ratio", "Share of all cores in use, by anything.", host.cpu_percent, 0.01)
        yield _gauge(
            "live_worker_cpu_ratio", "Cores in use by the worker and what it started.", host.worker_cpu_percent, 0.01
        )
        yield _gauge("live_worker_resident_bytes", "Memory of the worker and what it started.", host.worker_rss_bytes)


def _gauge(name: str, help_text: str, value: float | None, unit: float = 1.0) -> Metric:
    return Metric(name, help_text, (({}, value * unit),) if value is not None else ())
