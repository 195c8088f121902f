"""One worker process behind its guard: start it, hear it, tell it to finish, end it."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec

from tcompile_tui.core.codec import BadRecordError, decode_event
from tcompile_tui.core.events import Event
from tcompile_tui.core.spec import FinishLoop, Job
from tcompile_tui.core.wire import FrameDecoder, encode_frame
from tcompile_tui.host.reclaim import RUN_VARIABLE, kill_processes_of_run

_GUARD = Path(__file__).with_name("guard.py")
_CHUNK_BYTES = 1 << 18


class GuardReport(msgspec.Struct, frozen=True):
    """The guard's last word (see host/guard.py)."""

    returncode: int
    reclaimed: int = 0
    remaining: int = 0
    error: str | None = None


@dataclass(frozen=True)
class RecordsEnded:
    """No more records will come. `unreadable` counts records, `stray_bytes` bytes that were none of ours."""

    unreadable: int
    stray_bytes: int


Message: TypeAlias = Event | RecordsEnded | GuardReport


class Worker:
    """Start it on the main thread: the worker dies with the thread that started it.

    Records, the end of records and the guard's report arrive in `messages`, in the order in which they came;
    threads read the pipes all the time, so that the worker never waits for us.
    """

    def __init__(
        self,
        executable: str,
        archive: Path,
        run_id: str,
        environment: Mapping[str, str],
        cwd: Path,
        on_output: Callable[[bytes], None],
    ) -> None:
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._run_id = run_id
        events_in, events_out = os.pipe()
        commands_in, self._commands = os.pipe()
        lifeline_in, self._lifeline = os.pipe()
        status_in, status_out = os.pipe()
        output_in, output_out = os.pipe()
        passed = (events_out, commands_in)
        given_away = (*passed, lifeline_in, status_out, output_out)
        try:
            self._guard = subprocess.Popen(
                [
                    sys.executable, "-I", "-S", str(_GUARD), "--run-id", run_id,
                    "--lifeline", str(lifeline_in), "--status", str(status_out),
                    "--pass-fds", ",".join(map(str, passed)),
                    "--", executable, str(archive), *map(str, passed),
                ],
                pass_fds=(*passed, lifeline_in, status_out),
                stdin=subprocess.DEVNULL, stdout=output_out, stderr=output_out,
                env={**environment, RUN_VARIABLE: run_id}, cwd=cwd, start_new_session=True,
            )  # fmt: skip
        finally:
            for fd in given_away:
                os.close(fd)
        self.pid = self._guard.pid
        self._threads = [
            threading.Thread(target=self._read_events, args=(events_in,), daemon=True),
            threading.Thread(target=self._read_output, args=(output_in, on_output), daemon=True),
            threading.Thread(target=self._read_status, args=(status_in,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send_job(self, job: Job) -> None:
        self._command(msgspec.json.encode(job))

    def finish_loop(self, loop: int) -> None:
        """Ask the worker to end a loop after the block in hand."""
        self._command(msgspec.json.encode(FinishLoop(loop)))

    def _command(self, body: bytes) -> None:
        # Small enough to fit into the pipe's buffer whatever the worker does; it may also be gone already.
        with contextlib.suppress(OSError):
            os.write(self._commands, encode_frame(body))

    def kill(self) -> None:
        """End the worker and all it started, now."""
        with contextlib.suppress(OSError):
            os.write(self._lifeline, b"K")

    def close(self) -> None:
        """Leave nothing behind. Blocks until the guard has ended, at most some seconds."""
        for fd in (self._lifeline, self._commands):
            with contextlib.suppress(OSError):
                os.close(fd)
        try:
            self._guard.wait(timeout=12)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()
        kill_processes_of_run(self._run_id)
        for thread in self._threads:
            thread.join(timeout=2)

    # ------------------------------------------------------------ reader threads

    def _read_events(self, fd: int) -> None:
        decoder, unreadable = FrameDecoder(), 0
        with open(fd, "rb", buffering=0) as pipe:
            while True:
                chunk = pipe.read(_CHUNK_BYTES)
                for payload in decoder.feed(chunk) if chunk else decoder.close():
                    try:
                        event = decode_event(payload)
                    except BadRecordError:
                        unreadable += 1
                        continue
                    if event is not None:
                        self.messages.put(event)
                if not chunk:
                    break
        self.messages.put(RecordsEnded(unreadable, decoder.skipped_bytes))

    def _read_output(self, fd: int, on_output: Callable[[bytes], None]) -> None:
        with open(fd, "rb", buffering=0) as pipe:
            while chunk := pipe.read(_CHUNK_BYTES):
                on_output(chunk)

    def _read_status(self, fd: int) -> None:
        with open(fd, "rb") as pipe:
            line = pipe.readline()
        try:
            report = msgspec.json.decode(line, type=GuardReport)
        except msgspec.DecodeError:
            report = GuardReport(returncode=self._guard.wait(), error="the process that guards the worker was killed")
        self.messages.put(report)
