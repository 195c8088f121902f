"""Complete runs of the real supervisor with the scripted worker in place of torch: a second instead of minutes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tcompile_tui.core.events import Event
from tcompile_tui.host.event_log import read_events

_REPOSITORY = Path(__file__).parent.parent.parent
_WORKER = Path(__file__).with_name("scripted_worker.py")
_PROBE_ANSWER = {
    "executable": "", "prefix": "/", "base_prefix": "/", "python": [3, 12], "python_text": "3.12.0",
    "torch": True, "version": "2.99.0", "cuda": None,
}  # fmt: skip


def fake_python(folder: Path) -> Path:
    """An interpreter that says it has torch, and runs the scripted worker instead of the archive."""
    path = folder / "python"
    answer = "tcompile-tui-probe:" + json.dumps(_PROBE_ANSWER)
    path.write_text(
        f"""#!/bin/sh
if [ "$1" = "-c" ]; then echo '{answer}'; exit 0; fi
shift
PYTHONPATH='{_REPOSITORY}' exec '{sys.executable}' '{_WORKER}' "$@"
"""
    )
    path.chmod(0o755)
    return path


@dataclass(frozen=True)
class FakeRun:
    """A started `tcompile-tui run`."""

    process: subprocess.Popen[str]
    runs_dir: Path

    @property
    def folder(self) -> Path:
        (folder,) = self.runs_dir.iterdir()
        return folder

    @property
    def verdict(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.folder / "verdict.json").read_text())
        return document

    @property
    def events(self) -> list[Event]:
        return list(read_events(self.folder / "events.jsonl"))

    def finish(self, timeout_s: float = 60) -> tuple[int, str, str]:
        """(exit status, stdout, stderr)"""
        out, err = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, out, err


def start_fake_run(folder: Path, script: str = "", *arguments: str) -> FakeRun:
    """Start a run of a one-line model in `folder`."""
    (folder / "model.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    command = [
        sys.executable, "-m", "tcompile_tui", "run", "model.py", "--preset", "smoke", "--device", "cpu",
        "--python", str(fake_python(folder)), "--env", f"SCRIPT={script}",
        "--runs-dir", str(folder / "runs"), *arguments,
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TCOMPILE_TUI_HEADERS_DIR": str(_pretend_headers(folder))},
    )  # fmt: skip
    return FakeRun(process, folder / "runs")


def _pretend_headers(folder: Path) -> Path:
    """So that no preflight is needed to build them."""
    headers = folder / "headers"
    headers.mkdir()
    (headers / "x.gch").touch()
    return headers


def processes_of(run: FakeRun) -> list[psutil.Process]:
    """Living processes that were started for this run, wherever they went."""
    marker = str(run.runs_dir.parent)
    found = []
    for process in psutil.process_iter():
        try:
            texts = [*process.cmdline(), *process.environ().values()]
            living = process.is_running() and process.status() != psutil.STATUS_ZOMBIE
            if living and process.pid != os.getpid() and any(marker in text for text in texts):
                found.append(process)
        except psutil.Error:
            continue
    return found
