"""What a column of dots stands for: some steps, summed up by where most of them lie and how far they reach."""

from __future__ import annotations

from typing import NamedTuple

from tcompile_tui.core.series import StepSeries

_CHUNK, _CHUNKS = 4, 4  # of a long column so many chunks of so many steps are looked at, besides its extremes
_BUCKET, _LONG = 256, 2_048  # a series keeps the extremes of every 256 steps
_VIEWS_KEPT = 4


class Column(NamedTuple):
    """Step times in ns. The body is the middle half of the steps that were looked at; of up to three it is all."""

    low: int
    body_low: int
    body_high: int
    high: int
    sample: list[int]


class ColumnReader:
    """Reads a series by columns. Full columns never change and are kept, so a frame costs what is new in it."""

    def __init__(self) -> None:
        self._kept: dict[int, Column] = {}
        self._kept_for: tuple[StepSeries, int, int] | None = None

    def read(self, series: StepSeries, length: int, first: int, steps: int, count: int) -> list[Column | None]:
        """The columns from number `first` on, of the first `length` steps, where `count` columns stand for
        `steps` steps. A column outside the series is None; with more columns than steps, neighbouring columns
        stand for the same step."""
        if self._kept_for != (series, steps, count) or len(self._kept) > _VIEWS_KEPT * count:
            self._kept_for, self._kept = (series, steps, count), {}
        columns: list[Column | None] = []
        for number in range(first, first + count):
            column = self._kept.get(number)
            if column is None:
                begin = _edge(number, steps, count)
                end = max(begin + 1, _edge(number + 1, steps, count))
                if 0 <= begin < length:
                    column = _column(series, begin, min(end, length))
                    if end <= length:
                        self._kept[number] = column
            columns.append(column)
        return columns


def _edge(number: int, steps: int, count: int) -> int:
    """The first step of a column. Of long columns the next one at which a bucket of the series begins: its extremes
    are known."""
    step = number * steps // count
    return step + -step % _BUCKET if steps // count >= _LONG else step


def _column(series: StepSeries, begin: int, end: int) -> Column:
    count = end - begin
    if count <= _CHUNK * _CHUNKS:
        sample = sorted(series.slice(begin, end))
        low, high = sample[0], sample[-1]
    else:
        gap = (count - _CHUNK) // (_CHUNKS - 1)
        sample = []
        for chunk in range(begin, begin + gap * _CHUNKS, gap):
            sample += series.slice(chunk, chunk + _CHUNK)
        sample.sort()
        low, high = series.extremes(begin, end)
    cut = len(sample) // 4
    return Column(low, sample[cut], sample[-1 - cut], high, sample)
