"""Caches: what is listed, what a key shows before anything goes, and what goes."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tcompile_tui.host.cache_kinds import CacheKind, Family
from tcompile_tui.host.cache_places import Place
from tcompile_tui.host.cache_scan import CancelledError, scan
from tcompile_tui.host.cache_users import CacheUser, Use
from tcompile_tui.host.caches import PlaceReport
from tcompile_tui.host.run_folder import ProcessId, RunFolder
from tcompile_tui.ui.screens import caches
from tcompile_tui.ui.screens.caches import CachesScreen
from tcompile_tui.ui.screens.clear_caches import ClearScreen
from tcompile_tui.ui.widgets.cache_list import CacheList, ago, shown_path
from tests.host.cache_trees import add_file, add_graph, code, graph, inductor
from tests.ui import cache_cases
from tests.ui.cache_cases import INDUCTOR, entry, found, report
from tests.ui.recorded import write_run
from tests.ui.replaying import StubFeed, shown
from tests.ui.screen_app import ScreenApp, screen_text


def app_for(about: RunFolder | None = None, ascii_only: bool = False, runs_dir: Path = Path("runs")) -> ScreenApp:
    return ScreenApp(partial(CachesScreen, about), runs_dir, ascii_only=ascii_only)


async def after(app: ScreenApp, *keys: str, size: tuple[int, int] = (80, 24)) -> str:
    async with app.run_test(size=size) as pilot:
        await settle(app, pilot)
        for key in keys:
            await pilot.press(key)
            await settle(app, pilot)
        app.last = app.screen
        return screen_text(app)


async def settle(app: ScreenApp, pilot: Any) -> None:
    await app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.pause()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    cache_cases.show(monkeypatch)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A real one, the only one on the machine."""
    place = inductor(tmp_path / "i")
    for number in range(3):
        add_graph(place.path, number, content=b"x" * 5000)
    add_file(place.path / code(1))
    private = Place(tmp_path / "private", Family.PRIVATE, "")
    monkeypatch.setattr(caches, "all_places", lambda *arguments: [place, private])
    return place.path


# ---------------------------------------------------------------- what is listed


@pytest.mark.usefixtures("machine")
async def test_the_list_has_places_kinds_and_figures() -> None:
    lines = (await after(app_for())).splitlines()
    text = "\n".join(lines)
    assert "507 MiB in 4,767 files" in lines[0]
    assert "Inductor      /tmp/torchinductor_me  in use, RAM" in text
    for row in (
        ("FX graphs", "5.62 MiB", "360", "just now"), ("Triton kernels", "63.6 MiB", "2,790"),
        ("C++ headers", "149 MiB", "40 days"), ("~/.triton/cache", "7.42 MiB", "320", "33 days"),
    ):  # fmt: skip
        assert any(all(part in line for part in row) for line in lines), row
    assert "that is RAM" in text and "41234 python train.py" in text


@pytest.mark.usefixtures("machine")
async def test_the_place_that_is_often_quoted_is_looked_at_and_corrected() -> None:
    text = await after(app_for(), *["end", "up", "up", "up"], size=(120, 36))
    assert "~/.torch_inductor_cache" in text and "not there" in text and "torch never puts it there" in text


@pytest.mark.usefixtures("machine")
async def test_a_kind_says_what_clearing_it_costs() -> None:
    text = await after(app_for(), *["down"] * 5)
    assert "They ignore" in text and "20 s longer, once" in text


@pytest.mark.usefixtures("machine")
async def test_lines_for_a_running_process_can_be_copied() -> None:
    app = app_for()
    text = await after(app, "end", "up", "up", "y")
    assert "folders stay" in text and "y copies" in text and app.clipboard == "torch.compiler.reset()"


@pytest.mark.usefixtures("machine")
async def test_ascii_only_is_ascii() -> None:
    text = await after(app_for(ascii_only=True), "a")
    assert text.isascii() and "enter deletes this" in text


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("size", [(40, 12), (1, 1)])
@pytest.mark.parametrize("keys", [(), ("a",), ("s", "left")])
async def test_it_is_drawn_at_any_size(size: tuple[int, int], keys: tuple[str, ...]) -> None:
    assert len((await after(app_for(), *keys, size=size)).splitlines()) == size[1]


