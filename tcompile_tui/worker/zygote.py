"""The process that the others of a run are forked from, so that they need not import torch again.

`EXE worker.zip --zygote CONTROL_FD DEVICE`, started under a guard as a worker is. It imports torch and its compiler,
runs no operation, touches no device and imports no user code: a thread pool or a device that is in use does not
survive a fork. Then it serves its control socket (SOCK_SEQPACKET, JSON):

    to the supervisor     {"torch_s": 2.4, "compiler_s": 4.1, "unfit": null}        once; `unfit` says why not to fork
    to the zygote         {"guard": ["python", "guard.py", ...], "environment": {"TMPDIR": "...", "GONE": null}}
                          with five descriptors: records, commands, lifeline, status, output
    to the supervisor     {"pid": 4711} or {"error": "..."}

For each request it forks a process that forks the worker and then becomes that worker's guard, by executing it. So a
forked worker has a guard of its own above it, exactly as a fresh one has.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PosixPath
from types import ModuleType
from typing import Any, NoReturn

from .channel import Channel
from .imports import Imports
from .lifetime import die_with_parent

_MAX_REQUEST_BYTES = 1 << 20
_PRIVATE_FOLDERS = ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
_CANNOT_EXECUTE = 127


@dataclass(frozen=True)
class _Descriptors:
    """What a worker and its guard hold, in the order in which they come."""

    events: int
    commands: int
    lifeline: int
    status: int
    output: int

    def close(self) -> None:
        for fd in (self.events, self.commands, self.lifeline, self.status, self.output):
            os.close(fd)


@dataclass(frozen=True)
class _Request:
    """One worker to fork. A variable that is None is to be unset."""

    guard: list[str]
    environment: dict[str, str | None]
    fds: _Descriptors


class Zygote:
    """`run_job(channel, imports)` is what a forked worker does; what it returns is its exit status."""

    def __init__(self, control_fd: int, run_job: Callable[[Channel, Imports], int]) -> None:
        self._control = socket.socket(fileno=control_fd)
        self._control.set_inheritable(False)
        self._run_job = run_job
        self._remembered: list[_Remembered] = []

    def serve(self, load: Callable[[], Imports], rehearse: Callable[[str], None]) -> NoReturn:
        """Call `load`, say whether `rehearse(private_folder)` works in a forked process, then fork on request."""
        imports = load()
        self._remembered = _remembered_paths()
        unfit = _unfit_to_fork() or self._failed_rehearsal(rehearse)
        self._say({"torch_s": imports.torch_s, "compiler_s": imports.compiler_s, "unfit": unfit})
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the guards
        zygote = os.getpid()
        while request := self._next_request():
            try:
                pid = _fork()
                if pid == 0:
                    _in_child(lambda: self._become_guard(request, imports, zygote))
                self._say({"pid": pid})
            except OSError as error:
                self._say({"error": f"cannot fork: {error.strerror}"})
            request.fds.close()
        os._exit(0)

    def _say(self, message: Mapping[str, Any]) -> None:
        self._control.send(json.dumps(message).encode())

    def _next_request(self) -> _Request | None:
        body, fds, _, _ = socket.recv_fds(self._control, _MAX_REQUEST_BYTES, 5, socket.MSG_CMSG_CLOEXEC)
        return _Request(**json.loads(body), fds=_Descriptors(*fds)) if body else None

    def _failed_rehearsal(self, rehearse: Callable[[str], None]) -> str | None:
        """Why what a worker needs does not work in a forked process; None if it does."""
        reader, writer = os.pipe()
        pid = _fork()
        if pid == 0:
            _in_child(lambda: self._rehearse(rehearse, writer))
        os.close(writer)
        with open(reader, "rb") as pipe:
            reason = pipe.read().decode()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return reason or (None if status == 0 else f"a forked process ended with status {status}")

    def _rehearse(self, rehearse: Callable[[str], None], writer: int) -> NoReturn:
        root = f"{os.environ.get('TMPDIR', tempfile.gettempdir())}/rehearsal"
        try:
            folders: dict[str, str | None] = {name: f"{root}/{name}" for name in _PRIVATE_FOLDERS}
            for folder in filter(None, folders.values()):
                Path(folder).mkdir(parents=True)
            self._adapt(folders)
            rehearse(root)
        except Exception as error:
            os.write(writer, f"{type(error).__name__}: {error}"[:500].encode(errors="replace"))
        os._exit(0)

    # ------------------------------------------------------------ in the children

    def _become_guard(self, request: _Request, imports: Imports, zygote: int) -> NoReturn:
        """The worker's parent, so that it can reap it; a fork of this process, so that the worker is one too."""
        fds, guard = request.fds, os.getpid()
        die_with_parent(zygote)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        worker = _fork()
        if worker == 0:
            _in_child(lambda: self._become_worker(request, imports, guard))
        os.dup2(fds.output, 1)
        os.dup2(fds.output, 2)
        for fd in (fds.lifeline, fds.status):
            os.set_inheritable(fd, True)
        options = {"--lifeline": fds.lifeline, "--status": fds.status, "--adopt": worker}
        words = [word for name, number in options.items() for word in (name, str(number))]
        os.execv(request.guard[0], [*request.guard, *words])

    def _become_worker(self, request: _Request, imports: Imports, guard: int) -> NoReturn:
        """From here on nothing differs from a fresh worker that has read its arguments and imported torch."""
        fds = request.fds
        os.setsid()
        die_with_parent(guard)
        os.dup2(fds.output, 1)
        os.dup2(fds.output, 2)
        for fd in (fds.lifeline, fds.status, fds.output):
            os.close(fd)
        self._control.close()
        self._adapt(request.environment)
        _reseed()
        os._exit(self._run_job(Channel(fds.events, fds.commands), imports))

    def _adapt(self, environment: Mapping[str, str | None]) -> None:
        """Set the variables, also where modules took a path from one of them while they were imported."""
        moved = {}
        for name, value in environment.items():
            before = os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
                if before and name in _PRIVATE_FOLDERS:
                    moved[before] = value
        for remembered in self._remembered:
            remembered.move(moved)


