"""From single processes to the program: the speedup with what differs between processes of it.

Inductor benchmarks near-tied kernels anew in every process, and memory lands elsewhere, so each process is one draw:
pairs measured in it say how fast that process is, however many there are. The model, for process k of one mode:

    ln(speedup_k) = ln(speedup) + b_k + e_k,   b_k ~ N(0, between_sd^2),   e_k ~ N(0, standard_error_k^2)

with the standard errors from the pairs. Two or three processes say little about `between_sd`, so it is shrunk to
a prior, and all modes of a run are taken together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from tcompile_tui.core.pairs import (
    DETECTABLE_STANDARD_ERRORS,
    STANDARD_ERROR_FACTOR,
    SpeedupInterval,
    TimeGain,
    student_t_quantile,
)

# Standard deviation of ln(speedup) between processes of one program, and how many processes that knowledge is worth.
PRIOR_BETWEEN_SD = 0.0075
PRIOR_WEIGHT = 4
# Makes up for the pull towards the prior where the truth lies above it: with it a nominal 95 % interval covers 95 to
# 99 % at a between_sd of 1 %, and more at 0.5 % (tests/benchmarks/coverage.py).
_SPREAD_FACTOR = 1.15
_ERROR_RATE = 0.05


@dataclass(frozen=True)
class BetweenProcesses:
    """The spread between processes (of the logarithm), as one number for all modes of a run, and the degrees of
    freedom that it is known with."""

    sd: float
    degrees: float


@dataclass(frozen=True)
class MeanSpeedup(SpeedupInterval):
    """The speedup of the average process. `pairs` counts those of all `processes`. Of the logarithm: `within_sd` is
    the typical standard error of one process's pairs, `between_sd` the spread between processes. The speedup is at
    most `at_most` with 95 % confidence to that side alone, which is what a test for equivalence asks."""

    processes: int
    within_sd: float
    between_sd: float
    at_most: float

    @property
    def one_process(self) -> bool:
        """Does `between_sd` rest on nothing but the prior, for this mode?"""
        return self.processes == 1


def between_processes(modes: Sequence[Sequence[SpeedupInterval]]) -> BetweenProcesses:
    """The spread between processes, from every mode's processes, shrunk to the prior like a variance with an
    inverse-chi-squared prior of PRIOR_WEIGHT degrees of freedom (Gelman et al. 2013, 2.6)."""
    moments = [_between_variance(processes) for processes in modes if len(processes) > 1]
    degrees = PRIOR_WEIGHT + sum(own for _, own in moments)
    excess = sum(own * variance for variance, own in moments)
    variance = (PRIOR_WEIGHT * PRIOR_BETWEEN_SD**2 + max(0.0, excess)) / degrees
    return BetweenProcesses(_SPREAD_FACTOR * math.sqrt(variance), degrees)


def _between_variance(processes: Sequence[SpeedupInterval]) -> tuple[float, float]:
    """(variance between the processes of one mode, its degrees of freedom); below 0 where the pairs' errors alone
    would spread them more.

    Method of moments with weights fixed beforehand (DerSimonian and Kacker 2007), here 1 / (prior + error^2):
    sum of squares about the weighted mean, less what the pairs' errors put there. These go in without their safety
    factor, so that no more is taken off than is there. Degrees: the effective number of processes (Kish 1965) less 1.
    """
    logs = [math.log(process.value) for process in processes]
    errors = [(process.standard_error / STANDARD_ERROR_FACTOR) ** 2 for process in processes]
    weights = [1 / (PRIOR_BETWEEN_SD**2 + error) for error in errors]
    total, squares = sum(weights), sum(weight**2 for weight in weights)
    middle = sum(weight * value for weight, value in zip(weights, logs)) / total
    seen = sum(weight * (value - middle) ** 2 for weight, value in zip(weights, logs))
    from_pairs = sum(weight * error * (1 - weight / total) for weight, error in zip(weights, errors))
    return (seen - from_pairs) / (total - squares / total), total**2 / squares - 1


def mean_speedup(
    processes: Sequence[SpeedupInterval], between: BetweenProcesses, compared_modes: int = 1
) -> MeanSpeedup | None:
    """The 95 % interval of the average process; None without a process.

    Mean of the logarithms, weighted by 1 / (between_sd^2 + standard_error^2); Student's t with the degrees of
    freedom of the sum of both variances (Satterthwaite 1946).

    The best of several modes is chosen by looking at them, so each side's error is 5 % / max(2, `compared_modes`):
    then the interval of the mode that comes out best misses in at most 5 % of runs (Bonferroni; its upper end is
    not what the choice endangers, so up to two modes cost nothing).
    """
    if not processes:
        return None
    variances = [between.sd**2 + process.standard_error**2 for process in processes]
    total = sum(1 / variance for variance in variances)
    weights = [1 / variance / total for variance in variances]
    middle = sum(weight * math.log(process.value) for weight, process in zip(weights, processes))
    parts = [(weight * process.standard_error) ** 2 for weight, process in zip(weights, processes)]
    between_part = sum((weight * between.sd) ** 2 for weight in weights)
    error = math.sqrt(between_part + sum(parts))
    degrees = _satterthwaite(
        [(between_part, between.degrees), *((part, process.degrees) for part, process in zip(parts, processes))]
    )
    return _mean_speedup(
        middle,
        error,
        degrees,
        compared_modes,
        lag1=max(process.lag1 for process in processes),
        pairs=sum(process.pairs for process in processes),
        processes=len(processes),
        within_sd=math.sqrt(fmean(process.standard_error**2 for process in processes)),
        between_sd=between.sd,
    )


def unpaired_speedup(
    eager: Sequence[SpeedupInterval], compiled: Sequence[SpeedupInterval], compared_modes: int = 1
) -> MeanSpeedup | None:
    """The speedup where each process ran one arm: `value` of each is its step time. None without a process of each.

    Difference of both arms' mean logarithms with Welch's degrees of freedom (Welch 1947), both with the spread between
    processes that both show together. `pairs` is 0.
    """
    between = between_processes([eager, compiled])
    slow, fast = mean_speedup(eager, between), mean_speedup(compiled, between)
    if slow is None or fast is None:
        return None
    parts = [(slow.standard_error**2, float(slow.degrees)), (fast.standard_error**2, float(fast.degrees))]
    return _mean_speedup(
        math.log(slow.value / fast.value),
        math.hypot(slow.standard_error, fast.standard_error),
        _satterthwaite(parts),
        compared_modes,
        lag1=max(slow.lag1, fast.lag1),
        pairs=0,
        processes=min(len(eager), len(compiled)),
        within_sd=math.hypot(slow.within_sd, fast.within_sd),
        between_sd=between.sd,
    )


def if_known_from(speedup: MeanSpeedup, value: float, processes: int, compared_modes: int) -> MeanSpeedup:
    """`speedup` as it would be had that many processes, as noisy as its own, come to `value`."""
    return _mean_speedup(
        math.log(value),
        speedup.standard_error * math.sqrt(speedup.processes / processes),
        speedup.degrees + processes - speedup.processes,
        compared_modes,
        lag1=speedup.lag1,
        pairs=speedup.pairs,
        processes=processes,
        within_sd=speedup.within_sd,
        between_sd=speedup.between_sd,
    )


def _mean_speedup(
    middle: float,
    error: float,
    degrees: int,
    compared_modes: int,
    *,
    lag1: float,
    pairs: int,
    processes: int,
    within_sd: float,
    between_sd: float,
) -> MeanSpeedup:
    """From the mean logarithm and its standard error."""
    half_width = error * student_t_quantile(1 - _ERROR_RATE / max(2, compared_modes), degrees)
    return MeanSpeedup(
        value=math.exp(middle),
        lo=math.exp(middle - half_width),
        hi=math.exp(middle + half_width),
        half_width=half_width,
        standard_error=error,
        lag1=lag1,
        pairs=pairs,
        degrees=degrees,
        smallest_detectable=DETECTABLE_STANDARD_ERRORS * error,
        processes=processes,
        within_sd=within_sd,
        between_sd=between_sd,
        at_most=math.exp(middle + error * student_t_quantile(1 - _ERROR_RATE, degrees)),
    )


def mean_time_gain(gains: Sequence[TimeGain], compiled_step_ns: float, between: BetweenProcesses) -> TimeGain | None:
    """The time that a step saves in the average process; None without a process.

    `compiled_step_ns` is the mean compiled step: `between` is relative, and it is the compiled step that differs.
    """
    if not gains:
        return None
    n = len(gains)
    variance = sum(gain.standard_error_ns**2 for gain in gains) / n**2 + (between.sd * compiled_step_ns) ** 2 / n
    return TimeGain(fmean(gain.mean_ns for gain in gains), math.sqrt(variance))


def _satterthwaite(parts: Sequence[tuple[float, float]]) -> int:
    """Degrees of freedom of a sum of variances, each with its own; rounded down, at least one."""
    total = sum(variance for variance, _ in parts)
    return max(1, int(total**2 / sum(variance**2 / degrees for variance, degrees in parts)))
