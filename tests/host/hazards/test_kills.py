"""SIGKILL at 50 random moments, of the supervisor or of any process below it: nothing is left, the folder is read."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, decide
from tcompile_tui.host.event_log import read_events
from tcompile_tui.host.reclaim import descendants_of, stat_fields
from tcompile_tui.host.run_folder import RunFolder, RunStatus, summarise_run

from .supervisors import Supervisors, supervisors

_AT_ONCE = 5
_ROUNDS = 5
_LONGEST_S = 2.0  # about as long as such a run takes
_END_S = 40.0


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisors]:
    headers = tmp_path_factory.mktemp("headers")
    (headers / "x.gch").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCOMPILE_TUI_HEADERS_DIR", str(headers))
        with supervisors() as started:
            yield started


@dataclass
class _Victim:
    """A run, and when it is struck."""

    folder: Path
    supervisor: int
    at_s: float
    struck: bool = False

    @property
    def run_folder(self) -> Path | None:
        runs = self.folder / "runs"
        return next(runs.iterdir(), None) if runs.is_dir() else None


def _strike(many: Supervisors, folder: Path, rng: random.Random, kill: Callable[[_Victim], None]) -> list[_Victim]:
    """Start some runs and kill in each at a moment of its own; returns when all supervisors have ended."""
    started = time.monotonic()
    victims = [
        _Victim(folder / str(number), many.start(folder / str(number)), rng.uniform(0.0, _LONGEST_S))
        for number in range(_AT_ONCE)
    ]
    waiting = sorted(victims, key=lambda victim: victim.at_s)
    while waiting:
        if time.monotonic() - started >= waiting[0].at_s:
            kill(waiting.pop(0))
        else:
            time.sleep(0.005)
    _wait_until(lambda: all(stat_fields(victim.supervisor) is None for victim in victims), _END_S)
    return victims


def _wait_until(condition: Callable[[], bool], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def _left_of(victim: _Victim) -> list[int]:
    """Living processes that name the run's folder in their command or environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            texts = [*process.cmdline(), *process.environ().values()]
            if process.status() != psutil.STATUS_ZOMBIE and any(f"{victim.folder}/" in text for text in texts):
                found.append(process.pid)
    return found


def _is_readable(path: Path) -> None:
    """Every record up to the end can be applied and decided, whether or not it came to a verdict."""
    state = RunState()
    for event in read_events(path / "events.jsonl"):
        state.apply(event)
    assert decide(state).headline


@pytest.mark.parametrize("round_", range(_ROUNDS))
def test_a_killed_supervisor_leaves_nothing_but_its_folder(many: Supervisors, tmp_path: Path, round_: int) -> None:
    rng = random.Random(round_)

    def kill(victim: _Victim) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim.supervisor, signal.SIGKILL)

    for victim in _strike(many, tmp_path, rng, kill):
        _wait_until(lambda victim=victim: not _left_of(victim), 3.0)  # type: ignore[misc]
        path = victim.run_folder
        if path is None or not (path / "events.jsonl").exists():
            continue  # it had not begun
        _is_readable(path)
        summary = summarise_run(path)
        if summary is not None:
            assert summary.status in (RunStatus.DIED, RunStatus.DONE)


@pytest.mark.parametrize("round_", range(_ROUNDS))
def test_a_run_outlives_the_kill_of_any_of_its_processes(many: Supervisors, tmp_path: Path, round_: int) -> None:
    rng = random.Random(100 + round_)

    def kill(victim: _Victim) -> None:
        below = descendants_of(victim.supervisor)
        if below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(below), signal.SIGKILL)
                victim.struck = True

    victims = _strike(many, tmp_path, rng, kill)
    for victim in victims:
        _wait_until(lambda victim=victim: not _left_of(victim), 3.0)  # type: ignore[misc]
        path = victim.run_folder
        if path is None:  # struck while it looked for an interpreter
            assert victim.struck
            continue
        _is_readable(path)
        verdict = RunFolder(path).read_verdict()
        assert verdict is not None and verdict["decision"] in {decision.value for decision in Decision}
        assert "Traceback" not in (victim.folder / "output").read_text()
