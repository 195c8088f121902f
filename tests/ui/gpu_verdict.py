"""A run on a GPU of which everything was measured: profiles, cudagraph replays, energy, headroom, throttling."""

from __future__ import annotations

from dataclasses import replace

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Arm, Mode
from tcompile_tui.core.state import RunState
from tests.core.streams import EAGER_MS, Compiled, Process, cold_process, eager_process, replay, warm_process

HOT = ("hardware thermal slowdown",)
PAIR_S = 0.1
STEPS = 10


def full_verdict_state() -> RunState:
    """Two modes; in the middle of each comparison the GPU is hot for a second."""
    modes = (Compiled(Mode.DEFAULT, speedup=1.4), Compiled(Mode.REDUCE_OVERHEAD, speedup=1.9))
    state = replay(eager_process(), modes=tuple(run.mode for run in modes), device="cuda")
    for number, run in enumerate(modes):
        for process, phase in enumerate((cold_process(run), [*_with_extras(run)])):
            ident, begin_s = 2 + 2 * number + process, 20.0 + 40 * number + 20 * process
            for event in sorted([*_timed(phase, begin_s, ident), *_heat(begin_s)], key=lambda event: event.t_s):
                state.apply(replace(event, of_process=ident) if isinstance(event, ev.SteadyJudged) else event)
    state.apply(ev.RunEnded(decision="", headline="", exit_code=0))
    return state


def _with_extras(run: Compiled) -> Process:
    process = warm_process(run)
    graphs = run.mode is Mode.REDUCE_OVERHEAD
    extras: Process = [
        _profile(Arm.EAGER, busy_ms=8.6, kernels=127, programs=0, replays=0),
        _profile(Arm.COMPILED, busy_ms=6.2, kernels=41, programs=1, replays=1 if graphs else 0),
    ]
    process[-2:-2] = [*extras, *_energy(Arm.EAGER, 512), *_energy(Arm.COMPILED, 431 if graphs else 468)]
    return process


def _energy(arm: Arm, watts: float) -> Process:
    """The arm alone for six seconds, its counter read five times a second."""
    readings = [
        ev.GpuSample(energy_read_s=0.2 * i, energy_j=0.2 * i * watts, other_pids=(), throttle_reasons=())
        for i in range(31)
    ]
    step_ns = int(1e6 * EAGER_MS / (1 if arm is Arm.EAGER else 1.5))
    return [ev.EnergyWindow(arm=arm), *readings, ev.EnergyWindow(arm=arm, steps=300, wall_ns=300 * step_ns)]


def _profile(arm: Arm, busy_ms: float, kernels: int, programs: int, replays: int) -> ev.StepsProfiled:
    compiled = arm is Arm.COMPILED
    return ev.StepsProfiled(
        arm=arm, steps=STEPS, wall_ns=int(EAGER_MS * 1e6 * STEPS), lookups=STEPS if compiled else 0,
        lookup_ns=57_000 * STEPS if compiled else 0, regions=("0/0",) if compiled else (),
        program_calls=programs * STEPS, kernels=kernels * STEPS, graph_launches=replays * STEPS,
        device_busy_ns=int(busy_ms * 1e6 * STEPS), library_ns=int(4.1e6 * STEPS), fused_ns=int(1.2e6 * STEPS),
    )  # fmt: skip


def _timed(process: Process, begin_s: float, ident: int) -> Process:
    """Compared blocks come one after the other, a pair in PAIR_S; all else just before or after them."""
    halves = 0
    stamped: Process = []
    for event in process:
        at_s = begin_s + halves * PAIR_S / 2
        if isinstance(event, ev.Block) and event.role is ev.BlockRole.PAIR:
            halves += 1
            at_s = begin_s + halves * PAIR_S / 2
            event = replace(event, wall_ns=int(1e9 * PAIR_S / 2) - 1)
        stamped.append(replace(event, t_s=at_s, process=ident))
    return stamped


def _heat(begin_s: float) -> Process:
    times = [begin_s + 0.2 * i for i in range(25)]
    return [ev.stamp(ev.GpuSample(throttle_reasons=HOT if 1 <= at_s - begin_s < 2 else ()), at_s, 0) for at_s in times]
