"""When a run had its first safe answer."""

from __future__ import annotations

from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Verdict


def first_answer_s(state: RunState, verdict: Verdict) -> float | None:
    """Seconds from the start of the run to the moment from which its decision could not change: when SKIP was certain
    for every mode, else its end. None for a run without a decision, and for one that has not come to its end."""
    if not verdict.is_answer:
        return None
    if verdict.modes and all(judged.result.status is ModeStatus.CANNOT_PAY for judged in verdict.modes):
        stopped = [process.compile_stopped for process in state.processes.values()]
        return max(event.t_s for event in stopped if event is not None)
    return state.ended.t_s if state.ended is not None else None
