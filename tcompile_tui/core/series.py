"""Step times of one arm, from one to millions, with cheap minimum and maximum per plot column."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise

_BUCKET = 256


class StepSeries:
    """An append-only series of step times in ns. Whole buckets keep their minimum and maximum, so a plot over a
    million steps looks at a few thousand numbers."""

    def __init__(self) -> None:
        self._values = array("q")
        self._bucket_min = array("q")
        self._bucket_max = array("q")

    def __len__(self) -> int:
        return len(self._values)

    def extend(self, values_ns: Iterable[int]) -> None:
        self._values.extend(values_ns)
        while (len(self._bucket_min) + 1) * _BUCKET <= len(self._values):
            start = len(self._bucket_min) * _BUCKET
            bucket = self._values[start : start + _BUCKET]
            self._bucket_min.append(min(bucket))
            self._bucket_max.append(max(bucket))

    def slice(self, start: int, stop: int | None = None) -> Sequence[int]:
        """The values themselves, as a copy."""
        return self._values[start:stop]

    def extremes(self, start: int, stop: int) -> tuple[int, int]:
        """(minimum, maximum) over [start, stop), which must not be empty."""
        first, last = -(-start // _BUCKET), stop // _BUCKET
        if first >= last:
            part = self._values[start:stop]
            return min(part), max(part)
        lows, highs = [min(self._bucket_min[first:last])], [max(self._bucket_max[first:last])]
        for part in (self._values[start : first * _BUCKET], self._values[last * _BUCKET : stop]):
            if part:
                lows.append(min(part))
                highs.append(max(part))
        return min(lows), max(highs)

    def columns(self, start: int, stop: int, count: int) -> list[tuple[int, int] | None]:
        """(minimum, maximum) for each of `count` equal columns over [start, stop). A column with no step of its
        own (fewer steps than columns) is None."""
        stop = min(stop, len(self._values))
        length = max(0, stop - start)
        edges = [start + length * column // count for column in range(count + 1)] if count else []
        return [self.extremes(a, b) if b > a else None for a, b in pairwise(edges)]
