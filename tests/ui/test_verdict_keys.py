"""The Verdict's keys: findings, copying, reports, and where they lead."""

from __future__ import annotations

from dataclasses import replace as changed
from pathlib import Path

import pytest

from tcompile_tui.core.spec import Preset
from tcompile_tui.core.verdict import Decision
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui.screens.finding import FindingScreen
from tcompile_tui.ui.screens.help import HelpScreen
from tcompile_tui.ui.screens.log import LogScreen
from tcompile_tui.ui.screens.verdict import VerdictScreen
from tcompile_tui.ui.widgets.finding_list import FindingList
from tests.ui.recorded import CONVNET, TRANSFORMER, recorded_run, state_of
from tests.ui.screen_app import ScreenApp, screen_text
from tests.ui.verdict_cases import BREAK, CASES, SOURCE, app_for, text_of, with_breaks

# ---------------------------------------------------------------- findings


async def test_enter_opens_a_graph_break_with_its_source(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(SOURCE)
    app = app_for(with_breaks(changed(BREAK, file=str(source))), tmp_path)
    text = await text_of(app, "enter", size=(100, 40))
    assert isinstance(app.last, FindingScreen)
    assert '> 7         print("[bold]shape[/bold]", x.shape)' in text
    assert "  6         x = x.relu()" in text
    for part in (
        "Dynamo cannot trace `print`.",
        "- Remove the call.",
        "- Or move it out.",
        "https://example.org/gb0059",
    ):
        assert part in text
    assert "has changed" not in text


async def test_a_file_that_is_gone_or_changed_is_said_so(tmp_path: Path) -> None:
    state = with_breaks(changed(BREAK, file=str(tmp_path / "model.py")))
    text = await text_of(app_for(state, tmp_path), "enter", size=(100, 40))
    assert "is not there any more" in text and 'print("[bold]shape[/bold]", x.shape)' in text
    (tmp_path / "model.py").write_text("\n" + SOURCE)
    text = await text_of(app_for(state, tmp_path), "enter", size=(100, 40))
    assert "the file has changed since; the line was: print(" in text


async def test_a_relative_place_is_meant_from_the_run_s_folder(tmp_path: Path) -> None:
    folder = recorded_run(CONVNET, tmp_path)
    info = folder.read_info()
    assert info is not None
    (tmp_path / "model.py").write_text(SOURCE)
    (folder.path / "run.json").write_text((folder.path / "run.json").read_text().replace(info.cwd, str(tmp_path)))
    assert "> 7  " in await text_of(app_for(with_breaks(BREAK), folder), "enter", size=(100, 40))


async def test_b_shows_the_graph_breaks_alone_and_all_again(tmp_path: Path) -> None:
    state = with_breaks(BREAK, changed(BREAK, line=8, reason="Data-dependent branching"))
    assert state.run is not None
    state.apply(changed(state.run, spec=changed(state.run.spec, preset=Preset.QUICK)))
    app = app_for(state, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        findings = app.screen.query_one(FindingList)
        assert (findings.option_count, len(findings.breaks)) == (3, 2)
        assert "3 findings, 2 graph breaks (b)" in screen_text(app)
        await pilot.press("b")
        await pilot.pause()
        assert findings.option_count == 2 and findings.chosen is not None and findings.chosen.id == "graph-break"
        assert "2 graph breaks (b: all findings)" in screen_text(app)
        await pilot.press("down", "enter")
        assert isinstance(app.screen, FindingScreen)
        await pilot.press("escape", "b")
        assert findings.option_count == 3


async def test_the_arrow_keys_reach_the_end_and_the_top_of_the_page(tmp_path: Path) -> None:
    folder = recorded_run(TRANSFORMER, tmp_path)
    app = app_for(state_of(folder), folder)
    async with app.run_test(size=(80, 24)) as pilot:
        page, findings = app.screen.query_one("#page"), app.screen.query_one(FindingList)
        await pilot.press(*["down"] * 36)
        assert page.scroll_y == page.max_scroll_y > 0
        assert "recompiles" in screen_text(app)
        await pilot.press(*["up"] * 36)
        assert page.scroll_y == 0 and findings.highlighted == 0


# ---------------------------------------------------------------- commands


async def test_y_copies_and_writes_the_line(tmp_path: Path) -> None:
    folder = recorded_run(CONVNET, tmp_path)
    app = app_for(state_of(folder), folder)
    await text_of(app, "y")
    assert app.clipboard == 'model.compile(mode="reduce-overhead")'
    assert (folder.path / "paste.txt").read_text() == 'model.compile(mode="reduce-overhead")\n'
    assert str(folder.path / "paste.txt") in app.notes


async def test_without_an_advice_there_is_nothing_to_copy(tmp_path: Path) -> None:
    app = app_for(CASES[Decision.SKIP](), tmp_path)
    text = await text_of(app, "y")
    assert not app.clipboard and not (tmp_path / "paste.txt").exists() and "Copy" not in text


async def test_s_writes_the_report(tmp_path: Path) -> None:
    folder = recorded_run(CONVNET, tmp_path)
    app = app_for(state_of(folder), folder)
    await saved(app, "enter")
    report = (folder.path / "report.txt").read_text()
    assert report.startswith("ENABLE\n") and str(folder.path) in report
    assert str(folder.path / "report.txt") in app.notes


async def test_s_offers_every_format_and_escape_saves_nothing(tmp_path: Path) -> None:
    folder = recorded_run(CONVNET, tmp_path)
    before = set(folder.path.iterdir())
    app = app_for(state_of(folder), folder)
    text = await text_of(app, "s")
    for name in ("report.txt", "report.md", "report.html", "report.json", "reproduce.py", "steps.csv"):
        assert name in text
    await text_of(app_for(state_of(folder), folder), "s", "escape")
    assert set(folder.path.iterdir()) == before


async def test_another_format_is_chosen_with_the_arrows(tmp_path: Path) -> None:
    folder = recorded_run(CONVNET, tmp_path)
    app = app_for(state_of(folder), folder)
    await saved(app, "down", "enter")
    assert "### torch.compile: ENABLE" in (folder.path / "report.md").read_text()
    assert str(folder.path / "report.md") in app.notes


async def test_what_cannot_be_saved_is_told(tmp_path: Path) -> None:
    app = app_for(CASES[Decision.STOPPED](), tmp_path)
    await saved(app, *["down"] * 4, "enter")
    assert "there is nothing to reproduce" in app.notes and not (tmp_path / "reproduce.py").exists()


async def saved(app: ScreenApp, *keys: str) -> None:
    """Open the choice, press `keys`, and wait for the file."""
    async with app.run_test() as pilot:
        await pilot.press("s", *keys)
        await app.workers.wait_for_complete()
        await pilot.pause()


async def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    app = app_for(CASES[Decision.ENABLE](), tmp_path / "gone")
    await saved(app, "enter")
    assert f"cannot write {tmp_path / 'gone' / 'report.txt'}: No such file or directory" in app.notes


@pytest.mark.parametrize(("key", "where"), [("r", ("setup", "net.py")), ("h", ("runs",)), ("q", ("setup", "net.py"))])
async def test_keys_lead_on(key: str, where: tuple[str, ...], tmp_path: Path) -> None:
    app = app_for(CASES[Decision.SKIP](), tmp_path)
    await text_of(app, key)
    assert app.led_to == [where]


async def test_back_goes_to_the_screen_below(tmp_path: Path) -> None:
    app = app_for(CASES[Decision.SKIP](), tmp_path)
    async with app.run_test() as pilot:
        first = app.screen
        app.push_screen(VerdictScreen(RunFolder(tmp_path), CASES[Decision.FAILED]()))
        await pilot.pause()
        await pilot.press("escape")
        assert app.screen is first and app.led_to == []


async def test_l_shows_the_end_of_the_log(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.log.write_bytes(b"first\n" + b"[red]x[/red]\n" * 30_000 + b"10 %\r100 %\n\x1b[1mlast\x1b[0m \xff\n")
    app = app_for(CASES[Decision.SKIP](), folder)
    text = await text_of(app, "l")
    assert isinstance(app.last, LogScreen)
    assert "100 %" in text and "last" in text and "[red]x[/red]" in text
    assert "\x1b" not in text and "first" not in text


async def test_a_missing_log_is_said_so(tmp_path: Path) -> None:
    text = await text_of(app_for(CASES[Decision.SKIP](), tmp_path), "l", size=(120, 24))
    assert "No such file or directory" in text


async def test_t_is_there_only_with_a_traceback(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    app = app_for(CASES[Decision.FAILED](), folder)
    assert "Traceback" not in (await text_of(app, "t")).splitlines()[-1]
    assert isinstance(app.last, VerdictScreen)
    folder.add_traceback("eager", "ValueError: the cause")
    app = app_for(CASES[Decision.FAILED](), folder)
    assert "ValueError: the cause" in await text_of(app, "t")


async def test_question_mark_shows_the_help(tmp_path: Path) -> None:
    app = app_for(CASES[Decision.SKIP](), tmp_path)
    text = await text_of(app, "question_mark", size=(100, 40))
    assert isinstance(app.last, HelpScreen) and "To Setup, with this model" in text
