"""The speedup over several processes: what one process cannot know, and what three can."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.accuracy import Agreement
from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.pairs import LOOKS, SpeedupInterval, TimeGain, enough, paired_interval
from tcompile_tui.core.results import ModeResult, mode_result
from tcompile_tui.core.spec import Mode, Phase, Preset
from tcompile_tui.core.spread import (
    PRIOR_BETWEEN_SD,
    PRIOR_WEIGHT,
    BetweenProcesses,
    MeanSpeedup,
    between_processes,
    mean_speedup,
    mean_time_gain,
)
from tcompile_tui.core.verdict import Decision, decide
from tests.benchmarks.whole_runs import eager_against_eager, measured_run
from tests.core.streams import (
    RECORDINGS,
    Compiled,
    Process,
    ar1,
    cold_process,
    eager_process,
    ended,
    leaf,
    replay,
    started,
    warm_process,
)

QUIET = 1e-5


def process(speedup: float, standard_error: float = QUIET, pairs: int = 20) -> SpeedupInterval:
    """A process whose pairs say this."""
    width = 2.1 * standard_error
    return SpeedupInterval(
        value=speedup,
        lo=speedup * math.exp(-width),
        hi=speedup * math.exp(width),
        half_width=width,
        standard_error=standard_error,
        lag1=0.0,
        pairs=pairs,
        degrees=15,
        smallest_detectable=2.8 * standard_error,
    )


def processes(speedups: Sequence[float], standard_error: float = QUIET) -> list[SpeedupInterval]:
    return [process(speedup, standard_error) for speedup in speedups]


def over(group: Sequence[SpeedupInterval], modes: int = 1) -> MeanSpeedup:
    found = mean_speedup(group, between_processes([group]), modes)
    assert found is not None
    return found


# ---------------------------------------------------------------- the interval


def test_one_process_has_the_priors_spread() -> None:
    found = over(processes([1.2]))
    assert (found.value, found.processes, found.pairs) == (pytest.approx(1.2), 1, 20)
    assert found.one_process
    assert found.within_sd == pytest.approx(QUIET)
    assert PRIOR_BETWEEN_SD <= found.between_sd <= 1.2 * PRIOR_BETWEEN_SD
    assert found.half_width == pytest.approx(2.776 * found.between_sd, rel=1e-3)  # t with the prior's weight, 4
    assert found.degrees == PRIOR_WEIGHT


def test_without_a_process_there_is_no_speedup() -> None:
    assert mean_speedup([], between_processes([])) is None
    assert mean_time_gain([], 1.0, between_processes([])) is None


def test_agreeing_processes_narrow_it_and_differing_ones_widen_it() -> None:
    one, agreeing, differing = (over(processes(values)) for values in ([1.2], [1.2] * 3, [1.17, 1.2, 1.23]))
    assert agreeing.half_width < 0.6 * one.half_width
    assert differing.half_width > 1.5 * agreeing.half_width
    assert differing.value == pytest.approx(1.2, abs=0.001)
    assert not agreeing.one_process


def test_three_processes_are_not_left_to_a_t_interval_of_their_own() -> None:
    """Their own would be 0 wide here, and 4.3 standard errors there."""
    assert over(processes([1.2] * 3)).half_width > 0.5 * PRIOR_BETWEEN_SD
    differing = over(processes([1.19, 1.2, 1.21]))
    assert differing.half_width < 4.3 * (0.01 / 1.2) / math.sqrt(3)


def test_what_pairs_do_not_know_is_not_taken_for_spread_between_processes() -> None:
    apart = [1.15, 1.2, 1.25]
    loud, quiet = between_processes([processes(apart, 0.08)]), between_processes([processes(apart)])
    assert loud.sd < 1.1 * PRIOR_BETWEEN_SD < 2 * PRIOR_BETWEEN_SD < quiet.sd
    assert over(processes(apart, 0.08)).half_width > over(processes(apart)).half_width


def test_modes_are_taken_together_for_the_spread_only() -> None:
    quiet, wild = processes([1.1] * 3), processes([1.96, 2.0, 2.04])
    both = between_processes([quiet, wild])
    assert between_processes([quiet]).sd < both.sd < between_processes([wild]).sd
    assert both.degrees == pytest.approx(PRIOR_WEIGHT + 4)
    found = mean_speedup(quiet, both)
    assert found is not None and found.value == pytest.approx(1.1)


def test_a_process_that_knows_little_counts_little() -> None:
    group = [process(1.2), process(1.2), process(1.5, standard_error=0.1, pairs=5)]
    assert over(group).value == pytest.approx(1.2, rel=0.005)


def test_one_sided_is_tighter_than_the_interval() -> None:
    found = over(processes([1.0] * 3))
    assert found.value < found.at_most < found.hi


def test_two_modes_cost_nothing_and_four_widen_it() -> None:
    group = processes([1.0] * 3)
    assert over(group, 1) == over(group, 2)
    assert 1.1 < over(group, 4).half_width / over(group, 2).half_width < 1.4


def test_the_gain_holds_the_spread_of_the_compiled_step() -> None:
    between = BetweenProcesses(0.01, 4.0)
    gains = [TimeGain(2e6, 3e4)] * 4
    found = mean_time_gain(gains, 8e6, between)
    assert found is not None
    assert found.mean_ns == pytest.approx(2e6)
    assert found.standard_error_ns == pytest.approx(math.hypot(3e4, 8e4) / 2)


# ---------------------------------------------------------------- does it hold the truth?


def measured(rng: random.Random, log_speedup: float, between_sd: float, sd: float, phi: float) -> SpeedupInterval:
    """One process: its own speedup, pairs until the stop rule is met."""
    own = log_speedup + rng.gauss(0, between_sd)
    series = [own + noise for noise in ar1(rng, LOOKS[-1], sd, phi)]
    for look in LOOKS:
        interval = paired_interval(series[:look])
        assert interval is not None
        if enough(interval, look):
            break
    return interval


@pytest.mark.parametrize("count", [1, 3, 5])
@pytest.mark.parametrize("between_sd", [0.005, 0.01])
def test_the_interval_holds_the_average_process(count: int, between_sd: float) -> None:
    rng, truth, runs = random.Random(21), math.log(1.05), 300
    held = 0
    for _ in range(runs):
        found = over([measured(rng, truth, between_sd, 0.004, 0.3) for _ in range(count)])
        held += found.lo <= 1.05 <= found.hi
    assert held >= 0.93 * runs


def test_pairs_alone_do_not_hold_it() -> None:
    """What the spread is there for: 42 % of one-process intervals hold the average process."""
    rng, runs = random.Random(22), 200
    singles = [measured(rng, 0.0, 0.01, 0.004, 0.3) for _ in range(runs)]
    assert sum(single.lo <= 1 <= single.hi for single in singles) < 0.5 * runs


@pytest.mark.parametrize("between_sd", [0.0, 0.01])
def test_the_best_of_four_equal_modes_is_seldom_faster(between_sd: float) -> None:
    rng, runs, alarms = random.Random(23), 120, 0
    for _ in range(runs):
        modes = [[measured(rng, 0.0, between_sd, 0.004, 0.3) for _ in range(3)] for _ in range(4)]
        between = between_processes(modes)
        found = [mean_speedup(group, between, 4) for group in modes]
        alarms += any(each is not None and each.lo > 1 for each in found)
    assert alarms <= 0.07 * runs


def test_whole_runs_of_eager_against_eager_enable_nothing() -> None:
    """Resampled from recordings, processes half a percent apart, as many as a run would start."""
    rng = random.Random(24)
    states = [measured_run(rng, eager_against_eager(name, 0.005)) for name in RECORDINGS for _ in range(4)]
    verdicts = [decide(state) for state in states]
    assert sum(verdict.paste_line is not None for verdict in verdicts) <= 1
    assert sum(verdict.decision is Decision.SKIP for verdict in verdicts) >= 0.9 * len(verdicts)


# ---------------------------------------------------------------- in a run


def result_of(*warm: Process, cold: Process | None = None) -> ModeResult:
    return mode_result(replay(eager_process(), cold or cold_process(Compiled()), *warm), Mode.DEFAULT)


def test_every_warm_process_counts() -> None:
    runs = [Compiled(speedup=speedup) for speedup in (1.98, 2.0, 2.02)]
    result = result_of(*map(warm_process, runs))
    assert result.speedup is not None and result.gain is not None
    assert (result.speedup.processes, result.speedup.pairs) == (3, 120)
    assert result.speedup.value == pytest.approx(2.0, rel=0.002)
    assert result.eager_mean_ms is not None and result.compiled_mean_ms is not None
    assert result.gain.mean_ns == pytest.approx(1e6 * (result.eager_mean_ms - result.compiled_mean_ms))


def test_the_first_warm_process_is_the_warm_start() -> None:
    """Later ones find what the first one left."""
    first, later = (warm_process(Compiled(compile_s=compile_s)) for compile_s in (20.0, 2.0))
    both, alone = result_of(first, later, later), result_of(first)
    assert both.warm_start == alone.warm_start != result_of(later).warm_start


def test_the_worst_agreement_counts() -> None:
    right, wrong = Compiled(speedup=2.0), Compiled(speedup=2.0, output=leaf(0.3))
    result = result_of(*map(warm_process, (right, wrong, right)))
    assert result.accuracy is not None and result.accuracy.agreement is Agreement.DIFFERENT


def test_a_process_that_did_not_get_to_compare_outputs_says_nothing_of_them() -> None:
    cut: Process = [started(Phase.WARM, Mode.DEFAULT), ended(Phase.WARM, Mode.DEFAULT, ev.Outcome.STOPPED)]
    whole = warm_process(Compiled())
    assert result_of(whole, cut).accuracy == result_of(whole).accuracy
    assert result_of(whole, cut).status is ModeStatus.MEASURED


@pytest.mark.parametrize("outcome", [ev.Outcome.KILLED, ev.Outcome.TIMED_OUT, ev.Outcome.EXITED])
def test_a_later_process_that_is_cut_leaves_what_the_first_measured(outcome: ev.Outcome) -> None:
    cut: Process = [started(Phase.WARM, Mode.DEFAULT), ended(Phase.WARM, Mode.DEFAULT, outcome)]
    result = result_of(warm_process(Compiled()), cut)
    assert (result.status, result.speedup.processes if result.speedup else 0) == (ModeStatus.MEASURED, 1)


def test_a_model_that_fails_in_a_later_process_has_failed() -> None:
    failed: Process = [
        started(Phase.WARM, Mode.DEFAULT),
        ev.WorkerFailed(stage="steps", error_type="RuntimeError", message="no", fault="compiler"),
        ended(Phase.WARM, Mode.DEFAULT, ev.Outcome.ERROR),
    ]
    assert result_of(warm_process(Compiled()), failed).status is ModeStatus.FAILED


def test_one_noisy_process_is_told() -> None:
    steady, noisy = warm_process(Compiled()), warm_process(Compiled())
    noisy = [
        replace(event, steadiness=ev.Steadiness.NOISE_LIMITED) if isinstance(event, ev.SteadyJudged) else event
        for event in noisy
    ]
    assert result_of(steady, noisy, steady).steadiness is ev.Steadiness.NOISE_LIMITED
    assert result_of(steady, steady).steadiness is ev.Steadiness.STEADY


def test_a_level_that_did_not_last_through_the_pairs_was_not_steady() -> None:
    warm = [
        replace(event, step_ns=tuple(round(1.2 * step) for step in event.step_ns))
        if isinstance(event, ev.Block) and event.role is ev.BlockRole.WARMUP and event.first_index > 0
        else event
        for event in warm_process(Compiled())
    ]
    assert result_of(warm).steadiness is ev.Steadiness.WARMING_UP
    assert result_of(warm_process(Compiled())).steadiness is ev.Steadiness.STEADY


@pytest.mark.parametrize(
    ("speedup", "count", "decision", "reason"),
    [
        (1.07, 1, Decision.ENABLE_WITH_CARE, "one process was measured"),
        (1.07, 3, Decision.ENABLE, ""),
        (1.10, 1, Decision.ENABLE, ""),
    ],
)
def test_a_small_gain_in_one_process_is_enabled_with_care(
    speedup: float, count: int, decision: Decision, reason: str
) -> None:
    run = Compiled(speedup=speedup)
    warm = [warm_process(run)] * count
    verdict = decide(replay(eager_process(), cold_process(run), *warm, preset=Preset.QUICK))
    assert verdict.decision is decision
    assert reason in verdict.headline
