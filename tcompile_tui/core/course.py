"""How an arm's step times went, looked at once all are there: level from the start, warming up, slowing down, or
never level (the four kinds of Barrett et al. 2017, "Virtual machine warmup blows hot and cold")."""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from statistics import median

from tcompile_tui.core.steady import SKIPPED_AFTER_COMPILE, TOLERANCE

_MAX_POINTS = 300
_MIN_POINTS = 40
_STEPS_A_POINT = 32  # enough for a median, and a million steps cost what ten thousand do
_MIN_SEGMENT = 5  # a change of level shorter than that is a spike
_PENALTY = 6.0  # times ln(points), for each change
_MIN_VARIANCE = 1e-8  # of the logarithm: 0.01 % is no noise worth a change
# The last level must hold for the last quarter.
_STEADY_SHARE = 0.25


class Shape(str, enum.Enum):
    FLAT = "flat"
    WARM_UP = "warm-up"
    SLOWDOWN = "slowdown"
    NO_STEADY_STATE = "no steady state"


@dataclass(frozen=True)
class Course:
    """`last_level_from` is the step, counted from the series' first, at which the last level begins."""

    shape: Shape
    last_level_from: int


def course_of(steps_ns: Sequence[int], compiled_at: Collection[int] = ()) -> Course | None:
    """None for a series too short to say. Steps in which the compiler worked, the first step, and what
    follows either are left out."""
    starts = {0, *compiled_at}
    left_out = {start + after for start in starts for after in range(SKIPPED_AFTER_COMPILE + 1)}
    width = -(-len(steps_ns) // _MAX_POINTS) or 1
    every = -(-width // _STEPS_A_POINT)
    blocks = [
        [index for index in range(start, min(start + width, len(steps_ns)), every) if index not in left_out]
        for start in range(0, len(steps_ns), width)
    ]
    blocks = [block for block in blocks if block]
    if len(blocks) < _MIN_POINTS:
        return None
    points = tuple(math.log(max(1.0, median(steps_ns[index] for index in block))) for block in blocks)
    shape, last = _judge(points)
    return Course(shape, blocks[last][0])


@lru_cache(maxsize=64)
def _judge(points: tuple[float, ...]) -> tuple[Shape, int]:
    """(shape, first point of the last level). Neighbouring segments within the gate's tolerance are one level."""
    edges = [0, *change_points(points), len(points)]
    levels = [median(points[start:stop]) for start, stop in pairwise(edges)]
    first = len(levels) - 1
    while first and abs(levels[first - 1] - levels[-1]) <= TOLERANCE:
        first -= 1
    if first == 0:
        return Shape.FLAT, 0
    if len(points) - edges[first] < _STEADY_SHARE * len(points):
        return Shape.NO_STEADY_STATE, edges[first]
    slower_at_first = all(level > levels[-1] - TOLERANCE for level in levels[:first])
    return Shape.WARM_UP if slower_at_first else Shape.SLOWDOWN, edges[first]


def change_points(values: Sequence[float]) -> list[int]:
    """Where mean or variance change, by PELT (Killick, Fearnhead and Eckley 2012): the segmentation with the least
    sum of n ln(variance) plus a penalty for each change, exactly, without what pruning shows to be hopeless."""
    n = len(values)
    sums, squares = [0.0, *accumulate(values)], [0.0, *accumulate(value * value for value in values)]
    penalty = _PENALTY * math.log(n)

    def cost(start: int, stop: int) -> float:
        length = stop - start
        mean = (sums[stop] - sums[start]) / length
        variance = (squares[stop] - squares[start]) / length - mean * mean
        return length * math.log(max(_MIN_VARIANCE, variance))

    best, last_change = [-penalty] + [math.inf] * n, [0] * (n + 1)
    candidates: list[int] = []
    for stop in range(_MIN_SEGMENT, n + 1):
        candidates.append(stop - _MIN_SEGMENT)
        totals = [best[start] + cost(start, stop) for start in candidates]
        least = min(totals)
        best[stop], last_change[stop] = least + penalty, candidates[totals.index(least)]
        candidates = [start for start, total in zip(candidates, totals) if total <= best[stop]]
    found, stop = [], n
    while last_change[stop]:
        stop = last_change[stop]
        found.append(stop)
    return found[::-1]
