"""Draw the README's pictures anew, from recorded runs: `python -m screenshots.make_screenshots` in a checkout.

Nothing is measured, and the same program always draws the same pictures.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

from textual.pilot import Pilot

from tcompile_tui.core.spec import Mode
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui.app import TCompileApp
from tcompile_tui.ui.demo import unpacked_demo
from tcompile_tui.ui.feeds import ReplayFeed
from tcompile_tui.ui.remembered import remember
from tcompile_tui.ui.screens.verdict import VerdictScreen
from tcompile_tui.ui.setup_form import FormValues
from tcompile_tui.ui.widgets import setup_choices
from tcompile_tui.ui.widgets.choices import Option
from tests.ui.recorded import TWO_BREAKS, recorded_run, state_of
from tests.ui.replaying import Clock, Shown
from tests.ui.screen_app import ScreenApp, screen_text

CHECKOUT = Path(__file__).parent.parent
Size = tuple[int, int]
LARGE, SMALL = (120, 36), (80, 24)
COMPILING_S = 73.0  # the second mode compiles, and the first has its result
PAIRS_S = 101.0  # the second mode is compared with eager
_GPU = Option("cuda:0", "cuda:0", "H200, 140 GiB, 0.0 % busy")


@dataclass(frozen=True)
class Scene:
    """`show` opens the application at the moment that is drawn into the file `name`.svg."""

    name: str
    size: Size
    show: Callable[[Size, Path], AbstractAsyncContextManager[TCompileApp]]


@asynccontextmanager
async def setup(size: Size, folder: Path) -> AsyncIterator[TCompileApp]:
    """Setup on a sample model that was run before, on a machine with one GPU."""
    before = Path.cwd()
    models = CHECKOUT / "sample_models"
    app = TCompileApp(folder, target="convnet.py", ascii_only=False)
    devices = (*setup_choices.DEVICES, _GPU)
    with (
        patch.dict(os.environ, {"XDG_STATE_HOME": str(folder / "state")}),
        patch.object(setup_choices, "device_options", lambda: devices),
    ):
        remember(models / "convnet.py", FormValues(modes=(Mode.DEFAULT, Mode.REDUCE_OVERHEAD), plan="6"))
        os.chdir(models)
        try:
            async with app.run_test(size=size) as pilot:
                while "cuda:0" not in screen_text(app) or "● convnet.py" not in screen_text(app):
                    await pilot.pause(0.02)
                await _settle(app, pilot)
                yield app
        finally:
            os.chdir(before)


@asynccontextmanager
async def run(size: Size, folder: Path, at_s: float) -> AsyncIterator[TCompileApp]:
    """The demo's run, held at a moment. It is drawn once: axes keep their range while a picture grows."""
    clock = Clock()
    with unpacked_demo() as path:
        app = TCompileApp(folder, feed=ReplayFeed(path, clock=clock), ascii_only=False)
        async with app.run_test(size=size) as pilot:
            await pilot.press("space")
            await Shown(app, pilot, clock).advance(at_s)
            await pilot.press("space")
            await pilot.pause()
            yield app


@asynccontextmanager
async def verdict(size: Size, folder: Path) -> AsyncIterator[TCompileApp]:
    """What the demo's run led to."""
    with unpacked_demo() as path:
        run_folder = RunFolder(path)
        async with _verdict_of(run_folder, size) as app:
            yield app


@asynccontextmanager
async def finding(size: Size, folder: Path) -> AsyncIterator[TCompileApp]:
    """A graph break, with the line of the model that it is about."""
    run_folder = recorded_run(TWO_BREAKS, folder)
    info = run_folder.path / "run.json"
    info.write_text(json.dumps(json.loads(info.read_text()) | {"cwd": str(CHECKOUT)}))
    async with _verdict_of(run_folder, size, "b", "down", "enter") as app:
        yield app


@asynccontextmanager
async def _verdict_of(run_folder: RunFolder, size: Size, *keys: str) -> AsyncIterator[TCompileApp]:
    app = ScreenApp(partial(VerdictScreen, run_folder, state_of(run_folder)))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        yield app


async def _settle(app: TCompileApp, pilot: Pilot[None]) -> None:
    """Until nothing changes any more: files are read in threads."""
    before, now = "", app.export_screenshot()
    while now != before:
        await pilot.pause(0.3)
        before, now = now, app.export_screenshot()


SCENES = (
    Scene("setup", LARGE, setup),
    Scene("run", LARGE, partial(run, at_s=PAIRS_S)),
    Scene("verdict", LARGE, verdict),
    Scene("finding", LARGE, finding),
    Scene("run-80x24", SMALL, partial(run, at_s=COMPILING_S)),
    Scene("verdict-80x24", SMALL, verdict),
)


async def draw(scene: Scene) -> str:
    """The scene as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        async with scene.show(scene.size, Path(folder)) as app:
            return app.export_screenshot(title="tcompile-tui")


async def main() -> None:
    for scene in SCENES:
        Path(__file__).with_name(f"{scene.name}.svg").write_text(await draw(scene), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
