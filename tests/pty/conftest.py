"""Runs with a scripted worker to look at, and a private place for what the program remembers."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tcompile_tui.core import events as ev
from tests.host.fake_run import FakeRun, processes_of, start_fake_run


@pytest.fixture(autouse=True)
def _private_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    """A run that compiles for ever, in the folder where the program looks for runs."""
    run = start_fake_run(tmp_path, "compile-forever")
    monkeypatch.setenv("TCOMPILE_TUI_RUNS_DIR", str(run.runs_dir))
    wait_until(lambda: run.runs_dir.exists() and any(isinstance(event, ev.FrameStarted) for event in run.events))
    yield run
    run.process.send_signal(signal.SIGKILL)
    run.finish()
    wait_until(lambda: processes_of(run) == [])


def wait_until(condition: Callable[[], bool], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
