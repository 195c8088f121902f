"""StepSeries against the same questions answered the slow way."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core.series import StepSeries

LONGEST = 1_100  # several buckets of 256


def filled(length: int, seed: int) -> tuple[StepSeries, list[int]]:
    """A series that grew by batches of all sizes, and its values."""
    rng = random.Random(seed)
    values = [rng.randrange(1, 10**12) for _ in range(length)]
    series, done = StepSeries(), 0
    while done < length:
        batch = rng.choice((1, 7, 255, 256, 257, 600))
        series.extend(iter(values[done : done + batch]))
        done += batch
    return series, values


@given(length=st.integers(0, LONGEST), seed=st.integers(0, 9))
def test_it_holds_what_was_put_in(length: int, seed: int) -> None:
    series, values = filled(length, seed)
    assert len(series) == length
    assert list(series.slice(0)) == values
    assert list(series.slice(length // 3, length // 2)) == values[length // 3 : length // 2]


@given(length=st.integers(1, LONGEST), seed=st.integers(0, 9), data=st.data())
def test_extremes_are_those_of_the_slice(length: int, seed: int, data: st.DataObject) -> None:
    series, values = filled(length, seed)
    start = data.draw(st.integers(0, length - 1))
    stop = data.draw(st.integers(start + 1, length))
    assert series.extremes(start, stop) == (min(values[start:stop]), max(values[start:stop]))


@pytest.mark.parametrize("start", [0, 1, 255, 256, 257, 512])
@pytest.mark.parametrize("stop", [513, 767, 768, 1024])
def test_extremes_at_the_edges_of_buckets(start: int, stop: int) -> None:
    rising, falling = range(1, 1025), range(1024, 0, -1)  # the extremes lie at the very ends of the slice
    for values in (rising, falling):
        series = StepSeries()
        series.extend(values)
        assert series.extremes(start, stop) == (min(values[start:stop]), max(values[start:stop]))


@given(length=st.integers(0, LONGEST), seed=st.integers(0, 9), count=st.integers(0, 200), data=st.data())
def test_columns_cover_every_step_once_and_evenly(length: int, seed: int, count: int, data: st.DataObject) -> None:
    series, values = filled(length, seed)
    start = data.draw(st.integers(0, length))
    stop = data.draw(st.integers(start, length + 50))  # past the end is cut
    columns = series.columns(start, stop, count)
    assert len(columns) == count
    part = values[start:stop]
    for column, found in enumerate(columns):
        own = part[len(part) * column // count : len(part) * (column + 1) // count]
        assert found == ((min(own), max(own)) if own else None)
    if count and part:
        told = [column for column in columns if column is not None]
        assert (min(low for low, _ in told), max(high for _, high in told)) == (min(part), max(part))
        assert len(told) == min(count, len(part))


def test_an_empty_series_draws_empty_columns() -> None:
    assert StepSeries().columns(0, 0, 3) == [None, None, None]
    assert StepSeries().columns(0, 10, 2) == [None, None]
