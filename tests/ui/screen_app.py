"""One screen of the application alone, and what it shows as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from textual.app import App
from textual.screen import Screen

from tcompile_tui import ui
from tcompile_tui.core.state import RunState
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui.app import TCompileApp


class VerdictShown(NamedTuple):
    folder: RunFolder
    state: RunState


class ScreenApp(TCompileApp):
    """The application with one screen of the test's; where screens lead to is noted instead of shown."""

    CSS_PATH = str(Path(ui.__file__).with_name("app.tcss"))

    def __init__(
        self, screen: Callable[[], Screen[None]], runs_dir: Path = Path("runs"), ascii_only: bool = False
    ) -> None:
        super().__init__(runs_dir, ascii_only=ascii_only)
        self._make_screen = screen
        self.led_to: list[tuple[Any, ...]] = []
        self.complaint = ""
        self.shown: VerdictShown | None = None
        self.last: Screen[Any] | None = None

    def _first_screen(self) -> Screen[None]:
        return self._make_screen()

    def show_setup(self, target: str | None = None, complaint: str = "") -> None:
        self.led_to.append(("setup", target))
        self.complaint = complaint

    def follow(self, path: Path) -> None:
        self.led_to.append(("follow", path))

    def replay(self, path: Path, speed: float = 1.0) -> None:
        self.led_to.append(("replay", path))

    def show_verdict(self, folder: RunFolder, state: RunState) -> None:
        self.led_to.append(("verdict", folder.path))
        self.shown = VerdictShown(folder, state)

    def show_runs(self) -> None:
        self.led_to.append(("runs",))

    @property
    def notes(self) -> str:
        """All notifications as text."""
        return "\n".join(f"{note.title} {note.message}" for note in self._notifications)


def screen_text(app: App[Any]) -> str:
    """What the screen shows, as lines of text."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in lines)


async def text_after(app: ScreenApp, *keys: str, size: tuple[int, int] = (80, 24)) -> str:
    """What the screen shows once the keys were pressed; `app.last` is that screen."""
    async with app.run_test(size=size) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await app.workers.wait_for_complete()
            await pilot.pause()
        app.last = app.screen
        return screen_text(app)
