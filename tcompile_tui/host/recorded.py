"""A recorded run, read back from its folder."""

from __future__ import annotations

from pathlib import Path

from tcompile_tui.core.compare_runs import ComparedRun
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import decide
from tcompile_tui.host.event_log import read_events
from tcompile_tui.host.run_folder import RunFolder


def read_state(folder: RunFolder) -> RunState:
    """Every record applied. Seconds for a run of tens of megabytes. Raises OSError."""
    state = RunState()
    for event in read_events(folder.events):
        state.apply(event)
    return state


def read_compared_run(path: Path) -> ComparedRun:
    """Decided anew from its records, so that runs of different versions of this program compare. Raises OSError."""
    folder = RunFolder(path)
    state, info = read_state(folder), folder.read_info()
    return ComparedRun(path.name, state, decide(state), info.supervisor.host if info is not None else None)
