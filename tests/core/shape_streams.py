"""Runs that replay a sequence of shapes, as event streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcompile_tui.core import events as ev
from tcompile_tui.core.shape_spec import ShapeHandling, ShapeSequence, padded
from tcompile_tui.core.spec import Arm, Mode, Phase, Plan
from tcompile_tui.core.state import RunState

from .streams import Compiled, Process, block, both, done, eager_process, replay, started

SEQUENCE = ShapeSequence.of(("B", "T"), [(8, size) for size in (7, 9, 30, 64, 9, 100)] * 4, ("--shapes", "seq.csv"))
EAGER_STEP_MS = 4.0


@dataclass(frozen=True)
class Setting:
    """How one setting behaves: the batches of the first round that compile, each for `compile_s`; in `late` pairs it
    compiles again."""

    handling: ShapeHandling
    speedup: float = 1.5
    compiled_at: tuple[int, ...] = (0,)
    compile_s: float = 10.0
    limit: bool = False
    late: tuple[int, ...] = ()
    pairs: int = 8

    def process(self) -> Process:
        count, step_ms = len(SEQUENCE.order), EAGER_STEP_MS / self.speedup
        first = [step_ms + 1e3 * self.compile_s * (i in self.compiled_at) for i in range(count)]
        sequence = padded(SEQUENCE) if self.handling is ShapeHandling.PADDED else SEQUENCE
        recompiled = ev.Recompiled(compile_id="0/1", failures=(ev.GuardFailure("size 7 is not 9"),))
        limit = ev.RecompileLimitHit(compile_id="0/8", text="expected 7, actual 9\nmore")
        return [
            started(Phase.SHAPES, Mode.DEFAULT),
            ev.ImportsDone(torch_s=1.0, compiler_s=2.0),
            ev.ReplayStarted(handling=self.handling, sequence=sequence),
            *[ev.GraphCaptured(compile_id="0/0", ops=3)] * len(self.compiled_at),
            *[recompiled] * (len(self.compiled_at) - 1 + self.limit),
            *[limit] * self.limit,
            block(Arm.COMPILED, ev.BlockRole.REPLAY, 0, first, compiled_at=self.compiled_at),
            block(Arm.EAGER, ev.BlockRole.REPLAY, 0, [EAGER_STEP_MS] * count),
            *self._pairs(step_ms, count),
            *done(Phase.SHAPES, Mode.DEFAULT),
        ]

    def _pairs(self, step_ms: float, count: int) -> Process:
        blocks: Process = []
        for pair in range(self.pairs):
            index = (pair + 1) * count
            noise = 1 + 0.01 * (pair % 3 - 1)
            at = (index,) if pair in self.late else ()
            blocks.append(block(Arm.EAGER, ev.BlockRole.REPLAY, index, [EAGER_STEP_MS] * count, pair))
            blocks.append(block(Arm.COMPILED, ev.BlockRole.REPLAY, index, [noise * step_ms] * count, pair, at))
        return blocks


AUTOMATIC = Setting(ShapeHandling.AUTOMATIC, 1.5, (0, 1))
DYNAMIC = Setting(ShapeHandling.DYNAMIC, 1.45)
STATIC = Setting(ShapeHandling.STATIC, 1.1, (0, 1, 2, 3, 5), limit=True)
PADDED = Setting(ShapeHandling.PADDED, 1.4, (0, 2, 3, 5))


def shapes_run(settings: Sequence[Setting] = (AUTOMATIC, DYNAMIC, STATIC, PADDED), steps: int = 1_000_000) -> RunState:
    """A run with `--shapes`, of one mode that is 1.8 times as fast as eager on the usual shape."""
    processes = [setting.process() for setting in settings]
    state = replay(eager_process(), *both(Compiled(speedup=1.8)), *processes, plan=Plan(steps=steps))
    assert state.run is not None
    state.run = replace(state.run, spec=replace(state.run.spec, shapes=SEQUENCE))
    return state
