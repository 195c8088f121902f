"""A worker process lives no longer than its parent."""

from __future__ import annotations

import os

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when `parent` goes; beside the guard, which sees the supervisor go. It may
    have gone already: then this does not return. A fork does not inherit it, a program that is executed does."""
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
