"""The Verdict: what each decision shows at first look, in every terminal, and with hostile text."""

from __future__ import annotations

from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.data_spec import DataSpec
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.verdict import Decision, decide, verdict_of
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui.screens.log import read_tail
from tcompile_tui.ui.widgets.big_word import big_rows
from tcompile_tui.ui.widgets.decision_look import LOOKS
from tcompile_tui.ui.widgets.literal import literal, printed_lines
from tcompile_tui.ui.widgets.total_time_plot import total_times
from tests.core.streams import Compiled, both, eager_process, replay
from tests.ui.recorded import CONVNET, recorded_run, state_of
from tests.ui.screen_app import screen_text
from tests.ui.verdict_cases import BREAK, CASES, app_for, failing, text_of, with_breaks

# ---------------------------------------------------------------- what is shown


async def test_the_first_look_at_80x24_has_the_answer(tmp_path: Path) -> None:
    folder = recorded_run(CONVNET, tmp_path)
    text = await text_of(app_for(state_of(folder), folder))
    for row in big_rows("ENABLE"):
        assert row in text
    for part in (
        "it pays off here", "3.60x to", "reduce-overhead runs at 3.69x", "a cold start", "best of 2 modes",
        'model.compile(mode="reduce-overhead")', "10,912 steps", "4,266 steps", "62.4 million", "73 % of the plan",
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


async def test_data_that_hides_the_gain_is_seen_at_first_look(tmp_path: Path) -> None:
    state = replay(eager_process(), *both(Compiled(speedup=2.0)), data=DataSpec(batch_ms=20.0))
    text = await text_of(app_for(state, tmp_path), size=(120, 40))
    assert "fix the loader first" in text and "20.0 ms a step; steps alone 2.00x" in text
    assert "end to end" in text and "make the loader faster" in text


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
