"""Write a report into a run folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tcompile_tui.core.spec import SpecError
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Verdict
from tcompile_tui.host.recorded import reported_run
from tcompile_tui.host.run_folder import RunFolder, write_atomically
from tcompile_tui.report.formats import ReportFormat, render


class CannotSaveError(Exception):
    """The message is one line for people."""


def save_report(folder: RunFolder, state: RunState, verdict: Verdict, format: ReportFormat) -> Path:
    """Returns the file. May take seconds: not for the thread that draws. Raises CannotSaveError."""
    path = folder.path / format.file_name
    if format is ReportFormat.HTML:
        _save_elsewhere(folder, path)
        return path
    try:
        text = render(reported_run(folder, state, verdict), format, folder.path)
        write_atomically(path, text.encode("utf-8", "backslashreplace"))
    except SpecError as error:
        raise CannotSaveError(str(error)) from error
    except OSError as error:
        raise CannotSaveError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _save_elsewhere(folder: RunFolder, path: Path) -> None:
    """In a process of its own, so that the plotting library stays out of this one."""
    command = [sys.executable, "-m", "tcompile_tui", "report", str(folder.path), "--format", "html", "-o", str(path)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise CannotSaveError(last.removeprefix("error: "))
