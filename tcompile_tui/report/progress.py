"""The foreground's progress: one line that is rewritten on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
from time import monotonic
from typing import TextIO

from tcompile_tui.core.literal import one_line
from tcompile_tui.core.silence import silence_text
from tcompile_tui.core.spec import Arm, Phase
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import count, milliseconds, plural, ratio

_REWRITE_S = 0.1
_PLAIN_LINE_S = 10.0


class ProgressLine:
    """Call `update` often. When the terminal goes away it falls silent; the run goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rewrites = stream.isatty()
        self._next_at = 0.0
        self._phase: tuple[int, bool] | None = None
        self._width = 0
        self._notices = 0
        self.silent = False

    def update(self, state: RunState) -> None:
        """Show where the run stands, if it is time to."""
        if self.silent:
            return
        for notice in state.notices[self._notices :]:
            self.say(f"{notice.level.value}: {notice.text}")
        self._notices = len(state.notices)
        process, now = state.current, monotonic()
        phase = (process.process, bool(process.arms)) if process is not None else None
        if process is None or (now < self._next_at and phase == self._phase):
            return
        self._phase = phase
        self._next_at = now + (_REWRITE_S if self._rewrites else _PLAIN_LINE_S)
        text = one_line(progress_text(state, process))
        if self._rewrites:
            self._rewrite(text)
        else:
            self._write(f"{text}\n")

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self.silent:
            self._clear()
            self._write(f"{one_line(text)}\n")

    def close(self) -> None:
        self._clear()

    def _rewrite(self, text: str) -> None:
        columns = shutil.get_terminal_size().columns
        text = text if len(text) < columns else text[: columns - 2] + "~"
        self._write("\r" + text + " " * max(0, self._width - len(text)))
        self._width = len(text)

    def _clear(self) -> None:
        if self._width and not self.silent:
            self._write("\r" + " " * self._width + "\r")
        self._width = 0

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self.silent = True


def progress_text(state: RunState, process: ProcessState) -> str:
    """Phase, mode, what the compiler works on, steps and the present step time."""
    what = process.phase.value + (f" {process.mode.value}" if process.mode is not None else "")
    parts = [f"{what} {state.now_s - process.started_s:.0f} s"]
    compiling = _compiling_text(state, process)
    if compiling:
        parts.append(compiling)
    elif process.pairs:
        interval = process.interval
        parts.append(plural(len(process.pairs), "pair"))
        if interval is not None:
            parts.append(f"{ratio(interval.value)} ({ratio(interval.lo)} to {ratio(interval.hi)})")
    elif process.apart:
        (name, blocks), *_ = process.apart.items()
        parts.append(f"{name.value} alone, {plural(len(blocks), 'block')}")
    elif process.replay is not None:
        parts += [process.replay.started.handling.label, plural(len(process.replay.pairs), "pair")]
    else:
        arm = process.arms.get(Arm.EAGER if process.phase is Phase.EAGER else Arm.COMPILED)
        if arm is None or not len(arm.series):
            parts.append("loading" if process.model is None else "first step")
        else:
            parts.append(f"{count(len(arm.series))} steps, {milliseconds(arm.recent_step_ns)}, {arm.steadiness.value}")
    silence = silence_text(state, state.now_s)
    return " | ".join([*parts, *([silence] if silence else [])])


def _compiling_text(state: RunState, process: ProcessState) -> str | None:
    stages = process.compile.current_stages
    if not stages:
        return None
    frame = process.compile.current_frame
    where = ""
    if frame is not None and frame.function:
        file = (frame.file or "").rpartition("/")[2]
        where = f" in {frame.function} ({file}:{frame.line})"
    return f"{stages[-1].stage.value}{where} {state.now_s - stages[0].since_s:.0f} s"
