"""Pairs that ran while the GPU was throttled by its hardware are left out and counted."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.codec import decode_event
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.throttling import ThrottleLog, is_throttled
from tcompile_tui.core.verdict import Decision, decide
from tcompile_tui.core.verdict_json import verdict_document
from tests.core.streams import Compiled, Process, cold_process, eager_process, replay, warm_process

RECORDED = Path(__file__).parent.parent / "data" / "runs" / "h200-transformer" / "events.jsonl.gz"
HOT = ("hardware thermal slowdown",)
PAIR_S = 0.1  # begins at 10 s; see _timed


@pytest.mark.parametrize(
    ("reasons", "throttled"),
    [
        (None, False),
        ((), False),
        (("idle", "power cap", "application clocks", "sync boost"), False),
        (("power cap", "hardware slowdown"), True),
        (("software thermal slowdown",), True),
        (("hardware thermal slowdown",), True),
        (("power brake slowdown",), True),
    ],
)
def test_the_power_cap_is_no_throttling(reasons: tuple[str, ...] | None, throttled: bool) -> None:
    assert is_throttled(ev.GpuSample(throttle_reasons=reasons)) is throttled


def _sample(at_s: float, reasons: tuple[str, ...] = ()) -> ev.GpuSample:
    sample = ev.stamp(ev.GpuSample(throttle_reasons=reasons), at_s, 0)
    assert isinstance(sample, ev.GpuSample)
    return sample


def test_a_span_reaches_to_the_samples_on_both_sides() -> None:
    log = ThrottleLog()
    for at_s, reasons in [(1.0, ()), (2.0, HOT), (3.0, HOT), (4.0, ()), (5.0, ()), (6.0, HOT)]:
        log.take(_sample(at_s, reasons))
    assert log.spans_s == [(1.0, 4.0), (5.0, 6.0)]
    assert log.touches(7.0, 8.0), "nothing has said that it is cool again"
    log.take(_sample(6.5))
    assert not log.touches(7.0, 8.0)
    assert log.touches(3.9, 4.5) and log.touches(0.5, 1.0) and not log.touches(4.1, 4.9)


def _timed(process: Process) -> Process:
    """Its compared blocks at 10 s and later, one after the other, a pair in PAIR_S."""
    stamped: Process = []
    halves = 0
    for event in process:
        if isinstance(event, ev.Block) and event.role is ev.BlockRole.PAIR:
            halves += 1
            event = replace(event, t_s=10 + halves * PAIR_S / 2, wall_ns=int(1e9 * PAIR_S / 2) - 1, process=3)
        elif not isinstance(event, ev.SteadyJudged):
            event = ev.stamp(event, 3.0 if halves == 0 else 10 + halves * PAIR_S / 2, 3)
        stamped.append(event)
    return stamped


def _state(samples: Sequence[ev.GpuSample], run: Compiled = Compiled(mode=Mode.DEFAULT)) -> RunState:  # noqa: B008
    """A run with 40 pairs from 10 to 14 s, among which the samples come at their own time."""
    state = replay(eager_process(), cold_process(run), device="cuda")
    events = [*_timed(warm_process(run)), *samples]
    waiting = sorted(events, key=lambda event: event.t_s)
    for event in waiting:
        state.apply(replace(event, of_process=3) if isinstance(event, ev.SteadyJudged) else event)
    return state


def _every(period_s: float, hot_from_s: float, hot_to_s: float) -> list[ev.GpuSample]:
    times = [round(9 + i * period_s, 3) for i in range(int(6 / period_s))]
    return [_sample(at_s, HOT if hot_from_s <= at_s < hot_to_s else ()) for at_s in times]


def test_a_cool_run_keeps_every_pair() -> None:
    process = _state(_every(0.2, 99, 99)).processes[3]
    assert (len(process.pairs), process.throttled_pairs) == (40, 0)


def test_pairs_in_a_hot_second_are_left_out_and_told() -> None:
    state = _state(_every(0.2, 11.0, 12.0))  # hot from some time after 10.8 to some time before 12.0
    process = state.processes[3]
    assert process.throttled_pairs == pytest.approx(12, abs=2)
    assert len(process.pairs) + process.throttled_pairs == 40
    assert not any(10.8 < begin < 12.0 for begin, _ in (pair.span_s for pair in process.pairs))
    verdict = decide(state)
    assert verdict.decision is Decision.ENABLE, "most of the comparison was clean"
    (finding,) = (found for found in verdict.findings if found.id == "pairs-throttled")
    assert f"{process.throttled_pairs} of 40 pairs left out" in finding.title
    document = verdict_document(state, verdict)["per_mode"]["default"]
    assert document["throttled_pairs"] == process.throttled_pairs
    assert document["speedup"]["pairs"] == len(process.pairs)


def test_slow_pairs_of_a_hot_gpu_do_not_move_the_ratio() -> None:
    hot = _state(_every(0.2, 10.0, 12.0)).processes[3]
    assert hot.interval is not None and hot.interval.pairs == len(hot.pairs) < 40


def test_below_half_clean_pairs_the_answer_is_at_most_test_carefully() -> None:
    state = _state(_every(0.2, 11.0, 99))
    assert 5 <= len(state.processes[3].pairs) < 20
    verdict = decide(state)
    assert verdict.decision is Decision.TEST_CAREFULLY and "throttled" in verdict.headline
    slower = decide(_state(_every(0.2, 11.0, 99), Compiled(speedup=0.8)))
    assert slower.decision is Decision.SKIP


def test_a_hot_gpu_throughout_leaves_nothing_to_compare() -> None:
    state = _state(_every(0.2, 9.0, 99))
    verdict = decide(state)
    assert state.processes[3].pairs == [] and state.processes[3].throttled_pairs == 40
    assert verdict.decision is Decision.TEST_CAREFULLY and verdict.is_answer
    assert "throttled in 40 pairs" in verdict.headline


def test_a_recorded_run_with_its_samples_made_hot_is_careful() -> None:
    lines = gzip.decompress(RECORDED.read_bytes()).splitlines()
    events = [event for line in lines if (event := decode_event(line)) is not None]
    cool, hot = RunState(), RunState()
    for event in events:
        cool.apply(event)
        hot.apply(replace(event, throttle_reasons=HOT) if isinstance(event, ev.GpuSample) else event)
    process, same = (s.process_of(Phase.WARM) for s in (cool, hot))
    assert process is not None and same is not None
    assert process.throttled_pairs == 0 and len(process.pairs) >= 20
    assert same.throttled_pairs + len(same.pairs) == len(process.pairs)
    assert decide(hot).decision is Decision.TEST_CAREFULLY
    assert decide(cool).decision is not Decision.TEST_CAREFULLY
