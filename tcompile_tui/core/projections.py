"""What the measured mode comes to: total times over a number of steps, and the decision for runs of usual lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcompile_tui.core.results import ModeResult, planned_cost
from tcompile_tui.core.spec import ONE_COLD_START, Plan, Starts
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, decide_for

PROJECTED_STEPS = (100, 1_000, 10_000, 100_000, 1_000_000)
HORIZONS_HOURS = {"1 h": 1.0, "1 day": 24.0, "1 week": 168.0}
_Z_95 = 1.96


@dataclass(frozen=True)
class TotalTime:
    """Wall time of a run of `steps` steps in seconds: eager, compiled with its starts, and the compiled one's 95 %
    interval. An eager start costs nothing here: compiled starts count with what they cost beyond it."""

    steps: float
    eager_s: float
    compiled_s: float
    compiled_lo_s: float
    compiled_hi_s: float


def total_time(result: ModeResult, steps: float, starts: Starts = ONE_COLD_START) -> TotalTime | None:
    """T(N) = C + N c, with c = e - gain; None where the mode or a planned kind of start was not measured.

    The errors of cost and gain are independent, so that of the sum is sqrt(sd(C)^2 + (N sd(gain))^2).
    """
    cost, result = planned_cost(result, starts), result.end_to_end
    if cost is None or result.gain is None or result.eager_mean_ms is None:
        return None
    eager_s = steps * result.eager_mean_ms / 1e3
    compiled_s = cost.mean_s + eager_s - steps * result.gain.mean_ns / 1e9
    half = _Z_95 * math.hypot(cost.standard_error_s, steps * result.gain.standard_error_ns / 1e9)
    return TotalTime(steps, eager_s, compiled_s, max(0.0, compiled_s - half), compiled_s + half)


def total_times(
    result: ModeResult, starts: Starts = ONE_COLD_START, steps: Sequence[float] = PROJECTED_STEPS
) -> tuple[TotalTime, ...]:
    """One row for each number of steps; empty where nothing can be projected."""
    rows = [total_time(result, number, starts) for number in steps]
    return tuple(row for row in rows if row is not None)


def decisions_by_horizon(state: RunState) -> dict[str, Decision]:
    """What would be decided for runs of 1 h, 1 day and 1 week of eager steps, with the planned starts."""
    plan = state.run.spec.plan if state.run is not None else Plan()
    return {
        name: decide_for(state, replace(plan, steps=None, hours=hours)).decision
        for name, hours in HORIZONS_HOURS.items()
    }
