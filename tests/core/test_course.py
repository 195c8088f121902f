"""The shape of a whole series of step times."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from tcompile_tui.core.course import Course, Shape, change_points, course_of
from tests.core.streams import ar1, recorded

MS = 1_000_000
LEVEL = 10 * MS


def noisy(level_ns: float, count: int, sd: float = 0.005, seed: int = 1) -> list[int]:
    return [round(level_ns * (1 + noise)) for noise in ar1(random.Random(seed), count, sd, 0.3)]


def found(steps: Sequence[int], compiled_at: Sequence[int] = ()) -> Course:
    course = course_of(steps, compiled_at)
    assert course is not None
    return course


def test_a_level_is_flat_whatever_its_length() -> None:
    assert [found(noisy(LEVEL, count)).shape for count in (60, 300, 5_000)] == [Shape.FLAT] * 3


def test_a_slow_beginning_is_a_warm_up_and_its_end_is_found() -> None:
    course = found(noisy(1.2 * LEVEL, 150) + noisy(LEVEL, 450, seed=2))
    assert course.shape is Shape.WARM_UP
    assert abs(course.last_level_from - 150) <= 4


def test_two_plateaus_are_one_warm_up() -> None:
    steps = noisy(1.2 * LEVEL, 150) + noisy(1.06 * LEVEL, 150, seed=2) + noisy(LEVEL, 450, seed=3)
    course = found(steps)
    assert course.shape is Shape.WARM_UP
    assert abs(course.last_level_from - 300) <= 6


def test_a_clock_that_falls_is_a_slowdown() -> None:
    assert found(noisy(LEVEL, 200) + noisy(1.1 * LEVEL, 400, seed=2)).shape is Shape.SLOWDOWN


def test_a_level_that_comes_too_late_is_no_steady_state() -> None:
    assert found(noisy(1.2 * LEVEL, 500) + noisy(LEVEL, 100, seed=2)).shape is Shape.NO_STEADY_STATE


def test_a_ramp_without_an_end_is_no_steady_state() -> None:
    steps = [round(step * (1.5 - 0.5 * i / 600)) for i, step in enumerate(noisy(LEVEL, 600))]
    assert found(steps).shape is Shape.NO_STEADY_STATE


def test_less_than_the_tolerance_is_the_same_level() -> None:
    assert found(noisy(1.01 * LEVEL, 300, 0.001) + noisy(LEVEL, 300, 0.001, seed=2)).shape is Shape.FLAT


def test_what_the_compiler_did_is_no_level() -> None:
    steps = [200 * LEVEL, 20 * LEVEL, *noisy(LEVEL, 300)]
    steps[100] = steps[101] = 90 * LEVEL
    assert found(steps, (0, 100, 101)).shape is Shape.FLAT


def test_a_short_series_has_no_course() -> None:
    assert course_of(noisy(LEVEL, 30)) is None
    assert course_of([]) is None


def test_a_clock_that_counts_nothing_is_survived() -> None:
    assert found([0] * 100).shape is Shape.FLAT


@pytest.mark.parametrize("seed", range(5))
def test_pruning_loses_nothing(seed: int) -> None:
    """Against every way to cut the series into up to three parts."""
    rng = random.Random(seed)
    values = [rng.gauss(level, 0.1) for level in (0.0, 0.5, 0.2) for _ in range(14)]
    best = min(_segmentations(values), key=lambda edges: _cost(values, edges))
    assert change_points(values) == list(best)


def _segmentations(values: Sequence[float]) -> list[tuple[int, ...]]:
    inner = range(5, len(values) - 4)
    return [(), *((i,) for i in inner), *((i, j) for i in inner for j in inner if j - i >= 5)]


def _cost(values: Sequence[float], edges: Sequence[int]) -> float:
    total = 6 * math.log(len(values)) * len(edges)
    for start, stop in zip((0, *edges), (*edges, len(values))):
        part = values[start:stop]
        mean = sum(part) / len(part)
        total += len(part) * math.log(max(1e-8, sum((value - mean) ** 2 for value in part) / len(part)))
    return total


@pytest.mark.parametrize("name", ["pw_default_infer", "resnet18_default_train", "resnet50_reduce-overhead_infer"])
def test_quiet_recordings_are_flat_once_compiled(name: str) -> None:
    series = recorded(name)
    assert found(series["compiled_dev_ns"], [i for i, _ in series["compile_events"]]).shape is Shape.FLAT
