"""From a step to a step with its data: where batches come slower than steps are computed, the gain is lost.

A loader with workers fetches beside the step, so with d ms of data a step takes max(e, d) in eager and max(c, d)
compiled. Both are monotone in the speedup, so the ends of an interval are mapped like its middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tcompile_tui.core.batch_events import LoaderTimed
from tcompile_tui.core.pairs import TimeGain
from tcompile_tui.core.spread import MeanSpeedup
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import milliseconds, plural

_Z_95 = 1.96


@dataclass(frozen=True)
class DataTime:
    """How long the data of one step takes, which is `batches` of them. `source` says where that is from; `timed` is
    the record of a loader that was timed."""

    step_ms: float
    batches: int
    source: str
    timed: LoaderTimed | None = None


def data_time(state: RunState) -> DataTime | None:
    """None where nothing is known of the data."""
    spec = state.run.spec if state.run is not None else None
    if spec is None or spec.data is None:
        return None
    batches, batch_ms, source, timed = spec.step.accumulate, spec.data.batch_ms, "--data-ms", None
    if batch_ms is None:
        timed = next((process.loader for process in state.processes.values() if process.loader is not None), None)
        batch_ms, source = timed.batch_ns / 1e6 if timed is not None else math.nan, f"the loader {spec.data.loader}"
    found = DataTime(batches * batch_ms, batches, source, timed)
    return found if 0 < found.step_ms < math.inf else None


def data_text(data: DataTime) -> str:
    """`12 ms of data a step, by the loader data.py:train (timed alone, 4 workers)`."""
    batches = f" ({data.batches:,} batches)" if data.batches > 1 else ""
    text = f"{milliseconds(1e6 * data.step_ms)} of data a step{batches}, by {data.source}"
    if data.timed is None:
        return text
    workers = f", {plural(data.timed.workers, 'worker')}" if data.timed.workers is not None else ""
    return f"{text} (timed alone{workers})"


def speedup_with_data(speedup: MeanSpeedup, eager_ms: float, data_ms: float) -> MeanSpeedup:
    """max(e, d) / max(e / s, d) for a speedup s, and for both ends of its interval."""

    def mapped(ratio: float) -> float:
        return max(eager_ms, data_ms) / max(eager_ms / ratio, data_ms)

    value, lo, hi = mapped(speedup.value), mapped(speedup.lo), mapped(speedup.hi)
    half_width = (math.log(hi) - math.log(lo)) / 2
    narrower = half_width / speedup.half_width if speedup.half_width else 1.0
    return replace(
        speedup,
        value=value,
        lo=lo,
        hi=hi,
        at_most=mapped(speedup.at_most),
        half_width=half_width,
        standard_error=narrower * speedup.standard_error,
        smallest_detectable=narrower * speedup.smallest_detectable,
    )


def gain_with_data(gain: TimeGain, eager_ms: float, data_ms: float) -> TimeGain:
    """max(e, d) - max(c, d) for a step that saves e - c; the error from the ends of the 95 % interval, mapped."""
    eager_ns, data_ns = 1e6 * eager_ms, 1e6 * data_ms
    mapped = _saved(eager_ns, data_ns)
    reach = _Z_95 * gain.standard_error_ns
    error = (mapped(gain.mean_ns + reach) - mapped(gain.mean_ns - reach)) / (2 * _Z_95)
    return TimeGain(mapped(gain.mean_ns), error)


def _saved(eager_ns: float, data_ns: float) -> Callable[[float], float]:
    return lambda saved_ns: max(eager_ns, data_ns) - max(eager_ns - saved_ns, data_ns)
