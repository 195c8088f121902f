"""Every figure of a mode as a labelled text, for tables with one column a mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from tcompile_tui.core.breakeven import BreakEven
from tcompile_tui.core.findings import speedup_text
from tcompile_tui.core.results import ModeResult, planned_gain
from tcompile_tui.core.spec import Arm
from tcompile_tui.core.units import MISSING, count, duration, joules, milliseconds, percent, ratio, size
from tcompile_tui.core.verdict import JudgedMode

_HORIZONS = (("1 h", 3_600.0), ("24 h", 86_400.0), ("1 week", 604_800.0))
Row: TypeAlias = tuple[str, Callable[[JudgedMode], str]]


def mode_rows() -> Iterator[Row]:
    """Label and text, in reading order; a label that begins with a blank belongs to the row above it."""
    yield "decision", _decision
    yield "  because", lambda judged: judged.reason
    yield "speedup", lambda judged: ratio(judged.result.speedup.value if judged.result.speedup else None)
    yield "  95 %", _interval
    yield "  unpaired", lambda judged: judged.result.apart.text if judged.result.apart else MISSING
    yield "end to end", lambda judged: _end_to_end(judged.result)
    yield "data a step", lambda judged: _step_ms(judged.result.data.step_ms if judged.result.data else None)
    yield "eager step", lambda judged: _step_ms(judged.result.eager_ms)
    yield "compiled step", lambda judged: _step_ms(judged.result.compiled_ms)
    yield "GPU alone", lambda judged: _gpu_alone(judged.result)
    yield "headroom", lambda judged: _headroom(judged.result)
    yield "latency p50", lambda judged: _latency(judged, Arm.COMPILED, p99=False)
    yield "  p99", lambda judged: _latency(judged, Arm.COMPILED, p99=True)
    yield "  eager p50", lambda judged: _latency(judged, Arm.EAGER, p99=False)
    yield "  eager p99", lambda judged: _latency(judged, Arm.EAGER, p99=True)
    yield "energy a step", lambda judged: joules(judged.result.energy.compiled_j if judged.result.energy else None)
    yield "  eager", lambda judged: joules(judged.result.energy.eager_j if judged.result.energy else None)
    yield "cold start", lambda judged: duration(judged.result.cold_start.total_s if judged.result.cold_start else None)
    yield "  break-even", lambda judged: _break_even(judged.result.break_even_cold)
    yield "  95 %", lambda judged: _break_even_range(judged.result.break_even_cold)
    yield "warm start", lambda judged: duration(judged.result.warm_start.total_s if judged.result.warm_start else None)
    yield "  break-even", lambda judged: _break_even(judged.result.break_even_warm)
    for name, seconds in _HORIZONS:
        yield f"saves in {name}", _saved_in(seconds)
    yield "outputs", lambda judged: judged.result.accuracy.agreement.value if judged.result.accuracy else MISSING
    yield "peak memory", lambda judged: size(judged.result.peak_memory_bytes)
    yield "eager's peak", lambda judged: size(judged.result.eager_peak_memory_bytes)
    yield "largest batch", lambda judged: judged.result.fit.compiled.text if judged.result.fit else MISSING
    yield "  eager's", lambda judged: judged.result.fit.eager.text if judged.result.fit else MISSING
    yield "  samples/s", lambda judged: judged.result.fit.gain_text if judged.result.fit else MISSING
    yield "graphs", lambda judged: count(judged.result.graphs)
    yield "graph breaks", lambda judged: count(judged.result.graph_breaks)
    yield "recompiles", lambda judged: count(judged.result.recompiles)


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


def _headroom(result: ModeResult) -> str:
    """Of eager's profile."""
    return f"about {ratio(result.headroom.ratio)} at most" if result.headroom is not None else MISSING


def _latency(judged: JudgedMode, arm: Arm, p99: bool) -> str:
    found = judged.result.latency.get(arm)
    return _step_ms((found.p99_ms if p99 else found.p50_ms) if found is not None else None)


def _saved_in(seconds: float) -> Callable[[JudgedMode], str]:
    def saved(judged: JudgedMode) -> str:
        eager_ms = judged.result.end_to_end.eager_mean_ms
        return percent(planned_gain(judged.result, seconds * 1e3 / eager_ms if eager_ms else None))

    return saved
