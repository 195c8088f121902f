"""The paired speedup: does its interval hold the truth, and does it stay quiet where there is no difference?"""

from __future__ import annotations

import math
import random

import pytest

from tcompile_tui.core.pairs import (
    LOOKS,
    Conclusion,
    Pair,
    SpeedupInterval,
    conclude,
    drifted,
    enough,
    make_pair,
    paired_interval,
    paired_time_gain,
    student_t_quantile,
)
from tests.core.streams import RECORDINGS, ar1, recorded

SIGNIFICANT = (Conclusion.FASTER, Conclusion.SLOWER)


def interval_of(log_ratios: list[float]) -> SpeedupInterval:
    interval = paired_interval(log_ratios)
    assert interval is not None
    return interval


def log_ratios(block_pairs: list[list[float]]) -> list[float]:
    return [math.log(first / second) for first, second in block_pairs]


# ---------------------------------------------------------------- Student's t


@pytest.mark.parametrize(
    ("probability", "degrees", "tabulated"),
    [
        (0.975, 1, 12.706205),
        (0.975, 2, 4.302653),
        (0.975, 3, 3.182446),
        (0.975, 4, 2.776445),
        (0.975, 5, 2.570582),
        (0.975, 15, 2.131450),
        (0.975, 31, 2.039513),
        (0.975, 1000, 1.962339),
        (0.995, 4, 4.604095),
        (0.995, 30, 2.749996),
        (0.9, 9, 1.383029),
    ],
)
def test_student_t_is_as_tabulated(probability: float, degrees: int, tabulated: float) -> None:
    assert student_t_quantile(probability, degrees) == pytest.approx(tabulated, rel=1e-3)


def test_student_t_needs_a_degree_of_freedom() -> None:
    with pytest.raises(ValueError, match="degree of freedom"):
        student_t_quantile(0.975, 0)


# ---------------------------------------------------------------- the interval


