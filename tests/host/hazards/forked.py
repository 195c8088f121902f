"""Hostile models in real workers: forked from one process that has imported torch, so that each costs a fraction of
a second, with the guard and the private folders of any other worker."""

from __future__ import annotations

import os
import secrets
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path

from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.host import reclaim, roots
from tcompile_tui.host.archive import build_worker_archive
from tcompile_tui.host.interpreter import find_interpreter
from tcompile_tui.host.workers import Start
from tcompile_tui.host.zygote import ForkedStart, Zygote
from tests.worker.driver import PhaseRun, run_phase

_IMPORT_LIMIT_S = 120.0
_HEAD = """
import atexit, builtins, ctypes, json, logging, os, resource, shutil, signal, socket, subprocess, sys, threading, time
import torch

def example_inputs():
    return torch.randn(2, 16)

class Net(torch.nn.Module):
"""


class Parent:
    """The process that hostile workers are forked from."""

    def __init__(self, folder: Path) -> None:
        self._run_id = secrets.token_hex(8)
        self._root = roots.create_root()
        self._environment = {**os.environ, **self._root.environment}
        python = find_interpreter(None, os.environ).executable
        archive = build_worker_archive(folder / "worker.zip")
        self._zygote = Zygote(
            python, archive, self._run_id, self._environment, folder, "cpu", on_output=lambda chunk: None
        )
        ready = self._zygote.ready(_IMPORT_LIMIT_S)
        assert ready is not None and ready.unfit is None, ready
        self._own = set(reclaim.processes_of_run(self._run_id))

    def run(
        self,
        folder: Path,
        body: str,
        phase: Phase = Phase.EAGER,
        mode: Mode | None = None,
        limit_s: float = 100.0,
        head: str = "",
        warmup_s: float = 0.05,
    ) -> PhaseRun:
        """One phase of a model whose class has this `body`; `head` comes before the class. Asserts that no process
        is left behind."""
        model = folder / "net.py"
        model.write_text(
            f"{_HEAD.replace('class Net', f'{textwrap.dedent(head)}{chr(10)}class Net')}"
            + textwrap.indent(textwrap.dedent(body), "    ")
        )
        run = run_phase(model, folder, phase, mode, warmup_s=warmup_s, start=self._start, limit_s=limit_s)
        assert self.left_behind() == set()
        return run

    def left_behind(self) -> set[int]:
        """Processes of the run besides the parent and its guard, after a moment to end."""
        deadline = time.monotonic() + 2
        while left := set(reclaim.processes_of_run(self._run_id)) - self._own:
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        return left

    def _start(self, private: Mapping[str, str]) -> Start:
        return ForkedStart(self._zygote, {**self._environment, **private})

    def close(self) -> None:
        self._zygote.close()
        self._root.remove()
        assert reclaim.processes_of_run(self._run_id) == []
