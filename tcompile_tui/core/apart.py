"""Eager and compiled in processes of their own, in turn, where both do not fit into memory side by side.

Their blocks are no pairs: nothing cancels what differs between processes, so each process is one draw of its arm's
level, and the difference of both arms' mean levels has Welch's interval. Processes come in the order A B B A, so that
a steady drift of the machine falls on both arms alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from tcompile_tui.core.pairs import BlockLevel, SpeedupInterval, TimeGain, paired_interval
from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.core.spread import MeanSpeedup, between_processes, mean_speedup, unpaired_speedup
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import plural

UNPAIRED = "unpaired process blocks"


@dataclass(frozen=True)
class ApartComparison:
    """Both arms, step times as means over their processes."""

    speedup: MeanSpeedup
    gain: TimeGain
    eager_ms: float
    compiled_ms: float
    eager_mean_ms: float
    compiled_mean_ms: float
    eager_processes: int
    compiled_processes: int

    @property
    def text(self) -> str:
        """`unpaired process blocks, 2 eager and 2 compiled processes`."""
        compiled = plural(self.compiled_processes, "compiled process")
        return f"{UNPAIRED}, {self.eager_processes} eager and {compiled}"


def ran_out(process: ProcessState) -> bool:
    return process.failure is not None and process.failure.fault == "memory"


def ran_out_side_by_side(state: RunState, mode: Mode) -> bool:
    """Did memory run out where both arms were in one process, though the compiled one fits alone? That is the doing of
    the comparison: eager and the compiled arm's pool hold double what a run needs."""
    alone = any(process.done for process in state.processes_of(Phase.COLD, mode))
    together = state.processes_of(Phase.WARM, mode)
    compared = any(process.interval is not None for process in together)
    return alone and not compared and any(ran_out(process) for process in together)


def compiled_apart(state: RunState, mode: Mode) -> list[ProcessState]:
    """The compiled arm's own processes."""
    return [process for process in state.processes_of(Phase.APART, mode) if Arm.COMPILED in process.arms]


def apart_of(state: RunState, mode: Mode) -> ApartComparison | None:
    """None where the mode was not compared so, or not far enough."""
    if not ran_out_side_by_side(state, mode):
        return None
    processes = state.processes_of(Phase.APART, mode)
    eager, compiled = ([p.apart[arm] for p in processes if arm in p.apart] for arm in (Arm.EAGER, Arm.COMPILED))
    return compare_apart(eager, compiled, len(state.modes))


def compare_apart(
    eager: Sequence[Sequence[BlockLevel]], compiled: Sequence[Sequence[BlockLevel]], compared_modes: int = 1
) -> ApartComparison | None:
    """From each process's blocks; None where an arm has no process with enough of them."""
    eager_levels, compiled_levels = (
        [level for p in arm if (level := _level(p)) is not None] for arm in (eager, compiled)
    )
    speedup = unpaired_speedup(eager_levels, compiled_levels, compared_modes)
    if speedup is None:
        return None
    eager_mean_ns, eager_error_ns = _mean_ns(eager, eager_levels, speedup)
    compiled_mean_ns, compiled_error_ns = _mean_ns(compiled, compiled_levels, speedup)
    return ApartComparison(
        speedup=speedup,
        gain=TimeGain(eager_mean_ns - compiled_mean_ns, math.hypot(eager_error_ns, compiled_error_ns)),
        eager_ms=fmean(level.value for level in eager_levels) / 1e6,
        compiled_ms=fmean(level.value for level in compiled_levels) / 1e6,
        eager_mean_ms=eager_mean_ns / 1e6,
        compiled_mean_ms=compiled_mean_ns / 1e6,
        eager_processes=len(eager_levels),
        compiled_processes=len(compiled_levels),
    )


def _level(blocks: Sequence[BlockLevel]) -> SpeedupInterval | None:
    """One process's step time in ns, with the error of a mean of blocks that resemble their neighbours."""
    return paired_interval([math.log(max(1.0, block.step_ns)) for block in blocks])


def _mean_ns(
    processes: Sequence[Sequence[BlockLevel]], levels: Sequence[SpeedupInterval], speedup: MeanSpeedup
) -> tuple[float, float]:
    """The mean step of an arm and its standard error: what differs between processes, and what rare slow steps add."""
    means = [[block.mean_ns for block in blocks] for blocks in processes if _level(blocks) is not None]
    arm_ns = fmean(fmean(each) for each in means)
    arm = mean_speedup(levels, between_processes([levels]))
    relative = max(arm.standard_error if arm is not None else 0.0, speedup.between_sd / math.sqrt(len(means)))
    inside_ns = math.sqrt(sum((stdev(each) ** 2) / len(each) for each in means)) / len(means)
    return arm_ns, math.hypot(relative * arm_ns, inside_ns)
