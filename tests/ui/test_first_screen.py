"""Someone who reads what the first screen says, and nothing else, gets to a verdict in a few keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui import launch
from tcompile_tui.ui.app import TCompileApp
from tcompile_tui.ui.screens.verdict import VerdictScreen
from tests.ui.recorded import CONVNET, recorded_run
from tests.ui.screen_app import screen_text

CHECKOUT = Path(__file__).parents[2]
MOST_KEYS = 6


@dataclass
class RecordedLaunch:
    """The recorded run is there at once, in place of the run that is asked for."""

    folder: RunFolder
    has_folder = True

    def refusal(self) -> None:
        return None


class Reader:
    """Counts the keys; acts on what is on the screen alone."""

    def __init__(self, app: TCompileApp, pilot: Pilot[None]) -> None:
        self._app = app
        self._pilot = pilot
        self.pressed: list[str] = []

    def line_of(self, text: str) -> int:
        lines = screen_text(self._app).splitlines()
        return next((number for number, line in enumerate(lines) if text in line), -1)

    async def wait_for(self, shown: Callable[[], bool]) -> None:
        for _ in range(1000):
            if shown():
                return
            await self._pilot.pause(0.01)
        raise AssertionError(screen_text(self._app))

    async def press(self, key: str) -> None:
        self.pressed.append(key)
        await self._pilot.press(key)


async def test_from_the_repository_s_folder_to_a_verdict_for_the_convnet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[Sequence[str]] = []

    def launched(arguments: Sequence[str], runs_dir: Path, label: str, cwd: Path) -> RecordedLaunch:
        commands.append(arguments)
        return RecordedLaunch(recorded_run(CONVNET, runs_dir))

    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(launch, "launch", launched)
    app = TCompileApp(tmp_path / "runs", ascii_only=False)
    async with app.run_test(size=(80, 24)) as pilot:
        reader = Reader(app, pilot)
        told = ("sample_models", "choose a model, then press r", "arrows, then enter", "r Run")
        await reader.wait_for(lambda: all(reader.line_of(text) >= 0 for text in told))
        folder = reader.line_of("sample_models")
        for _ in range(folder - 2):
            await reader.press("down")
        await reader.press("enter")
        await reader.wait_for(lambda: reader.line_of("convnet.py") > 0)
        for _ in range(reader.line_of("convnet.py") - folder):
            await reader.press("down")
        await reader.press("enter")
        await reader.wait_for(lambda: reader.line_of("press r to find out") >= 0)
        await reader.press("r")
        await reader.wait_for(lambda: isinstance(app.screen, VerdictScreen) and reader.line_of("it pays off here") > 0)
        assert 'model.compile(mode="reduce-overhead")' in screen_text(app)
    assert commands == [["sample_models/convnet.py"]]
    assert len(reader.pressed) <= MOST_KEYS, reader.pressed
