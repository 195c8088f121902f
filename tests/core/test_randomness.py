"""Random outputs as distributions: what differs beyond chance is found, and chance alone is not."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from tcompile_tui.core.events import LeafSpread, RunStatistic
from tcompile_tui.core.randomness import find_difference, separation

RUNS = 8


def _products(runs: Sequence[Sequence[float]]) -> list[list[float]]:
    means = [math.fsum(column) / len(runs) for column in zip(*runs, strict=True)]
    centred = [[value - mean for value, mean in zip(run, means, strict=True)] for run in runs]
    return [[math.fsum(x * y for x, y in zip(a, b, strict=True)) / len(a) for b in centred] for a in centred]


def spread(shift: float, elements: int = 20, seed: int = 1) -> LeafSpread:
    """Standard normal elements; those of the compiled runs are moved by `shift`."""
    rng = random.Random(seed)
    runs = [[rng.gauss(shift * (run >= RUNS), 1) for _ in range(elements)] for run in range(2 * RUNS)]
    matrix = _products(runs)
    upper = tuple(matrix[i][j] for i in range(2 * RUNS) for j in range(i, 2 * RUNS))
    means = tuple(math.fsum(run) / elements for run in runs)
    statistic = RunStatistic("mean", eager=means[:RUNS], compiled=means[RUNS:])
    return LeafSpread("output", "float32", elements, 1.0, upper, (statistic,))


def _statistics_only(name: str, eager: Sequence[float], compiled: Sequence[float]) -> LeafSpread:
    zeros = (0.0,) * (RUNS * (2 * RUNS + 1))
    statistic = RunStatistic(name, eager=tuple(eager), compiled=tuple(compiled))
    return LeafSpread("output", "float32", 100, 1.0, zeros, (statistic,))


def test_the_closed_form_is_that_of_all_labellings() -> None:
    rng = random.Random(3)
    matrix = _products([[rng.gauss(0, 1) for _ in range(3)] for _ in range(8)])
    forms = []
    for chosen in itertools.combinations(range(8), 4):
        labels = [1 if i in chosen else -1 for i in range(8)]
        forms.append(math.fsum(labels[i] * labels[j] * matrix[i][j] for i in range(8) for j in range(8)))
    mean = math.fsum(forms) / len(forms)
    deviation = math.sqrt(math.fsum((form - mean) ** 2 for form in forms) / len(forms))
    found = separation(matrix)
    assert found.deviations == pytest.approx((forms[0] - mean) / deviation)
    assert found.distance == pytest.approx(math.sqrt(forms[0]) / 4)


@pytest.mark.parametrize("elements", [1, 5, 50])
def test_chance_alone_is_no_difference(elements: int) -> None:
    found = [find_difference(spread(0.0, elements, seed), RUNS, low_precision=False) for seed in range(60)]
    assert found == [None] * 60


def test_another_pattern_of_means_is_found() -> None:
    text = find_difference(spread(3.0), RUNS, low_precision=False)
    assert text is not None and "mean over 8 runs" in text


def test_a_difference_within_rounding_is_none_however_sure() -> None:
    rng = random.Random(2)
    eager = [1 + 1e-7 * rng.random() for _ in range(RUNS)]
    for shift, low_precision, differs in (
        (5e-4, False, False), (5e-3, False, True), (5e-3, True, False), (5e-2, True, True),
    ):  # fmt: skip
        leaf = _statistics_only("mean", eager, [value + shift for value in eager])
        assert (find_difference(leaf, RUNS, low_precision) is not None) is differs


def test_dropout_that_is_left_out_shows_in_the_zeros() -> None:
    """The mean stays what it was."""
    text = find_difference(_statistics_only("share of zeros", [0.5, 0.51] * 4, [0.0] * 8), RUNS, low_precision=False)
    assert text is not None and "share of zeros is 0 and not 0.505" in text


def test_an_outlier_among_the_runs_is_no_difference() -> None:
    leaf = _statistics_only("mean", [1.0] * 7 + [50.0], [1.0] * 8)
    assert find_difference(leaf, RUNS, low_precision=False) is None


def test_runs_without_any_spread_are_alike() -> None:
    assert find_difference(_statistics_only("mean", [1.0] * 8, [1.0] * 8), RUNS, low_precision=False) is None
    assert find_difference(LeafSpread("output", "", 0, 0.0, (), ()), RUNS, low_precision=False) is None


def test_a_record_that_does_not_fit_is_no_difference() -> None:
    odd = LeafSpread("output", "float32", 9, 1.0, (1.0, 2.0), (RunStatistic("mean", eager=(1.0,), compiled=()),))
    for runs in (RUNS, 1, 0):
        assert find_difference(odd, runs, low_precision=False) is None
