"""The Run screen on runs that were recorded on an H200 and on a CPU, second by second."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Log

from tcompile_tui.core import events as ev
from tcompile_tui.core.events import Event
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.ui import intake as intake_module
from tcompile_tui.ui.app import TCompileApp
from tcompile_tui.ui.feeds import ReplayFeed
from tcompile_tui.ui.intake import Intake
from tcompile_tui.ui.screens import run as run_module
from tcompile_tui.ui.screens.confirm import ConfirmScreen
from tcompile_tui.ui.screens.leave import LeaveScreen
from tcompile_tui.ui.screens.run import RunScreen
from tcompile_tui.ui.widgets import arms_table
from tcompile_tui.ui.widgets.timing_plot import TimingPlot

from .recorded import CONVNET, POINTWISE, TRANSFORMER
from .replaying import Clock, Shown, StubFeed, recorded_events, shown

MID_COMPILE_S = 30.75
PAIRS_S = 55.2


def until(recording: str, seconds: float) -> list[Event]:
    return [event for event in recorded_events(recording) if event.t_s <= seconds]


def row_of(text: str, name: str) -> str:
    """The row of the arms table that starts with `name`."""
    return next(line for line in reversed(text.splitlines()) if line.strip().startswith(name))


def interval_of(text: str, name: str) -> tuple[float, float]:
    found = re.search(r"([0-9.]+) to ([0-9.]+)", row_of(text, name))
    assert found is not None, row_of(text, name)
    return float(found[1]), float(found[2])


# ---------------------------------------------------------------- what is shown, and when


async def test_while_it_compiles_frame_place_stage_and_counts_are_named(tmp_path: Path) -> None:
    async with shown(recording=CONVNET, path=tmp_path) as at:
        text = await at.go_to(MID_COMPILE_S)
        assert "cold default (2 of 5): compiling" in text
        assert "0:30 of 3:20" in text
        assert "[0/0] forward  convnet.py:56" in text
        assert "1 graph, 77 ops, 22 kernels" in text
        assert "kernel compile" in text
        assert re.search(r"misses +1\b", text)


async def test_seconds_tick_while_the_compiler_is_silent(tmp_path: Path) -> None:
    later = ev.HostSample(t_s=120.0, cpu_percent=50.0, memory_used_bytes=1, memory_total_bytes=2)
    async with shown(events=[*until(CONVNET, 27.0), later], path=tmp_path) as at:
        first = await at.go_to(47.0)
        assert re.search(r"lowering +20\.1 s", first)
        assert re.search(r"forward +convnet\.py:56 +23\.0 s", first)
        second = await at.go_to(67.0)
        assert re.search(r"lowering +40\.1 s", second)
        assert "1:07 of 3:20" in second


async def test_backward_is_named_while_it_compiles(tmp_path: Path) -> None:
    async with shown(recording=TRANSFORMER, path=tmp_path, size=(120, 36)) as at:
        text = await at.go_to(30.9)
        assert "backward" in text


async def test_pairs_narrow_the_interval_and_bring_the_break_even(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Clock()
    monkeypatch.setattr(arms_table, "monotonic", now)
    async with shown(recording=CONVNET, path=tmp_path) as at:
        early = await at.go_to(54.6)
        low, high = interval_of(early, "default")
        now.now_s += 60
        late = await at.go_to(PAIRS_S)
        narrow_low, narrow_high = interval_of(late, "default")
        assert 0 < narrow_high - narrow_low < high - low
        assert re.search(r"1\.5\dx", row_of(late, "default"))
        assert re.search(r"\d\d,\d\d\d$", row_of(late, "default").rstrip())
        assert re.search(r"cache hits +2", late)


async def test_break_even_is_not_computed_at_every_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Mode] = []
    judge = arms_table.mode_result
    monkeypatch.setattr(arms_table, "monotonic", Clock())
    monkeypatch.setattr(arms_table, "mode_result", lambda state, mode: calls.append(mode) or judge(state, mode))
    async with shown(recording=CONVNET, path=tmp_path) as at:
        await at.advance(54.0)
        calls.clear()
        for step in range(10):
            await at.advance(54.0 + 0.1 * step)
        assert calls == []


async def test_before_the_first_step_it_says_what_the_worker_does(tmp_path: Path) -> None:
    async with shown(recording=CONVNET, path=tmp_path) as at:
        assert "eager (1 of 5): importing torch" in await at.go_to(3.0)
        assert "importing torch and its compiler" in await at.go_to(20.0)


async def test_gpu_histories_and_missing_values(tmp_path: Path) -> None:
    async with shown(recording=CONVNET, path=tmp_path, size=(120, 36)) as at:
        text = await at.go_to(MID_COMPILE_S)
        assert re.search(r"SM clock .*1,980 MHz", text)
        assert re.search(r"power .*1\d\d W", text)
        assert re.search(r"throttle +none", text)
    blank = [replace(e, **dict.fromkeys(_GPU_FIELDS)) if isinstance(e, ev.GpuSample) else e for e in until(CONVNET, 31)]
    async with shown(events=blank, path=tmp_path, size=(120, 36)) as at:
        text = await at.go_to(MID_COMPILE_S)
        for label in ("GPU", "memory", "SM clock", "power", "temp", "throttle", "others"):
            assert re.search(rf"{label} +n/a", text), label


_GPU_FIELDS = (
    "utilisation_percent", "memory_used_bytes", "memory_total_bytes", "sm_clock_mhz", "power_w", "power_limit_w",
    "temperature_c", "throttle_reasons", "other_pids", "other_memory_bytes", "other_utilisation_percent",
)  # fmt: skip


async def test_throttling_and_other_processes_are_named(tmp_path: Path) -> None:
    sample = ev.GpuSample(
        t_s=31.0, throttle_reasons=("sw thermal slowdown",), other_pids=(4711, 4712), other_memory_bytes=3 << 30,
        other_utilisation_percent=12.0,
    )  # fmt: skip
    async with shown(events=[*until(CONVNET, 30.9), sample], path=tmp_path, size=(120, 36)) as at:
        text = await at.go_to(31.0)
        assert "sw thermal slowdown" in text
        assert re.search(r"others +2, 3\.00 GiB, 12 %", text)


async def test_without_a_gpu_the_cpu_takes_its_place(tmp_path: Path) -> None:
    async with shown(recording=POINTWISE, path=tmp_path) as at:
        text = await at.go_to(20.0)
        assert "AMD EPYC" in text
        assert re.search(r"CPU .*\d %", text)
        assert "SM clock" not in text and "throttle" not in text


async def test_breaks_and_recompiles_appear_as_they_happen_and_stay_literal(tmp_path: Path) -> None:
    nasty = ev.GraphBreak(
        t_s=30.0, process=2, compile_id="0/0", file="/m/[bold]net\x1b[31m.py", line=7, reason="call to [/] print"
    )
    again = ev.Recompiled(
        t_s=30.2, process=2, compile_id="0/1", failures=(ev.GuardFailure("size mismatch at index 0"),)
    )
    async with shown(events=[*until(CONVNET, 29.9), nasty, again], path=tmp_path, size=(120, 36)) as at:
        before = await at.go_to(29.9)
        assert re.search(r"breaks +0", before)
        text = await at.go_to(30.2)
        assert "! graph break [bold]net.py:7 call to [/] print" in text
        assert "! recompiled 0/1 size mismatch at index 0" in text
        assert re.search(r"breaks +1", text) and re.search(r"recompiles +1", text)


async def test_a_failed_mode_says_why_in_its_row(tmp_path: Path) -> None:
    failed = ev.WorkerFailed(
        t_s=31.0, process=2, stage="step", error_type="BackendError", message="no compiler", fault="compiler"
    )
    gone = ev.PhaseEnded(
        t_s=31.2, process=2, phase=Phase.COLD, mode=Mode.DEFAULT, outcome=ev.Outcome.ERROR, seconds=1.0
    )
    async with shown(events=[*until(CONVNET, 30.9), failed, gone], path=tmp_path) as at:
        row = row_of(await at.go_to(31.2), "default")
        assert "error" in row and "BackendError: no compiler" in row


# ---------------------------------------------------------------- ends


async def test_a_replay_stays_at_its_end_and_offers_the_verdict(tmp_path: Path, asked: Asked) -> None:
    async with shown(recording=CONVNET, path=tmp_path) as at:
        text = await at.go_to(1_000.0)
        assert "ended: ENABLE (v verdict, b back)" in text
        assert isinstance(at.app.screen, RunScreen) and asked.verdicts == []
        await at.pilot.press("v")
        assert asked.verdicts == ["ENABLE"]


async def test_a_live_run_that_has_ended_hands_over_by_itself(tmp_path: Path, asked: Asked) -> None:
    feed = StubFeed(tmp_path, recorded_events(CONVNET))
    async with shown(feed, path=tmp_path) as at:
        feed.ended = True
        await at.advance(0)
        assert asked.verdicts[:1] == ["ENABLE"]


async def test_a_paused_view_is_not_taken_away(tmp_path: Path, asked: Asked) -> None:
    feed = StubFeed(tmp_path, until(CONVNET, MID_COMPILE_S))
    async with shown(feed, path=tmp_path) as at:
        await at.advance(0)
        await at.pilot.press("space")
        feed.waiting, feed.ended = list(recorded_events(CONVNET)[-700:]), True
        text = await at.go_to(0)
        assert "PAUSED" in text and "ended: ENABLE" in text and asked.verdicts == []
        await at.pilot.press("space")
        assert asked.verdicts[:1] == ["ENABLE"]


async def test_a_lost_run_says_so(tmp_path: Path, asked: Asked) -> None:
    feed = StubFeed(tmp_path, until(CONVNET, MID_COMPILE_S))
    async with shown(feed, path=tmp_path, size=(120, 36)) as at:
        feed.lost, feed.ended = "the run's process is gone", True
        text = await at.go_to(0)
        assert "LOST (v verdict so far, b back): the run's process is gone" in text
        assert isinstance(at.app.screen, RunScreen)
        await at.pilot.press("v")
        assert asked.verdicts == [None]


# ---------------------------------------------------------------- keys


class Asked:
    """What the screen asked of the application and of the run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.verdicts: list[str | None] = []
        self.setups: list[str | None] = []
        self.runs: list[str] = []

        def show_verdict(app: TCompileApp, folder: Any, state: RunState) -> None:
            self.verdicts.append(state.ended.decision if state.ended is not None else None)

        def tell(what: str) -> Callable[[Any], bool]:
            return lambda folder: self.runs.append(what) or True

        monkeypatch.setattr(TCompileApp, "show_verdict", show_verdict)
        monkeypatch.setattr(
            TCompileApp, "show_setup", lambda app, target=None, complaint="": self.setups.append(target)
        )
        monkeypatch.setattr(run_module, "ask_to_decide_now", tell("decide"))
        monkeypatch.setattr(run_module, "ask_to_abandon", tell("abandon"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


@pytest.fixture
def live(tmp_path: Path) -> StubFeed:
    return StubFeed(tmp_path, until(CONVNET, MID_COMPILE_S))


async def test_pause_holds_the_picture_while_records_are_taken_in(tmp_path: Path) -> None:
    async with shown(recording=CONVNET, path=tmp_path) as at:
        await at.advance(MID_COMPILE_S)
        await at.pilot.press("space")
        text = await at.go_to(PAIRS_S)
        assert "REPLAY x1 PAUSED" in text
        assert "compiler: cold default" in text and "95 %" in text
        assert len(at.screen.state.processes) == 3
        await at.pilot.press("space")
        await at.pilot.pause()
        assert "compiler: warm default" in at.text()


async def test_decide_now_and_stop(tmp_path: Path, live: StubFeed, asked: Asked) -> None:
    async with shown(live, path=tmp_path) as at:
        await at.pilot.press("d")
        assert asked.runs == ["decide"] and "asked: it decides" in at.text()
        await at.pilot.press("x")
        assert isinstance(at.app.screen, ConfirmScreen)
        await at.pilot.press("n")
        assert asked.runs == ["decide"]
        await at.pilot.press("x", "y")
        assert asked.runs == ["decide", "abandon"]


async def test_back_leaves_the_run_alone(tmp_path: Path, live: StubFeed, asked: Asked) -> None:
    async with shown(live, path=tmp_path) as at:
        await at.pilot.press("b")
        assert asked.setups == [None] and asked.runs == []


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_leaving_a_live_run_asks(tmp_path: Path, live: StubFeed, asked: Asked, key: str) -> None:
    async with shown(live, path=tmp_path) as at:
        await at.pilot.press(key)
        assert isinstance(at.app.screen, LeaveScreen)
        await at.pilot.press("c")
        assert isinstance(at.app.screen, RunScreen) and at.app.is_running
        await at.pilot.press(key, "k")
        assert asked.runs == [] and not at.app.is_running
    assert live.closed


async def test_quit_in_the_palette_asks_too(tmp_path: Path, live: StubFeed, asked: Asked) -> None:
    async with shown(live, path=tmp_path) as at:
        await at.pilot.press("ctrl+p", *"Quit")
        await at.pilot.pause(0.3)  # it searches in the background
        await at.pilot.press("enter")
        await at.pilot.pause()
        assert isinstance(at.app.screen, LeaveScreen)


async def test_the_run_is_seen_behind_the_question(tmp_path: Path, live: StubFeed) -> None:
    async with shown(live, path=tmp_path) as at:
        await at.pilot.press("q")
        assert at.app.screen.styles.background.a < 1


async def test_leaving_can_stop_the_run(tmp_path: Path, live: StubFeed, asked: Asked) -> None:
    async with shown(live, path=tmp_path) as at:
        await at.pilot.press("q", "s")
        assert asked.runs == ["abandon"] and not at.app.is_running


async def test_a_replay_is_left_without_a_question(tmp_path: Path) -> None:
    async with shown(recording=CONVNET, path=tmp_path) as at:
        await at.pilot.press("ctrl+q")
        assert not at.app.is_running


async def test_speed_of_a_replay(tmp_path: Path) -> None:
    async with shown(recording=CONVNET, path=tmp_path) as at:
        await at.pilot.press("greater_than_sign", "greater_than_sign")
        assert "REPLAY x4" in at.text()
        await at.advance(5.0)
        assert 15 < at.screen.state.now_s <= 20
        await at.pilot.press("less_than_sign")
        assert "REPLAY x2" in at.text()
        await at.pilot.press("0")
        assert "REPLAY held" in at.text()
        stands_at = at.screen.state.now_s
        await at.advance(50.0)
        assert at.screen.state.now_s == stands_at
        await at.pilot.press("0")
        assert "REPLAY x2" in at.text()
        await at.pilot.press("e")
        assert "ended: ENABLE" in await at.go_to(50.0)


async def test_keys_of_the_other_kind_do_nothing_and_are_not_offered(
    tmp_path: Path, live: StubFeed, asked: Asked
) -> None:
    async with shown(live, path=tmp_path) as at:
        footer = at.text().splitlines()[-1]
        assert "Decide" in footer and "Slow" not in footer
        await at.pilot.press("e", "greater_than_sign")
    async with shown(recording=CONVNET, path=tmp_path) as at:
        footer = at.text().splitlines()[-1]
        assert "Slow" in footer and "Decide" not in footer and "Help" in footer
        await at.pilot.press("d")
        assert asked.runs == [] and isinstance(at.app.screen, RunScreen)


async def test_zoom_and_whole_run(tmp_path: Path) -> None:
    async with shown(recording=CONVNET, path=tmp_path) as at:
        await at.advance(PAIRS_S)
        plot = at.screen.query_one(TimingPlot)
        await at.pilot.press("plus", "plus")
        assert plot.window is not None
        seen = plot.window
        await at.pilot.press("minus")
        assert plot.window is not None and plot.window > seen
        await at.pilot.press("z")
        assert plot.window is None
        await at.pilot.press("z")
        assert plot.window is not None


async def test_the_log_comes_and_goes(tmp_path: Path) -> None:
    async with shown(recording=CONVNET, path=tmp_path) as at:
        await at.advance(MID_COMPILE_S)
        log = tmp_path / CONVNET / "log.txt"
        await at.pilot.press("l")
        assert "a line that the model printed" in await at.go_to(MID_COMPILE_S)
        with log.open("a") as file:
            file.write("[red]epoch\x1b[0m 1\n")
        assert "[red]epoch 1" in await at.go_to(MID_COMPILE_S)
        assert isinstance(at.app.focused, Log)
        await at.pilot.press("escape")
        await at.pilot.pause()
        assert "epoch" not in at.text() and isinstance(at.app.screen, RunScreen)


# ---------------------------------------------------------------- terminals and loads


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (1, 1), (59, 30), (60, 17), (200, 60), (12, 50)])
@pytest.mark.parametrize("recording", [CONVNET, POINTWISE])
async def test_no_size_is_too_small(tmp_path: Path, recording: str, size: tuple[int, int]) -> None:
    async with shown(recording=recording, path=tmp_path, size=size) as at:
        for seconds in (0.0, 3.0, 20.0, MID_COMPILE_S, PAIRS_S, 1e6):
            await at.advance(seconds)
        await at.pilot.press("l")
        await at.advance(1e6)


