"""A Run screen on recorded records, with a clock that only the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from textual.pilot import Pilot

from tcompile_tui.core.codec import decode_event
from tcompile_tui.core.events import Event
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui.app import TCompileApp
from tcompile_tui.ui.feeds import Feed, ReplayFeed
from tcompile_tui.ui.screens.run import RunScreen

from .recorded import recorded_run


@cache
def recorded_events(name: str) -> tuple[Event, ...]:
    import gzip

    from .recorded import RUNS

    lines = gzip.decompress((RUNS / name / "events.jsonl.gz").read_bytes()).splitlines()
    return tuple(event for line in lines if (event := decode_event(line)) is not None)


class Clock:
    """Stands still until it is told."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class StubFeed:
    """Gives out batches as the test says; live unless told otherwise."""

    def __init__(self, path: Path, events: Sequence[Event] = (), live: bool = True) -> None:
        self.folder = RunFolder(path)
        self.live = live
        self.lost: str | None = None
        self.ended = False
        self.closed = False
        self.seconds = 0.0
        self.waiting = list(events)

    def poll(self) -> list[Event]:
        taken, self.waiting = self.waiting, []
        if taken:
            self.seconds = max(self.seconds, taken[-1].t_s)
        return taken

    def now_s(self) -> float:
        return self.seconds

    def close(self) -> None:
        self.closed = True


@dataclass
class Shown:
    """The screen in a terminal of its own."""

    app: TCompileApp
    pilot: Pilot[None]
    clock: Clock

    @property
    def screen(self) -> RunScreen:
        return cast(RunScreen, self.app.screen)

    async def go_to(self, seconds: float) -> str:
        """Let the clock run, look, and return what is on the screen."""
        await self.advance(seconds)
        return self.text()

    async def advance(self, seconds: float) -> None:
        self.clock.now_s = seconds
        seen = -1
        while seen != self.screen.state.events:
            seen = self.screen.state.events
            self.screen.tick()
        await self.pilot.pause()

    def text(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())


@asynccontextmanager
async def shown(
    feed: Feed | None = None,
    *,
    recording: str | None = None,
    events: Sequence[Event] | None = None,
    size: tuple[int, int] = (80, 24),
    ascii_only: bool = False,
    path: Path,
) -> AsyncIterator[Shown]:
    """A replay of `recording` (or of `events`), or any other feed; at time 0."""
    clock = Clock()
    if feed is None:
        told = recorded_events(recording) if recording is not None else events
        feed = ReplayFeed(recorded_run(recording, path).path if recording else path, told, clock=clock)
    app = TCompileApp(path, feed=feed, ascii_only=ascii_only)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Shown(app, pilot, clock)
