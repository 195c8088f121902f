"""A small process between supervisor and worker, so that nothing of a run outlives it.

    python -I -S guard.py --run-id ID --lifeline FD --status FD --pass-fds A,B -- EXE ARGS...
    exec python -I -S guard.py --run-id ID --lifeline FD --status FD --adopt PID

It starts the worker in a session of its own and waits; or it takes over a worker that this very process has forked
before it became a guard (see worker/zygote.py). The supervisor holds the other end of the lifeline pipe:
when that closes (the supervisor is done with the worker, or dead), everything that belongs to the run is killed.
The same happens to what a worker leaves behind when it ends by itself. On the lifeline, `T` sends SIGTERM to the
worker's group and `K` kills at once. The last act is one line of JSON on the status pipe:

    {"returncode": 0, "reclaimed": 2, "remaining": 0, "error": null}

`returncode` is negative for a signal; `reclaimed` counts killed processes besides the worker; `remaining` those
that a SIGKILL did not end in time (stuck in the kernel); `error` is set, with returncode 127, when EXE did not
start. TCOMPILE_TUI_RUN=ID must be in the environment; two guards with one id kill each other's workers, unless one
stands above the other.

A script of its own, standard library only, few imports: it starts in about 20 ms and before every worker.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

sys.path.insert(0, __file__.rpartition("/")[0])
import reclaim  # type: ignore[import-not-found]

del sys.path[0]

_PR_SET_CHILD_SUBREAPER = 36
_HELD_OFF = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)
_BOUND_S = 5.0


class Guard:
    """One worker: started by `start` or taken over by `adopt`, watched and reclaimed by `run`."""

    def __init__(self, run_id: str, lifeline: int) -> None:
        self._run_id = run_id
        self._lifeline = lifeline
        self._wakeup = _wake_on_child()
        self._worker = 0
        self._status: int | None = None

    def start(self, command: list[str], pass_fds: list[int]) -> None:
        """Start the worker. Raises OSError when the executable cannot be run."""
        for fd in pass_fds:
            os.set_inheritable(fd, True)
        self._worker = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)],
            setsid=True,
            setsigmask=[],
            setsigdef=[*_HELD_OFF, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD],
        )
        for fd in pass_fds:
            os.close(fd)  # so that its reader sees the end when the worker's copy is closed

    def adopt(self, worker: int) -> None:
        """Take over a child of this process. It may have ended already."""
        self._worker = worker

    def run(self) -> dict[str, int | None]:
        """Wait until the worker ends or has to end, then leave nothing of the run."""
        try:
            self._watch()
        finally:
            killed, left = self._reclaim()
        returncode = os.waitstatus_to_exitcode(self._status) if self._status is not None else -signal.SIGKILL
        return {"returncode": returncode, "reclaimed": len(killed - {self._worker}), "remaining": len(left)}

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._lifeline, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        while not self._worker_ended():
            ready = {fd for fd, _ in poll.poll()}
            if self._wakeup in ready:
                _drain(self._wakeup)
            if self._lifeline in ready:
                orders = os.read(self._lifeline, 64)
                if not orders or b"K" in orders:
                    return
                if b"T" in orders:
                    self._signal_group(signal.SIGTERM)

    def _worker_ended(self) -> bool:
        """Reap adopted orphans. The worker itself stays a zombie, so that its group's number is not given away."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return True
            if ended is None:
                return False
            if ended.si_pid == self._worker:
                return True
            os.waitpid(ended.si_pid, 0)

    def _reclaim(self) -> tuple[set[int], set[int]]:
        members = self._belonging()
        self._signal_group(signal.SIGKILL)
        killed, left = reclaim.sweep(self._belonging, self._pause, _BOUND_S)
        deadline = time.monotonic() + _BOUND_S
        while self._reap() and not left and time.monotonic() < deadline:
            self._pause(0.01)
        return members | killed, left

    def _belonging(self) -> set[int]:
        everything = {*reclaim.processes_of_run(self._run_id), *reclaim.descendants_of(os.getpid())}
        everything -= reclaim.own_line()
        return everything

    def _pause(self, seconds: float) -> None:
        if select.select([self._wakeup], [], [], seconds)[0]:
            _drain(self._wakeup)
        self._reap()

    def _reap(self) -> bool:
        """Reap all that has ended; False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._worker:
                self._status = status

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._worker, number)


def _wake_on_child() -> int:
    """A descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _nothing)
    return reader


def _nothing(*_: object) -> None:
    """A handler rather than SIG_IGN: the worker does not inherit it."""


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(fd, 4096):
            pass


def _become_subreaper() -> None:
    """Orphans of the run become our children rather than init's. Without it the environment still finds them."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _report(status_fd: int, outcome: dict[str, int | str | None]) -> None:
    import json

    with contextlib.suppress(OSError):  # the supervisor is gone
        os.write(status_fd, json.dumps(outcome).encode() + b"\n")


def main(arguments: list[str]) -> int:
    """See the module's docstring for the arguments."""
    for number in _HELD_OFF:
        signal.signal(number, _nothing)
    with contextlib.suppress(OSError):
        os.setsid()
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = dict(zip(arguments[:split:2], arguments[1:split:2], strict=True))
    lifeline, status_fd = int(options["--lifeline"]), int(options["--status"])
    for fd in (lifeline, status_fd):
        os.set_inheritable(fd, False)
    _become_subreaper()
    guard = Guard(options["--run-id"], lifeline)
    try:
        if "--adopt" in options:
            guard.adopt(int(options["--adopt"]))
        else:
            guard.start(arguments[split + 1 :], [int(fd) for fd in options.get("--pass-fds", "").split(",") if fd])
    except OSError as error:
        _report(status_fd, {"returncode": 127, "reclaimed": 0, "remaining": 0, "error": str(error)})
        return 1
    _report(status_fd, {**guard.run(), "error": None})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
