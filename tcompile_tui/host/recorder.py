"""The run as it is written down: every record is stamped, applied to the state and appended to the log."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns

from tcompile_tui.core.events import Event, Level, Notice, stamp
from tcompile_tui.core.state import RunState
from tcompile_tui.host.event_log import EventLog

SUPERVISOR = 0


class Recorder:
    """Used by the main thread only."""

    def __init__(self, log: EventLog, on_change: Callable[[RunState], None]) -> None:
        self.state = RunState()
        self.run_start_ns = monotonic_ns()
        self._log = log
        self._on_change = on_change
        self._told_problem = False

    def now_s(self) -> float:
        """Seconds since the start of the run."""
        return (monotonic_ns() - self.run_start_ns) / 1e9

    def record(self, event: Event) -> None:
        """Write down what the supervisor itself has to say."""
        self.take(stamp(event, self.now_s(), SUPERVISOR))

    def notice(self, code: str, text: str, level: Level = Level.INFO) -> None:
        self.record(Notice(level=level, code=code, text=text))

    def take(self, event: Event) -> None:
        """Write down a record that a worker has stamped."""
        self.state.apply(event)
        self._log.append(event)

    def tick(self) -> None:
        """Call often: flushes at least once a second and lets the display follow."""
        self._log.flush_if_due()
        problem = self._log.problem
        if problem is not None and not self._told_problem:
            self._told_problem = True
            text = f"the run cannot be written down ({problem.strerror}), and goes on: make room in {self._log.folder}"
            self.notice("record-incomplete", text, Level.WARNING)
        self._on_change(self.state)
