"""Whole runs without a model: processes whose pairs are drawn, stopped and decided as in a real run."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tcompile_tui.core import events as ev
from tcompile_tui.core.outlook import further_process_matters
from tcompile_tui.core.pairs import LOOKS, SpeedupInterval, enough, paired_interval
from tcompile_tui.core.spec import Arm, Mode, Phase, Plan
from tcompile_tui.core.state import RunState
from tests.core.streams import (
    EAGER_MS,
    Compiled,
    Process,
    ar1,
    block,
    cold_process,
    done,
    eager_process,
    leaf,
    recorded,
    replay,
    started,
)

# One process's ln(eager / compiled), pair by pair, as many as asked for.
Pairs = Callable[[random.Random, int], list[float]]

# Name: (standard deviation of a pair's logarithm, autocorrelation of neighbouring pairs).
NOISES = {"quiet GPU": (0.004, 0.0), "boosting GPU": (0.01, 0.5), "noisy host": (0.04, 0.6)}
_STRETCH = 5


def synthetic(speedup: float, noise: str, between_sd: float) -> Pairs:
    """Pairs of a process that is faster by `speedup` and by its own deviation."""
    sd, phi = NOISES[noise]

    def draw(rng: random.Random, count: int) -> list[float]:
        own = math.log(speedup) + rng.gauss(0, between_sd)
        return [own + deviation for deviation in ar1(rng, count, sd, phi)]

    return draw


def recorded_log_ratios(name: str, pairs: str) -> list[float]:
    """`pairs`: `aa_block_ns` (eager against eager) or `ab_block_ns` (eager against compiled)."""
    return [math.log(first / second) for first, second in recorded(name)[pairs]]


def eager_against_eager(name: str, between_sd: float) -> Pairs:
    """Stretches of neighbouring pairs as recorded, with the arms' names drawn for each, so that there is no
    difference but that between processes."""
    ratios = recorded_log_ratios(name, "aa_block_ns")

    def draw(rng: random.Random, count: int) -> list[float]:
        own = rng.gauss(0, between_sd)
        drawn: list[float] = []
        while len(drawn) < count:
            start, sign = rng.randrange(len(ratios) - _STRETCH + 1), rng.choice((-1, 1))
            drawn += [own + sign * ratio for ratio in ratios[start : start + _STRETCH]]
        return drawn[:count]

    return draw


def stopped(log_ratios: Sequence[float]) -> tuple[list[float], SpeedupInterval]:
    """The pairs up to the look at which measuring stops, and their interval."""
    for look in LOOKS:
        interval = paired_interval(log_ratios[:look])
        assert interval is not None
        if look == LOOKS[-1] or enough(interval, look):
            return list(log_ratios[:look]), interval
    raise AssertionError("the last look always ends it")


def measured_run(
    rng: random.Random, pairs: Pairs, modes: Sequence[Mode] = (Mode.DEFAULT,), most_processes: int = 3
) -> RunState:
    """A run in which every mode draws from `pairs`; later warm processes start only where they could matter."""
    state = replay(eager_process(), modes=tuple(modes), plan=Plan())
    for mode in modes:
        _append(state, cold_process(Compiled(mode=mode)))
        for _ in range(most_processes):
            _append(state, _warm(mode, stopped(pairs(rng, LOOKS[-1]))[0]))
            if not further_process_matters(state, mode, most_processes):
                break
    return state


def _append(state: RunState, process: Process) -> None:
    ordinal = len(state.processes) + 1
    for event in process:
        if isinstance(event, ev.SteadyJudged):
            state.apply(replace(event, of_process=ordinal))
        else:
            state.apply(ev.stamp(event, float(ordinal), ordinal))


def _warm(mode: Mode, log_ratios: Sequence[float]) -> Process:
    process: Process = [
        started(Phase.WARM, mode),
        ev.OutputsCompared(comparison=ev.ComparisonKind.COMPILED, leaves=(leaf(1e-7),)),
    ]
    for pair, log_ratio in enumerate(log_ratios):
        for arm, step_ms in ((Arm.EAGER, EAGER_MS), (Arm.COMPILED, EAGER_MS * math.exp(-log_ratio))):
            process.append(block(arm, ev.BlockRole.PAIR, 3 * pair, [step_ms] * 3, pair))
    return [*process, *done(Phase.WARM, mode)]
