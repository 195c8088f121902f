"""Run each arm alone for some seconds, while the supervisor reads the GPU's energy counter."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns

from ..core.events import EnergyWindow
from ..core.spec import Arm
from .bench import Bench
from .loop import Loop

# The supervisor needs 5 s between readings, after half a second for the arm to settle, and reads a few times a second.
_WINDOW_NS = 6_500_000_000
_CHUNK_NS = 200_000_000


def run_for_energy(bench: Bench, loops: Sequence[Loop]) -> None:
    """A record before and after each arm's steps; none after steps in which the compiler worked."""
    bench.loop += 1
    bench.stage.name = "steps for the energy counter"
    for loop in loops:
        bench.stage.compiled = loop.arm is Arm.COMPILED
        loop.run_untimed(1)
        bench.signals.take_activity_ns()
        bench.channel.send(EnergyWindow(arm=loop.arm))
        chunk = max(1, int(_CHUNK_NS / loop.recent_step_ns))
        steps, wall_ns, started_ns = 0, 0, perf_counter_ns()
        while wall_ns < _WINDOW_NS:
            loop.run_untimed(chunk)
            steps, wall_ns = steps + chunk, perf_counter_ns() - started_ns
            if bench.channel.should_finish(bench.loop):
                return
        if bench.signals.take_activity_ns():
            return
        bench.channel.send(EnergyWindow(arm=loop.arm, steps=steps, wall_ns=wall_ns))
