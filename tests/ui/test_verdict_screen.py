"""The Verdict: what each decision shows at first look, what its keys do, and what it does with hostile text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Mode, Phase, Plan, Preset
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, decide
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui.screens.finding import FindingScreen
from tcompile_tui.ui.screens.help import HelpScreen
from tcompile_tui.ui.screens.log import LogScreen, read_tail
from tcompile_tui.ui.screens.verdict import VerdictScreen, verdict_of
from tcompile_tui.ui.widgets.big_word import big_rows
from tcompile_tui.ui.widgets.decision_look import LOOKS
from tcompile_tui.ui.widgets.finding_list import FindingList
from tcompile_tui.ui.widgets.literal import literal, printed_lines
from tcompile_tui.ui.widgets.total_time_plot import total_times
from tests.core.streams import Compiled, Process, both, done, eager_process, ended, leaf, replay, started
from tests.ui.recorded import CONVNET, TRANSFORMER, recorded_run, state_of
from tests.ui.screen_app import ScreenApp, screen_text

SOURCE = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        x = x.relu()
        print("[bold]shape[/bold]", x.shape)
        return x.sin()
"""
BREAK = ev.GraphBreak(
    compile_id="0/0", file="model.py", line=7, function="Net.forward", source='print("[bold]shape[/bold]", x.shape)',
    reason="Failed to trace builtin operator\n  Explanation: below", explanation="Dynamo cannot trace `print`.",
    hints=("Remove the call.", "Or move it out."), gb_id="GB0059", url="https://example.org/gb0059",
)  # fmt: skip


def failing(phase: Phase, fault: str, mode: Mode | None = None, **changes: Any) -> Process:
    failure = ev.WorkerFailed(
        stage="steps", error_type="RuntimeError", message="shapes (3x4) and (5x6) do not fit", file="net.py", line=12,
        fault=fault, traceback='Traceback (most recent call last):\n  File "net.py", line 12, in forward\nRuntimeError',
    )  # fmt: skip
    return [started(phase, mode), changed(failure, **changes), ended(phase, mode, ev.Outcome.ERROR)]


def ran_eager() -> Process:
    frame = ev.FrameStarted(compile_id="0/0", function="forward", file="net.py", line=3)
    dropped = ev.FrameCompiled(compile_id="0/0", backward=False, fail_type="Unsupported", fail_reason="generator")
    return [started(Phase.COLD, Mode.DEFAULT), frame, dropped, *done(Phase.COLD, Mode.DEFAULT)]


def with_breaks(*breaks: ev.GraphBreak, **plan: Any) -> RunState:
    cold, warm = both(Compiled(speedup=1.8))
    return replay(eager_process(), [*cold[:4], *breaks, *cold[4:]], warm, plan=Plan(**(plan or {"steps": 1_000_000})))


CASES: dict[Decision, Callable[[], RunState]] = {
    Decision.ENABLE: lambda: replay(eager_process(), *both(Compiled(speedup=1.8))),
    Decision.ENABLE_WITH_CARE: lambda: replay(eager_process(), *both(Compiled(speedup=1.034))),
    Decision.TEST_CAREFULLY: lambda: replay(eager_process(), *both(Compiled(output=leaf(0.3)))),
    Decision.SKIP: lambda: replay(
        eager_process(), *both(Compiled(speedup=0.8)), *both(Compiled(Mode.MAX_AUTOTUNE, speedup=0.9)),
        modes=(Mode.DEFAULT, Mode.MAX_AUTOTUNE), plan=Plan(hours=8.0),
    ),
    Decision.RAN_EAGER: lambda: replay(eager_process(), ran_eager()),
    Decision.CANNOT_COMPILE: lambda: replay(eager_process(), failing(Phase.COLD, "environment", Mode.DEFAULT)),
    Decision.FAILED: lambda: replay(failing(Phase.EAGER, "model")),
    Decision.STOPPED: RunState,
}  # fmt: skip


def app_for(state: RunState, folder: RunFolder | Path, ascii_only: bool = False) -> ScreenApp:
    folder = RunFolder(folder) if isinstance(folder, Path) else folder
    return ScreenApp(lambda: VerdictScreen(folder, state), ascii_only=ascii_only)


