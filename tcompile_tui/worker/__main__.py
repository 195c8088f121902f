"""The worker's entry.

EXE worker.zip EVENT_FD COMMAND_FD [JOB_FD]    one job: the first frame on JOB_FD, or else on COMMAND_FD
EXE worker.zip --zygote CONTROL_FD DEVICE      the process that others are forked from (see zygote.py)
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
from functools import partial
from typing import NoReturn

from ..core.events import Level, Notice, WorkerDone
from ..core.spec import Job
from .channel import Channel
from .failures import describe_failure
from .imports import ImportedTooLateError, Imports, complete_imports, import_torch, import_torch_and_compiler
from .lifetime import die_with_parent

ZYGOTE = "--zygote"


def main() -> None:
    """Leaves by os._exit: threads, atexit hooks and compile pools of others must not hold it."""
    die_with_parent(os.getppid())
    faulthandler.enable()  # a crash in native code shows its Python lines in the log
    if sys.argv[1] == ZYGOTE:
        from .zygote import Zygote, rehearse

        Zygote(int(sys.argv[2]), run_job).serve(import_torch_and_compiler, partial(rehearse, sys.argv[3]))
    event_fd, command_fd, *job_fd = map(int, sys.argv[1:])
    os._exit(run_job(Channel(event_fd, command_fd, *job_fd)))


def run_job(channel: Channel, imports: Imports | None = None) -> int:
    """Read the job and run it; returns the exit status, which is only a hint: the last record decides. `imports` is
    what this process has from the one it was forked from."""
    started_with = _Command(sys.argv[0], dict(os.environ))  # user code may change both
    job = channel.read_job()
    try:
        exit_code = _run(channel, job, imports)
    except ImportedTooLateError as error:
        text = f"{error}: started over in a fresh interpreter, which imports the target first"
        channel.send(Notice(level=Level.INFO, code="target-first", text=text))
        started_with.start_over(channel)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the user may have closed or replaced it
            stream.flush()
    return exit_code


def _run(channel: Channel, job: Job, imports: Imports | None) -> int:
    inputs_given = bool(job.spec.inputs)
    stage_name = "import" if job.target_first else "importing torch"
    try:
        if imports is None:
            imports = _import_target_first(job) if job.target_first else import_torch()
        else:
            complete_imports()
        # All of ours is imported before the archive leaves sys.path and, but for that target, before any user code.
        from .bench import Stage
        from .phases import run_phase
    except BaseException as error:
        channel.send(describe_failure(error, stage_name, compiled=False, inputs_given=False))
        return 1
    _drop_archive_from_path()
    stage = Stage()
    try:
        run_phase(job, channel, stage, imports)
    except ImportedTooLateError:
        raise
    except BaseException as error:  # SystemExit and KeyboardInterrupt of the user's code too
        channel.send(describe_failure(error, stage.name, stage.compiled, inputs_given))
        return 1
    channel.send(WorkerDone(records_dropped=channel.records_dropped))
    return 0


def _import_target_first(job: Job) -> Imports:
    """Our own modules are found through their package, which remembers where the archive is."""
    from .loading import import_user_file

    _drop_archive_from_path()
    return Imports(torch_s=None, target=import_user_file(job))


def _drop_archive_from_path() -> None:
    if sys.path[0].endswith(".zip"):
        del sys.path[0]


class _Command:
    """How this process was started, to start over."""

    def __init__(self, archive: str, environment: dict[str, str]) -> None:
        self._archive = archive
        self._environment = environment

    def start_over(self, channel: Channel) -> NoReturn:
        """The same process, with a fresh interpreter in it that imports the target before torch."""
        fds = channel.hand_over({"target_first": True})
        os.execve(sys.executable, [sys.executable, self._archive, *map(str, fds)], self._environment)


if __name__ == "__main__":
    main()
