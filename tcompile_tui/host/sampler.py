"""A thread that reads GPU and host a few times a second, so that a slow driver call delays nothing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from tcompile_tui.core.events import Event

_PERIOD_S = 0.2


class Sampler:
    """Calls `read` every _PERIOD_S until `stop`; `take` returns what has come since the last call."""

    def __init__(self, read: Callable[[], list[Event]]) -> None:
        self._read = read
        self._samples: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True, name="sampler")
        self._thread.start()

    def take(self) -> list[Event]:
        taken: list[Event] = []
        while not self._samples.empty():
            taken.append(self._samples.get())
        return taken

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(timeout=2)

    def _loop(self) -> None:
        while not self._stopped.wait(_PERIOD_S):
            for event in self._read():
                self._samples.put(event)
