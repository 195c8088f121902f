"""A run all of whose texts are hostile, on every screen that shows a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.ui.screens.runs import RunsScreen
from tests.hostile import FORBIDDEN, HOSTILE, found_in, poisoned
from tests.ui.recorded import TWO_BREAKS, state_of, write_run
from tests.ui.replaying import recorded_events, shown
from tests.ui.screen_app import ScreenApp, screen_text
from tests.ui.verdict_cases import app_for, text_of

SIZES = [(80, 24), (120, 36)]


def _events() -> list[ev.Event]:
    return [poisoned(event) for event in recorded_events(TWO_BREAKS)]


def _is_harmless(text: str) -> None:
    assert not found_in(text.replace("\n", ""))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("keys", [(), ("enter",), ("l",), ("t",), ("down", "enter")])
async def test_the_verdict_its_findings_and_the_log(tmp_path: Path, size: tuple[int, int], keys: tuple[str]) -> None:
    folder = write_run(tmp_path / "run", _events())
    folder.log.write_text(HOSTILE + "\n[bold]printed[/bold]\n")
    app = app_for(state_of(folder), folder)
    text = await text_of(app, *keys, size=size)
    _is_harmless(text)
    if keys == ("l",):
        assert "[bold]printed[/bold]" in text
    assert FORBIDDEN.search(str(app.title)) is None


@pytest.mark.parametrize("size", SIZES)
async def test_the_run_as_it_goes_on(tmp_path: Path, size: tuple[int, int]) -> None:
    events = _events()
    async with shown(events=events, path=tmp_path, size=size) as screen:
        for part in range(1, 9):
            _is_harmless(await screen.go_to(events[-1].t_s * part / 8))


async def test_the_list_of_runs(tmp_path: Path) -> None:
    name = f"run{HOSTILE}".replace("\0", "").replace("/", "")[:80]
    write_run(tmp_path / name, [], device_name=HOSTILE, torch_version=HOSTILE, command=HOSTILE)
    app = ScreenApp(RunsScreen, tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        _is_harmless(screen_text(app))
