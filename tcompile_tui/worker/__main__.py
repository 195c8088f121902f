"""The worker's entry: `EXE worker.zip EVENT_FD COMMAND_FD`, the job comes as the first frame."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
from time import perf_counter

from ..core.events import WorkerDone
from ..core.spec import Job
from .channel import Channel, descriptors_from_argv
from .failures import describe_failure

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9


def _die_with_parent() -> None:
    """Ask the kernel to kill us when our parent goes; beside the guard, which sees the supervisor go."""
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def main() -> None:
    """Run one job. Leaves by os._exit: threads, atexit hooks and compile pools of others must not hold it."""
    parent = os.getppid()
    _die_with_parent()
    if os.getppid() != parent:
        os._exit(1)  # it went before we asked
    faulthandler.enable()  # a crash in native code shows its Python lines in the log
    channel = Channel(*descriptors_from_argv(sys.argv))
    job = channel.read_job()
    exit_code = _run(channel, job)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the user may have closed or replaced it
            stream.flush()
    os._exit(exit_code)


def _run(channel: Channel, job: Job) -> int:
    """Run the job's phase; returns the exit status, which is only a hint: the last record decides."""
    started = perf_counter()
    try:
        import torch  # noqa: F401

        torch_s = perf_counter() - started
        # All of ours is imported before the archive leaves sys.path and before any user code.
        from .bench import Stage
        from .phases import run_phase
    except BaseException as error:
        channel.send(describe_failure(error, "importing torch", compiled=False, inputs_given=False))
        return 1
    if sys.path[0].endswith(".zip"):
        del sys.path[0]
    stage = Stage()
    try:
        run_phase(job, channel, stage, torch_s)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of the user's code too
        channel.send(describe_failure(error, stage.name, stage.compiled, inputs_given=bool(job.spec.inputs)))
        return 1
    channel.send(WorkerDone(records_dropped=channel.records_dropped))
    return 0


if __name__ == "__main__":
    main()
