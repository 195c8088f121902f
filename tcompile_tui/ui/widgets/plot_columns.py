"""What one column of dots stands for: some steps, summed up by where most of them lie and how far they reach."""

from __future__ import annotations

from typing import NamedTuple

from tcompile_tui.core.series import StepSeries

_CHUNK, _CHUNKS = 4, 4
_SAMPLED = _CHUNK * _CHUNKS
_CACHES_KEPT = 4


class Column(NamedTuple):
    """Step times in ns. The body leaves out the lowest and highest eighth; below eight steps it holds them all."""

    low: int
    body_low: int
    body_high: int
    high: int


class ColumnReader:
    """Reads a series by columns. Columns that are full never change and are kept, so that a frame costs only what
    is new in it."""

    def __init__(self) -> None:
        self._series: StepSeries | None = None
        self._kept: dict[tuple[int, int], Column] = {}

    def read(
        self, series: StepSeries, length: int, start: int, steps: int, count: int
    ) -> list[Column | None]:
        """`count` columns over [start, start + steps), of the first `length` steps. A column outside the series is
        None. With fewer steps than columns, neighbouring columns stand for the same step."""
        if series is not self._series or len(self._kept) > _CACHES_KEPT * count + 1_000:
            self._series = series
            self._kept = {}
        columns: list[Column | None] = []
        for index in range(count):
            begin = start + steps * index // count
            end = max(begin + 1, start + steps * (index + 1) // count)
            if begin < 0 or begin >= length:
                columns.append(None)
            elif end > length:
                columns.append(_column(series, begin, length))
            else:
                column = self._kept.get((begin, end))
                if column is None:
                    column = self._kept[begin, end] = _column(series, begin, end)
                columns.append(column)
        return columns


def _column(series: StepSeries, begin: int, end: int) -> Column:
    count = end - begin
    if count <= _SAMPLED:
        values = sorted(series.slice(begin, end))
        low, high = values[0], values[-1]
    else:
        gap = (count - _CHUNK) // (_CHUNKS - 1)
        values = []
        for chunk in range(begin, begin + gap * _CHUNKS, gap):
            values += series.slice(chunk, chunk + _CHUNK)
        values.sort()
        low, high = series.extremes(begin, end)
    cut = len(values) // 8
    return Column(low, values[cut], values[-1 - cut], high)
