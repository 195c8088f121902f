"""Synthetic step times with a known level, for the benchmarks: eleven ways in which a run reaches its steady state,
or does not. One choice of kinds and of their mix; figures from it compare detectors, they predict no machine."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.core.streams import ar1

STEPS = 6_000
MS = 1e6


@dataclass
class Series:
    """`level_ns` is the true level at each step, without noise, spikes and compiles; the last one is the steady
    level. At `compiled_at` the compiler works, and says so."""

    kind: str
    level_ns: list[float]
    step_ns: list[int] = field(default_factory=list)
    compiled_at: set[int] = field(default_factory=set)


@dataclass
class _Noise:
    sd: float
    phi: float
    spike_rate: float
    spike_factor: float
    pause_every: int = 0
    pause_ns: float = 0.0
    swap_rate: float = 0.0  # between two levels, a factor `swap` apart
    swap: float = 1.0


_Change = Callable[[random.Random, Series, _Noise, list[float], float], None]


def series(kind: str, rng: random.Random) -> Series:
    """A series of one of KINDS: 0.5 to 60 ms a step, 0.2 to 1.5 % noise with autocorrelation up to 0.6."""
    base = MS * math.exp(rng.uniform(math.log(0.5), math.log(60)))
    noise = _Noise(rng.uniform(0.002, 0.015), rng.uniform(0, 0.6), rng.uniform(0, 0.004), rng.uniform(1.3, 2.5))
    made, added = Series(kind, [base] * STEPS), [0.0] * STEPS
    if kind == "flat eager":
        added[0] = MS * rng.uniform(5, 500)
    else:
        added[0] = MS * rng.uniform(3e3, 60e3)
        made.compiled_at.add(0)
    for step in (1, 2, 3):
        added[step] = base * rng.uniform(0, 1)
    change = KINDS[kind]
    if change is not None:
        change(rng, made, noise, added, base)
    made.step_ns = _noisy(rng, made.level_ns, noise, added, base)
    return made


def _noisy(rng: random.Random, level_ns: list[float], noise: _Noise, added: list[float], base: float) -> list[int]:
    steps, upper = [], False
    for index, (level, deviation) in enumerate(zip(level_ns, ar1(rng, len(level_ns), noise.sd, noise.phi))):
        if noise.swap_rate:
            upper ^= rng.random() < noise.swap_rate
            level *= (noise.swap if upper else 1.0) / ((1 + noise.swap) / 2)
        value = level * math.exp(deviation)
        if rng.random() < noise.spike_rate:
            value *= 1 + (noise.spike_factor - 1) * rng.expovariate(1.0)
        if noise.pause_every and index and index % noise.pause_every == 0:
            value += noise.pause_ns
        steps.append(round(value + added[index]))
    return steps


def _recompile(rng: random.Random, made: Series, at: int, added: list[float], before: float) -> None:
    added[at] = added[0] * rng.uniform(0.4, 1.2)
    made.compiled_at.add(at)
    made.level_ns[:at] = [level * before for level in made.level_ns[:at]]


def _early_recompile(rng: random.Random, made: Series, noise: _Noise, added: list[float], base: float) -> None:
    _recompile(rng, made, rng.randrange(1, 40), added, 1 / rng.uniform(1.03, 1.15))


def _late_recompile(rng: random.Random, made: Series, noise: _Noise, added: list[float], base: float) -> None:
    _recompile(rng, made, rng.randrange(80, 400), added, rng.choice((rng.uniform(0.85, 0.96), 1.0)))


def _cudagraph(rng: random.Random, made: Series, noise: _Noise, added: list[float], base: float) -> None:
    added[1], added[2] = MS * rng.uniform(20, 2_000), MS * rng.uniform(20, 1_500)
    made.compiled_at |= {1, 2}


def _clock_ramp(rng: random.Random, made: Series, noise: _Noise, added: list[float], base: float) -> None:
    settling_ns, rise, time_ns = MS * rng.uniform(60, 1_500), rng.uniform(0.08, 0.6), 0.0
    for step in range(1, STEPS):
        made.level_ns[step] = base * (1 + rise * math.exp(-time_ns / settling_ns))
        time_ns += made.level_ns[step]


def _plateau(rng: random.Random, made: Series, noise: _Noise, added: list[float], base: float) -> None:
    first = rng.randrange(25, 160)
    made.level_ns[1:first] = [base * rng.uniform(1.05, 1.4)] * (first - 1)
    if rng.random() < 0.5:
        second = rng.randrange(25, 160)
        made.level_ns[first : first + second] = [base * rng.uniform(1.03, 1.1)] * second


def _pauses(rng: random.Random, made: Series, noise: _Noise, added: list[float], base: float) -> None:
    noise.pause_every, noise.pause_ns = rng.randrange(20, 250), base * rng.uniform(1, 14)


def _noisy_host(rng: random.Random, made: Series, noise: _Noise, added: list[float], base: float) -> None:
    noise.sd, noise.phi, noise.spike_rate = rng.uniform(0.03, 0.10), rng.uniform(0.3, 0.85), 0.03


def _bimodal(rng: random.Random, made: Series, noise: _Noise, added: list[float], base: float) -> None:
    noise.swap_rate, noise.swap = rng.uniform(0.002, 0.05), rng.uniform(1.01, 1.06)


def _thermal(rng: random.Random, made: Series, noise: _Noise, added: list[float], base: float) -> None:
    settling_ns, rise = MS * rng.uniform(10e3, 60e3), rng.uniform(0.01, 0.05)
    made.level_ns[:] = [base * (1 - rise * math.exp(-step * base / settling_ns)) for step in range(STEPS)]


KINDS: dict[str, _Change | None] = {
    "flat eager": None, "compile": None, "early recompile": _early_recompile, "cudagraph": _cudagraph,
    "clock ramp": _clock_ramp, "plateau": _plateau, "late recompile": _late_recompile, "pauses": _pauses,
    "noisy host": _noisy_host, "bimodal": _bimodal, "thermal drift": _thermal,
}  # fmt: skip
# No rule that sees only the past can foresee these.
UNFORESEEABLE = ("late recompile", "thermal drift")
