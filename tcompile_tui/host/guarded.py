"""A process behind its guard: start it, hear what it prints, end it, and learn how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from tcompile_tui.host.reclaim import RUN_VARIABLE, kill_processes_of_run

_GUARD = Path(__file__).with_name("guard.py")
_CHUNK_BYTES = 1 << 18
# Longer than a guard takes that meets processes which a SIGKILL does not end.
_GUARD_LIMIT_S = 12.0


class GuardReport(msgspec.Struct, frozen=True):
    """The guard's last word (see host/guard.py)."""

    returncode: int
    reclaimed: int = 0
    remaining: int = 0
    error: str | None = None


@dataclass(frozen=True)
class GuardEnds:
    """The guard's ends of the pipes that it and its process hold."""

    lifeline: int
    status: int
    output: int


class Guard(Protocol):
    """A guard that was started."""

    @property
    def pid(self) -> int: ...

    def end(self) -> None:
        """It has said its last word, or did not in time: leave nothing of it. Blocks."""


class GuardedProcess:
    """`start(ends)` starts the guard and with it the process. Output and the guard's report come on threads."""

    def __init__(
        self,
        start: Callable[[GuardEnds], Guard],
        on_output: Callable[[bytes], None],
        on_report: Callable[[GuardReport], None],
    ) -> None:
        lifeline_in, lifeline = os.pipe()
        self._lifeline: int | None = lifeline
        status_in, status_out = os.pipe()
        output_in, output_out = os.pipe()
        try:
            self._guard = start(GuardEnds(lifeline_in, status_out, output_out))
        except BaseException:
            for fd in (lifeline, status_in, output_in):
                os.close(fd)
            raise
        finally:
            for fd in (lifeline_in, status_out, output_out):
                os.close(fd)
        self.pid = self._guard.pid
        self._status_thread = _read_on_thread(_read_status, status_in, on_report)
        self._output_thread = _read_on_thread(_read_output, output_in, on_output)

    def kill(self) -> None:
        """End the process and all it started, now."""
        if self._lifeline is not None:
            with contextlib.suppress(OSError):  # it is gone
                os.write(self._lifeline, b"K")

    def close(self) -> None:
        """Leave nothing behind. Blocks until the guard has ended, at most some seconds."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        self._status_thread.join(_GUARD_LIMIT_S)
        self._guard.end()
        for thread in (self._status_thread, self._output_thread):
            thread.join(timeout=2)


@dataclass(frozen=True)
class SpawnedGuard:
    """A guard that is a child of ours."""

    process: subprocess.Popen[bytes]
    run_id: str

    @property
    def pid(self) -> int:
        return self.process.pid

    def end(self) -> None:
        try:
            self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        kill_processes_of_run(self.run_id)


def spawn_guarded(
    command: Sequence[str],
    pass_fds: tuple[int, ...],
    run_id: str,
    environment: Mapping[str, str],
    cwd: Path,
    ends: GuardEnds,
) -> SpawnedGuard:
    """Start `command` behind a guard. On the main thread: it dies with the thread that started it."""
    process = subprocess.Popen(
        [
            *guard_command(run_id), "--lifeline", str(ends.lifeline), "--status", str(ends.status),
            "--pass-fds", ",".join(map(str, pass_fds)), "--", *command,
        ],
        pass_fds=(*pass_fds, ends.lifeline, ends.status),
        stdin=subprocess.DEVNULL, stdout=ends.output, stderr=ends.output,
        env={**environment, RUN_VARIABLE: run_id}, cwd=cwd, start_new_session=True,
    )  # fmt: skip
    return SpawnedGuard(process, run_id)


def guard_command(run_id: str) -> list[str]:
    """A guard, up to the arguments that say what it guards."""
    return [sys.executable, "-I", "-S", str(_GUARD), "--run-id", run_id]


def _read_on_thread(read: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=read, args=arguments, daemon=True)
    thread.start()
    return thread


def _read_output(fd: int, on_output: Callable[[bytes], None]) -> None:
    with open(fd, "rb", buffering=0) as pipe:
        while chunk := pipe.read(_CHUNK_BYTES):
            on_output(chunk)


def _read_status(fd: int, on_report: Callable[[GuardReport], None]) -> None:
    with open(fd, "rb") as pipe:
        line = pipe.readline()
    try:
        report = msgspec.json.decode(line, type=GuardReport)
    except msgspec.DecodeError:
        report = GuardReport(returncode=-signal.SIGKILL, error="the process that guards the worker was killed")
    on_report(report)
