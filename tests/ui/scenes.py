"""The application's screens at moments that do not change: recorded runs, a clock that stands still, caches and runs
that are always the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tcompile_tui.core.compare_runs import compare_runs
from tcompile_tui.core.spec import Mode
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import decide
from tcompile_tui.core.verdict_json import verdict_document
from tcompile_tui.host.recorded import read_compared_run
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui.app import TCompileApp
from tcompile_tui.ui.feeds import ReplayFeed
from tcompile_tui.ui.remembered import remember
from tcompile_tui.ui.screens import run
from tcompile_tui.ui.screens.comparison import ComparisonScreen
from tcompile_tui.ui.screens.runs import RunsScreen
from tcompile_tui.ui.screens.verdict import VerdictScreen
from tcompile_tui.ui.setup_form import FormValues
from tcompile_tui.ui.widgets import arms_table, setup_choices
from tcompile_tui.ui.widgets.choices import Option
from tests.core.shape_streams import shapes_run
from tests.ui.gpu_verdict import full_verdict_state
from tests.ui.recorded import CONVNET, POINTWISE, TRANSFORMER, TWO_BREAKS, recorded_run, state_of
from tests.ui.replaying import Clock, StubFeed, recorded_events
from tests.ui.screen_app import ScreenApp, screen_text

CHECKOUT = Path(__file__).parents[2]
COMPILING_S, PAIRS_S = 30.75, 55.2  # of the convnet's run
_GPU = Option("cuda:0", "cuda:0", "H200, 140 GiB, 0.0 % busy")

Lead = Callable[[Any, Pilot[None]], Awaitable[None]]


@dataclass(frozen=True)
class Scene:
    """`make` gives the application in a folder of its own; `lead` brings it to what is looked at."""

    name: str
    make: Callable[[Path, pytest.MonkeyPatch], TCompileApp]
    lead: Lead


def keys(*names: str) -> Lead:
    """Press them, each when nothing changes any more: files are read in threads."""

    async def press(app: TCompileApp, pilot: Pilot[None]) -> None:
        await _settle(app, pilot)
        for name in names:
            await pilot.press(name)
            await _settle(app, pilot)

    return press


async def _settle(app: TCompileApp, pilot: Pilot[None]) -> None:
    """Until the screen stays as it is: on a busy machine what was read is drawn some beats later."""
    await app.workers.wait_for_complete()
    before, now = "", screen_text(app)
    while now != before:
        await pilot.pause(0.1)
        before, now = now, screen_text(app)


# ---------------------------------------------------------------- Setup


def setup(folder: Path, patch: pytest.MonkeyPatch, target: str | None = "convnet.py") -> TCompileApp:
    """Among the sample models, of which one was run before, on a machine with one GPU."""
    models = folder / "models"
    shutil.copytree(CHECKOUT / "sample_models", models, ignore=shutil.ignore_patterns("__pycache__"))
    patch.chdir(models)
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    patch.setattr(setup_choices, "device_options", lambda: (*setup_choices.DEVICES, _GPU))
    remember(models / "convnet.py", FormValues(modes=(Mode.DEFAULT, Mode.REDUCE_OVERHEAD), plan="6"))
    return TCompileApp(folder, target=target, ascii_only=False)


def filled(*names: str) -> Lead:
    """The form with all that is found out by itself; then these keys."""

    async def lead(app: TCompileApp, pilot: Pilot[None]) -> None:
        while not app.screen.query("#device") or app.screen.query_one("#device").options[-1] != _GPU:  # type: ignore[attr-defined]
            await pilot.pause(0.02)
        await keys(*names)(app, pilot)

    return lead


async def mistaken(app: TCompileApp, pilot: Pilot[None]) -> None:
    await filled()(app, pilot)
    app.screen.query_one("#plan-line").focus()
    await keys("backspace", *"soon")(app, pilot)


# ---------------------------------------------------------------- Run


def replayed(folder: Path, patch: pytest.MonkeyPatch) -> TCompileApp:
    """The convnet's run, among its pairs."""
    _at_once(patch)
    clock = Clock()
    feed = ReplayFeed(recorded_run(CONVNET, folder).path, recorded_events(CONVNET), clock=clock)
    clock.now_s = PAIRS_S
    return TCompileApp(folder, feed=feed, ascii_only=False)


def live(folder: Path, patch: pytest.MonkeyPatch) -> TCompileApp:
    """The convnet's run as if it went on, in the middle of a compile."""
    _at_once(patch)
    past = [event for event in recorded_events(CONVNET) if event.t_s <= COMPILING_S]
    feed = StubFeed(recorded_run(CONVNET, folder).path, past)
    return TCompileApp(folder, feed=feed, ascii_only=False)


def _at_once(patch: pytest.MonkeyPatch) -> None:
    """The first beat takes in all that is due, whatever else this machine does."""
    patch.setattr(run, "_APPLY_S", 60.0)
    patch.setattr(arms_table, "monotonic", Clock())


# ---------------------------------------------------------------- Verdict, Runs, Comparison


def verdict(folder: Path, patch: pytest.MonkeyPatch, recording: str = CONVNET) -> TCompileApp:
    recorded = recorded_run(recording, folder)
    info = json.loads((recorded.path / "run.json").read_text()) | {"cwd": str(CHECKOUT)}
    (recorded.path / "run.json").write_text(json.dumps(info))
    return ScreenApp(partial(VerdictScreen, recorded, state_of(recorded)))


def constructed(folder: Path, patch: pytest.MonkeyPatch, state: Callable[[], RunState]) -> TCompileApp:
    return ScreenApp(lambda: VerdictScreen(RunFolder(Path("runs/net")), state()))


def runs(folder: Path, patch: pytest.MonkeyPatch) -> TCompileApp:
    patch.setenv("HOME", str(folder))
    for name in (CONVNET, TRANSFORMER, TWO_BREAKS, POINTWISE):
        recorded = recorded_run(name, folder / "runs")
        state = state_of(recorded)
        recorded.verdict.write_text(json.dumps(verdict_document(state, decide(state))))
    return ScreenApp(RunsScreen, folder / "runs")


def comparison(folder: Path, patch: pytest.MonkeyPatch) -> TCompileApp:
    sides = [read_compared_run(recorded_run(name, folder).path) for name in (TRANSFORMER, TWO_BREAKS)]
    return ScreenApp(lambda: ComparisonScreen(compare_runs(*sides)))


SCENES = (
    Scene("setup", setup, filled()),
    Scene("setup-mistaken", setup, mistaken),
    Scene("setup-empty", partial(setup, target=None), filled()),
    Scene("help", setup, filled("question_mark")),
    Scene("run-log", replayed, keys("l")),
    Scene("run-quit", live, keys("q")),
    Scene("verdict-figures", partial(constructed, state=full_verdict_state), keys("end")),
    Scene("verdict-shapes", partial(constructed, state=shapes_run), keys("pagedown")),
    Scene("finding", partial(verdict, recording=TWO_BREAKS), keys("b", "down", "enter")),
    Scene("save", verdict, keys("s")),
    Scene("log", verdict, keys("l")),
    Scene("runs", runs, keys()),
    Scene("comparison", comparison, keys()),
)
