"""After how many steps has compiling paid for itself?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from tcompile_tui.core.pairs import TimeGain

# The relative spread of a cold start's cost between processes, and how many runs that prior is worth.
_PRIOR_COST_SPREAD = 0.10
_PRIOR_WEIGHT = 4
_Z_95 = 1.96


@dataclass(frozen=True)
class BreakEven:
    """Steps until the compiled run has caught up. None is never; `hi` None: it may be never."""

    steps: float | None
    lo: float
    hi: float | None


def extra_cost_ns(warmup_steps_ns: Sequence[int], steady_step_ns: float) -> float:
    """What a start costs beyond its steps: the time above the steady level, up to the steady state. Not just the
    first call: the backward compiles later, cudagraphs record in the second call, a new shape compiles again."""
    return sum(warmup_steps_ns) - len(warmup_steps_ns) * steady_step_ns


def break_even(extra_costs_s: Sequence[float], gain: TimeGain) -> BreakEven:
    """N* = C / (e - c) with Fieller's interval for a ratio of independent means (Fieller 1954).

    `extra_costs_s`: one or more starts' extra cost of compiling over eager, in seconds; `gain`: time saved by one
    step. With one to three starts their spread says little, so it is shrunk to a prior.
    """
    cost, saved = fmean(extra_costs_s), gain.mean_ns / 1e9
    saved_error = gain.standard_error_ns / 1e9
    if cost <= 0:
        return BreakEven(0.0, 0.0, 0.0) if saved >= 0 else BreakEven(None, 0.0, None)
    steps = cost / saved if saved > 0 else None
    g = (_Z_95 * saved_error / saved) ** 2 if saved > 0 else math.inf
    if steps is None or g >= 1:
        return BreakEven(steps, 0.0, None)  # the gain cannot be told from none
    cost_error = _cost_error(extra_costs_s)
    half = _Z_95 / saved * math.sqrt(cost_error**2 * (1 - g) + (steps * saved_error) ** 2)
    return BreakEven(steps, max(0.0, (steps - half) / (1 - g)), (steps + half) / (1 - g))


def _cost_error(costs_s: Sequence[float]) -> float:
    """Standard error of the mean cost."""
    n, mean = len(costs_s), fmean(costs_s)
    own = (stdev(costs_s) / mean) ** 2 if n > 1 else 0.0
    variance = (_PRIOR_WEIGHT * _PRIOR_COST_SPREAD**2 + (n - 1) * own) / (_PRIOR_WEIGHT + n - 1)
    return mean * math.sqrt(variance / n)
