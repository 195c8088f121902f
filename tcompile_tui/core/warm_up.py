"""What an arm's first steps cost beyond its steady ones."""

from __future__ import annotations

from statistics import median

from tcompile_tui.core.breakeven import extra_cost_ns
from tcompile_tui.core.events import Steadiness
from tcompile_tui.core.state import ArmSteps
from tcompile_tui.core.steady import SKIPPED_AFTER_COMPILE


def warmed_up(arm: ArmSteps | None) -> bool:
    return arm is not None and arm.warmup_steps > 0


def warmup_extra_ns(arm: ArmSteps) -> float:
    """Time above the arm's own steady level, from the first step to the steady state, and in later steps that compiled
    for further shapes. Where no level was found, up to the last step that compiled: on a noisy machine the sum over
    more steps would be noise."""
    last_compile = max((i for i in arm.compiled_at if i < arm.warmup_steps), default=0)
    until = last_compile + 1 + SKIPPED_AFTER_COMPILE
    if arm.steadiness is Steadiness.STEADY and arm.steady_from is not None:
        until = max(until, arm.steady_from)
    until = min(until, arm.warmup_steps)
    steps = list(arm.series.slice(0, until))
    later = arm.series.slice(until, arm.warmup_steps) or arm.series.slice(until) or steps[1:] or steps
    if steps and arm.first_step_ns is not None:
        steps[0] = arm.first_step_ns
    return extra_cost_ns(steps, float(median(later))) + arm.later_compile_ns
