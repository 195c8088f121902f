"""When the gate calls an arm steady, from where on, and when it rightly does not."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from statistics import median

import pytest

from tcompile_tui.core.events import Steadiness
from tcompile_tui.core.steady import (
    HELD_TOLERANCE,
    MIN_WINDOW_NS,
    SKIPPED_AFTER_COMPILE,
    TOLERANCE,
    SteadyGate,
    level_held,
)
from tests.benchmarks.false_steady import first_word
from tests.benchmarks.synth import series
from tests.core.streams import ar1, recorded

MS = 1_000_000
LEVEL = 10 * MS


def noisy(level_ns: float, count: int, sd: float = 0.005, seed: int = 1) -> list[int]:
    return [round(level_ns * (1 + noise)) for noise in ar1(random.Random(seed), count, sd, 0.3)]


def fed(steps: Sequence[int], compiled_at: Collection[int] = (), block: int = 7, budget_s: float = 20) -> SteadyGate:
    """A gate after all of these steps, in blocks."""
    gate = SteadyGate(budget_ns=int(budget_s * 1e9))
    for start in range(0, len(steps), block):
        part = steps[start : start + block]
        gate.extend(part, {i - start for i in compiled_at if start <= i < start + block})
    return gate


def steady_after(steps: Sequence[int], compiled_at: Collection[int] = ()) -> tuple[int, int] | None:
    """(steps until the gate first said steady, where it let the steady part begin)."""
    gate = SteadyGate()
    for index, step in enumerate(steps):
        gate.extend([step], [0] if index in compiled_at else [])
        if gate.state is Steadiness.STEADY:
            assert gate.start_index is not None
            return index + 1, gate.start_index
    return None


# ---------------------------------------------------------------- what is steady


def test_a_flat_series_is_steady_from_its_second_step() -> None:
    found = steady_after([50 * LEVEL, *noisy(LEVEL, 400)])
    assert found is not None
    declared, start = found
    assert start <= 20
    assert declared <= 260  # 50 steps at least 0.5 s, then at most 150 watched


def test_equal_steps_are_steady() -> None:
    gate = fed([LEVEL] * 300)
    assert (gate.state, gate.start_index, gate.reason) == (Steadiness.STEADY, 1, "")
    assert gate.bound == 0.0


def test_half_a_second_is_seen_before_anything_is_said() -> None:
    """Fast steps: many of them are still one moment of the machine."""
    gate = fed([MS // 100] * 10_000, block=500)
    assert gate.state is Steadiness.WARMING_UP
    assert gate.bound is None
    assert sum([MS // 100] * 10_000) < MIN_WINDOW_NS


def test_the_bound_is_what_the_data_allow() -> None:
    quiet, loud = fed(noisy(LEVEL, 400, 0.001)), fed(noisy(LEVEL, 400, 0.008))
    assert quiet.bound is not None and loud.bound is not None
    assert quiet.bound < loud.bound <= TOLERANCE


def test_spikes_do_not_matter() -> None:
    steps = noisy(LEVEL, 500)
    for place in range(20, 500, 40):
        steps[place] *= 8
    found = steady_after(steps)
    assert found is not None
    assert found[1] <= 20


def test_the_size_of_the_blocks_does_not_matter() -> None:
    steps = [60 * LEVEL, *noisy(LEVEL, 299)]
    gates = [fed(steps, {0}, block) for block in (1, 7, 300)]
    assert [gate.state for gate in gates] == [Steadiness.STEADY] * 3
    assert len({(gate.start_index, gate.bound) for gate in gates}) == 1


# ---------------------------------------------------------------- what is not


def test_a_ramp_is_not_steady() -> None:
    """4 % over 300 steps: no two neighbouring windows look different."""
    steps = noisy(LEVEL, 300)
    ramp = [round(step * (1.10 - 0.04 * i / 100)) for i, step in enumerate(steps)]
    assert steady_after(ramp) is None


def test_a_ramp_that_ends_is_steady_from_near_its_end() -> None:
    steps = noisy(LEVEL, 1200)
    series = [round(step * (1 + 0.3 * max(0.0, 1 - i / 250))) for i, step in enumerate(steps)]
    found = steady_after(series)
    assert found is not None
    assert found[1] >= 200
    assert median(series[found[1] :]) == pytest.approx(LEVEL, rel=TOLERANCE)


def test_a_plateau_is_left_behind() -> None:
    """80 level steps of a slow clock, then the true level: watching finds it."""
    series = noisy(1.2 * LEVEL, 80) + noisy(LEVEL, 600, seed=2)
    found = steady_after(series)
    assert found is not None
    declared, start = found
    assert start >= 80 - 6  # it extends by blocks of 12, judged by their median
    assert declared >= 80 + 50


def test_a_late_level_shift_takes_the_word_back() -> None:
    gate = fed(noisy(LEVEL, 300))
    assert gate.state is Steadiness.STEADY
    gate.extend(noisy(1.1 * LEVEL, 100, seed=2))
    assert (gate.state, gate.start_index, gate.reason) == (Steadiness.WARMING_UP, None, "the level moved")
    gate.extend(noisy(1.1 * LEVEL, 300, seed=3))
    assert gate.state is Steadiness.STEADY
    assert gate.start_index is not None and gate.start_index >= 295


# ---------------------------------------------------------------- what the pairs say of it


def block_levels(steps: Sequence[int]) -> list[float]:
    return [float(median(steps[start : start + 8])) for start in range(0, len(steps), 8)]


def test_a_plateau_of_slow_steps_outlasts_the_gate_and_not_the_pairs() -> None:
    """180 steps of 12 ms at a fifth more: the gate may watch for a second only, the pairs go on."""
    steps = noisy(14.4 * MS, 180) + noisy(12 * MS, 200, seed=2)
    found = steady_after(steps)
    assert found is not None and found[0] < 180
    window = steps[found[1] : found[0]]
    assert not level_held(window, block_levels(steps[found[0] :]))
    assert level_held(window, block_levels(noisy(14.4 * MS, 160, seed=3)))


def test_two_arms_in_turn_may_differ_a_little_from_one_alone() -> None:
    window = noisy(LEVEL, 200)
    held = [level_held(window, block_levels(noisy(factor * LEVEL, 160, seed=2))) for factor in (0.98, 1.02, 0.96, 1.04)]
    assert held == [True, True, False, False]


def test_noise_of_the_blocks_is_no_other_level() -> None:
    rng = random.Random(3)
    blocks = [(1 + HELD_TOLERANCE) * LEVEL * (1 + rng.gauss(0, 0.1)) for _ in range(20)]
    assert level_held([LEVEL] * 100, blocks)
    assert not level_held([LEVEL] * 100, [(1.05 + HELD_TOLERANCE) * LEVEL] * 20)


def test_without_a_later_block_the_level_held() -> None:
    assert level_held([LEVEL] * 100, [])
    assert level_held([], [LEVEL])


# ---------------------------------------------------------------- what the compiler says


def test_a_compile_starts_over() -> None:
    steps = noisy(LEVEL, 300)
    steps[60] = 2_000 * LEVEL
    gate = fed(steps, {0, 60})
    assert gate.state is Steadiness.STEADY
    assert gate.start_index is not None
    assert 0 <= gate.start_index - (61 + SKIPPED_AFTER_COMPILE) <= 12  # it extends by blocks


def test_a_compile_after_the_word_takes_it_back() -> None:
    gate = fed(noisy(LEVEL, 300))
    gate.extend([2_000 * LEVEL, LEVEL], {0})
    assert (gate.state, gate.start_index, gate.reason) == (Steadiness.WARMING_UP, None, "the compiler worked")


def test_a_compile_does_not_eat_the_budget() -> None:
    gate = fed([100_000 * MS, *noisy(LEVEL, 300)], {0}, budget_s=5)
    assert gate.state is Steadiness.STEADY


def test_a_late_compile_gives_the_budget_anew() -> None:
    """3 s of noise, a compile, then a level: 4 s would not be enough for all of it."""
    gate = fed(noisy(LEVEL, 300, sd=0.25) + noisy(LEVEL, 300), {300}, budget_s=4)
    assert gate.state is Steadiness.STEADY


# ---------------------------------------------------------------- no level in the budget


def test_noise_that_does_not_settle_is_noise_limited_once_the_budget_is_out() -> None:
    steps = [round(step) for step in noisy(LEVEL, 300, sd=0.25)]
    gate = fed(steps, {0}, budget_s=2)
    assert gate.state is Steadiness.NOISE_LIMITED
    assert gate.reason == "no level in the time allowed"
    assert gate.bound is not None and gate.bound > TOLERANCE
    assert gate.start_index is not None and 0 < gate.start_index < 300
    assert fed(steps[:100], budget_s=2).state is Steadiness.WARMING_UP


def test_noise_limited_stands() -> None:
    gate = fed(noisy(LEVEL, 300, sd=0.25), budget_s=2)
    gate.extend(noisy(LEVEL, 500))
    assert gate.state is Steadiness.NOISE_LIMITED


def test_steps_that_a_broken_clock_counts_as_nothing_are_survived() -> None:
    gate = fed([0] * 40 + [LEVEL * 20] * 20 + [0] * 240)
    assert gate.state is not Steadiness.STEADY


# ---------------------------------------------------------------- a small version of the benchmark


@pytest.mark.parametrize(
    ("kind", "said", "false"),
    [("compile", 12, 0), ("early recompile", 12, 0), ("clock ramp", 10, 1), ("plateau", 12, 1), ("pauses", 12, 0)],
)
def test_false_words_are_rare(kind: str, said: int, false: int) -> None:
    """Twelve synthetic series of a kind: how many the gate calls steady, and how often the pairs let a false word
    stand (tests/benchmarks/false_steady.py)."""
    rng = random.Random(31)
    words = [word for _ in range(12) if (word := first_word(series(kind, rng))) is not None]
    assert len(words) >= said
    assert sum(word.false and word.stood for word in words) <= false
    assert sum(not word.false and not word.stood for word in words) <= 1


# ---------------------------------------------------------------- recorded on an H200


@pytest.mark.parametrize(
    ("name", "arm", "first_quiet"),
    [
        ("resnet18_default_train", "eager", 2),
        ("resnet18_default_train", "compiled", 4),
        ("resnet50_reduce-overhead_infer", "eager", 2),
        ("resnet50_reduce-overhead_infer", "compiled", 5),
        ("pw_default_infer", "eager", 1),
    ],
)
def test_quiet_recordings_are_steady_from_their_first_quiet_step(name: str, arm: str, first_quiet: int) -> None:
    steps, compiled_at = _arm(name, arm)
    found = steady_after(steps, compiled_at)
    assert found is not None
    assert abs(found[1] - first_quiet) <= 4
    level = median(steps[-200:])
    assert median(steps[found[1] : found[0]]) == pytest.approx(level, rel=TOLERANCE)


@pytest.mark.parametrize("name", ["bert_default_train", "mlp_default_infer", "mlp_reduce-overhead_train"])
@pytest.mark.parametrize("arm", ["eager", "compiled"])
def test_recordings_of_a_noisy_host_are_never_steady(name: str, arm: str) -> None:
    steps, compiled_at = _arm(name, arm)
    assert steady_after(steps * 3, compiled_at) is None  # long enough that every window is judged
    gate = fed(steps * 3, compiled_at, budget_s=100)
    assert gate.bound is not None and gate.bound > TOLERANCE


def _arm(name: str, arm: str) -> tuple[list[int], set[int]]:
    recording = recorded(name)
    return recording[f"{arm}_dev_ns"], {i for i, _ in recording["compile_events"]} if arm == "compiled" else set()
