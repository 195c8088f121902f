"""Axes of the timing plot: which steps are in view, which range of times, and where the labels stand."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcompile_tui.ui.widgets.plot_columns import Column

LABEL_WIDTH = 7  # "12.5 ms"
_LADDER = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
_FEWEST_STEPS = 10
_FAR_ABOVE = 3.0  # times the level below which three quarters lie
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))

Label = tuple[int, str]  # the cell (or row) it stands at, and its text


def round_up(number: int) -> int:
    """The next round number, so that a growing run changes its scale rarely: 97 is 100, 101 is 120."""
    if number < 10:
        return number
    power = int(10 ** (len(str(number)) - 2))
    return power * next((mantissa for mantissa in _LADDER if mantissa * power >= number), 100)


# ---------------------------------------------------------------- steps


@dataclass(frozen=True)
class StepView:
    """The steps in view. From the first step on, or the last `steps` of each series, whose ends are then
    aligned: the arms take turns and their counts differ.

    Columns are numbered from the first step of the run, so that a followed view moves what is drawn and does not
    draw the same steps another way in every frame."""

    steps: int
    follow: bool

    def first_column(self, length: int, count: int) -> int:
        """The first of `count` columns in view of a series with so many steps; below 0 where it has too few."""
        return -(-length * count // self.steps) - count if self.follow else 0

    def steps_from(self, column: int, count: int) -> int:
        """The first step at or after the left edge of a column."""
        return -(-column * self.steps // count)


def step_view(longest: int, window: int | None) -> StepView:
    """The view on series of up to `longest` steps. `window` is a number of last steps, None the whole run."""
    if window is not None and window < longest:
        return StepView(max(1, window), follow=True)
    return StepView(round_up(max(longest, _FEWEST_STEPS)), follow=False)


def step_labels(view: StepView, cells: int) -> list[Label]:
    """Where a step number stands below the plot: `200k`; in a followed view counted back from now: `-50`."""
    step = max(1, round(_nice_step(view.steps * max(8, cells // 6) / max(1, cells))))
    if not view.follow:
        return [(index * cells // view.steps, short(index)) for index in range(0, view.steps, step)]
    back = range(view.steps // step * step, 0, -step)
    return [(cells - index * cells // view.steps, f"-{short(index)}") for index in back] + [(cells - 1, "now")]


def short(count: int) -> str:
    """`950`, `2,500`, `20k`, `1.5M`."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= max(size, 10_000):
            return f"{count / size:g}{letter}"
    return f"{count:,}"


# ---------------------------------------------------------------- times


@dataclass(frozen=True)
class TimeScale:
    """The range of times the plot's height stands for."""

    low_ns: float
    high_ns: float
    log: bool = False

    def dots(self, height: int) -> Callable[[float], int]:
        """How a time becomes a dot, 0 being the lowest of `height`; `height` for a time above the range."""
        low, high, top, per_dot = self.low_ns, self.high_ns, height - 1, self._extent() / height
        if not self.log:
            return lambda ns: height if ns > high else max(0, min(top, int((ns - low) / per_dot)))
        base, log = math.log(low), math.log
        return lambda ns: height if ns > high else 0 if ns <= low else min(top, int((log(ns) - base) / per_dot))

    def labels(self, rows: int) -> list[Label]:
        """Rows, 0 being the lowest, with a time that falls on them. At least two where there is room."""
        fewest = max(1, min(8, (rows - 1) // 2))
        candidates = [self._labels(rows, self._ticks(most)) for most in range(fewest, fewest + 4)]
        return next((labels for labels in candidates if len(labels) > 1), candidates[0])

    def _labels(self, rows: int, ticks_ns: list[float]) -> list[Label]:
        labels: list[Label] = []
        row_of = self.dots(rows)
        for tick_ns in ticks_ns:
            row, text = row_of(tick_ns), self._text(tick_ns)
            if row < rows and len(text) <= LABEL_WIDTH and (not labels or row > labels[-1][0]):
                labels.append((row, text))
        return labels

    def holds(self, wanted: TimeScale) -> bool:
        """Whether this scale still serves well where `wanted` would be best."""
        if self.log is not wanted.log or self.low_ns > wanted.low_ns or self.high_ns < wanted.high_ns:
            return False
        return wanted._extent() >= 0.6 * self._extent()

    def _extent(self) -> float:
        return math.log(self.high_ns / self.low_ns) if self.log else self.high_ns - self.low_ns

    def _ticks(self, most: int) -> list[float]:
        if self.log:
            ticks = _log_ticks(self.low_ns, self.high_ns, most)
            if len(ticks) > 1:
                return ticks
        step = _nice_step((self.high_ns - self.low_ns) / most)
        first = math.ceil(self.low_ns / step - 1e-9)
        last = math.floor(self.high_ns / step + 1e-9)
        return [index * step for index in range(first, last + 1)]

    def _text(self, value_ns: float) -> str:
        if value_ns == 0:
            return "0"
        size, unit = _unit(value_ns if self.log else self.high_ns)
        text = f"{value_ns / size:.4g} {unit}"
        return text if len(text) <= LABEL_WIDTH else text.replace(" ", "")


def time_scale(series: Sequence[Sequence[Column | None]], log: bool) -> TimeScale | None:
    """The range that shows the levels of all series well. Linear: a few far-off steps lie above it, it begins
    at 0 unless everything is far from 0. Logarithmic: it holds every step. None without a step."""
    told = [[column for column in columns if column is not None] for columns in series]
    told = [columns for columns in told if columns]
    if not told:
        return None
    low = max(1, min(column.low for columns in told for column in columns))
    if log:
        high = max(column.high for columns in told for column in columns)
        return TimeScale(low / 1.1, max(high, low) * 1.1, log=True)
    high = max(1, low, *(_level_top([value for column in columns for value in column.sample]) for columns in told))
    if low < 0.6 * high:
        grain = _grain(high)
        return TimeScale(0, _ceil(high * 1.03, grain))
    margin = 0.08 * max(high - low, 0.02 * high)
    grain = _grain(high - low + 2 * margin)
    return TimeScale(math.floor((low - margin) / grain) * grain, _ceil(high + margin, grain))


def _level_top(values: list[int]) -> int:
    """The 98 % level, or less where single steps are far above the others: one of 20 s among ten of 3 ms."""
    values.sort()
    bound = _FAR_ABOVE * values[(len(values) - 1) * 3 // 4]
    near = bisect_right(values, bound)
    return values[(near - 1) * 98 // 100]


def _ceil(value: float, grain: float) -> float:
    return math.ceil(value / grain) * grain


def _grain(extent: float) -> float:
    """What a scale's ends are multiples of: about a tenth of it."""
    return _nice_step(extent / 12)


def _nice_step(least: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 2.5, 5, 10, 20) if m * power >= least * (1 - 1e-9))


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    """1, 2, 5 of every decade; only decades, or every n-th of them, where that would be too many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for mantissas in ((1, 2, 5), (1, 3), (1,)):
        ticks = [m * 10.0**e for e in range(first, last + 1) for m in mantissas if low <= m * 10.0**e <= high]
        if len(ticks) <= most + 1:
            return ticks
    return ticks[:: -(-len(ticks) // (most + 1))]


def _unit(value_ns: float) -> tuple[float, str]:
    return next((size, unit) for size, unit in _UNITS if value_ns >= size * (1 - 1e-9) or unit == "ns")
