"""A worker process lives no longer than its parent, and knows when it was stopped in between."""

from __future__ import annotations

import os
import signal
from time import perf_counter_ns

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when `parent` goes; beside the guard, which sees the supervisor go. It may
    have gone already: then this does not return. A fork does not inherit it, a program that is executed does."""
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Suspensions:
    """When this process went on after it had been stopped (perf_counter_ns). On the main thread."""

    def __init__(self) -> None:
        self._continued_ns: list[int] = []
        signal.signal(signal.SIGCONT, lambda *_: self._continued_ns.append(perf_counter_ns()))

    def take_ns(self) -> list[int]:
        """Those since the last call."""
        taken, self._continued_ns = self._continued_ns, []
        return taken
