"""Where a screen gets a run's records from: a run that is going on, or a recorded one at its own pace.

A feed is polled on the UI's thread and never waits; reading and decoding happen elsewhere.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from time import monotonic, time
from typing import Protocol

from tcompile_tui.core.events import Event, RunEnded
from tcompile_tui.host.event_log import EventTail, read_events
from tcompile_tui.host.run_folder import RunFolder

_LOOK_S = 0.1
_BATCH_EVENTS = 2_000
# A dead supervisor's last records may still be on their way to the disk's cache.
_DEAD_LOOKS = 5
# run.json gives the start in whole seconds, so it may have been as much later.
_START_RESOLUTION_S = 1.0


class Feed(Protocol):
    """`ended`: no record will come any more. `lost` says why, if the run did not end by itself. `live`: the run
    goes on in another process."""

    folder: RunFolder
    live: bool
    lost: str | None

    @property
    def ended(self) -> bool: ...

    def poll(self) -> list[Event]:
        """The records that are due, oldest first, at most a few thousand."""
        ...

    def now_s(self) -> float:
        """Seconds since the start of the run, for clocks that tick while no record comes."""
        ...

    def close(self) -> None: ...


class LiveFeed:
    """Follows the run folder of a run that is going on, or has just ended."""

    live = True

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self.lost: str | None = None
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._done = False
        self._last_t_s = 0.0
        self._last_at = monotonic()
        self._started_at: float | None = None
        self._thread = threading.Thread(target=self._read, daemon=True, name="follow")
        self._thread.start()

    @property
    def ended(self) -> bool:
        return self._done and self._events.empty()

    def poll(self) -> list[Event]:
        taken: list[Event] = []
        while len(taken) < _BATCH_EVENTS and not self._events.empty():
            taken.append(self._events.get())
        if taken:
            self._last_t_s, self._last_at = taken[-1].t_s, monotonic()
        return taken

    def now_s(self) -> float:
        """By the last record and the time since it was read; on attaching to a silent run that is too little, and
        what has passed by this host's clock since the run's start is at least due."""
        if self._done:
            return self._last_t_s
        since_record_s = self._last_t_s + monotonic() - self._last_at
        if self._started_at is None:
            return since_record_s
        return max(since_record_s, time() - self._started_at - _START_RESOLUTION_S)

    def close(self) -> None:
        self._stop.set()

    def _read(self) -> None:
        tail: EventTail | None = None
        dead_looks = 0
        while not self._stop.is_set():
            if tail is None and self.folder.events.exists():
                tail = EventTail(self.folder.events)
            if tail is not None and self._started_at is None:
                self._started_at = self._start_by_own_clock()
            events = tail.read() if tail is not None else []
            for event in events:
                self._events.put(event)
            if any(isinstance(event, RunEnded) for event in events):
                break
            if not events:
                dead_looks = dead_looks + 1 if self._supervisor_is_gone() else 0
                if dead_looks >= _DEAD_LOOKS:
                    self.lost = "the run's process is gone: it was killed, or the machine went down"
                    break
                self._stop.wait(_LOOK_S)
        if tail is not None:
            tail.close()
        self._done = True

    def _start_by_own_clock(self) -> float | None:
        """Seconds since the epoch; None for a run of another host, whose clock may be wrong by any amount."""
        info = self.folder.read_info()
        if info is None or info.supervisor.is_elsewhere:
            return None
        try:
            return datetime.fromisoformat(info.started_at).timestamp()
        except ValueError:
            return None

    def _supervisor_is_gone(self) -> bool:
        info = self.folder.read_info()
        return info is not None and not info.supervisor.is_elsewhere and not info.supervisor.is_alive


class ReplayFeed:
    """Gives out recorded records as their time comes; `speed` 0 holds, `math.inf` gives all at once."""

    live = False
    lost: str | None = None

    def __init__(
        self,
        path: Path,
        events: Sequence[Event] | None = None,
        speed: float = 1.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.folder = RunFolder(path)
        self._events = list(events) if events is not None else list(read_events(self.folder.events))
        self._next = 0
        self._clock = clock
        self._speed = speed
        self._at_s = 0.0
        self._looked_at = clock()

    @property
    def ended(self) -> bool:
        return self._next >= len(self._events)

    @property
    def speed(self) -> float:
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._advance()
        self._speed = speed

    def poll(self) -> list[Event]:
        self._advance()
        until = min(self._next + _BATCH_EVENTS, len(self._events))
        start = self._next
        while self._next < until and self._events[self._next].t_s <= self._at_s:
            self._next += 1
        return self._events[start : self._next]

    def now_s(self) -> float:
        last_s = self._events[-1].t_s if self._events else 0.0
        return min(self._at_s, last_s)

    def close(self) -> None:
        pass

    def _advance(self) -> None:
        now = self._clock()
        elapsed, self._looked_at = now - self._looked_at, now
        self._at_s += elapsed * self._speed if self._speed != float("inf") else float("inf")
