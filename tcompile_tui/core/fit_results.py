"""Both arms at the largest batch of each: samples a second, beside those at the batch of the run."""

from __future__ import annotations

from dataclasses import dataclass

from tcompile_tui.core.apart import compare_apart
from tcompile_tui.core.batch_events import BatchFitted
from tcompile_tui.core.replay import Ratio
from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import count, ratio


@dataclass(frozen=True)
class FittedArm:
    """One arm: its largest batch, whether a larger one was seen not to fit, and samples a second at the run's batch and
    at the largest; None where that was not measured."""

    batch: int
    bounded: bool
    matched_per_s: float | None
    largest_per_s: float | None

    @property
    def text(self) -> str:
        """`96 (5,120 samples/s)`."""
        size = f"{self.batch:,}" if self.bounded else f"{self.batch:,} or more"
        return f"{size} ({count(self.largest_per_s)} samples/s)"


@dataclass(frozen=True)
class BatchFit:
    """`gain` is samples a second compiled over eager, each at its largest batch, with its 95 % interval; None where one
    was not measured. The run's own batch is `matched`."""

    matched: int
    eager: FittedArm
    compiled: FittedArm
    gain: Ratio | None
    limit_bytes: int | None

    @property
    def gain_text(self) -> str:
        """`1.31x (1.28x to 1.34x)`."""
        if self.gain is None or self.gain.lo is None:
            return ratio(self.gain.value if self.gain is not None else None)
        return f"{ratio(self.gain.value)} ({ratio(self.gain.lo)} to {ratio(self.gain.hi)})"


def batch_fit(state: RunState, mode: Mode, eager_ms: float | None, compiled_ms: float | None) -> BatchFit | None:
    """None where it was not asked for, or not found for both arms. The step times are means at the run's batch."""
    eager, compiled = (_fitted(state, arm, mode) for arm in (Arm.EAGER, Arm.COMPILED))
    if state.run is None or eager is None or compiled is None:
        return None
    (slow, slow_process), (fast, fast_process) = eager, compiled
    micro_batches = state.run.spec.step.accumulate
    blocks = [slow_process.apart.get(Arm.EAGER, ())], [fast_process.apart.get(Arm.COMPILED, ())]
    found = compare_apart(*blocks, len(state.modes))

    def arm(fitted: BatchFitted, matched_ms: float | None, largest_ms: float | None) -> FittedArm:
        def per_s(batch: int, step_ms: float | None) -> float | None:
            return 1e3 * batch * micro_batches / step_ms if step_ms else None

        bounded = fitted.too_large is not None
        return FittedArm(fitted.largest, bounded, per_s(fitted.matched, matched_ms), per_s(fitted.largest, largest_ms))

    scale = fast.largest / slow.largest
    gain = found.speedup if found is not None else None
    return BatchFit(
        matched=slow.matched,
        eager=arm(slow, eager_ms, found.eager_mean_ms if found is not None else None),
        compiled=arm(fast, compiled_ms, found.compiled_mean_ms if found is not None else None),
        gain=Ratio(scale * gain.value, scale * gain.lo, scale * gain.hi) if gain is not None else None,
        limit_bytes=fast.limit_bytes,
    )


def _fitted(state: RunState, arm: Arm, mode: Mode) -> tuple[BatchFitted, ProcessState] | None:
    """Eager's is found once for all modes."""
    for process in state.processes_of(Phase.FIT, mode if arm is Arm.COMPILED else None):
        found = process.batch
        if found is not None and found.arm is arm and found.matched > 0 and found.largest > 0:
            return found, process
    return None
