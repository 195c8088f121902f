"""The total time of a run over its steps, for eager and each mode with its cold start: where the lines cross,
compiling has paid for itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from textual.content import Content
from textual.widget import Widget

from tcompile_tui.core.spec import Mode
from tcompile_tui.core.verdict import Verdict
from tcompile_tui.ui.widgets.plot_scale import round_up, short

EAGER_LETTER = "e"
_MODE_LETTERS = {
    Mode.DEFAULT: "d",
    Mode.REDUCE_OVERHEAD: "r",
    Mode.MAX_AUTOTUNE: "m",
    Mode.MAX_AUTOTUNE_NO_CUDAGRAPHS: "n",
}
_BITS = ((0x40, 0x80), (0x04, 0x20), (0x02, 0x10), (0x01, 0x08))  # of a braille cell: rows from below, left and right
_TIME_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_GUTTER = 9
_PLOT_ROWS = 6  # with its axis; below that the names of the lines may take one row only
_ROOMY_CELLS = 28
_FARTHEST = 4.0  # times the best mode's break-even


@dataclass(frozen=True)
class TotalTimeLine:
    """`start_s + steps * step_s`. The best mode's line is full, eager's dotted, others dashed."""

    letter: str
    name: str
    start_s: float
    step_s: float
    best: bool = False

    def seconds(self, steps: float) -> float:
        return self.start_s + steps * self.step_s

    def has_dot(self, column: int) -> bool:
        if self.best:
            return True
        return column % 2 == 0 if self.letter == EAGER_LETTER else column % 6 < 4

    @property
    def style(self) -> str:
        return "bold $success" if self.best else "$warning" if self.letter == EAGER_LETTER else "$primary"


@dataclass(frozen=True)
class TotalTimes:
    """What the plot shows: lines from 0 to `steps`; where the best mode breaks even and where the plan ends, if
    that is in view."""

    lines: tuple[TotalTimeLine, ...]
    steps: float
    break_even: float | None
    planned: float | None


def mode_letters(verdict: Verdict) -> dict[Mode, str]:
    """One for each mode; what `--arm` asked for is numbered."""
    modes = [judged.result.mode for judged in verdict.modes]
    further = [mode for mode in modes if not mode.is_plain]
    numbers = {mode: str(number) for number, mode in enumerate(further, start=1)}
    return {mode: _MODE_LETTERS.get(mode) or numbers[mode] for mode in modes}


def total_times(verdict: Verdict) -> TotalTimes | None:
    """None where no mode got as far as a comparison and a measured start."""
    best = verdict.best
    if best is None or not best.result.eager_mean_ms:
        return None
    eager_s = best.result.eager_mean_ms / 1e3
    letters = mode_letters(verdict)
    lines = [TotalTimeLine(EAGER_LETTER, "eager", 0.0, eager_s)]
    crossings, starts = [], []
    for judged in sorted(verdict.modes, key=lambda judged: judged is best):
        result = judged.result
        if result.gain is None or result.cold_start is None:
            continue
        start_s, step_s = max(0.0, result.cold_start.extra.mean_s), max(0.0, eager_s - result.gain.mean_ns / 1e9)
        name = result.mode.value
        lines.append(TotalTimeLine(letters[result.mode], name, start_s, step_s, best=judged is best))
        starts.append(start_s)
        if result.break_even_cold is not None and result.break_even_cold.steps:
            crossings.append(result.break_even_cold.steps)
    if not starts:
        return None
    found = best.result.break_even_cold
    break_even = found.steps if found is not None and found.steps else None
    planned = verdict.planned_steps
    steps = _range(crossings, break_even, planned, 4 * max(starts) / eager_s)
    return TotalTimes(
        tuple(lines),
        steps,
        break_even if break_even is not None and break_even < steps else None,
        planned if planned is not None and planned < steps else None,
    )


def _range(crossings: list[float], break_even: float | None, planned: float | None, fallback: float) -> float:
    """Far enough to see the lines cross; to the plan's end where that is not much farther."""
    if break_even is None:
        widest = min(fallback, planned) if planned else fallback
    else:
        widest = max(1.3 * crossing for crossing in crossings if crossing <= _FARTHEST * break_even)
        widest = max(widest, 2 * break_even)
        if planned is not None and planned <= _FARTHEST * break_even:
            widest = max(widest, 1.1 * planned)
    return float(round_up(max(1, round(widest))))


