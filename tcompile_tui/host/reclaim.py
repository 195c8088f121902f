"""Find and kill every process of a run.

A run marks its processes with an environment variable, which children inherit. That catches what a process
group misses: children in a session of their own, compilers, pool workers.

Standard library only, and no import of this package: the guard loads this file by its path.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection

RUN_VARIABLE = "TCOMPILE_TUI_RUN"

_ROUND_S = 0.01


def processes_of_run(run_id: str) -> list[int]:
    """Living processes of this user whose environment holds exactly `TCOMPILE_TUI_RUN=run_id`, this one included."""
    mark = f"{RUN_VARIABLE}={run_id}".encode()
    return [pid for pid in _own_processes() if mark in _read(f"/proc/{pid}/environ").split(b"\0")]


def descendants_of(ancestor: int) -> list[int]:
    """Living processes of this user below `ancestor`. Complete if `ancestor` is a child subreaper."""
    children: dict[int, list[int]] = {}
    for pid in _own_processes():
        status = stat_fields(pid)
        if status is not None:
            children.setdefault(int(status[1]), []).append(pid)
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        for pid in children.pop(waiting.pop(), []):
            waiting.append(pid)
            status = stat_fields(pid)
            if status is not None and status[0] not in (b"Z", b"X"):
                found.append(pid)
    return found


def own_line() -> set[int]:
    """This process and its ancestors, up to init."""
    line: set[int] = {0, 1}
    pid = os.getpid()
    while pid not in line:
        line.add(pid)
        status = stat_fields(pid)
        pid = int(status[1]) if status is not None else 0
    return line


def stat_fields(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat from `state` (the third) on; None when there is no such process."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split() or None


def sweep(
    find: Callable[[], Collection[int]], pause: Callable[[float], None] = time.sleep, bound_s: float = 5.0
) -> tuple[set[int], set[int]]:
    """SIGKILL what `find` returns until it returns nothing, for at most `bound_s` seconds.

    This process and its ancestors are never killed. `pause(seconds)` is called between rounds. Returns the
    processes that were killed, and those that were still there at the bound.
    """
    spare = own_line()
    killed: set[int] = set()
    deadline = time.monotonic() + bound_s
    while left := set(find()) - spare:
        killed.update(pid for pid in left if _kill(pid))
        if time.monotonic() > deadline:
            break
        pause(_ROUND_S)
    return killed, left


def kill_processes_of_run(run_id: str, spare: Collection[int] = ()) -> int:
    """Kill every process of the run but `spare`, this process and its ancestors; return how many were killed.

    For a supervisor whose guard vanished. Blocks until they are gone, for at most 5 seconds.
    """
    killed, _ = sweep(lambda: set(processes_of_run(run_id)).difference(spare))
    return len(killed)


def _own_processes() -> list[int]:
    """Processes of this user. As root, too, others' are left alone."""
    user = os.geteuid()
    pids: list[int] = []
    with os.scandir("/proc") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # it has just ended
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    pids.append(int(entry.name))
    return pids


def _read(path: str) -> bytes:
    """A file of /proc; empty when its process is gone or closed to us."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True
