"""Supervisors of scripted runs, forked from one process that has imported what they need: to be killed.

`python -m tests.host.hazards.supervisors` reads a folder a line, starts a run in it, and answers with its process id.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .scripted import run_scripted


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _supervise(Path(line.rstrip("\n")))
        print(pid, flush=True)


def _supervise(folder: Path) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    try:
        (folder / "output").touch()
        code = int(run_scripted(folder).finished.verdict.exit_code)
    except BaseException:
        (folder / "output").write_text(traceback.format_exc())
        os._exit(99)
    os._exit(code)


class Supervisors:
    """Starts runs; the one who asks looks after them."""

    def __init__(self, process: subprocess.Popen[str], requests: IO[str], answers: IO[str]) -> None:
        self._process, self._requests, self._answers = process, requests, answers

    def start(self, folder: Path) -> int:
        """Start a run in `folder`, which is made; returns the supervisor's process id."""
        folder.mkdir()
        self._requests.write(f"{folder}\n")
        self._requests.flush()
        return int(self._answers.readline())


@contextlib.contextmanager
def supervisors() -> Iterator[Supervisors]:
    with subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        yield Supervisors(process, process.stdin, process.stdout)
        process.stdin.close()


if __name__ == "__main__":
    main()