class TotalTimePlot(Widget):
    """Letters on the lines name them; `^` below the plot is the best mode's break-even."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    TotalTimePlot { height: 1fr; min-height: 1; }
    """

    def __init__(self, times: TotalTimes, ascii_only: bool = False, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._times = times
        self._ascii_only = ascii_only

    def render(self) -> Content:
        width, height = self.size
        return Content("\n").join(self._rows(width, height)) if width > 0 and height > 0 else Content("")

    # ------------------------------------------------------------ drawing

    def _rows(self, width: int, height: int) -> list[Content]:
        legend = self._legend(width)
        if len(legend) > max(1, height - _PLOT_ROWS):
            legend = []
        gutter = _GUTTER if width >= 24 else 0
        cells, rows = max(1, width - gutter), height - len(legend) - (height > 2)
        top_s = max(line.seconds(self._times.steps) for line in self._times.lines) or 1.0
        canvas = _Canvas(cells, max(1, rows), top_s, self._times, self._ascii_only)
        labels = [_short_time(top_s), *[""] * (rows - 2), "0"] if rows > 1 else [""]
        upright = "|" if self._ascii_only else "┤" if gutter else ""
        drawn = []
        for label, row in zip(labels, canvas.contents()):
            edge = upright if label else "|" if self._ascii_only else "│"
            text = (label.rjust(gutter - 1) + edge) if gutter else ""
            drawn.append(Content.assemble((text, "$foreground-muted"), row))
        axis = [self._axis(gutter, cells)] if height > 2 else []
        return [*legend, *drawn, *axis][:height]

    def _legend(self, width: int) -> list[Content]:
        """Names of the lines, best mode first; as many rows as they need."""
        rows: list[list[Content]] = [[]]
        room = width
        for line in sorted(self._times.lines, key=lambda line: (not line.best, line.letter != EAGER_LETTER)):
            length = len(line.name) + 2
            if rows[-1] and length + 2 > room:
                rows.append([])
                room = width
            rows[-1].append(Content.assemble((line.letter, line.style), " ", line.name))
            room -= length + 2 * (len(rows[-1]) > 1)
        return [Content("  ").join(row) for row in rows]

    def _axis(self, gutter: int, cells: int) -> Content:
        """`0`, the break-even, the plan and the end, each where it is; what would touch its neighbour is left out."""
        width = gutter + cells
        text = "0".rjust(gutter + 1)
        end = short(round(self._times.steps)) + (" steps" if cells >= _ROOMY_CELLS else "")
        marks = [(self._times.break_even, "^"), (self._times.planned, "plan ")]
        for steps, sign in sorted((steps, sign) for steps, sign in marks if steps is not None):
            begin = gutter + int(steps / self._times.steps * cells)
            label = f"{sign}{short(_two_digits(steps) if steps >= 10_000 else round(steps))}"
            if begin > len(text) and begin + len(label) < width - len(end):
                text = text.ljust(begin) + label
        if len(text) + 1 + len(end) <= width:
            text = text.ljust(width - len(end)) + end
        return Content.styled(text[:width], "$foreground-muted")


class _Canvas:
    """Cells with their dots, and whose they are: the line drawn last."""

    def __init__(self, cells: int, rows: int, top_s: float, times: TotalTimes, ascii_only: bool) -> None:
        self._cells, self._rows, self._top_s = cells, rows, top_s
        self._dots = [[0] * cells for _ in range(rows)]
        self._text: list[list[str]] = [[""] * cells for _ in range(rows)]
        self._styles = [[""] * cells for _ in range(rows)]
        if times.planned is not None:
            self._upright(int(times.planned / times.steps * cells), ":" if ascii_only else "┊")
        for line in times.lines:
            (self._letters if ascii_only else self._trace)(line, times.steps)
        if not ascii_only:
            for place, line in enumerate(times.lines):
                self._name(line, times.steps, 0.94 - 0.12 * place)

    def contents(self) -> list[Content]:
        """Rows from the top down."""
        return [self._content(row) for row in reversed(range(self._rows))]

    def _content(self, row: int) -> Content:
        found = [
            (self._text[row][cell] or (chr(0x2800 + dots) if dots else " "), self._styles[row][cell])
            for cell, dots in enumerate(self._dots[row])
        ]
        parts = [("".join(t for t, _ in group), style) for style, group in groupby(found, key=lambda part: part[1])]
        return Content.assemble(*parts)

    def _level(self, line: TotalTimeLine, steps: float, levels: int) -> int:
        return min(levels - 1, int(line.seconds(steps) / self._top_s * levels))

    def _trace(self, line: TotalTimeLine, steps: float) -> None:
        columns, before = 2 * self._cells, None
        for column in range(columns):
            level = self._level(line, (column + 0.5) / columns * steps, 4 * self._rows)
            joined = range(min(level, before + 1 if before is not None else level), level + 1)
            before = level
            if line.has_dot(column):
                for dot in joined:
                    self._dots[dot // 4][column // 2] |= _BITS[dot % 4][column % 2]
                    self._styles[dot // 4][column // 2] = line.style

    def _letters(self, line: TotalTimeLine, steps: float) -> None:
        for cell in range(self._cells):
            if line.best or cell % 2 == 0:
                row = self._level(line, (cell + 0.5) / self._cells * steps, self._rows)
                self._text[row][cell], self._styles[row][cell] = line.letter, line.style

    def _name(self, line: TotalTimeLine, steps: float, at: float) -> None:
        """The line's letter on the line; farther left where another one stands already."""
        cell = max(0, int(at * self._cells))
        while cell > 0:
            row = self._level(line, (cell + 0.5) / self._cells * steps, self._rows)
            if not self._text[row][cell]:
                break
            cell -= 1
        row = self._level(line, (cell + 0.5) / self._cells * steps, self._rows)
        self._text[row][cell], self._styles[row][cell] = line.letter, f"bold {line.style.removeprefix('bold ')}"

    def _upright(self, cell: int, sign: str) -> None:
        for row in range(self._rows):
            self._text[row][cell], self._styles[row][cell] = sign, "$foreground-muted"


def _short_time(seconds: float) -> str:
    size, unit = next(((size, unit) for size, unit in _TIME_UNITS if seconds >= size), _TIME_UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def _two_digits(number: float) -> int:
    return int(float(f"{number:.2g}"))
