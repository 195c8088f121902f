"""Comparing from the list of runs: by marks, the later with the earlier, in every terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcompile_tui.core.compare_runs import compare_runs
from tcompile_tui.host.recorded import read_compared_run
from tcompile_tui.ui.screens.comparison import ComparisonScreen
from tcompile_tui.ui.screens.runs import RunsScreen
from tests.ui.recorded import CONVNET, POINTWISE, TRANSFORMER, TWO_BREAKS, recorded_run
from tests.ui.screen_app import ScreenApp, text_after


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    """From the newest down: 3 transformer, 2 convnet, 1 convnet of long ago."""
    for name, label in ((CONVNET, "1-old"), (CONVNET, "2-new"), (TRANSFORMER, "3-other")):
        folder = recorded_run(name, tmp_path / "runs")
        folder.path.rename(tmp_path / "runs" / label)
    return tmp_path / "runs"


async def test_two_marks_compare_the_later_with_the_earlier(runs_dir: Path) -> None:
    text = await text_after(
        ScreenApp(RunsScreen, runs_dir), "down", "space", "down", "space", "up", "up", "c", size=(80, 40)
    )
    assert re.search(r"before +1-old .*\n.*after +2-new", text), text
    assert "no change seen" in text and "no change beyond the intervals" in text
    assert re.search(r"speedup +3\.69x +3\.69x +1\.000x", text)


async def test_one_mark_compares_with_the_run_under_the_cursor(runs_dir: Path) -> None:
    app = ScreenApp(RunsScreen, runs_dir)
    text = await text_after(app, "space", "down", "c")
    assert isinstance(app.last, ComparisonScreen)
    assert "not the same question" in text and re.search(r"before +2-new", text)


@pytest.mark.parametrize("keys", [("c",), ("space", "c"), ("space", "down", "space", "down", "space", "c")])
async def test_other_numbers_of_marks_are_refused_with_what_to_do(keys: tuple[str, ...], runs_dir: Path) -> None:
    app = ScreenApp(RunsScreen, runs_dir)
    await text_after(app, *keys)
    assert isinstance(app.last, RunsScreen) and "mark two with space" in app.notes


async def test_a_mark_is_shown_and_taken_back(runs_dir: Path) -> None:
    assert "@+ " in await text_after(ScreenApp(RunsScreen, runs_dir), "space")
    assert "@+ " not in await text_after(ScreenApp(RunsScreen, runs_dir), "space", "space")


async def test_records_that_are_gone_are_one_clear_line(runs_dir: Path) -> None:
    (runs_dir / "2-new" / "events.jsonl").unlink()
    app = ScreenApp(RunsScreen, runs_dir)
    await text_after(app, "space", "down", "c")
    assert f"cannot read {runs_dir / '2-new' / 'events.jsonl'}" in app.notes


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (40, 12), (80, 24), (120, 36)])
@pytest.mark.parametrize("ascii_only", [False, True])
async def test_any_size_is_drawn(size: tuple[int, int], ascii_only: bool, tmp_path: Path) -> None:
    sides = [read_compared_run(recorded_run(name, tmp_path).path) for name in (TWO_BREAKS, POINTWISE)]
    app = ScreenApp(lambda: ComparisonScreen(compare_runs(*sides)), ascii_only=ascii_only)
    text = await text_after(app, "pagedown", "end", size=size)
    assert len(text.splitlines()) == size[1]
    if ascii_only and size[0] > 40:
        assert [line for line in text.splitlines()[:-1] if not line.isascii()] == []
