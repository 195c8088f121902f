"""Eager and every mode, one row each: how far, how fast, how sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

from textual.content import Content

from tcompile_tui.core import events as ev
from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.pairs import SpeedupInterval
from tcompile_tui.core.results import ModeResult, mode_result
from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.core.state import ArmSteps, ProcessState, RunState
from tcompile_tui.core.units import MISSING, count, duration, milliseconds, ratio
from tcompile_tui.ui.widgets.literal import one_line
from tcompile_tui.ui.widgets.live_panel import DIM, LivePanel, cut
from tcompile_tui.ui.widgets.run_title import activity

_JUDGE_EVERY_S = 1.0
# Judging again may take this share of the UI's time.
_JUDGE_SHARE = 0.05
_MILLION = 1_000_000
_SHORT_NAMES = {Mode.MAX_AUTOTUNE_NO_CUDAGRAPHS: "max-autotune-no-cg"}
_ROOMY_CELLS = 100
_NAME_CELLS = 18
_SHORT_STATES = {"building the model": "building", "importing torch and its compiler": "importing"}
_SHORT_STATES["importing torch"] = "importing"


@dataclass(frozen=True)
class _Column:
    """`rank` says how important it is: where there is little room the highest ranks fall off."""

    title: str
    rank: int
    right: bool = True
    style: str = ""


_COLUMNS = (
    _Column("", 0, right=False),
    _Column("now", 3, right=False),
    _Column("steps", 6),
    _Column("step time", 1),
    _Column("speedup", 2, style="bold"),
    _Column("95 % interval", 4),
    _Column("pairs", 8),
    _Column("cold start", 9),
    _Column("break-even", 5),
    _Column("if warm", 10),
)


@dataclass(frozen=True)
class _Row:
    cells: tuple[str, ...]
    style: str
    active: bool = False
    trouble: str = ""


class ArmsTable(LivePanel):
    """The interval narrows while pairs come in; the break-even is in steps, so far."""

    GROWS: ClassVar[bool] = True

    def __init__(self, *, ascii_only: bool = False, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(ascii_only=ascii_only, id=id, classes=classes)
        self._results: dict[Mode, ModeResult] = {}
        self._judged: tuple[int, int] = (-1, -1)
        self._judge_at = 0.0

    def heading(self, state: RunState) -> str:
        return "eager and compiled"

    def show(self, state: RunState, now_s: float) -> None:
        self._judge(state)
        super().show(state, now_s)

    def lines(self, state: RunState, now_s: float, width: int, height: int) -> list[Content]:
        rows = [_eager_row(state), *(_mode_row(state, mode, self._results.get(mode)) for mode in state.modes)]
        rows = [_fitting_name(row, width, self.ascii_only) for row in rows]
        columns = _fitting(rows, width)
        widths = {i: max(len(_COLUMNS[i].title), *(len(row.cells[i]) for row in rows)) for i in columns}
        gap = "  " if sum(widths.values()) + 2 * (len(columns) - 1) <= width else " "
        head = gap.join(_aligned(_COLUMNS[i].title, widths[i], _COLUMNS[i]) for i in columns)
        return [Content.styled(head.rstrip(), DIM), *(self._line(row, columns, widths, gap, width) for row in rows)]

    def _line(self, row: _Row, columns: Sequence[int], widths: dict[int, int], gap: str, width: int) -> Content:
        parts: list[Content] = []
        for i in columns:
            style = row.style if i == 0 else DIM if row.cells[i] == MISSING else _COLUMNS[i].style
            style = f"bold {style}" if row.active and i == 0 else style
            parts.append(Content.styled(_aligned(row.cells[i], widths[i], _COLUMNS[i]), style))
            if row.trouble and i == 1:
                used = sum(part.cell_length for part in parts) + len(gap) * len(parts)
                text = cut(one_line(row.trouble, self.ascii_only), width - used, self.ascii_only)
                return Content(gap).join([*parts, Content.styled(text, "$warning")])
        return Content(gap).join(parts).rstrip()

    def _judge(self, state: RunState) -> None:
        """All modes when a process has begun or ended, the present one about once a second."""
        ended = len(state.processes), sum(not process.running for process in state.processes.values())
        changed = ended != self._judged
        if not changed and monotonic() < self._judge_at:
            return
        current = state.current
        modes = state.modes if changed else [current.mode] if current is not None and current.mode is not None else []
        began = monotonic()
        for mode in modes:
            self._results[mode] = mode_result(state, mode)
        now = monotonic()
        self._judged, self._judge_at = ended, now + max(_JUDGE_EVERY_S, (now - began) / _JUDGE_SHARE)


def _eager_row(state: RunState) -> _Row:
    process = state.process_of(Phase.EAGER)
    current = state.current
    active = process is not None and process is current
    arm = _latest_arm(state, Arm.EAGER, None)
    steps = sum(len(p.arms[Arm.EAGER].series) for p in state.processes.values() if Arm.EAGER in p.arms)
    step_time = milliseconds(arm.recent_step_ns if arm is not None else None)
    now = _state_text(process, active)
    cells = ("eager", now, _steps(steps), step_time, "1x", "", "", "", "", "")
    return _Row(cells, "$warning", active, _trouble(process))


def _mode_row(state: RunState, mode: Mode, result: ModeResult | None) -> _Row:
    cold, warm = state.process_of(Phase.COLD, mode), state.process_of(Phase.WARM, mode)
    current = state.current
    apart = state.process_of(Phase.APART, mode)
    process = apart or warm or cold
    active = current is not None and current is process
    arm = _latest_arm(state, Arm.COMPILED, mode)
    steps = sum(
        len(p.arms[Arm.COMPILED].series) for p in (cold, warm, apart) if p is not None and Arm.COMPILED in p.arms
    )
    interval: SpeedupInterval | None = warm.interval if warm is not None else None
    if interval is None and result is not None and result.apart is not None:
        interval = result.apart.speedup
    cold_even, warm_even = (result.break_even_cold, result.break_even_warm) if result is not None else (None, None)
    cold_start = result.cold_start if result is not None else None
    cells = (
        mode.value,
        _state_text(process, active),
        _steps(steps),
        milliseconds(arm.recent_step_ns if arm is not None else None),
        ratio(interval.value if interval is not None else None),
        f"{ratio(interval.lo)[:-1]} to {ratio(interval.hi)[:-1]}" if interval is not None else MISSING,
        count(len(warm.pairs)) if warm is not None else MISSING,
        duration(cold_start.total_s) if cold_start is not None else MISSING,
        _break_even(cold_even.steps if cold_even is not None else None, cold_even is not None),
        _break_even(warm_even.steps if warm_even is not None else None, warm_even is not None),
    )
    if process is None and state.ended is not None:
        return _Row((cells[0], "not run", *cells[2:]), "$success")
    trouble = _trouble(cold) or _trouble(warm)
    if not trouble and result is not None and result.status is ModeStatus.RAN_EAGER:
        return _Row((cells[0], "ran eager", *cells[2:]), "$success", active, result.reason)
    return _Row(cells, "$success", active, trouble)


def _state_text(process: ProcessState | None, active: bool) -> str:
    if process is None:
        return "waiting"
    if active:
        text = activity(process)
        return _SHORT_STATES.get(text, text)
    if process.ended is None or process.ended.outcome is ev.Outcome.OK:
        return "warm next" if process.phase is Phase.COLD else "measured"
    return str(process.ended.outcome.value)


def _trouble(process: ProcessState | None) -> str:
    """Why a process has no result; empty if nothing went wrong."""
    if process is None:
        return ""
    if process.phase is Phase.WARM and process.failure is not None and process.failure.fault == "memory":
        return "eager and compiled do not fit into memory side by side: each runs alone"
    if process.failure is not None:
        return f"{process.failure.error_type}: {process.failure.message}"
    if process.ended is not None and process.ended.outcome not in (ev.Outcome.OK, ev.Outcome.STOPPED):
        return process.ended.detail or f"the {process.phase.value} process was {process.ended.outcome.value}"
    return ""


def _latest_arm(state: RunState, arm: Arm, mode: Mode | None) -> ArmSteps | None:
    """The latest steps of an arm; of eager in any process."""
    for process in reversed(state.processes.values()):
        wanted = (mode is None or process.mode is mode) and process.phase is not Phase.FIT
        steps = process.arms.get(arm) if wanted else None
        if steps is not None and len(steps.series):
            return steps
    return None


def _steps(number: int) -> str:
    return f"{number / _MILLION:.1f}M" if number >= _MILLION else count(number)


def _break_even(steps: float | None, known: bool) -> str:
    if not known:
        return MISSING
    if steps is None:
        return "never"
    return f"{steps / _MILLION:.1f}M" if steps >= _MILLION else count(steps)


# ---------------------------------------------------------------- fitting into the width


def _fitting_name(row: _Row, width: int, ascii_only: bool) -> _Row:
    """A long name is cut short where it would push out a column."""
    name = row.cells[0]
    if width < _ROOMY_CELLS:
        name = next((short for mode, short in _SHORT_NAMES.items() if mode.value == name), name)
    name = cut(name, _NAME_CELLS if width < _ROOMY_CELLS else 2 * _NAME_CELLS, ascii_only)
    return _Row((name, *row.cells[1:]), row.style, row.active, row.trouble)


def _fitting(rows: Sequence[_Row], width: int) -> list[int]:
    """The columns that there is room for, the least important left out."""
    chosen = sorted(range(len(_COLUMNS)), key=lambda i: _COLUMNS[i].rank)
    widths = [max(len(column.title), *(len(row.cells[i]) for row in rows)) for i, column in enumerate(_COLUMNS)]
    while len(chosen) > 1 and sum(widths[i] for i in chosen) + len(chosen) - 1 > width:
        chosen.pop()
    return sorted(chosen)


def _aligned(text: str, width: int, column: _Column) -> str:
    return text.rjust(width) if column.right else text.ljust(width)
