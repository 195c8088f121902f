"""The first line of a running measurement: what is measured, where it stands, how much time is left."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from textual.content import Content

from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import plural
from tcompile_tui.ui.widgets.literal import one_line
from tcompile_tui.ui.widgets.live_panel import DIM, LivePanel, cut, spread

_GAP = "  "


def latest_process(state: RunState) -> ProcessState | None:
    """The worker that runs now, else the last one that ran."""
    return state.current or next(reversed(state.processes.values()), None)


def process_name(process: ProcessState) -> str:
    """`cold default`."""
    return f"{process.phase.value} {process.mode.value}" if process.mode is not None else process.phase.value


def activity(process: ProcessState) -> str:
    """What a worker does now, in a few words."""
    if not process.running:
        return "ended"
    if process.facts is None:
        return "importing torch" if process.mode is None else "importing torch and its compiler"
    if process.model is None:
        return "building the model"
    if process.compile.current_stages:
        return "compiling"
    if process.done:
        return "ending"
    if process.pairs:
        return plural(len(process.pairs), "pair")
    if process.replay is not None:
        return f"replaying, {process.replay.started.handling.label}"
    if process.apart:
        (name, blocks), *_ = process.apart.items()
        return f"{name.value} alone, {plural(len(blocks), 'block')}"
    arm = process.arms.get(Arm.EAGER if process.mode is None else Arm.COMPILED)
    if arm is None or not len(arm.series):
        return "first step"
    if process.phase is Phase.WARM and Arm.EAGER in process.arms:
        return "comparing"
    return "warming up"


def processes_planned(state: RunState) -> int:
    """Workers that ran, run and will run, if nothing fails: one for eager, two a mode, and whatever else was started;
    whether a mode needs further ones shows only when it is measured."""
    begun: set[Mode] = {process.mode for process in state.processes.values() if process.mode is not None}
    ahead = 2 * sum(mode not in begun for mode in state.modes)
    latest = latest_process(state)
    if latest is None:
        return 1 + ahead
    is_first = latest.mode is not None and len(state.processes_of(Phase.COLD, latest.mode)) == 1
    warm_follows = latest.phase is Phase.COLD and is_first and (latest.running or latest.compiled_anything)
    return len(state.processes) + ahead + warm_follows


def clock(seconds: float) -> str:
    """`0:32`, `1:02:05`."""
    whole = max(0, int(seconds))
    minutes = f"{whole // 60 % 60}:{whole % 60:02d}"
    return minutes if whole < 3600 else f"{whole // 3600}:{minutes.zfill(5)}"


class RunTitle(LivePanel):
    """`flag` stands first (a replay and its speed, a paused view); `message` takes the place of all that is less
    important while it is set; `bad` marks it as trouble."""

    DEFAULT_CSS = """
    RunTitle { height: 1; padding: 0 1; background: $panel; }
    """
    flag = ""
    message = ""
    bad = False

    def lines(self, state: RunState, now_s: float, width: int, height: int) -> list[Content]:
        """The fullest of several wordings that fits."""
        wordings = list(self._wordings(state, now_s))
        line = next((line for line in wordings if line.cell_length <= width), None)
        if line is None:
            return [Content.styled(cut(wordings[-1].plain, width, self.ascii_only), "bold")]
        device = self._device(state)
        if not self.message and cell_len(device) + len(_GAP) <= width - line.cell_length:
            return [spread(line, device, width, DIM)]
        return [line]

    def _wordings(self, state: RunState, now_s: float) -> Iterator[Content]:
        flag = (self.flag, "bold reverse")
        name = (one_line(state.run.spec.target.label, self.ascii_only) if state.run is not None else "starting", "bold")
        if self.message:
            message = (one_line(self.message, self.ascii_only), "bold $error" if self.bad else "bold $accent")
            yield _joined(flag, name, message)
            yield _joined(flag, message)
            yield _joined(message)
            return
        standing, short = self._standing(state)
        time = (self._time(state, now_s), "")
        yield _joined(flag, name, (standing, ""), time)
        yield _joined(flag, name, (short, ""), time)
        yield _joined(flag, name, (short, ""))
        yield _joined(flag, (short, ""))
        yield _joined((short or name[0], ""))

    def _standing(self, state: RunState) -> tuple[str, str]:
        """Phase, mode, which process of how many and what it does; and the same in short."""
        process = latest_process(state)
        if state.ended is not None:
            decision = one_line(state.ended.decision, self.ascii_only)
            return f"ended: {decision}", decision
        if process is None:
            return "", ""
        name, begun, planned = process_name(process), len(state.processes), processes_planned(state)
        return f"{name} ({begun} of {planned}): {activity(process)}", f"{name} {begun}/{planned}"

    def _time(self, state: RunState, now_s: float) -> str:
        if state.run is None:
            return ""
        return f"{clock(now_s)} of {clock(state.run.spec.budget_s)}"

    def _device(self, state: RunState) -> str:
        return one_line(state.run.device_name, self.ascii_only) if state.run is not None else ""


def _joined(*parts: tuple[str, str]) -> Content:
    return Content(_GAP).join([Content.styled(text, style) for text, style in parts if text])