async def text_of(app: ScreenApp, *keys: str, size: tuple[int, int] = (80, 24)) -> str:
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        app.last = app.screen
        return screen_text(app)


# ---------------------------------------------------------------- what is shown


async def test_the_first_look_at_80x24_has_the_answer(tmp_path: Path) -> None:
    folder = recorded_run(CONVNET, tmp_path)
    text = await text_of(app_for(state_of(folder), folder))
    for row in big_rows("ENABLE"):
        assert row in text
    for part in (
        "it pays off here", "3.66x to", "reduce-overhead runs at 3.69x", "a cold start", "best of 2 modes",
        'model.compile(mode="reduce-overhead")', "11,051 steps", "4,358 steps", "62.4 million", "73 % of the plan",
        "5 findings", "default needs 28.0 MiB more GPU memory", "Copy",
    ):  # fmt: skip
        assert part in text, part


@pytest.mark.parametrize("decision", CASES)
async def test_each_decision_shows_its_word_its_symbol_and_what_to_do(decision: Decision, tmp_path: Path) -> None:
    state = CASES[decision]()
    assert decide(state).decision is decision
    text = await text_of(app_for(state, tmp_path))
    assert all(row in text for row in big_rows(decision.value))
    assert f"{LOOKS[decision].symbol} {LOOKS[decision].meaning}" in text
    assert ("paste" if decide(state).paste_line else "next") in text


def test_decisions_differ_without_colour() -> None:
    assert len({(look.symbol, look.css) for look in LOOKS.values()}) == len(Decision)
    assert len({look.plain_symbol for look in LOOKS.values()}) == len(Decision)
    assert all(look.plain_symbol.isascii() for look in LOOKS.values())


