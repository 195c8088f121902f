"""Paired comparison of two arms: blocks of both run in turn (ABBA), and only their ratio is believed.

The level of a busy machine wanders by more than most speedups are large, so two series taken one after the other
compare the machine with itself. The ratio of two neighbouring blocks does not wander.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist, fmean, median, stdev

# The first steps after a switch of arms find the other arm's data in the caches.
DISCARDED_AFTER_SWITCH = 2
# Looking only here keeps the chance of stopping on luck small; the interval is calibrated for these looks.
LOOKS = (20, 28, 40, 56, 80, 112, 160, 200)
MIN_PAIRS_FOR_INTERVAL = 5
EQUIVALENCE = 0.02
_TRIM = 0.10
_LEVEL = 0.95
# On simulated GPU and host noise with the looks above, a nominal 95 % interval then covers 94 to 98 %.
STANDARD_ERROR_FACTOR = 1.25
_MAX_AUTOCORRELATION = 0.9
_MEDIAN_ERROR = 1.2533  # standard error of a median, in those of a mean
# Small, because every mode and process of a run is asked.
_DRIFT_LEVEL = 0.999
_DRIFT_THAT_MATTERS = 0.01
# Detectable with a power of 80 % at the 5 % level.
DETECTABLE_STANDARD_ERRORS = 2.8
_STOP_HALF_WIDTH = 0.01
_STOP_SHARE_OF_EFFECT = 0.25


@dataclass(frozen=True)
class Pair:
    """Neighbouring blocks of both arms. Medians (for the speedup) and means (for time spent) of one step in ns.

    `lost_share` is the part of the wall time in which the timing thread did not run, the larger of both blocks;
    None where that says nothing (CUDA, where the host waits for the device). `span_s` is when both blocks ran, in
    seconds of the run.
    """

    eager_ns: float
    compiled_ns: float
    eager_mean_ns: float
    compiled_mean_ns: float
    lost_share: float | None = None
    span_s: tuple[float, float] = (0.0, 0.0)

    @property
    def log_ratio(self) -> float:
        """ln(eager / compiled): above 0 the compiled arm is faster."""
        return math.log(self.eager_ns / self.compiled_ns)


@dataclass(frozen=True)
class BlockLevel:
    """One block of one arm: median and mean of a step in ns. `span_s` is when it ran, in seconds of the run."""

    step_ns: float
    mean_ns: float
    span_s: tuple[float, float] = (0.0, 0.0)


def make_pair(
    eager_steps_ns: Sequence[int],
    compiled_steps_ns: Sequence[int],
    lost_share: float | None = None,
    span_s: tuple[float, float] = (0.0, 0.0),
) -> Pair:
    """Reduce the compared steps of two blocks; neither may be empty."""
    return Pair(
        eager_ns=max(1.0, float(median(eager_steps_ns))),
        compiled_ns=max(1.0, float(median(compiled_steps_ns))),
        eager_mean_ns=max(1.0, fmean(eager_steps_ns)),
        compiled_mean_ns=max(1.0, fmean(compiled_steps_ns)),
        lost_share=lost_share,
        span_s=span_s,
    )


@dataclass(frozen=True)
class SpeedupInterval:
    """eager time / compiled time with its 95 % interval. `half_width`, `standard_error` and `lag1` are those of
    the logarithm; `degrees` are those of Student's t behind it; `smallest_detectable` is the relative difference that
    this many pairs could have seen."""

    value: float
    lo: float
    hi: float
    half_width: float
    standard_error: float
    lag1: float
    pairs: int
    degrees: int
    smallest_detectable: float


class Conclusion(str, enum.Enum):
    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "no difference that matters"
    INCONCLUSIVE = "cannot tell"


def conclude(interval: SpeedupInterval) -> Conclusion:
    """What the interval alone allows to say of the compiled arm."""
    if interval.lo > 1:
        return Conclusion.FASTER
    if interval.hi < 1:
        return Conclusion.SLOWER
    if interval.lo >= 1 - EQUIVALENCE and interval.hi <= 1 + EQUIVALENCE:
        return Conclusion.EQUIVALENT
    return Conclusion.INCONCLUSIVE


def paired_interval(log_ratios: Sequence[float]) -> SpeedupInterval | None:
    """The speedup from one ln(eager / compiled) per pair; None below MIN_PAIRS_FOR_INTERVAL.

    10 % trimmed mean with Yuen's standard error from the winsorized sample (Yuen 1974), widened by
    sqrt((1 + r) / (1 - r)) for the lag-1 autocorrelation r of neighbouring pairs (corrected for its small-sample
    bias), with Student's t on n - 2g - 1 degrees of freedom.
    """
    n = len(log_ratios)
    if n < MIN_PAIRS_FOR_INTERVAL:
        return None
    trimmed = int(_TRIM * n)
    ordered = sorted(log_ratios)
    middle = fmean(ordered[trimmed : n - trimmed])
    winsorized = _winsorize(log_ratios, trimmed)
    lag1 = _autocorrelation(winsorized)
    error = stdev(winsorized) / ((1 - 2 * trimmed / n) * math.sqrt(n))
    error *= math.sqrt((1 + lag1) / (1 - lag1)) * STANDARD_ERROR_FACTOR
    degrees = n - 2 * trimmed - 1
    half_width = student_t_quantile(0.5 + _LEVEL / 2, degrees) * error
    return SpeedupInterval(
        value=math.exp(middle),
        lo=math.exp(middle - half_width),
        hi=math.exp(middle + half_width),
        half_width=half_width,
        standard_error=error,
        lag1=lag1,
        pairs=n,
        degrees=degrees,
        smallest_detectable=DETECTABLE_STANDARD_ERRORS * error,
    )


def enough(interval: SpeedupInterval, pairs: int) -> bool:
    """May the measuring stop here? Only asked at LOOKS."""
    return pairs >= LOOKS[0] and meets_stop_rule(interval)


def meets_stop_rule(interval: SpeedupInterval) -> bool:
    """Half-width at most 1 %, or a quarter of the effect where that is larger."""
    return interval.half_width <= max(_STOP_HALF_WIDTH, _STOP_SHARE_OF_EFFECT * abs(interval.value - 1))


@dataclass(frozen=True)
class TimeGain:
    """Time saved by one compiled step, eager minus compiled, in ns, with its standard error."""

    mean_ns: float
    standard_error_ns: float


def paired_time_gain(pairs: Sequence[Pair]) -> TimeGain | None:
    """From block means, unclipped, because rare slow steps are paid for; so is their part of the error."""
    n = len(pairs)
    if n < MIN_PAIRS_FOR_INTERVAL:
        return None
    differences = [pair.eager_mean_ns - pair.compiled_mean_ns for pair in pairs]
    trimmed = int(_TRIM * n)
    winsorized = _winsorize(differences, trimmed)
    lag1 = _autocorrelation(winsorized)
    spread = max(stdev(differences), stdev(winsorized) / (1 - 2 * trimmed / n))
    return TimeGain(fmean(differences), spread / math.sqrt(n) * math.sqrt((1 + lag1) / (1 - lag1)))


def drifted(log_ratios: Sequence[float]) -> bool:
    """Did the ratio itself move between the first and the second half, by more than 1 % and more than noise moves it?

    Difference of the halves' medians against its standard error, from the winsorized deviations inside the halves,
    widened like the interval for their autocorrelation; Student's t at _DRIFT_LEVEL.
    """
    n = len(log_ratios)
    if n < 2 * MIN_PAIRS_FOR_INTERVAL:
        return False
    halves = [log_ratios[: n // 2], log_ratios[n // 2 :]]
    middles = [median(half) for half in halves]
    deviations = [value - middle for half, middle in zip(halves, middles) for value in half]
    trimmed = int(_TRIM * n)
    winsorized = _winsorize(deviations, trimmed)
    lag1 = _autocorrelation(winsorized, means=2)
    independent = n * (1 - lag1) / (1 + lag1)  # as many independent pairs would know as much
    error = _MEDIAN_ERROR * stdev(winsorized) / (1 - 2 * trimmed / n) * 2 / math.sqrt(independent)
    limit = student_t_quantile(_DRIFT_LEVEL, max(1, int(independent) - 2)) * error
    return abs(middles[0] - middles[1]) > max(_DRIFT_THAT_MATTERS, limit)


def student_t_quantile(probability: float, degrees: int) -> float:
    """Student's t: exact for 1 and 2 degrees of freedom, else Hill's expansion (Hill 1970, CACM 396; relative
    error below 1e-3 from 3 degrees on at the 97.5 % point)."""
    if degrees < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:
        return (2 * probability - 1) * math.sqrt(2 / (4 * probability * (1 - probability)))
    z = NormalDist().inv_cdf(probability)
    a = 1 / (degrees - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * degrees
    y = (d * 2 * (1 - probability)) ** (2 / degrees)
    if y > 0.05 + a:
        y = z * z
        if degrees < 5:
            c += 0.3 * (degrees - 4.5) * (z + 0.6)
        c += (((0.05 * d * z - 5) * z - 7) * z - 2) * z + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * z
        y = math.expm1(a * y * y)
    else:
        y = (
            (1 / (((degrees + 6) / (degrees * y) - 0.089 * d - 0.822) * (degrees + 2) * 3) + 0.5 / (degrees + 4)) * y
            - 1
        ) * (degrees + 1) / (degrees + 2) + 1 / y
    return math.sqrt(degrees * y)


def _winsorize(values: Sequence[float], trimmed: int) -> list[float]:
    ordered = sorted(values)
    low, high = ordered[trimmed], ordered[len(values) - trimmed - 1]
    return [min(high, max(low, value)) for value in values]


def _autocorrelation(values: Sequence[float], means: int = 1) -> float:
    """Lag-1, not below 0, with the bias of a short series, out of which `means` means were taken, taken out
    (Kendall 1954)."""
    n = len(values) / means
    mean = fmean(values)
    power = sum((value - mean) ** 2 for value in values)
    if not power:
        return 0.0
    lag1 = sum((a - mean) * (b - mean) for a, b in pairwise(values)) / power
    return max(0.0, min(_MAX_AUTOCORRELATION, lag1 + (1 + 4 * lag1) / n))
