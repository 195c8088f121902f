"""After how many steps has compiling paid for itself?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from tcompile_tui.core.pairs import TimeGain

# The relative spread of a cold start's cost between processes, and how many runs that prior is worth.
PRIOR_COST_SPREAD = 0.10
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


@dataclass(frozen=True)
class Cost:
    """Time spent on starts beyond their steps, with its standard error."""

    mean_s: float
    standard_error_s: float


def start_cost(extra_costs_s: Sequence[float]) -> Cost:
    """One start's extra cost of compiling over eager, in seconds, from the starts that were measured.

    With one to three of them their spread says little, so its relative variance is shrunk to a prior.
    """
    n, mean = len(extra_costs_s), fmean(extra_costs_s)
    own = (stdev(extra_costs_s) / mean) ** 2 if n > 1 and mean else 0.0
    variance = (_PRIOR_WEIGHT * PRIOR_COST_SPREAD**2 + (n - 1) * own) / (_PRIOR_WEIGHT + n - 1)
    return Cost(mean, abs(mean) * math.sqrt(variance / n))


def cost_of_starts(kinds: Sequence[tuple[int, Cost]]) -> Cost:
    """Of so many starts of each kind. Starts of one kind share what is not known of their mean."""
    return Cost(
        sum(number * cost.mean_s for number, cost in kinds),
        math.hypot(*(number * cost.standard_error_s for number, cost in kinds)),
    )


def break_even(cost: Cost, gain: TimeGain) -> BreakEven:
    """N* = C / (e - c) with Fieller's interval for a ratio of independent means (Fieller 1954).

    `cost`: what all starts cost; `gain`: time saved by one step.
    """
    saved, saved_error = gain.mean_ns / 1e9, gain.standard_error_ns / 1e9
    if cost.mean_s <= 0:
        return BreakEven(0.0, 0.0, 0.0) if saved >= 0 else BreakEven(None, 0.0, None)
    steps = cost.mean_s / saved if saved > 0 else None
    g = (_Z_95 * saved_error / saved) ** 2 if saved > 0 else math.inf
    if steps is None or g >= 1:
        return BreakEven(steps, 0.0, None)  # the gain cannot be told from none
    half = _Z_95 / saved * math.sqrt(cost.standard_error_s**2 * (1 - g) + (steps * saved_error) ** 2)
    return BreakEven(steps, max(0.0, (steps - half) / (1 - g)), (steps + half) / (1 - g))
