"""How a run is told to stop, and how it survives the terminal it was typed in."""

from __future__ import annotations

import enum
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop(enum.IntEnum):
    """How urgently; a later request can only be more urgent."""

    NO = 0
    DECIDE_NOW = 1  # SIGINT: stop measuring, decide with what is there
    ABANDON = 2  # SIGTERM, or a second SIGINT: no decision, keep the folder


class StopRequest:
    """Set by signals, read between messages."""

    def __init__(self) -> None:
        self.level = Stop.NO
        self.terminal_gone = False
        self._first = Stop.DECIDE_NOW

    def raise_to(self, level: Stop) -> None:
        self.level = max(self.level, level)

    @contextmanager
    def listening(self, first: Stop = Stop.DECIDE_NOW) -> Iterator[None]:
        """Take the signals over for the time of a run. SIGHUP ends the printing, never the run. `first` is what the
        first SIGINT means."""
        self._first = first
        handlers = {signal.SIGINT: self._interrupt, signal.SIGTERM: self._terminate, signal.SIGHUP: self._hang_up}
        previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.raise_to(Stop.ABANDON if self.level >= Stop.DECIDE_NOW else self._first)

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        self.raise_to(Stop.ABANDON)

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        self.terminal_gone = True