async def test_names_of_any_kind_are_shown_literally(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(os.fsdecode(b"/tmp/\xff[red]\x1b[2J"))
    strange = report(Place(path, Family.INDUCTOR, ""), [entry(graph(1), CacheKind.FX_GRAPH, 4096, 2, 60)])
    cache_cases.show(monkeypatch, lambda: [strange])
    text = await after(app_for(), "c")
    assert r"/tmp/\udcff[red]" in text and "\x1b" not in text


def test_a_long_path_keeps_both_ends() -> None:
    path = Path("/scratch/users/someone/with/a/very/long/path/torchinductor_someone")
    text = shown_path(path, 30, ascii_only=True)
    assert len(text) == 30 and text.startswith("/scratch") and text.endswith("_someone") and ".." in text


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "just now"), (600, "10 min"), (7200, "2 h"), (86_400 * 33, "33 days")]
)
def test_ages_are_short(seconds: float, words: str) -> None:
    assert ago(seconds) == words


# ---------------------------------------------------------------- looking takes time


async def test_a_long_look_shows_its_progress_and_ends_with_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Event()

    def survey(places: object, progress: Callable[[int], None]) -> Iterator[PlaceReport]:
        yield found()[0]
        try:
            while True:
                progress(1000)
                cancelled.wait(0.01)
        except CancelledError:
            cancelled.set()
            raise

    monkeypatch.setattr(caches, "survey", survey)
    app = app_for()
    async with app.run_test() as pilot:
        first = app.screen
        app.push_screen(CachesScreen())
        while "looking:" not in screen_text(app) or "FX graphs" not in screen_text(app):
            await pilot.pause(0.02)
        await pilot.press("c", "a")  # nothing is cleared of what is not known yet
        assert isinstance(app.screen, CachesScreen)
        await pilot.press("down", "escape")
        assert app.screen is first
        while not cancelled.is_set():
            await pilot.pause(0.02)


# ---------------------------------------------------------------- clearing


async def test_c_shows_what_goes_of_the_row_and_enter_deletes_it(cache: Path) -> None:
    app = app_for()
    async with app.run_test() as pilot:
        await settle(app, pilot)
        await pilot.press("down", "c")
        await settle(app, pilot)
        text = screen_text(app)
        assert "6 files: enter deletes" in text and "enter deletes this" in text and str(cache) in text
        for number in range(3):
            assert graph(number) in text and (cache / graph(number)).exists()
        assert code(1) not in text
        await pilot.press("enter")
        await settle(app, pilot)
        assert "Deleted" in screen_text(app) and "6 files" in screen_text(app)
        assert not (cache / "fxgraph").exists() and (cache / code(1)).exists()
        await pilot.press("escape")
        await settle(app, pilot)
        assert isinstance(app.screen, CachesScreen) and "FX graphs" not in screen_text(app)


async def test_escape_leaves_everything(cache: Path) -> None:
    app = app_for()
    await after(app, "a", "escape")
    assert isinstance(app.last, CachesScreen) and len(scan(inductor(cache)).entries) == 4


