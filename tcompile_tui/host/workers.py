"""One worker process behind its guard: start it, hear it, tell it to finish, end it."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec

from tcompile_tui.core.codec import BadRecordError, decode_event
from tcompile_tui.core.events import Event, StartMethod
from tcompile_tui.core.spec import FinishLoop, Job
from tcompile_tui.core.wire import FrameDecoder, encode_frame
from tcompile_tui.host.guarded import Guard, GuardedProcess, GuardEnds, GuardReport, spawn_guarded

_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True)
class RecordsEnded:
    """No more records will come. `unreadable` counts records, `stray_bytes` bytes that were none of ours."""

    unreadable: int
    stray_bytes: int


Message: TypeAlias = Event | RecordsEnded | GuardReport


class Start(Protocol):
    """A way to start a worker."""

    @property
    def how(self) -> StartMethod: ...

    def start(self, events: int, commands: int, ends: GuardEnds) -> Guard:
        """Start it with its own ends of the pipes for records and commands. Raises OSError."""


@dataclass(frozen=True)
class FreshStart:
    """In an interpreter of its own."""

    executable: str
    archive: Path
    run_id: str
    environment: Mapping[str, str]
    cwd: Path
    how: StartMethod = StartMethod.FRESH

    def start(self, events: int, commands: int, ends: GuardEnds) -> Guard:
        command = [self.executable, str(self.archive), str(events), str(commands)]
        return spawn_guarded(command, (events, commands), self.run_id, self.environment, self.cwd, ends)


class Worker:
    """Start it on the main thread: the worker dies with the thread that started it. Raises OSError.

    Records, the end of records and the guard's report arrive in `messages`, in the order in which they came;
    threads read the pipes all the time, so that the worker never waits for us.
    """

    def __init__(self, start: Start, on_output: Callable[[bytes], None]) -> None:
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.how = start.how
        events_in, events_out = os.pipe()
        commands_in, self._commands = os.pipe()
        try:
            self._process = GuardedProcess(
                lambda ends: start.start(events_out, commands_in, ends), on_output, self.messages.put
            )
        except BaseException:
            os.close(events_in)
            os.close(self._commands)
            raise
        finally:
            os.close(events_out)
            os.close(commands_in)
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read_events, args=(events_in,), daemon=True)
        self._reader.start()

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
        self._process.kill()

    def close(self) -> None:
        """Leave nothing behind. Blocks until the guard has ended, at most some seconds."""
        with contextlib.suppress(OSError):
            os.close(self._commands)
        self._process.close()
        self._reader.join(timeout=2)

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
