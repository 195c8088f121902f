"""`events.jsonl`: append-only, flushed at least once a second, bounded, readable after a kill at any moment."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import monotonic

from tcompile_tui.core import events as ev
from tcompile_tui.core.codec import BadRecordError, decode_event
from tcompile_tui.core.events import Event, encode_event
from tcompile_tui.core.wire import MAX_PAYLOAD_BYTES

MAX_LOG_BYTES = 50_000_000
_MAX_READ_BYTES = 4 * MAX_LOG_BYTES
_MAX_READ_STEPS = 100_000_000
_FLUSH_S = 0.5
_SUMMARISE_FROM = 0.8
_BUFFER_BYTES = 1 << 18
_MAX_WAITING_BYTES = 1 << 23
_CHUNK_BYTES = 1 << 19  # records take some ten times their text's room until they are applied
# Past the bound only what a verdict cannot do without is kept.
_DISPENSABLE = (
    ev.Block,
    ev.GpuSample,
    ev.HostSample,
    ev.CompileSpan,
    ev.CompilerWarning,
    ev.CompilerCallback,
)


class EventLog:
    """Writer, for one thread. Near the bound blocks are summarised, at the bound bulk records are left out; the
    log says so in a notice.

    A disk that is full does not end a measurement: what cannot be written is held back and tried again; `problem`
    is what the last try met, and `records_lost` what there was no more room for.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_LOG_BYTES) -> None:
        self.folder = path.parent
        self._file = path.open("wb", buffering=0)
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting = bytearray()
        self._records_waiting = 0
        self._flushed_at = monotonic()
        self._told = False
        self.records_left_out = 0
        self.records_lost = 0
        self.problem: OSError | None = None

    def append(self, event: Event) -> None:
        """Write one record, or what the bound leaves of it."""
        if self._bytes > self._max_bytes and isinstance(event, _DISPENSABLE):
            self.records_left_out += 1
            return
        if self._bytes > _SUMMARISE_FROM * self._max_bytes and isinstance(event, ev.Block):
            self._tell(event.t_s)
            event = summarise_block(event)
        self._write(event)

    def flush_if_due(self) -> None:
        """Call it a few times a second."""
        if monotonic() - self._flushed_at >= _FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Write what waits, as far as the disk takes it."""
        self._flushed_at = monotonic()
        try:
            while self._waiting:
                del self._waiting[: self._file.write(self._waiting)]
        except OSError as error:
            self.problem = error
            if len(self._waiting) > _MAX_WAITING_BYTES:
                self.records_lost += self._records_waiting
                self._waiting[:] = b"\n"  # ends the line that may have been cut
                self._records_waiting = 0
            return
        self.problem = None
        self._records_waiting = 0

    def close(self) -> None:
        """Flush to the disk, so that the file outlives the machine's next seconds too."""
        self.flush()
        self.records_lost += self._records_waiting
        with contextlib.suppress(OSError):
            os.fsync(self._file.fileno())
        self._file.close()

    def _tell(self, t_s: float) -> None:
        if not self._told:
            self._told = True
            text = f"the record of this run nears {self._max_bytes / 1e6:.0f} MB: blocks are summarised from here on"
            self._write(ev.Notice(t_s=t_s, level=ev.Level.WARNING, code="log-summarised", text=text))

    def _write(self, event: Event) -> None:
        line = encode_event(event) + b"\n"
        self._waiting += line
        self._records_waiting += 1
        self._bytes += len(line)
        if len(self._waiting) > _BUFFER_BYTES and self.problem is None:
            self.flush()


def summarise_block(block: ev.Block) -> ev.Block:
    """The block without its single steps: minimum, median, maximum and sum remain."""
    if not block.step_ns:
        return block
    steps = block.step_ns
    summary = (min(steps), round(median(steps)), max(steps), sum(steps))
    return replace(block, step_ns=(), host_ns=block.host_ns and (sum(block.host_ns),), summary_ns=summary)


class EventTail:
    """Reads what has been appended since the last look; a line that is not complete yet waits for the next one.

    Raises OSError when the file cannot be opened. `unreadable` counts lines that are no records. What comes from
    anyone cannot fill memory: a line, the file and the steps in it are read up to bounds that no run of ours reaches.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""
        self._bytes_left = _MAX_READ_BYTES
        self._steps_left = _MAX_READ_STEPS
        self.unreadable = 0

    def read(self, max_bytes: int = _CHUNK_BYTES) -> list[Event]:
        """The next records, oldest first; empty when there is nothing new."""
        while chunk := self._file.read(min(max_bytes, self._bytes_left)):
            self._bytes_left -= len(chunk)
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            if len(self._rest) > MAX_PAYLOAD_BYTES:
                self._rest = b"a line without an end"
            if events := list(self._decode(lines)):
                return events
        return []

    def close(self) -> None:
        self._file.close()

    def _decode(self, lines: list[bytes]) -> Iterator[Event]:
        for line in lines:
            try:
                event = decode_event(line)
            except BadRecordError:
                self.unreadable += 1
                continue
            if isinstance(event, ev.Block):
                self._steps_left -= event.steps
            if self._steps_left < 0 and isinstance(event, ev.Block):
                self.unreadable += 1
            elif event is not None:
                yield event


def read_events(path: Path) -> Iterator[Event]:
    """Every record of a finished (or killed) run. Raises OSError."""
    tail = EventTail(path)
    try:
        while events := tail.read():
            yield from events
    finally:
        tail.close()
