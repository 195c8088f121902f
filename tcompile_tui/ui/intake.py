"""From a feed into a state, a bounded part at a time."""

from __future__ import annotations

from collections import deque
from time import perf_counter

from tcompile_tui.core.events import Event
from tcompile_tui.core.state import RunState
from tcompile_tui.ui.feeds import Feed


class Intake:
    """Takes records from a feed into a state, never for longer than asked: thousands may be due at once."""

    def __init__(self, feed: Feed, state: RunState) -> None:
        self._feed = feed
        self._state = state
        self._waiting: deque[Event] = deque()

    @property
    def over(self) -> bool:
        """Has every record been taken in, and will no other come?"""
        return not self._waiting and self._feed.ended

    def take(self, limit_s: float) -> bool:
        """Returns whether records may still wait."""
        until = perf_counter() + limit_s
        while perf_counter() < until:
            if not self._waiting:
                self._waiting.extend(self._feed.poll())
            if not self._waiting:
                return False
            self._state.apply(self._waiting.popleft())
        return True
