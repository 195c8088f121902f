"""The timing plot: step times of eager and compiled, iteration by iteration."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import ClassVar

from rich.segment import Segment
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tcompile_tui.core.series import StepSeries
from tcompile_tui.core.state import ArmSteps
from tcompile_tui.core.units import milliseconds
from tcompile_tui.ui.widgets import plot_canvas as canvas
from tcompile_tui.ui.widgets.plot_columns import Column, ColumnReader
from tcompile_tui.ui.widgets.plot_scale import (
    LABEL_WIDTH,
    StepView,
    TimeScale,
    short,
    step_labels,
    step_view,
    time_scale,
)

_WINDOWS = tuple(mantissa * 10**power for power in range(1, 9) for mantissa in (1, 2, 5))
_EMPTY = "no steps yet"

_NOTHING, _EAGER, _COMPILED, _BOTH = canvas.NONE, canvas.EAGER, canvas.COMPILED, canvas.BOTH
_AXIS, _LABEL, _MARKER = range(_BOTH + 1, _BOTH + 4)
_COMPONENTS = tuple(f"timing-plot--{part}" for part in ("eager", "compiled", "both", "axis", "label", "marker"))


@dataclass(frozen=True)
class _Layout:
    """What fits into the widget's size. The plot itself comes first, then the axis with the compile marks,
    the legend, the step numbers and, beside them, the times."""

    width: int
    height: int

    @property
    def legend(self) -> bool:
        return self.height >= 4

    @property
    def axis(self) -> bool:
        return self.height >= 3

    @property
    def step_row(self) -> bool:
        return self.height >= 6

    @property
    def gutter(self) -> int:
        return LABEL_WIDTH + 1 if self.width >= 24 else 0

    @property
    def cells(self) -> int:
        return self.width - self.gutter

    @property
    def rows(self) -> int:
        return self.height - self.legend - self.axis - self.step_row


@dataclass(frozen=True)
class _Seen:
    """What a frame shows of one series; another value means another frame."""

    series: StepSeries
    compiled_at: list[int] = field(compare=False)
    length: int
    compiles: int
    recent_step_ns: float | None

    @classmethod
    def of(cls, steps: ArmSteps | None) -> _Seen | None:
        if steps is None or not len(steps.series):
            return None
        return cls(steps.series, steps.compiled_at, len(steps.series), len(steps.compiled_at), steps.recent_step_ns)


class TimingPlot(Widget):
    """Step times over iterations, of the eager and the compiled arm.

    A letter `c` on the axis marks steps in which the compiler worked, `^` at the top a step above the scale.
    The linear scale follows the level of the steps in view; the logarithmic one holds every step.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = set(_COMPONENTS)
    DEFAULT_CSS = """
    TimingPlot { height: 1fr; min-height: 1; }
    TimingPlot > .timing-plot--eager { color: $warning; }
    TimingPlot > .timing-plot--compiled { color: $success; }
    TimingPlot > .timing-plot--both { color: $foreground; }
    TimingPlot > .timing-plot--axis { color: $foreground-muted; }
    TimingPlot > .timing-plot--label { color: $foreground-muted; }
    TimingPlot > .timing-plot--marker { color: $foreground; text-style: bold; }
    """

    window: reactive[int | None] = reactive[int | None](None, init=False)
    """The number of last steps in view; None is the whole run."""
    log_scale: reactive[bool] = reactive(False, init=False)
    """Whether times are on a logarithmic scale."""

    def __init__(
        self,
        *,
        ascii_only: bool = False,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """`ascii_only` is for a terminal that does not take UTF-8."""
        super().__init__(name=name, id=id, classes=classes)
        self._glyphs = canvas.ASCII if ascii_only else canvas.BRAILLE
        self._eager: _Seen | None = None
        self._compiled: _Seen | None = None
        self._readers = (ColumnReader(), ColumnReader())
        self._scale: TimeScale | None = None
        self._frame: list[Strip] | None = None
        self._frame_size = (0, 0)

    # ------------------------------------------------------------ what others call

    def show(self, eager: ArmSteps | None, compiled: ArmSteps | None) -> None:
        """Draw these series; cheap when nothing has changed."""
        seen = _Seen.of(eager), _Seen.of(compiled)
        if seen == (self._eager, self._compiled):
            return
        self._eager, self._compiled = seen
        self._redraw()

    def zoom_in(self) -> None:
        """Look at fewer of the last steps."""
        shown = min(self.window or self._longest, self._longest)
        smaller = [window for window in _WINDOWS if window < shown]
        if smaller:
            self.window = smaller[-1]

    def zoom_out(self) -> None:
        """Look at more of the last steps, in the end at the whole run."""
        if self.window is not None:
            larger = bisect_left(_WINDOWS, self.window + 1)
            fits = larger < len(_WINDOWS) and _WINDOWS[larger] < self._longest
            self.window = _WINDOWS[larger] if fits else None

    def toggle_log(self) -> None:
        """Change between the linear and the logarithmic scale."""
        self.log_scale = not self.log_scale

    # ------------------------------------------------------------ Textual

    def watch_window(self) -> None:
        self._scale = None
        self._redraw()

    def watch_log_scale(self) -> None:
        self._redraw()

    def notify_style_update(self) -> None:
        self._frame = None
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        size = (self.size.width, self.size.height)
        if self._frame is None or size != self._frame_size:
            self._frame, self._frame_size = self._draw(*size), size
        return self._frame[y] if y < len(self._frame) else Strip.blank(size[0], self.rich_style)

    # ------------------------------------------------------------ drawing

    @property
    def _longest(self) -> int:
        return max((seen.length for seen in (self._eager, self._compiled) if seen), default=0)

    def _redraw(self) -> None:
        self._frame = None
        self.refresh()

    def _draw(self, width: int, height: int) -> list[Strip]:
        if width < 1 or height < 1:
            return []
        layout = _Layout(width, height)
        lines = self._lines(layout)
        plain = self.rich_style
        styles = [plain, *map(self.get_component_rich_style, _COMPONENTS)]
        return [
            Strip([Segment(text, styles[style]) for text, style in line]).adjust_cell_length(width, plain)
            for line in lines
        ]

    def _lines(self, layout: _Layout) -> list[list[canvas.Run]]:
        columns = layout.cells * self._glyphs.columns_per_cell
        view = step_view(self._longest, self.window)
        eager = self._read(0, self._eager, view, layout.cells)
        compiled = self._read(1, self._compiled, view, columns)
        wanted = time_scale((eager, compiled), self.log_scale)
        if wanted is None:
            self._scale = None
            return _centred(_EMPTY, layout)
        if self._scale is None or not self._scale.holds(wanted):
            self._scale = wanted
        scale = self._scale
        dots = layout.rows * self._glyphs.dots_per_row
        traces = canvas.trace(eager, scale, dots), canvas.trace(compiled, scale, dots)
        plot = canvas.rows(*traces, layout.rows, self._glyphs)
        times = dict(scale.labels(layout.rows)) if layout.gutter else {}
        lines = [self._gutter(times.get(layout.rows - 1 - row), layout) + line for row, line in enumerate(plot)]
        if layout.legend:
            lines.insert(0, self._legend(layout, view, any(map(any, (t.clipped for t in traces)))))
        if layout.axis:
            lines.append(self._axis(layout, view))
        if layout.step_row:
            lines.append(_step_row(layout, view))
        return lines

    def _read(self, arm: int, seen: _Seen | None, view: StepView, columns: int) -> list[Column | None]:
        if seen is None:
            return [None] * columns
        first = view.first_column(seen.length, columns)
        return self._readers[arm].read(seen.series, seen.length, first, view.steps, columns)

    def _gutter(self, label: str | None, layout: _Layout) -> list[canvas.Run]:
        if not layout.gutter:
            return []
        upright, tick = self._glyphs.upright
        return [((label or "").rjust(LABEL_WIDTH), _LABEL), (tick if label else upright, _AXIS)]

    def _legend(self, layout: _Layout, view: StepView, clipped: bool) -> list[canvas.Run]:
        """The series with their present step time, what is in view, and the marks in use; as much as fits."""
        glyphs = self._glyphs
        named = [
            (seen, key, name, style)
            for seen, key, name, style in (
                (self._eager, glyphs.eager_key, " eager", _EAGER),
                (self._compiled, glyphs.compiled_key, " compiled", _COMPILED),
            )
            if seen is not None
        ]
        names = [[(key, style), (name, style)] for _, key, name, style in named]
        parts = [[*name, (f" {milliseconds(seen.recent_step_ns)}", _NOTHING)] for name, (seen, *_) in zip(names, named)]
        if len(parts) == 2 and _length(parts[0]) + 2 + _length(parts[1]) > layout.width:
            parts = names
        parts.append([(f"last {short(view.steps)}" if view.follow else "whole run", _LABEL)])
        if any(seen.compiles for seen, *_ in named):
            parts.append([("c", _MARKER), (" compiler at work", _LABEL)])
        if clipped:
            parts.append([("^", _NOTHING), (" above", _LABEL)])
        if len(named) == 2:
            parts.append([(glyphs.both_key, _BOTH), (" both", _LABEL)])
        line: list[canvas.Run] = []
        for part in parts:
            spaced = [("  ", _NOTHING), *part] if line else part
            if _length(line) + _length(spaced) > layout.width:
                break
            line += spaced
        return line

    def _axis(self, layout: _Layout, view: StepView) -> list[canvas.Run]:
        corner, level, tick = self._glyphs.level
        marks, owners = [level] * layout.cells, [_AXIS] * layout.cells
        if layout.step_row:
            for cell, _text in step_labels(view, layout.cells):
                marks[cell] = tick
        for cell in range(layout.cells):
            if any(_compiled_in(seen, view, cell, layout.cells) for seen in (self._eager, self._compiled) if seen):
                marks[cell], owners[cell] = "c", _MARKER
        note = "log" if self.log_scale else ""
        gutter = [(note.rjust(LABEL_WIDTH), _LABEL), (corner, _AXIS)] if layout.gutter else []
        return gutter + canvas.runs("".join(marks), owners)


def _length(line: list[canvas.Run]) -> int:
    return sum(len(text) for text, _ in line)


def _compiled_in(seen: _Seen, view: StepView, cell: int, cells: int) -> bool:
    """Whether the compiler worked in a step that begins in this cell."""
    column = view.first_column(seen.length, cells) + cell
    begin, end = view.steps_from(column, cells), view.steps_from(column + 1, cells)
    at = seen.compiled_at
    return bisect_left(at, begin) < bisect_left(at, min(end, seen.length))


def _step_row(layout: _Layout, view: StepView) -> list[canvas.Run]:
    """Step numbers below their ticks; a number that would touch the one before it is left out."""
    text = "step".rjust(LABEL_WIDTH) if layout.gutter else ""
    for cell, label in step_labels(view, layout.cells):
        begin = layout.gutter + max(0, min(cell - (len(label) - 1) // 2, layout.cells - len(label)))
        if begin > len(text) or not text:
            text = text.ljust(begin) + label
    return [(text[: layout.width], _LABEL)]


def _centred(text: str, layout: _Layout) -> list[list[canvas.Run]]:
    middle = (layout.height - 1) // 2
    line = [(text[: layout.width].center(layout.width), _LABEL)]
    return [line if row == middle else [] for row in range(layout.height)]
