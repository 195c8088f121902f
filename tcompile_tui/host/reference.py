"""When a run also takes the outputs in higher precision, and where it keeps them."""

from __future__ import annotations

from tcompile_tui.core.spec import Preset
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import size

REFERENCE_FILE = "reference.pt"
REFERENCE_PRESETS = (Preset.STANDARD, Preset.THOROUGH)
# One step, but float64 is slow on many devices: the modes must keep their time.
REFERENCE_TIME_SHARE = 0.2
_HEADROOM = 2.5


def memory_shortage(state: RunState, eager: ProcessState) -> str | None:
    """Why the host's memory does not hold the model in float64; None if it does, or if that is not known. That of a
    GPU is asked by the worker, which sees all of it."""
    peak = next(iter(eager.memory.values()), None)
    sample = state.host[-1] if state.host else None
    if peak is None or sample is None or peak.first_allocated_bytes is not None or peak.host_rss_bytes is None:
        return None
    free_bytes = sample.memory_total_bytes - sample.memory_used_bytes + (sample.worker_rss_bytes or 0)
    needed_bytes = round(_HEADROOM * peak.host_rss_bytes)
    if needed_bytes <= free_bytes:
        return None
    return (
        f"the outputs have no reference in higher precision: it would need {size(needed_bytes)} of memory,"
        f" {size(free_bytes)} are free"
    )
