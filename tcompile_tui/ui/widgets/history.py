"""A value over time in one row of characters."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.:-=+*#"
_KEPT = 256


class History:
    """Means over intervals of `interval_s`, the newest last. Intervals lie at fixed times, so that what has been
    drawn moves on without changing its shape."""

    def __init__(self, interval_s: float = 2.0) -> None:
        self._interval_s = interval_s
        self._means: deque[tuple[int, float, int]] = deque(maxlen=_KEPT)
        self.latest: float | None = None
        self.highest: float | None = None

    def add(self, t_s: float, value: float | None) -> None:
        """Samples come in the order of their time; None is a sample without a value."""
        self.latest = value
        if value is None or not math.isfinite(value):
            return
        self.highest = value if self.highest is None else max(self.highest, value)
        index = int(t_s / self._interval_s)
        if self._means and self._means[-1][0] >= index:
            at, total, count = self._means[-1]
            self._means[-1] = (at, total + value, count + 1)
        else:
            self._means.append((index, value, 1))

    def last(self, intervals: int) -> list[float | None]:
        """One value an interval, None where no sample fell into it."""
        if not self._means:
            return [None] * intervals
        first = self._means[-1][0] - intervals + 1
        values: list[float | None] = [None] * intervals
        for index, total, count in reversed(self._means):
            if index < first:
                break
            values[index - first] = total / count
        return values


def bars(values: Sequence[float | None], top: float, ascii_only: bool = False) -> str:
    """One character a value, from 0 to `top`; a blank where there is none."""
    glyphs = _ASCII_BARS if ascii_only else _BARS
    return "".join(" " if value is None else glyphs[_level(value, top, len(glyphs))] for value in values)


def _level(value: float, top: float, levels: int) -> int:
    return max(0, min(levels - 1, int(value / top * levels))) if top > 0 else 0