async def test_at_40_columns_the_arms_and_the_stage_are_still_there(tmp_path: Path) -> None:
    async with shown(recording=CONVNET, path=tmp_path, size=(40, 12)) as at:
        text = await at.go_to(MID_COMPILE_S)
        for word in ("cold default 2/5", "convnet.py:56", "kernel compile", "eager", "default", "reduce-overhead"):
            assert word in text, word


async def test_without_utf8_everything_is_ascii(tmp_path: Path) -> None:
    for recording in (CONVNET, POINTWISE):
        for size in ((80, 24), (120, 36), (40, 12)):
            async with shown(recording=recording, path=tmp_path / f"{size}", size=size, ascii_only=True) as at:
                for seconds in (0.0, 20.0, MID_COMPILE_S, PAIRS_S, 1e6):
                    assert (await at.go_to(seconds)).isascii()
                await at.pilot.press("l")
                assert (await at.go_to(1e6)).isascii()


async def test_colours_can_be_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with shown(recording=CONVNET, path=tmp_path) as at:
        assert at.app.no_color
        assert "forward" in await at.go_to(MID_COMPILE_S)
        assert "pairs" in await at.go_to(PAIRS_S)


def test_a_flood_of_records_is_taken_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the clock stands for a millisecond of work."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(intake_module, "perf_counter", lambda: next(ticks) / 1e3)
    sample = ev.HostSample(t_s=1.0, cpu_percent=1.0, memory_used_bytes=1, memory_total_bytes=2)
    feed, state = StubFeed(tmp_path, [sample] * 2_000), RunState()
    feed.ended = True
    intake = Intake(feed, state)
    assert intake.take(0.006) and 0 < state.events < 10 and not intake.over
    while intake.take(0.006):
        pass
    assert state.events == 2_000 and intake.over


async def test_a_tick_without_news_draws_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown(recording=CONVNET, path=tmp_path) as at:
        await at.advance(PAIRS_S)
        drawn: list[object] = []
        for widget in at.screen.walk_children():
            monkeypatch.setattr(widget, "refresh", lambda *regions, w=widget, **options: drawn.append(w))
        at.screen.tick()
        assert drawn == []


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
@pytest.mark.parametrize("seconds", [MID_COMPILE_S, PAIRS_S], ids=["compile", "pairs"])
def test_pictures(
    snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, size: tuple[int, int]
) -> None:
    now, clock = Clock(), Clock()
    monkeypatch.setattr(arms_table, "monotonic", now)
    app = TCompileApp(tmp_path, feed=ReplayFeed(tmp_path, recorded_events(CONVNET), clock=clock), ascii_only=False)

    async def go_there(pilot: Pilot[None]) -> None:
        at = Shown(app, pilot, clock)
        for second in range(int(seconds)):
            await at.advance(float(second))
        now.now_s += 60
        await at.advance(seconds)

    assert isinstance(app, App)
    assert snap_compare(app, terminal_size=size, run_before=go_there)
