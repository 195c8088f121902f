"""The program as a person starts it, for the benchmarks that look at what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
_TERMINATE_S = 20.0
_SHOWN_CHARS = 300


@dataclass(frozen=True)
class Ran:
    """How a run ended. `verdict` is empty where none was written; `error` is then the end of what it said."""

    status: int
    verdict: dict[str, Any]
    error: str
    seconds: float

    @property
    def decision(self) -> str | None:
        return self.verdict.get("decision")

    @property
    def headline(self) -> str:
        return self.verdict.get("headline") or self.error

    @property
    def findings(self) -> list[dict[str, Any]]:
        return self.verdict.get("findings", [])

    def mode(self, name: str | None = None) -> dict[str, Any]:
        """What was found of this mode, else of the first one; empty where nothing was."""
        modes = self.verdict.get("per_mode", {})
        return modes.get(name, {}) if name is not None else next(iter(modes.values()), {})


def run_program(arguments: Sequence[str], runs_dir: Path, limit_s: float) -> Ran:
    """`tcompile-tui run ARGUMENTS`. One that does not end in time is asked to stop, then killed: status -1."""
    command = [sys.executable, "-m", "tcompile_tui", "run", *arguments, "--json", "-", "--runs-dir", str(runs_dir)]
    began = monotonic()
    running = subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace",
    )  # fmt: skip
    try:
        out, err = running.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        running.terminate()
        try:
            running.communicate(timeout=_TERMINATE_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
        return Ran(-1, {}, f"did not end in {limit_s:.0f} s", monotonic() - began)
    return Ran(running.returncode, _verdict(out), err.strip()[-_SHOWN_CHARS:], monotonic() - began)


def _verdict(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        return {}
    return found