@pytest.mark.parametrize(("sd", "phi", "pairs"), [(0.004, 0.0, 20), (0.01, 0.5, 20), (0.01, 0.5, 40), (0.04, 0.6, 40)])
def test_the_interval_holds_the_truth(sd: float, phi: float, pairs: int) -> None:
    rng = random.Random(1)
    truth, runs = math.log(1.1), 400
    intervals = [interval_of([truth + noise for noise in ar1(rng, pairs, sd, phi)]) for _ in range(runs)]
    held = sum(interval.lo <= 1.1 <= interval.hi for interval in intervals)
    assert held >= 0.92 * runs
    # Wide enough is not enough: an interval that says nothing holds every truth.
    widest = 4 * sd * math.sqrt((1 + phi) / (1 - phi) / pairs)
    assert sorted(interval.half_width for interval in intervals)[runs // 2] < widest


def test_stopping_at_the_looks_keeps_the_coverage() -> None:
    rng = random.Random(2)
    held, pairs_taken, runs = 0, [], 300
    for _ in range(runs):
        series = [math.log(1.05) + noise for noise in ar1(rng, LOOKS[-1], 0.02, 0.5)]
        for look in LOOKS:
            interval = interval_of(series[:look])
            if enough(interval, look):
                break
        held += interval.lo <= 1.05 <= interval.hi
        pairs_taken.append(look)
    assert held >= 0.92 * runs
    assert len(set(pairs_taken)) > 2  # otherwise no early stop was tried


def test_a_real_speedup_is_found_through_drift_of_the_machine() -> None:
    """Both arms slow down by half over the run: only neighbours are compared."""
    rng = random.Random(3)
    levels = [10e6 * (1 + 0.5 * i / 40) for i in range(40)]
    ratios = [math.log(level * math.exp(rng.gauss(0, 0.01)) / (level / 1.06)) for level in levels]
    interval = interval_of(ratios)
    assert conclude(interval) is Conclusion.FASTER
    assert interval.value == pytest.approx(1.06, abs=0.01)


@pytest.mark.parametrize("name", RECORDINGS)
def test_eager_against_eager_is_no_difference(name: str) -> None:
    interval = interval_of(log_ratios(recorded(name)["aa_block_ns"]))
    assert interval.lo <= 1 <= interval.hi
    assert conclude(interval) not in SIGNIFICANT


def test_runs_resampled_from_eager_against_eager_are_quiet() -> None:
    """Stretches of five neighbouring pairs, as recorded, with the arms' names drawn."""
    rng = random.Random(4)
    alarms, runs_each = 0, 60
    for name in RECORDINGS:
        ratios = log_ratios(recorded(name)["aa_block_ns"])
        for _ in range(runs_each):
            drawn: list[float] = []
            while len(drawn) < LOOKS[0]:
                start, sign = rng.randrange(len(ratios) - 4), rng.choice((-1, 1))
                drawn += [sign * ratio for ratio in ratios[start : start + 5]]
            alarms += conclude(interval_of(drawn)) in SIGNIFICANT
    assert alarms <= 0.05 * runs_each * len(RECORDINGS)


@pytest.mark.parametrize(
    ("name", "conclusion", "speedup"),
    [
        ("mlp_default_infer", Conclusion.SLOWER, 0.889),
        ("pw_default_infer", Conclusion.FASTER, 8.502),
        ("resnet18_default_train", Conclusion.FASTER, 1.757),
        ("bert_default_train", Conclusion.FASTER, 1.370),
    ],
)
def test_recorded_comparisons_are_concluded(name: str, conclusion: Conclusion, speedup: float) -> None:
    interval = interval_of(log_ratios(recorded(name)["ab_block_ns"]))
    assert conclude(interval) is conclusion
    assert interval.value == pytest.approx(speedup, abs=0.001)


def test_spikes_neither_move_nor_blow_up_the_interval() -> None:
    rng = random.Random(5)
    quiet = [math.log(1.2) + rng.gauss(0, 0.005) for _ in range(40)]
    spiked = list(quiet)
    for place in (3, 17, 30):
        spiked[place] += 2.0
    before, after = interval_of(quiet), interval_of(spiked)
    assert after.value == pytest.approx(before.value, rel=0.005)
    assert after.half_width < 2 * before.half_width


def test_too_few_pairs_give_no_interval() -> None:
    assert paired_interval([0.1] * 4) is None
    assert interval_of([0.1] * 5).pairs == 5


def test_equal_pairs_give_a_point() -> None:
    interval = interval_of([0.0] * 20)
    assert (interval.lo, interval.value, interval.hi) == (1.0, 1.0, 1.0)
    assert conclude(interval) is Conclusion.EQUIVALENT


def test_a_wide_interval_around_one_is_inconclusive_and_says_what_it_could_have_seen() -> None:
    rng = random.Random(6)
    interval = interval_of([rng.gauss(0, 0.1) for _ in range(20)])
    assert conclude(interval) is Conclusion.INCONCLUSIVE
    assert interval.smallest_detectable == pytest.approx(2.8 * interval.standard_error)
    assert interval.smallest_detectable > 0.05


def test_a_large_effect_may_stop_sooner_than_a_small_one() -> None:
    rng = random.Random(8)
    noise = [rng.gauss(0, 0.05) for _ in range(28)]
    small, large = (interval_of([math.log(s) + n for n in noise]) for s in (1.05, 2.0))
    assert not enough(small, 28)
    assert enough(large, 28)
    assert not enough(large, LOOKS[0] - 1)


# ---------------------------------------------------------------- drift of the ratio itself


def test_drift_is_told() -> None:
    rng = random.Random(9)
    moved = [rng.gauss(0.10 if i < 20 else 0.16, 0.01) for i in range(40)]
    assert drifted(moved)
    assert not drifted([math.log(1.1) + rng.gauss(0, 0.01) for _ in range(40)])
    assert not drifted([0.0] * 4 + [1.0] * 4)  # too few to say


def test_drift_below_one_percent_does_not_matter() -> None:
    assert not drifted([0.1] * 20 + [0.109] * 20)
    assert drifted([0.1] * 20 + [0.111] * 20)


def test_steady_noise_is_seldom_called_drift() -> None:
    rng = random.Random(10)
    assert sum(drifted(ar1(rng, 40, 0.01, 0.3)) for _ in range(200)) <= 3


@pytest.mark.parametrize("pairs", [20, 40, 80])
def test_noise_that_wanders_is_seldom_called_drift(pairs: int) -> None:
    """At an autocorrelation of 0.8, halves of white noise with the same error would differ in a third of the runs."""
    rng = random.Random(12)
    assert sum(drifted(ar1(rng, pairs, 0.03, 0.8)) for _ in range(200)) <= 10


def test_drift_is_told_in_noise_that_wanders() -> None:
    rng = random.Random(13)
    found = [drifted([0.1 * (i >= 80) + noise for i, noise in enumerate(ar1(rng, 160, 0.02, 0.8))]) for _ in range(50)]
    assert sum(found) >= 45


# ---------------------------------------------------------------- time saved


def test_rare_slow_steps_are_paid_for() -> None:
    """One block in twenty loses 40 ms a step: the median step does not see it, the time saved does."""
    slow = [make_pair([10_000_000] * 10, [8_000_000] * 10)] * 38
    slow += [make_pair([10_000_000] * 10, [8_000_000] * 9 + [408_000_000])] * 2
    gain = paired_time_gain(slow)
    assert gain is not None
    assert gain.mean_ns == pytest.approx(0.0, abs=1.0)
    assert gain.standard_error_ns > 1e6
    assert interval_of([pair.log_ratio for pair in slow]).value == pytest.approx(1.25)


def test_the_gains_error_is_that_of_the_mean() -> None:
    rng = random.Random(11)
    pairs = [Pair(1.0, 1.0, 10e6 + rng.gauss(0, 1e5), 8e6) for _ in range(100)]
    gain = paired_time_gain(pairs)
    assert gain is not None
    assert gain.mean_ns == pytest.approx(2e6, abs=3e4)
    assert gain.standard_error_ns == pytest.approx(1e4, rel=0.5)
    assert paired_time_gain(pairs[:4]) is None


def test_a_clock_that_counts_nothing_makes_no_infinite_ratio() -> None:
    pair = make_pair([0, 0, 0], [1000, 1000, 1000])
    assert math.isfinite(pair.log_ratio)
