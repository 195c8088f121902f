"""Every figure of a mode as a labelled text, for tables with one column a mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from tcompile_tui.core.breakeven import BreakEven
from tcompile_tui.core.findings import speedup_text
from tcompile_tui.core.projections import HORIZONS_HOURS
from tcompile_tui.core.results import ModeResult, StepProof, planned_gain
from tcompile_tui.core.spec import Arm
from tcompile_tui.core.units import MISSING, count, duration, joules, milliseconds, percent, plural, ratio, size
from tcompile_tui.core.verdict import JudgedMode

Row: TypeAlias = tuple[str, Callable[[JudgedMode], str]]


def mode_rows() -> Iterator[Row]:
    """Label and text, in reading order; a label that begins with a blank belongs to the row above it."""
    yield "decision", _decision
    yield "  because", lambda judged: judged.reason
    yield "speedup", lambda judged: ratio(judged.result.speedup.value if judged.result.speedup else None)
    yield "  95 %", _interval
    yield "  processes", lambda judged: count(judged.result.speedup.processes if judged.result.speedup else None)
    yield "  throttled", lambda judged: _throttled(judged.result)
    yield "  unpaired", lambda judged: judged.result.apart.text if judged.result.apart else MISSING
    yield "end to end", lambda judged: _end_to_end(judged.result)
    yield "data a step", lambda judged: _step_ms(judged.result.data.step_ms if judged.result.data else None)
    yield "eager step", lambda judged: _step_ms(judged.result.eager_ms)
    yield "compiled step", lambda judged: _step_ms(judged.result.compiled_ms)
    yield "GPU alone", lambda judged: _gpu_alone(judged.result)
    yield "headroom", lambda judged: _headroom(judged.result)
    yield "tokens a second", lambda judged: _tokens(judged, Arm.COMPILED)
    yield "  eager", lambda judged: _tokens(judged, Arm.EAGER)
    yield "latency p50", lambda judged: _latency(judged, Arm.COMPILED, p99=False)
    yield "  p99", lambda judged: _latency(judged, Arm.COMPILED, p99=True)
    yield "  eager p50", lambda judged: _latency(judged, Arm.EAGER, p99=False)
    yield "  eager p99", lambda judged: _latency(judged, Arm.EAGER, p99=True)
    yield "1st request", lambda judged: _first_request(judged)
    yield "energy a step", lambda judged: joules(judged.result.energy.compiled_j if judged.result.energy else None)
    yield "  eager", lambda judged: joules(judged.result.energy.eager_j if judged.result.energy else None)
    yield "cold start", lambda judged: duration(judged.result.cold_start.total_s if judged.result.cold_start else None)
    yield "  break-even", lambda judged: _break_even(judged.result.break_even_cold)
    yield "  95 %", lambda judged: _break_even_range(judged.result.break_even_cold)
    yield "warm start", lambda judged: duration(judged.result.warm_start.total_s if judged.result.warm_start else None)
    yield "  break-even", lambda judged: _break_even(judged.result.break_even_warm)
    for name, hours in HORIZONS_HOURS.items():
        yield f"saves in {name}", _saved_in(hours)
    yield "outputs", lambda judged: judged.result.accuracy.agreement.value if judged.result.accuracy else MISSING
    yield "peak memory", lambda judged: size(judged.result.peak_memory_bytes)
    yield "eager's peak", lambda judged: size(judged.result.eager_peak_memory_bytes)
    yield "largest batch", lambda judged: judged.result.fit.compiled.text if judged.result.fit else MISSING
    yield "  eager's", lambda judged: judged.result.fit.eager.text if judged.result.fit else MISSING
    yield "  samples/s", lambda judged: judged.result.fit.gain_text if judged.result.fit else MISSING
    yield "graphs", lambda judged: count(judged.result.graphs)
    yield "graph breaks", lambda judged: count(judged.result.graph_breaks)
    yield "recompiles", lambda judged: count(judged.result.recompiles)
    yield "programs a step", lambda judged: _in_a_step(judged.result, lambda proof: proof.program_calls)
    yield "  kernels", lambda judged: _in_a_step(judged.result, lambda proof: proof.kernels)
    yield "  graph replays", lambda judged: _in_a_step(judged.result, lambda proof: proof.graph_launches)
    yield "  guard checks", lambda judged: f"{judged.result.proof.guard_us:.0f} us" if judged.result.proof else MISSING


def known_rows(modes: tuple[JudgedMode, ...]) -> list[tuple[str, list[str]]]:
    """Label and one text a mode; a row that no mode has a value for is left out."""
    rows = [(label, [text(judged) for judged in modes]) for label, text in mode_rows()]
    return [(label, texts) for label, texts in rows if any(text not in (MISSING, "") for text in texts)]


def _decision(judged: JudgedMode) -> str:
    return judged.decision.value if judged.decision is not None else judged.result.status.value


def _interval(judged: JudgedMode) -> str:
    speedup = judged.result.speedup
    return f"{ratio(speedup.lo)} to {ratio(speedup.hi)}" if speedup is not None else MISSING


def _end_to_end(result: ModeResult) -> str:
    return speedup_text(result.end_to_end) if result.data is not None and result.speedup is not None else MISSING


def _break_even(found: BreakEven | None) -> str:
    if found is None:
        return MISSING
    return f"{count(found.steps)} steps" if found.steps is not None else "never"


def _break_even_range(found: BreakEven | None) -> str:
    if found is None or found.steps is None:
        return MISSING
    return f"{count(found.lo)} to {count(found.hi) if found.hi is not None else 'never'}"


def _step_ms(value_ms: float | None) -> str:
    return milliseconds(value_ms * 1e6 if value_ms is not None else None)


def _gpu_alone(result: ModeResult) -> str:
    return ratio(result.device_times.ratio) if result.device_times and result.device_ratio_differs else MISSING


def _throttled(result: ModeResult) -> str:
    """Pairs that are left out of the speedup."""
    if not result.throttled_pairs:
        return MISSING
    return f"{result.throttled_pairs} of {plural(result.throttled_pairs + result.kept_pairs, 'pair')} left out"


def _in_a_step(result: ModeResult, of_proof: Callable[[StepProof], float | None]) -> str:
    """What a profile of steady compiled steps showed."""
    seen = of_proof(result.proof) if result.proof is not None else None
    return f"{seen:.3g}" if seen is not None and seen < 1000 else count(seen)


def _headroom(result: ModeResult) -> str:
    """Of eager's profile."""
    return f"about {ratio(result.headroom.ratio)}" if result.headroom is not None else MISSING


def _first_request(judged: JudgedMode) -> str:
    return duration(judged.result.serving.first_cold_s if judged.result.serving is not None else None)


def _tokens(judged: JudgedMode, arm: Arm) -> str:
    found = judged.result.decode
    return count(found.tokens_per_s(arm)) if found is not None and found.tokens_per_s(arm) else MISSING


def _latency(judged: JudgedMode, arm: Arm, p99: bool) -> str:
    found = judged.result.latency.get(arm)
    return _step_ms((found.p99_ms if p99 else found.p50_ms) if found is not None else None)


def _saved_in(hours: float) -> Callable[[JudgedMode], str]:
    def saved(judged: JudgedMode) -> str:
        eager_ms = judged.result.end_to_end.eager_mean_ms
        return percent(planned_gain(judged.result, hours * 3.6e6 / eager_ms if eager_ms else None))

    return saved
