"""The replay of a sequence of shapes in one process: blocks of both arms, and what they add up to for each shape."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import fmean

from tcompile_tui.core import events as ev
from tcompile_tui.core.pairs import MIN_PAIRS_FOR_INTERVAL, STANDARD_ERROR_FACTOR
from tcompile_tui.core.spec import Arm

_Z_95 = 1.96


@dataclass(frozen=True)
class Ratio:
    """Eager time over compiled time of the same batches, with its 95 % interval; None below five pairs."""

    value: float
    lo: float | None
    hi: float | None


@dataclass
class Replay:
    """`pairs` are (eager, compiled) nanoseconds of the same batches, run right after each other by both arms; one in
    which the compiler worked is none, and its steps are counted in `late_compiles`."""

    started: ev.ReplayStarted
    first: dict[Arm, ev.Block] = field(default_factory=dict)
    pairs: list[tuple[int, int]] = field(default_factory=list)
    steps: int = 0
    late_compiles: int = 0
    _half: ev.Block | None = None
    _times_ns: dict[int, list[int]] = field(default_factory=dict)
    _eager_ns: int = 0

    def take(self, block: ev.Block) -> None:
        """One block of either arm."""
        if block.pair is None:
            self.first[block.arm] = block
            return
        self.late_compiles += len(block.compiled_at) if block.arm is Arm.COMPILED else 0
        half, self._half = self._half, block
        if half is None or half.pair != block.pair or half.arm is block.arm:
            return
        self._half = None
        if any(each.compiled_at or each.suspended_at for each in (half, block)):
            return
        eager, compiled = (half, block) if half.arm is Arm.EAGER else (block, half)
        self.pairs.append((_total_ns(eager), _total_ns(compiled)))
        self.steps += block.steps
        self._eager_ns += _total_ns(eager)
        order = self.started.sequence.order
        if compiled.step_ns:
            for index, ns in enumerate(compiled.step_ns, compiled.first_index):
                self._times_ns.setdefault(order[index % len(order)], []).append(ns)

    @property
    def eager_step_ns(self) -> float | None:
        """The mean over the batches of the pairs."""
        return self._eager_ns / self.steps if self.steps else None

    @property
    def ratio(self) -> Ratio | None:
        """Of the sums over all pairs. The interval is that of a ratio estimator: blocks hold different batches, and
        what is left of each one's eager time once the ratio is taken off has the spread that counts (Cochran 1977)."""
        n = len(self.pairs)
        if not n:
            return None
        eager, compiled = (sum(each) for each in zip(*self.pairs, strict=True))
        value = eager / max(1, compiled)
        if n < MIN_PAIRS_FOR_INTERVAL:
            return Ratio(value, None, None)
        left = [e - value * c for e, c in self.pairs]
        error = math.sqrt(sum(each * each for each in left) / (n - 1) / n) / (compiled / n)
        half = _Z_95 * STANDARD_ERROR_FACTOR * error
        return Ratio(value, value - half, value + half)

    @property
    def compile_steps(self) -> tuple[int, ...]:
        """The batches of the first round at which the compiler worked, in order."""
        first = self.first.get(Arm.COMPILED)
        return tuple(sorted(set(first.compiled_at))) if first is not None else ()

    @property
    def compile_s(self) -> float | None:
        """What those batches took beyond what their shapes take later; None where the first round is not known."""
        first = self.first.get(Arm.COMPILED)
        if first is None or not first.step_ns:
            return None
        order = self.started.sequence.order
        every = [ns for times in self._times_ns.values() for ns in times]
        usual_ns = fmean(every) if every else float(min(first.step_ns))
        spent_ns = 0.0
        for index in {0, *self.compile_steps} & set(range(len(first.step_ns))):
            later = self._times_ns.get(order[index % len(order)])
            spent_ns += first.step_ns[index] - (fmean(later) if later else usual_ns)
        return max(0.0, spent_ns / 1e9)


def _total_ns(block: ev.Block) -> int:
    return sum(block.step_ns) if block.step_ns else block.wall_ns