async def test_left_and_right_change_the_limit(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcompile_tui.ui.screens.clear_caches.time.time", lambda: 2e9 + 5 * 86_400)
    text = await after(app_for(), "o")
    assert "< written more than 30 days ago >" in text and "nothing to delete" in text and "Delete" not in text
    text = await after(app_for(), "o", "left", "left", "left")
    assert "< written more than 3 days ago >" in text and "enter deletes" in text
    text = await after(app_for(), "s", "left", "left")
    assert "< down to 0 B >" in text and graph(1) in text


async def test_a_place_in_use_warns_and_says_who(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = (CacheUser(4242, "python train.py", Use.OPEN),)
    used = PlaceReport(scan(inductor(cache)), found()[0].file_system, users)
    monkeypatch.setattr(caches, "survey", lambda places, progress: iter([used]))
    text = await after(app_for(), "c")
    assert "! In use by process 4242: it may fail, or compile again." in text
    await after(app_for(), "c", "enter")
    assert (cache / "fxgraph").is_dir() and not (cache / graph(1)).exists()


async def test_what_could_not_be_deleted_is_listed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = os.unlink

    def refuse(name: str, **named: Any) -> None:
        if named.get("dir_fd") is not None and str(name).endswith(".py"):
            raise PermissionError(13, "Permission denied")
        unlink(name, **named)

    monkeypatch.setattr(os, "unlink", refuse)
    text = await after(app_for(), "a", "enter", size=(120, 36))
    assert "1 path could not be deleted" in text and f"Permission denied: {cache}" in text


async def test_clearing_can_be_stopped(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10, 400):
        add_file(cache / code(number))
    started, go_on = threading.Event(), threading.Event()
    unlink = os.unlink

    def slowly(name: str, **named: Any) -> None:
        started.set()
        go_on.wait(10)
        unlink(name, **named)

    monkeypatch.setattr(os, "unlink", slowly)
    app = app_for()
    async with app.run_test() as pilot:
        await settle(app, pilot)
        await pilot.press("a")
        await settle(app, pilot)
        await pilot.press("enter")
        while not started.is_set():
            await pilot.pause(0.01)
        await pilot.press("escape")
        go_on.set()
        await settle(app, pilot)
        assert "Stopped" in screen_text(app) and isinstance(app.screen, ClearScreen)
    assert len(scan(inductor(cache)).entries) > 300


# ---------------------------------------------------------------- a run's own caches


def _run(tmp_path: Path) -> RunFolder:
    gone = json.loads(msgspec.json.encode(ProcessId.own())) | {"pid": 2**22 - 1, "started_at": 1.0}
    root = tmp_path / "private" / "0a1b2c3d"
    add_graph(root / "i", 1)
    add_file(root / "owner.json", json.dumps(gone).encode())
    other = tmp_path / "private" / "0a1b2c3e"
    add_graph(other / "i", 1)
    add_file(other / "owner.json", json.dumps(gone | {"pid": 2**22 - 2}).encode())
    return write_run(tmp_path / "run", [], supervisor=gone, cwd=str(Path.cwd()))


async def test_m_clears_what_this_run_left_and_r_runs_it_again(cache: Path, tmp_path: Path) -> None:
    run = _run(tmp_path)
    app = app_for(run)
    async with app.run_test() as pilot:
        app.push_screen(CachesScreen(run))
        await settle(app, pilot)
        await pilot.press("m")
        await settle(app, pilot)
        assert "0a1b2c3d" in screen_text(app) and "0a1b2c3e" not in screen_text(app)
        await pilot.press("enter")
        await settle(app, pilot)
        assert "r runs the model again, cold" in screen_text(app)
        assert [path.name for path in (tmp_path / "private").iterdir()] == ["0a1b2c3e"]
        await pilot.press("r")
        await settle(app, pilot)
    info = run.read_info()
    assert info is not None and app.led_to == [("setup", str(info.spec.target))]


async def test_a_run_that_left_nothing_is_said_so(cache: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [])
    assert "nothing to delete" in await after(app_for(run), "m")


@pytest.mark.usefixtures("machine")
async def test_without_a_run_there_is_none_to_clear_or_rerun() -> None:
    app = app_for()
    text = await after(app, "m", "r")
    assert isinstance(app.last, CachesScreen) and "Rerun" not in text and app.led_to == []


# ---------------------------------------------------------------- where x leads here


@pytest.mark.usefixtures("machine")
async def test_x_opens_it_from_a_replay_but_stops_a_live_run(tmp_path: Path) -> None:
    async with shown(recording="cpu-pointwise_chain", path=tmp_path) as replay:
        await replay.pilot.press("x")
        await replay.pilot.pause()
        assert isinstance(replay.app.screen, CachesScreen)
    async with shown(StubFeed(tmp_path / "none"), path=tmp_path) as live:
        await live.pilot.press("x")
        await live.pilot.pause()
        assert "Stop this run?" in live.text()


@pytest.mark.usefixtures("machine")
async def test_x_opens_it_from_setup(tmp_path: Path) -> None:
    from tcompile_tui.ui.app import TCompileApp

    app = TCompileApp(tmp_path, ascii_only=False)
    async with app.run_test() as pilot:
        while app.screen.focused is None:
            await pilot.pause(0.02)
        await pilot.press("x")
        await pilot.pause()
        assert isinstance(app.screen, CachesScreen)
        await app.workers.wait_for_complete()
        await pilot.press("escape")
        assert not isinstance(app.screen, CachesScreen)


# ---------------------------------------------------------------- pictures


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
@pytest.mark.parametrize("scene", ["list", "clear"])
def test_pictures(scene: str, size: tuple[int, int], snap_compare: Any) -> None:
    app = app_for()

    async def go_there(pilot: Any) -> None:
        await settle(app, pilot)
        if scene == "clear":
            await pilot.press("o", "left")
            await settle(app, pilot)
        assert str(INDUCTOR) in screen_text(app) and app.screen.query(CacheList) is not None

    assert snap_compare(app, terminal_size=size, run_before=go_there)
