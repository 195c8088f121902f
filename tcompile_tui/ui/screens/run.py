"""Run: what a measurement does, as it does it; a recorded one at its own pace."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer, Log

from tcompile_tui.core.spec import Arm
from tcompile_tui.core.state import ArmSteps, RunState
from tcompile_tui.ui.commands import Command, CommandScreen
from tcompile_tui.ui.feeds import Feed, ReplayFeed
from tcompile_tui.ui.intake import Intake
from tcompile_tui.ui.launch import ask_to_abandon, ask_to_decide_now
from tcompile_tui.ui.screens.confirm import ConfirmScreen
from tcompile_tui.ui.screens.leave import Leave, LeaveScreen
from tcompile_tui.ui.widgets.arms_table import ArmsTable
from tcompile_tui.ui.widgets.compile_panel import CompilePanel
from tcompile_tui.ui.widgets.gpu_panel import GpuPanel
from tcompile_tui.ui.widgets.live_panel import LivePanel, name_pane
from tcompile_tui.ui.widgets.log_panel import LogPanel
from tcompile_tui.ui.widgets.run_title import RunTitle, latest_process
from tcompile_tui.ui.widgets.timing_plot import TimingPlot

if TYPE_CHECKING:
    from tcompile_tui.ui.app import TCompileApp

TICK_S = 0.2
_APPLY_S = 0.006
_CATCH_UP_S = 0.03
_MESSAGE_S = 5.0
_PLOT_TITLE = "step times, keys + - z zoom, g log scale"
_SPEEDS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_LIVE_ACTIONS = {"decide_now"}
_REPLAY_ACTIONS = {"slower", "faster", "hold", "jump_to_end"}


def plotted(state: RunState) -> tuple[ArmSteps | None, ArmSteps | None]:
    """The series to compare by eye: those of the present process, with the last known eager steps."""
    process = latest_process(state)
    if process is None:
        return None, None
    eager = next((p.arms[Arm.EAGER] for p in reversed(state.processes.values()) if Arm.EAGER in p.arms), None)
    return eager, process.arms.get(Arm.COMPILED) if process.phase.compiles else None


class RunScreen(CommandScreen[None]):
    """Follows `feed`. When a live run has ended its verdict comes by itself; a replay stays."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("space", "pause", "Pause", "Hold the picture; the run and its records go on"),
        Command("l", "log", "Log", "What the model prints"),
        Command("d", "decide_now", "Decide", "End the measuring now and decide with what is there"),
        Command("x", "stop", "Stop", "End the run without a decision (asks first)"),
        Command("x", "caches", "Caches", "The compile caches, the run's among them, and clearing them", show=False),
        Command("less_than_sign", "slower", "Slow", "Half the speed of the replay"),
        Command("greater_than_sign", "faster", "Fast", "Double the speed of the replay"),
        Command("0", "hold", "Hold", "Hold the replay, or let it go on"),
        Command("e", "jump_to_end", "End", "Jump to the end of the replay"),
        Command("plus,equals_sign", "zoom_in", "Zoom in", "Plot fewer of the last steps", show=False),
        Command("minus", "zoom_out", "Zoom out", "Plot more of the last steps", show=False),
        Command("z", "whole_run", "Whole run", "Plot the whole run, or its tail", show=False),
        Command("g", "log_scale", "Log scale", "Plot times on a logarithmic scale, or a linear one", show=False),
        Command("v", "verdict", "Verdict", "The verdict; before the end, the one so far"),
        Command("b", "back", "Back", "To Setup; a live run goes on"),
        Command("escape", "close", "Close", "Close the log, or go back", show=False),
        Command("q,ctrl+q", "leave", "Quit", "Leave; asks what becomes of a live run", show=False),
    )
    HELP = """\
now         what a worker process does; each arm and mode has processes of its own, first cold, then warm
speedup     eager step time over compiled step time, from neighbouring pairs of blocks, with its 95 % interval
break-even  steps after which a cold start is paid back, as far as it is known; if warm: with filled caches
compiler    the frame, its graph and the stages that are open now, each with its seconds
plot        c on the axis: the compiler worked in this step; ^ at the top: a step above the scale
histories   two seconds a character, from 0 to the value's limit"""
    HORIZONTAL_BREAKPOINTS = [(0, "-single"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (18, "-normal"), (32, "-tall")]  # noqa: RUF012
    DEFAULT_CSS = """
    RunScreen { overflow: hidden; }
    RunScreen .pane { border-top: solid $primary-darken-1; border-title-color: $text; border-title-style: bold;
        padding: 0 1; }
    RunScreen.-ascii .pane { border-top: ascii $primary-darken-1; }
    RunScreen #upper { height: 1fr; min-height: 2; }
    RunScreen #plot { width: 1fr; height: 100%; }
    RunScreen #device { width: 31; height: 100%; }
    RunScreen #compile { height: 6; }
    RunScreen #arms { height: auto; }
    RunScreen #log { height: 11; display: none; }
    RunScreen.-logging #log { display: block; }
    RunScreen.-logging #compile, RunScreen.-logging #arms { display: none; }
    RunScreen.-tall #compile { height: 10; }
    RunScreen.-tall #log { height: 16; }
    RunScreen.-wide #device { width: 40; }
    RunScreen.-wide.-tall .pane { border: round $primary-darken-1; }
    RunScreen.-wide.-tall.-ascii .pane { border: ascii $primary-darken-1; }
    RunScreen.-tall.-logging #arms { display: block; }
    RunScreen.-single #device, RunScreen.-flat #device { display: none; }
    RunScreen.-flat #upper { min-height: 0; }
    RunScreen.-flat #compile { height: 3; }
    RunScreen.-flat #log { height: 1fr; }
    RunScreen.-flat.-logging #upper { display: none; }
    """

    def __init__(self, feed: Feed) -> None:
        super().__init__()
        self._feed = feed
        self.state = RunState()
        self._intake = Intake(feed, self.state)
        self._behind = False
        self._paused = False
        self._speed = feed.speed if isinstance(feed, ReplayFeed) and feed.speed > 0 else 1.0
        self._message = ""
        self._goes_on = feed.live

    # ------------------------------------------------------------ Textual

    def compose(self) -> ComposeResult:
        ascii_only = self._program.ascii_only
        self.set_class(ascii_only, "-ascii")
        yield RunTitle(ascii_only=ascii_only)
        with Horizontal(id="upper"):
            with Vertical(id="plot", classes="pane"):
                yield TimingPlot(ascii_only=ascii_only)
            yield GpuPanel(ascii_only=ascii_only, id="device", classes="pane")
        yield CompilePanel(ascii_only=ascii_only, id="compile", classes="pane")
        yield LogPanel(self._feed.folder.log, ascii_only=ascii_only, id="log", classes="pane")
        yield ArmsTable(ascii_only=ascii_only, id="arms", classes="pane")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self.tick)
        self.tick()

    def on_unmount(self) -> None:
        self._feed.close()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A replay cannot be stopped, a live run not be slowed down; what has ended has caches to look at."""
        if action == "caches":
            return not self._is_going_on
        if action == "stop":
            return self._is_going_on
        return action not in (_REPLAY_ACTIONS if self._feed.live else _LIVE_ACTIONS)

    @property
    def _is_going_on(self) -> bool:
        return self._feed.live and not self._intake.over and self.state.ended is None

    # ------------------------------------------------------------ the beat

    def tick(self) -> None:
        """Take in what is due, draw what has changed, and hand over when a live run has ended."""
        self._catch_up()
        if self._goes_on and not self._is_going_on:
            self._goes_on = False
            self.refresh_bindings()
        if self._paused:
            self._draw_title()
        else:
            self._draw()
        if self._may_hand_over:
            self._program.show_verdict(self._feed.folder, self.state)

    @property
    def _may_hand_over(self) -> bool:
        ended = self._feed.live and self._intake.over and self.state.ended is not None
        return ended and not self._paused and self.is_current

    def _catch_up(self) -> None:
        """Between two beats again and again, as long as records wait, so that keys are still heard."""
        waiting = self._intake.take(_APPLY_S)
        if waiting and not self._behind:
            self.set_timer(_CATCH_UP_S, self._go_on)
        self._behind = waiting

    def _go_on(self) -> None:
        self._behind = False
        self._catch_up()

    @property
    def _now_s(self) -> float:
        return self.state.now_s if self._behind else self._feed.now_s()

    def _draw(self) -> None:
        now_s = self._now_s
        for panel in self.query(LivePanel):
            if panel.display and not isinstance(panel, RunTitle):
                panel.show(self.state, now_s)
        self.query_one(TimingPlot).show(*plotted(self.state))
        name_pane(self.query_one("#plot"), _PLOT_TITLE, self._program.ascii_only)
        if self.has_class("-logging"):
            self.query_one(LogPanel).look()
        self._draw_title()

    def _draw_title(self) -> None:
        title = self.query_one(RunTitle)
        title.flag = self._flag()
        title.bad = self._feed.lost is not None
        title.message = self._message or self._ending()
        title.show(self.state, self._now_s)

    def _flag(self) -> str:
        paused = "PAUSED" if self._paused else ""
        if not isinstance(self._feed, ReplayFeed):
            return paused
        speed = self._feed.speed
        pace = "held" if speed == 0 else "" if math.isinf(speed) else f"x{speed:g}"
        return " ".join(part for part in ("REPLAY", pace, paused) if part)

    def _ending(self) -> str:
        if self._feed.lost is not None:
            return f"LOST (v verdict so far, b back): {self._feed.lost}"
        if not self._intake.over:
            return ""
        if self.state.ended is None:
            return "the records end here (v verdict so far, b back)"
        return f"ended: {self.state.ended.decision} (v verdict, b back)"

    # ------------------------------------------------------------ keys

    def action_pause(self) -> None:
        self._paused = not self._paused
        self.tick()

    def action_log(self) -> None:
        self.toggle_class("-logging")
        log = self.query_one(LogPanel)
        if self.has_class("-logging"):
            log.look()
            log.query_one(Log).focus()
        else:
            self.set_focus(None)

    def action_zoom_in(self) -> None:
        self.query_one(TimingPlot).zoom_in()

    def action_zoom_out(self) -> None:
        self.query_one(TimingPlot).zoom_out()

    def action_whole_run(self) -> None:
        plot = self.query_one(TimingPlot)
        if plot.window is None:
            plot.zoom_in()
        else:
            plot.window = None

    def action_log_scale(self) -> None:
        self.query_one(TimingPlot).toggle_log()

    def action_decide_now(self) -> None:
        asked = ask_to_decide_now(self._feed.folder)
        self._say("asked: it decides with what is there" if asked else _NOT_REACHED)

    def action_stop(self) -> None:
        question = "Stop this run? Nothing will be decided; its folder stays."
        self.app.push_screen(ConfirmScreen(question, "stop it"), self._stop_if)

    def _stop_if(self, yes: bool | None) -> None:
        if yes:
            self._say("asked: it stops" if ask_to_abandon(self._feed.folder) else _NOT_REACHED)

    def action_caches(self) -> None:
        self._program.show_caches(self._feed.folder)

    def action_back(self) -> None:
        info = self._feed.folder.read_info()
        here = info is not None and info.cwd == str(Path.cwd())
        self._program.show_setup(str(info.spec.target) if info is not None and here else None)

    def action_close(self) -> None:
        self.action_log() if self.has_class("-logging") else self.action_back()

    def action_verdict(self) -> None:
        if self.state.run is not None:
            self._program.show_verdict(self._feed.folder, self.state)
        else:
            self._say("nothing is known yet")

    def action_leave(self) -> None:
        if self._is_going_on:
            self.app.push_screen(LeaveScreen(), self._leave_by)
        else:
            self.app.exit()

    def _leave_by(self, choice: Leave | None) -> None:
        if choice is Leave.STOP and not ask_to_abandon(self._feed.folder):
            self._say(_NOT_REACHED)
        elif choice in (Leave.KEEP, Leave.STOP):
            self.app.exit()

    # ------------------------------------------------------------ keys of a replay

    def action_slower(self) -> None:
        self._set_speed(_SPEEDS[max(0, bisect_left(_SPEEDS, self._speed) - 1)])

    def action_faster(self) -> None:
        self._set_speed(_SPEEDS[min(len(_SPEEDS) - 1, bisect_right(_SPEEDS, self._speed))])

    def action_hold(self) -> None:
        if isinstance(self._feed, ReplayFeed):
            self._feed.speed = 0.0 if self._feed.speed else self._speed
            self._draw_title()

    def action_jump_to_end(self) -> None:
        if isinstance(self._feed, ReplayFeed):
            self._feed.speed = math.inf
            self.tick()

    def _set_speed(self, speed: float) -> None:
        self._speed = speed
        if isinstance(self._feed, ReplayFeed):
            self._feed.speed = speed
            self._draw_title()

    # ------------------------------------------------------------ small things

    def _say(self, message: str) -> None:
        """In the title, for a few seconds."""
        self._message = message
        self._draw_title()
        self.set_timer(_MESSAGE_S, self._unsay)

    def _unsay(self) -> None:
        self._message = ""
        self._draw_title()

    @property
    def _program(self) -> TCompileApp:
        return cast("TCompileApp", self.app)


_NOT_REACHED = "the run cannot be reached: it has ended, or it is of another host"
