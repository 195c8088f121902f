"""Runs: the list, opening, replaying, deleting; what goes on is never deleted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tcompile_tui.core.verdict import Decision, decide
from tcompile_tui.host.run_folder import ProcessId
from tcompile_tui.ui.screens.confirm import ConfirmScreen
from tcompile_tui.ui.screens.runs import RunsScreen, read_rows
from tests.ui.recorded import CONVNET, POINTWISE, recorded_run, write_run
from tests.ui.screen_app import ScreenApp, screen_text, text_after

OWN: dict[str, Any] = json.loads(msgspec.json.encode(ProcessId.own()))
GONE = OWN | {"pid": 2**22 - 1, "started_at": 1.0}
VERDICT = {
    "decision": "ENABLE", "headline": "reduce-overhead runs at 3.69x", "best_mode": "reduce-overhead",
    "per_mode": {"reduce-overhead": {"speedup": {"value": 3.69}}},
}  # fmt: skip


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    """From the newest down: running, died, elsewhere, done, and a folder that is no run."""
    path = tmp_path / "runs"
    write_run(path / "4-running", [], supervisor=OWN, started_at="2026-12-04T10:00:00+00:00")
    died = recorded_run(POINTWISE, path)
    died.path.rename(path / "3-died")
    info = json.loads((path / "3-died" / "run.json").read_text())
    (path / "3-died" / "run.json").write_text(json.dumps(info | {"supervisor": GONE}))
    write_run(path / "2-elsewhere", [])
    done = recorded_run(CONVNET, path)
    done.path.rename(path / "1-done")
    (path / "1-done" / "verdict.json").write_text(json.dumps(VERDICT))
    (path / "notes").mkdir()
    return path


def app_for(runs_dir: Path) -> ScreenApp:
    return ScreenApp(RunsScreen, runs_dir)


async def test_the_list_tells_what_became_of_each_run(runs_dir: Path) -> None:
    lines = (await text_after(app_for(runs_dir))).splitlines()
    assert "4 runs, 1 running" in lines[0]
    for line, parts in zip(lines[2:], [
        ("*", "2026-12-04 10:00", "pointwise_chain", "running", "n/a", "AMD EPYC"),
        ("x", "2026-12-02 18:50", "pointwise_chain", "died", "n/a"),
        ("@", "pointwise_chain", "elsewhere", "n/a"),
        (" ", "convnet", "ENABLE", "3.69x", "H200"),
    ]):  # fmt: skip
        assert all(part in line for part in parts), line
        assert line.strip(" ").startswith(parts[0].strip() or "2026")


async def test_a_wide_list_has_the_modes_and_torch_too(runs_dir: Path) -> None:
    text = await text_after(app_for(runs_dir), size=(120, 36))
    assert "default, reduce-overhead" in text and re.search(r"ENABLE +3.69x +2\.11\.0 +H200", text)


async def test_the_chosen_run_is_told_in_full(runs_dir: Path) -> None:
    text = await text_after(app_for(runs_dir), "end")
    assert "1-done" in text and "reduce-overhead runs at 3.69x" in text and "gpu-box" in text


def test_a_verdict_of_any_shape_is_read_as_no_speedup(runs_dir: Path) -> None:
    strange: list[Any] = [{}, {"best_mode": 3}, {"best_mode": "a", "per_mode": []}, {"per_mode": {"a": 1}}, VERDICT]
    speedups = []
    for verdict in strange:
        (runs_dir / "1-done" / "verdict.json").write_text(json.dumps(verdict))
        speedups.append(read_rows(runs_dir)[-1].speedup)
    assert speedups == [None, None, None, None, 3.69]


async def test_enter_opens_a_run_that_ended(runs_dir: Path) -> None:
    app = app_for(runs_dir)
    await text_after(app, "end", "enter")
    assert app.led_to == [("verdict", runs_dir / "1-done")]
    assert app.shown is not None and decide(app.shown.state).decision is Decision.ENABLE


async def test_enter_follows_a_run_that_goes_on(runs_dir: Path) -> None:
    app = app_for(runs_dir)
    await text_after(app, "enter")
    assert app.led_to == [("follow", runs_dir / "4-running")]


async def test_records_that_cannot_be_read_are_one_clear_line(runs_dir: Path) -> None:
    (runs_dir / "1-done" / "events.jsonl").unlink()
    app = app_for(runs_dir)
    await text_after(app, "end", "enter", "p")
    assert f"cannot read {runs_dir / '1-done' / 'events.jsonl'}: No such file or directory" in app.notes
    assert "1-done has no records to replay" in app.notes and app.led_to == []


async def test_p_replays(runs_dir: Path) -> None:
    app = app_for(runs_dir)
    await text_after(app, "down", "p")
    assert app.led_to == [("replay", runs_dir / "3-died")]


async def test_d_deletes_after_a_yes(runs_dir: Path) -> None:
    app = app_for(runs_dir)
    async with app.run_test() as pilot:
        await app.workers.wait_for_complete()
        await pilot.press("end", "d")
        assert isinstance(app.screen, ConfirmScreen)
        await pilot.press("n")
        assert (runs_dir / "1-done").exists()
        await pilot.press("d", "y")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert not (runs_dir / "1-done").exists()
        assert "3 runs" in screen_text(app) and "convnet" not in screen_text(app)


@pytest.mark.parametrize(("keys", "name"), [((), "4-running"), (("down", "down"), "2-elsewhere")])
async def test_d_never_deletes_what_may_go_on(keys: tuple[str, ...], name: str, runs_dir: Path) -> None:
    app = app_for(runs_dir)
    await text_after(app, *keys, "d", "y")
    assert (runs_dir / name).exists() and "it is not deleted" in app.notes


async def test_a_run_that_came_back_to_life_is_not_deleted(runs_dir: Path) -> None:
    app = app_for(runs_dir)
    async with app.run_test() as pilot:
        await app.workers.wait_for_complete()
        await pilot.press("down", "d")
        path = runs_dir / "3-died" / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"supervisor": OWN}))
        await pilot.press("y")
        await app.workers.wait_for_complete()
        assert (runs_dir / "3-died").exists() and "it is not deleted" in app.notes


async def test_no_runs_is_said_so(tmp_path: Path) -> None:
    app = app_for(tmp_path / "none")
    text = await text_after(app, "enter", "p", "d")
    assert "No run yet" in text and app.led_to == []
    assert "Open" not in text and "Delete" not in text and "Back" in text


@pytest.mark.parametrize("size", [(40, 12), (1, 1)])
async def test_it_is_drawn_at_any_size(size: tuple[int, int], runs_dir: Path) -> None:
    assert len((await text_after(app_for(runs_dir), "down", size=size)).splitlines()) == size[1]


async def test_escape_goes_back(runs_dir: Path) -> None:
    app = app_for(runs_dir)
    async with app.run_test() as pilot:
        first = app.screen
        app.push_screen(RunsScreen())
        await pilot.pause()
        await pilot.press("escape")
        assert app.screen is first
