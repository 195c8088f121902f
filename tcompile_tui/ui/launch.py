"""Start the run that a person would type, in a session of its own, so that it outlives this terminal."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from tcompile_tui.host.run_folder import RunFolder

_MAX_ERROR_CHARS = 2_000


@dataclass
class LaunchedRun:
    """A supervisor that was started here. Its folder appears when it has found nothing wrong with the request."""

    folder: RunFolder
    _process: subprocess.Popen[bytes]
    _output: IO[bytes]

    @property
    def has_folder(self) -> bool:
        return self.folder.events.exists()

    def refusal(self) -> str | None:
        """The one line with which it ended before it made a folder; None while it is alive or has one."""
        if self._process.poll() is None or self.has_folder:
            return None
        self._output.seek(0)
        text = self._output.read().decode("utf-8", "replace").strip()[-_MAX_ERROR_CHARS:]
        return text.splitlines()[-1].removeprefix("error: ").removeprefix("Error: ") if text else "it did not start"


def launch(arguments: Sequence[str], runs_dir: Path, label: str, cwd: Path) -> LaunchedRun:
    """`arguments` are those of `tcompile-tui run`. Raises OSError if no process can be started."""
    name = f"{datetime.now():%Y%m%d-%H%M%S}-{label}-{secrets.token_hex(2)}"
    folder = RunFolder(runs_dir / name)
    output = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as the run may refuse to start)
    process = subprocess.Popen(
        [sys.executable, "-m", "tcompile_tui", "run", "--into", str(folder.path), *arguments],
        stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=cwd, start_new_session=True,
    )  # fmt: skip
    return LaunchedRun(folder, process, output)


def ask_to_decide_now(folder: RunFolder) -> bool:
    """End the measuring; the run decides with what is there. False if it is not a living run of this host."""
    return _signal(folder, signal.SIGINT)


def ask_to_abandon(folder: RunFolder) -> bool:
    """End the run without a decision; its folder stays."""
    return _signal(folder, signal.SIGTERM)


def _signal(folder: RunFolder, number: signal.Signals) -> bool:
    info = folder.read_info()
    if info is None or not info.supervisor.is_alive:
        return False
    try:
        os.kill(info.supervisor.pid, number)
    except OSError:
        return False
    return True