def rehearse(device: str, private_folder: str) -> None:
    """What a forked worker needs of torch before it can run anything. Raises what goes wrong."""
    import torch

    from . import compiler

    compiler.assert_private_caches(private_folder)
    if device == "cuda":
        torch.empty(1, device="cuda").fill_(1).item()


def _fork() -> int:
    """Python warns of any second thread; which ones are harmless was looked at."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _in_child(act: Callable[[], NoReturn]) -> NoReturn:
    """Whatever happens, the child must not go on as a second zygote."""
    try:
        act()
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(_CANNOT_EXECUTE)


def _unfit_to_fork() -> str | None:
    """Threads of Python hold locks that no one would release in a child. The pools of native libraries (numpy's
    OpenBLAS starts one on import) are idle, and end and start again around a fork by themselves."""
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        return f"{sys.implementation.name} on {sys.platform}"
    others = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    return f"importing torch started threads: {', '.join(others)}" if others else None


def _reseed() -> None:
    """Each process draws its own numbers, as fresh ones do. `random` sees to itself."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


@dataclass(frozen=True)
class _Remembered:
    """A module's name for a path that lies in one of our private folders."""

    module: ModuleType
    name: str
    value: str | Path

    def move(self, moved: Mapping[str, str]) -> None:
        """Folders may lie in one another: the longest that fits is the one."""
        text = str(self.value)
        for before in sorted(moved, key=len, reverse=True):
            if text.startswith(before):
                setattr(self.module, self.name, type(self.value)(moved[before] + text[len(before) :]))
                return


def _remembered_paths() -> list[_Remembered]:
    """torch computes the folder of its precompiled headers once, when it is imported; tempfile keeps its own."""
    folders = tuple(os.environ[name] for name in _PRIVATE_FOLDERS if os.environ.get(name))
    return [
        _Remembered(module, name, value)
        for module in list(sys.modules.values())
        if isinstance(module, ModuleType)
        for name, value in list(vars(module).items())
        if type(value) in (str, PosixPath) and str(value).startswith(folders)
    ]
