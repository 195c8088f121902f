"""How far one mode got in a run, and why no further."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from tcompile_tui.core import events as ev
from tcompile_tui.core.apart import ran_out
from tcompile_tui.core.early_answer import planned_run
from tcompile_tui.core.failure_words import failure_text
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import duration, plural


class ModeStatus(str, enum.Enum):
    """How far a mode got."""

    MEASURED = "measured"
    RAN_EAGER = "nothing was compiled"
    FAILED = "failed"
    NOT_FINISHED = "not finished"
    NOT_RUN = "not run"
    THROTTLED = "could not be compared"  # the GPU was throttled in nearly all pairs
    CANNOT_PAY = "cannot pay off"  # its compile was stopped when that was certain


def mode_status(
    state: RunState, cold: ProcessState | None, warm: Sequence[ProcessState], compared_apart: bool
) -> tuple[ModeStatus, str]:
    """With the reason, which is empty where the mode was measured. `cold` is the process that counts, `warm` all of
    the mode's; `compared_apart` where both arms were measured alone, in turn."""
    return _stopped_early(state, cold) or _status(cold, warm, compared_apart)


def _status(cold: ProcessState | None, warm: Sequence[ProcessState], compared_apart: bool) -> tuple[ModeStatus, str]:
    if cold is None:
        return ModeStatus.NOT_RUN, "the run ended before its turn"
    measured = any(process.interval is not None for process in warm)
    for process in (cold, *warm):
        if process is not cold and cold.done and ran_out(process):
            continue  # alone it fits
        if process.failure is not None:
            return ModeStatus.FAILED, failure_text(process.failure)
        if process.ended is not None and process.ended.outcome not in (ev.Outcome.OK, ev.Outcome.STOPPED):
            if measured and process is not cold:
                continue  # what was measured before its end stands
            slow = process.ended.outcome is ev.Outcome.TIMED_OUT
            where = f"the {process.phase.value} process"
            status = ModeStatus.NOT_FINISHED if slow else ModeStatus.FAILED
            return status, f"{where}: {process.ended.detail or process.ended.outcome.value}"
    if cold.done and not cold.compiled_anything:
        return ModeStatus.RAN_EAGER, _why_eager(cold)
    if measured or compared_apart:
        return ModeStatus.MEASURED, ""
    if any(ran_out(process) for process in warm):
        return ModeStatus.NOT_FINISHED, "both arms do not fit into memory side by side, and were not compared apart"
    throttled = sum(process.throttled_pairs for process in warm)
    if throttled:
        left = sum(len(process.pairs) for process in warm)
        return ModeStatus.THROTTLED, f"the GPU was throttled in {plural(throttled, 'pair')}, and {left} are left"
    return ModeStatus.NOT_FINISHED, "stopped before eager and compiled steps could be compared"


def _stopped_early(state: RunState, cold: ProcessState | None) -> tuple[ModeStatus, str] | None:
    """None for a compile that was not stopped for the plan. Under another plan it says nothing."""
    stopped = cold.compile_stopped if cold is not None else None
    if stopped is None:
        return None
    planned = planned_run(state)
    so_far = f"its start had cost {duration(stopped.start_s)} when it was stopped"
    if planned is None or not planned.cannot_pay(stopped.start_s):
        return ModeStatus.NOT_FINISHED, f"{so_far}, because it could not pay off in the run that was planned then"
    starts = f" of {planned.cold_starts:,} such starts" if planned.cold_starts > 1 else ""
    run = f"the whole planned run{starts} takes at most {duration(planned.eager_s)} in eager"
    return ModeStatus.CANNOT_PAY, f"{so_far}, and {run}"


def _why_eager(process: ProcessState) -> str:
    summary = process.compile.summary
    if summary is not None and summary.disabled_by:
        return f"torch.compile is switched off by {summary.disabled_by}"
    dropped = process.compile.dropped_frames
    if dropped:
        first = dropped[0]
        reason = (first.fail_reason or "no reason given").splitlines()[0]
        return f"Dynamo gave up on {first.function or 'a frame'}: {reason}"
    return "no graph was captured"
