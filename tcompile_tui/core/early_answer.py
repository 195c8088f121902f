"""SKIP in mid-compile: where a start has already cost more than the whole planned run takes in eager, no speedup,
however large, can pay for it.

Certain only for a plan that was given, and only from starts on empty caches: the compile in hand is one of those. It
costs at least what it has cost so far, and an infinitely fast step afterwards leaves exactly the starts to be paid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from tcompile_tui.core.breakeven import start_cost
from tcompile_tui.core.pairs import student_t_quantile
from tcompile_tui.core.spec import Arm, Phase, Plan
from tcompile_tui.core.state import ArmSteps, ProcessState, RunState
from tcompile_tui.core.steady import SKIPPED_AFTER_COMPILE
from tcompile_tui.core.warm_up import warmed_up, warmup_extra_ns

_Z_95 = 1.96
_MIN_STEPS = 3
_MEANS = 10


@dataclass(frozen=True)
class PlannedRun:
    """The planned work in eager. `eager_s` is the upper end of its 95 % interval, over all starts and without them;
    `eager_start_s` is what one start of it costs beyond its steps."""

    eager_s: float
    eager_start_s: float
    cold_starts: int

    def cannot_pay(self, start_s: float) -> bool:
        """Is the run over before cold starts of `start_s` seconds are paid for, whatever a step then takes? With the
        spread that one measured start stands for, as in the break-even, so that both agree."""
        cost = start_cost([start_s])
        return self.cold_starts * (cost.mean_s - _Z_95 * cost.standard_error_s) >= self.eager_s

    def start_so_far_s(self, process: ProcessState, at_s: float) -> float | None:
        """What a compiled start has cost beyond an eager one at `at_s` (seconds of the run), in the middle of its first
        step; None before and after that. What listening to the compiler cost is taken off."""
        arm = process.arms.get(Arm.COMPILED)
        if process.compiled is None or process.imports is None or warmed_up(arm):
            return None
        compiler_s = process.imports.compiler_s or 0.0
        step_s = at_s - process.compiled.t_s - process.compile.logging_s
        return compiler_s + step_s - self.eager_start_s


def planned_run(state: RunState) -> PlannedRun | None:
    """None where the plan was not given, or eager was not measured."""
    plan = state.run.spec.plan if state.run is not None else Plan()
    eager = state.process_of(Phase.EAGER)
    arm = eager.arms.get(Arm.EAGER) if eager is not None and eager.done else None
    if plan.assumed or arm is None or not warmed_up(arm) or arm.start_was_suspended:
        return None
    eager_s = plan.hours * 3600.0 if plan.hours is not None else _steps_s(arm, plan.steps or 0)
    if eager_s is None:
        return None
    return PlannedRun(eager_s, max(0.0, warmup_extra_ns(arm) / 1e9), plan.starts.cold)


def _steps_s(arm: ArmSteps, steps: int) -> float | None:
    steady_from = arm.steady_from if arm.steady_from is not None else 1 + SKIPPED_AFTER_COMPILE
    times_ns = arm.series.slice(steady_from, arm.warmup_steps) or arm.series.slice(1, arm.warmup_steps)
    highest_ns = mean_at_most(times_ns)
    return steps * highest_ns / 1e9 if highest_ns is not None else None


def mean_at_most(times: Sequence[float]) -> float | None:
    """The upper end of the mean's 95 % interval, from the means of ten batches where there are enough values, because
    neighbouring steps resemble each other (batch means, Law and Kelton 2000, 9.5.3); None below three values."""
    if len(times) < _MIN_STEPS:
        return None
    size = max(1, len(times) // _MEANS)
    means = [fmean(times[start : start + size]) for start in range(0, len(times) - size + 1, size)]
    t = student_t_quantile(0.975, len(means) - 1)
    return fmean(means) + t * stdev(means) / math.sqrt(len(means))
