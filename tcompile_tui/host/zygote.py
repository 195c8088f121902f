"""The process that a run's other processes are forked from, seen from the supervisor (see worker/zygote.py)."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from tcompile_tui.core.events import StartMethod
from tcompile_tui.host.guarded import Guard, GuardedProcess, GuardEnds, guard_command, spawn_guarded
from tcompile_tui.host.reclaim import stat_fields

_REPLY_LIMIT_S = 10.0
_MAX_MESSAGE_BYTES = 1 << 16
# In force only while torch is imported: so that asking for devices does not open CUDA, which no fork survives, and that
# versions before 2.9 start no pool of compile processes. Workers get their own values back.
_WHILE_IMPORTING = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "TORCH_WARM_POOL": "0"}


class ZygoteError(OSError):
    """It is gone, does not answer, or cannot fork; the message says which."""


class ZygoteReady(msgspec.Struct, frozen=True):
    """The seconds that its imports took, and what stands against forking from it, if anything does."""

    torch_s: float
    compiler_s: float | None
    unfit: str | None = None


class _Reply(msgspec.Struct, frozen=True):
    pid: int | None = None
    error: str | None = None


_Answer = TypeVar("_Answer", ZygoteReady, _Reply)


class Zygote:
    """Start it on the main thread. `environment` is that of the workers but for what they have each for itself."""

    def __init__(
        self,
        executable: str,
        archive: Path,
        run_id: str,
        environment: Mapping[str, str],
        cwd: Path,
        device: str,
        on_output: Callable[[bytes], None],
    ) -> None:
        self._run_id = run_id
        self.environment = dict(environment)
        self._own_environment = {**environment, **_WHILE_IMPORTING}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [executable, str(archive), "--zygote", str(theirs.fileno()), device]
        with theirs:
            self._process = GuardedProcess(
                lambda ends: spawn_guarded(command, (theirs.fileno(),), run_id, self._own_environment, cwd, ends),
                on_output,
                lambda report: None,
            )

    def ready(self, timeout_s: float) -> ZygoteReady | None:
        """What it says when it has imported everything; None if it has not yet. Raises ZygoteError."""
        return self._receive(ZygoteReady, timeout_s)

    def fork(self, environment: Mapping[str, str], events: int, commands: int, ends: GuardEnds) -> int:
        """Fork a worker with a guard of its own; returns the guard's process id. Raises ZygoteError."""
        changes: dict[str, str | None] = {name: None for name in self._own_environment if name not in environment}
        changes |= {name: value for name, value in environment.items() if self._own_environment.get(name) != value}
        body = msgspec.json.encode({"guard": guard_command(self._run_id), "environment": changes})
        fds = [events, commands, ends.lifeline, ends.status, ends.output]
        try:
            self._control.settimeout(_REPLY_LIMIT_S)
            socket.send_fds(self._control, [body], fds)
        except OSError as error:
            raise ZygoteError(f"the process to fork from cannot be reached ({error})") from error
        reply = self._receive(_Reply, _REPLY_LIMIT_S)
        if reply is None:
            raise ZygoteError(f"the process to fork from did not answer within {_REPLY_LIMIT_S:.0f} s")
        if reply.pid is None:
            raise ZygoteError(reply.error or "the process to fork from gave no reason")
        return reply.pid

    def _receive(self, kind: type[_Answer], timeout_s: float) -> _Answer | None:
        try:
            self._control.settimeout(timeout_s)
            answer = self._control.recv(_MAX_MESSAGE_BYTES)
        except TimeoutError:
            return None
        except OSError as error:
            raise ZygoteError(f"the process to fork from cannot be heard ({error})") from error
        if not answer:
            raise ZygoteError("the process to fork from ended")
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.DecodeError as error:
            raise ZygoteError(f"the process to fork from answered what cannot be read ({error})") from error

    def close(self) -> None:
        """End it and every process that was forked from it. Blocks until its guard has ended."""
        with contextlib.suppress(OSError):
            self._control.close()
        self._process.close()


@dataclass(frozen=True)
class ForkedStart:
    """From a process that has imported torch."""

    zygote: Zygote
    environment: Mapping[str, str]
    how: StartMethod = StartMethod.FORKED

    def start(self, events: int, commands: int, ends: GuardEnds) -> Guard:
        return _ForkedGuard(self.zygote.fork(self.environment, events, commands, ends), self.zygote)


@dataclass(frozen=True)
class _ForkedGuard:
    """A guard that is a child of the zygote."""

    pid: int
    zygote: Zygote

    def end(self) -> None:
        """A guard that hangs or was killed leaves its worker to the zygote's own guard."""
        deadline = time.monotonic() + 1
        while stat_fields(self.pid) is not None:
            if time.monotonic() > deadline:
                self.zygote.close()
                return
            time.sleep(0.002)
