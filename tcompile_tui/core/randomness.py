"""Are outputs that eager draws anew each time drawn from the same distribution when compiled?

Two questions are asked of each output, over several runs of both arms: is its mean over the runs the same pattern,
and are the figures of each run (its mean, its share of zeros) the same? For both, the runs' labels "eager" and
"compiled" are exchangeable if nothing is wrong, so the squared distance between the arms' means is set against what
it is over all ways to label the runs. The mean and variance over these are known in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tcompile_tui.core.events import LeafSpread, RunStatistic

# Standard deviations over all labellings. For one figure of eight runs each this is |t| > 7.2, a chance of 5e-6
# where nothing is wrong; a complete separation reaches 10.2. Outliers in few runs cannot reach it.
_BEYOND_CHANCE = 8.0
# A difference smaller than this share of the output's size is rounding, however sure it is.
_ROUNDING = 1e-3
_LOW_PRECISION_ROUNDING = 1e-2


@dataclass(frozen=True)
class Separation:
    """`deviations` tells how far the arms' distance is beyond that of labels drawn at random, `distance` how large
    it is."""

    deviations: float
    distance: float


def find_difference(leaf: LeafSpread, runs: int, low_precision: bool) -> str | None:
    """What differs between the arms beyond chance and rounding, in words; None if nothing does."""
    rounding = _LOW_PRECISION_ROUNDING if low_precision else _ROUNDING
    if leaf.elements == 0 or runs < 2:
        return None
    pattern = separation(_full(leaf.products, 2 * runs))
    if _matters(pattern, rounding * leaf.rms):
        share = pattern.distance / leaf.rms if leaf.rms else math.inf
        return f"its mean over {runs} runs differs by {share:.1e} of its size"
    for statistic in leaf.statistics:
        if len(statistic.eager) != runs or len(statistic.compiled) != runs:
            continue
        size = 1.0 if statistic.name.startswith("share") else leaf.rms
        if _matters(separation(_products_of(statistic)), rounding * size):
            eager, compiled = _mean(statistic.eager), _mean(statistic.compiled)
            return f"its {statistic.name} is {compiled:.3g} and not {eager:.3g} (over {runs} runs)"
    return None


def separation(products: Sequence[Sequence[float]]) -> Separation:
    """Of two equal halves of runs, from the matrix of products of their values, each less the mean over all runs.

    With labels w = +1 and -1 the squared distance of the halves' means is proportional to the quadratic form of w.
    Its mean and variance over all balanced labellings follow from E[w_i w_j] = -1/(n-1) and
    E[w_i w_j w_k w_l] = 3/((n-1)(n-3)) for distinct indices.
    """
    n = len(products)
    labels = [1.0 if i < n // 2 else -1.0 for i in range(n)]
    trace = sum(products[i][i] for i in range(n))
    rows = [sum(row) - row[i] for i, row in enumerate(products)]
    off_diagonal = sum(rows)
    squares = sum(value * value for i, row in enumerate(products) for j, value in enumerate(row) if i != j)
    one_shared = sum(row * row for row in rows) - squares
    observed = sum(labels[i] * labels[j] * products[i][j] for i in range(n) for j in range(n))
    distance = math.sqrt(max(0.0, observed)) / (n // 2)
    mean = -off_diagonal / (n - 1)
    disjoint = off_diagonal * off_diagonal - 2 * squares - 4 * one_shared
    mean_square = 2 * squares - 4 * one_shared / (n - 1) + 3 * disjoint / ((n - 1) * (n - 3))
    # Below rounding of the sums themselves there is no variance to speak of.
    variance = mean_square - mean * mean
    if variance <= 1e-12 * trace * trace:
        return Separation(0.0, distance)
    return Separation((observed - trace - mean) / math.sqrt(variance), distance)


def _matters(found: Separation, rounding: float) -> bool:
    return found.deviations > _BEYOND_CHANCE and found.distance > rounding


def _products_of(statistic: RunStatistic) -> list[list[float]]:
    values = [*statistic.eager, *statistic.compiled]
    mean = _mean(values)
    return [[(a - mean) * (b - mean) for b in values] for a in values]


def _full(upper: Sequence[float], n: int) -> list[list[float]]:
    """The symmetric matrix from its upper triangle; zeros for a record that does not fit."""
    matrix = [[0.0] * n for _ in range(n)]
    if len(upper) != n * (n + 1) // 2:
        return matrix
    values = iter(upper)
    for i in range(n):
        for j in range(i, n):
            matrix[i][j] = matrix[j][i] = next(values)
    return matrix


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / max(1, len(values))
