"""A run as a Prometheus textfile, for node_exporter's collector: gauges by mode. What is not known is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from tcompile_tui.core.reported_run import ReportedRun
from tcompile_tui.core.results import ModeResult
from tcompile_tui.report.exposition import Metric, exposition

_Value = Callable[[ModeResult], float | None]


def prometheus_text(run: ReportedRun) -> str:
    return exposition(_metrics(run), run.target)


def _metrics(run: ReportedRun) -> Iterator[Metric]:
    started = run.state.run
    about = {"decision": run.verdict.decision.value, "best_mode": run.verdict.best_mode or ""}
    about |= {"torch": started.torch_version, "device": started.device_name} if started is not None else {}
    yield Metric("run_info", "The decision, and what it was made on.", ((about, 1.0),))
    if run.surroundings is not None:
        when = datetime.fromisoformat(run.surroundings.started_at).timestamp()
        yield Metric("run_start_timestamp_seconds", "When the run started.", (({}, when),))
    results = [judged.result for judged in run.verdict.modes]
    for name, help_text, value in _METRICS:
        known = [(result, number) for result in results if (number := value(result)) is not None]
        yield Metric(name, help_text, tuple(({"mode": result.mode.value}, number) for result, number in known))


def _seconds(milliseconds: float | None) -> float | None:
    return milliseconds / 1e3 if milliseconds is not None else None


def _number(value: int | None) -> float | None:
    return float(value) if value is not None else None


def _break_even(result: ModeResult) -> float | None:
    return result.break_even_cold.steps if result.break_even_cold is not None else None


_METRICS: tuple[tuple[str, str, _Value], ...] = (
    ("speedup_ratio", "Eager step time over compiled step time.", lambda r: r.speedup.value if r.speedup else None),
    ("speedup_ratio_low", "Lower end of its 95 % interval.", lambda r: r.speedup.lo if r.speedup else None),
    ("speedup_ratio_high", "Upper end of its 95 % interval.", lambda r: r.speedup.hi if r.speedup else None),
    ("eager_step_seconds", "One eager step.", lambda r: _seconds(r.eager_ms)),
    ("compiled_step_seconds", "One compiled step.", lambda r: _seconds(r.compiled_ms)),
    ("cold_start_seconds", "A start on empty caches.", lambda r: r.cold_start.total_s if r.cold_start else None),
    ("warm_start_seconds", "A start on filled caches.", lambda r: r.warm_start.total_s if r.warm_start else None),
    ("break_even_steps", "Steps that pay for a cold start.", _break_even),
    ("peak_memory_bytes", "Peak memory of the compiled arm.", lambda r: _number(r.peak_memory_bytes)),
    ("graphs", "Graphs that were captured.", lambda r: _number(r.graphs)),
    ("graph_breaks", "Places where a graph breaks.", lambda r: _number(r.graph_breaks)),
    ("recompiles", "Times that a guard failed and a frame was compiled again.", lambda r: _number(r.recompiles)),
)  # fmt: skip
