"""A recorded run, read back from its folder."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from tcompile_tui.core.compare_runs import ComparedRun
from tcompile_tui.core.reported_run import Excerpt, ReportedRun, Surroundings
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Verdict, verdict_of
from tcompile_tui.host.event_log import read_events
from tcompile_tui.host.run_folder import RunFolder, RunInfo

_LINES_AROUND = 3
_MAX_SOURCE_BYTES = 2_000_000


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
    return ComparedRun(path.name, state, verdict_of(state), info.supervisor.host if info is not None else None)


def read_reported_run(path: Path) -> ReportedRun:
    """Raises OSError."""
    folder = RunFolder(path)
    state = read_state(folder)
    return reported_run(folder, state, verdict_of(state))


def reported_run(folder: RunFolder, state: RunState, verdict: Verdict) -> ReportedRun:
    """With the lines of source that the findings name, as far as they are still those of the run."""
    info = folder.read_info()
    sources = _sources(verdict, info) if info is not None else {}
    return ReportedRun(folder.path.name, state, verdict, _surroundings(info) if info is not None else None, sources)


def _surroundings(info: RunInfo) -> Surroundings:
    machine = info.machine
    return Surroundings(
        started_at=info.started_at,
        command=info.command,
        cwd=info.cwd,
        argv=info.argv,
        program_version=info.program_version,
        os=machine.os if machine is not None else None,
        cpu_model=machine.cpu_model if machine is not None else None,
        cpu_count=machine.cpu_count if machine is not None else None,
        memory_total_bytes=machine.memory_total_bytes if machine is not None else None,
    )


def _sources(verdict: Verdict, info: RunInfo) -> dict[tuple[str, int], Excerpt]:
    found = {}
    for finding in verdict.findings:
        if finding.file is not None and finding.line is not None:
            excerpt = _excerpt(Path(info.cwd) / finding.file, finding.line, info.started_at)
            if excerpt is not None:
                found[finding.file, finding.line] = excerpt
    return found


def _excerpt(file: Path, line: int, started_at: str) -> Excerpt | None:
    """None where the file is gone, is newer than the run, or is no plain file."""
    try:
        status = file.stat()
        if not file.is_file() or status.st_size > _MAX_SOURCE_BYTES:
            return None
        if status.st_mtime > datetime.fromisoformat(started_at).timestamp():
            return None
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return None
    first = max(1, line - _LINES_AROUND)
    shown = tuple(lines[first - 1 : line + _LINES_AROUND])
    return Excerpt(first, shown) if 1 <= line <= len(lines) else None