async def test_a_failure_says_where_to_look_and_shows_no_figures(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.log.write_text("printed")
    folder.add_traceback("eager", "Traceback")
    text = await text_of(app_for(CASES[Decision.FAILED](), folder), size=(120, 36))
    assert "the model fails without torch.compile: RuntimeError: shapes (3x4) and (5x6) do not fit" in text
    assert str(folder.tracebacks) in text and str(folder.log) in text and "net.py:12" in text
    assert 'File "net.py", line 12, in forward' in text
    assert "95 %" not in text and "paid back" not in text and "total time" not in text


async def test_the_program_s_own_failure_is_the_verdict(tmp_path: Path) -> None:
    state = CASES[Decision.ENABLE]()
    state.apply(ev.RunEnded(decision="FAILED", headline="the disk is full", exit_code=6))
    assert verdict_of(state).decision is Decision.FAILED
    text = await text_of(app_for(state, tmp_path))
    assert "the disk is full" in text and "model.compile" not in text


async def test_a_run_that_was_cut_short_says_so(tmp_path: Path) -> None:
    state = CASES[Decision.ENABLE]()
    assert "the run was cut short" in await text_of(app_for(state, tmp_path))
    state.apply(ev.RunEnded(decision="ENABLE", headline="", exit_code=0))
    assert "the run was cut short" not in await text_of(app_for(state, tmp_path))


async def test_the_table_has_every_mode_and_no_zero_for_a_missing_value(tmp_path: Path) -> None:
    failed = failing(Phase.COLD, "compiler", Mode.MAX_AUTOTUNE)
    state = replay(eager_process(), *both(Compiled()), failed, modes=(Mode.DEFAULT, Mode.MAX_AUTOTUNE))
    text = await text_of(app_for(state, tmp_path), size=(120, 60))
    (speedup,) = (line for line in text.splitlines() if "│ speedup " in line)
    (decision,) = (line for line in text.splitlines() if "│ decision " in line)
    assert "1.50x" in speedup and "n/a" in speedup
    assert "ENABLE" in decision and "failed" in decision
    assert "m max-autotune" in text


@pytest.mark.parametrize("size", [(40, 12), (1, 1), (20, 5), (300, 90)])
@pytest.mark.parametrize("ascii_only", [False, True])
async def test_any_size_is_drawn(size: tuple[int, int], ascii_only: bool, tmp_path: Path) -> None:
    for decision in (Decision.SKIP, Decision.FAILED):
        app = app_for(CASES[decision](), tmp_path, ascii_only)
        text = await text_of(app, "down", "pagedown", "end", size=size)
        assert len(text.splitlines()) == size[1]


async def test_ascii_only_has_no_other_characters(tmp_path: Path) -> None:
    brk = changed(BREAK, reason="Unsupported: naïve → break", file="mödel.py")
    app = app_for(with_breaks(brk), tmp_path, ascii_only=True)
    async with app.run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        body = screen_text(app).splitlines()[:-1]  # the footer's key names are Textual's
    assert "ENABLE" in "\n".join(body)
    assert [line for line in body if not line.isascii()] == []


@pytest.mark.parametrize("decision", [Decision.ENABLE, Decision.SKIP, Decision.FAILED])
async def test_no_color_is_drawn(decision: Decision, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = await text_of(app_for(CASES[decision](), tmp_path))
    assert LOOKS[decision].meaning in text


async def test_hostile_text_is_literal(tmp_path: Path) -> None:
    message = "[red]no[/red] \x1b[31mred\x1b[0m \x07\u202eend [/"
    text = await text_of(app_for(replay(failing(Phase.EAGER, "model", message=message)), tmp_path), size=(120, 24))
    assert "[red]no[/red] red end [/" in text
    assert "\x1b" not in text and "\u202e" not in text


# ---------------------------------------------------------------- the plot


def test_the_lines_cross_at_the_break_even() -> None:
    verdict = decide(CASES[Decision.ENABLE]())
    times = total_times(verdict)
    assert times is not None and verdict.best is not None and verdict.best.result.break_even_cold is not None
    eager, compiled = times.lines
    crossing = verdict.best.result.break_even_cold.steps
    assert crossing is not None and times.break_even == crossing
    assert eager.seconds(crossing) == pytest.approx(compiled.seconds(crossing), rel=1e-6)
    assert crossing < times.steps < 5 * crossing
    assert times.planned is None  # 1,000,000 steps are far to the right


def test_a_plan_near_the_break_even_is_in_view() -> None:
    times = total_times(decide(with_breaks(steps=6_000)))
    assert times is not None and times.planned == 6_000 and times.steps > 6_000


def test_a_mode_that_never_pays_off_still_has_a_plot() -> None:
    times = total_times(decide(CASES[Decision.SKIP]()))
    assert times is not None and times.break_even is None and len(times.lines) == 3


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
    await text_of(app, "s")
    report = (folder.path / "report.txt").read_text()
    assert report.startswith("ENABLE\n") and str(folder.path) in report
    assert str(folder.path / "report.txt") in app.notes


async def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    app = app_for(CASES[Decision.ENABLE](), tmp_path / "gone")
    await text_of(app, "s")
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


# ---------------------------------------------------------------- text of others


def test_literal_text_keeps_lines_and_drops_what_moves_the_cursor() -> None:
    assert literal("a\tb\n\x1b]0;title\x07c\x1b[2Jd\x9be\u200bf") == "a   b\ncdef"
    assert literal("naïve", ascii_only=True) == "na\\xefve"
    assert printed_lines("10 %\r20 %\rdone\r\nnext") == ["done", "next"]


def test_the_tail_of_a_long_file_begins_with_a_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("".join(f"line {i}\n" for i in range(1000)))
    lines, left_out = read_tail(path, most_bytes=100)
    assert lines[0].startswith("line ") and lines[-1] == "line 999"
    assert left_out == path.stat().st_size - 100


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
@pytest.mark.parametrize("case", ["enable", "skip", "ran-eager", "failed"])
def test_picture(
    case: str, size: tuple[int, int], tmp_path: Path, snap_compare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a relative run folder looks the same everywhere
    folder = RunFolder(Path("runs") / case)
    folder.path.mkdir(parents=True)
    folder.log.write_text("")
    if case == "enable":
        state = state_of(recorded_run(CONVNET, tmp_path))
    else:
        state = CASES[Decision(case.upper().replace("-", " "))]()
        state.apply(ev.RunEnded(decision="", headline="", exit_code=0))
    if case == "failed":
        folder.add_traceback("eager", "Traceback")
    assert snap_compare(app_for(state, folder), terminal_size=size)
