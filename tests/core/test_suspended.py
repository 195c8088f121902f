"""A worker that was stopped and continued: the time in between is in no step, no pair and no start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Arm
from tcompile_tui.core.state import RunState, step_times
from tcompile_tui.core.verdict import Decision, decide
from tests.core.streams import Compiled, Process, both, eager_process, replay

MINUTE_NS = 60_000_000_000


def _stopped_in(process: Process, chosen: Sequence[ev.Block]) -> Process:
    """The process with a minute added to the last step of these blocks."""

    def stopped(block: ev.Block) -> ev.Block:
        *steps, last = block.step_ns
        return replace(
            block, step_ns=(*steps, last + MINUTE_NS), wall_ns=block.wall_ns + MINUTE_NS,
            suspended_at=(block.first_index + block.steps - 1,),
        )  # fmt: skip

    return [stopped(event) if event in chosen and isinstance(event, ev.Block) else event for event in process]


def _blocks(process: Process, role: ev.BlockRole) -> list[ev.Block]:
    return [event for event in process if isinstance(event, ev.Block) and event.role is role]


def _ids(state: RunState) -> set[str]:
    return {finding.id for finding in decide(state).findings}


def test_a_stopped_step_counts_as_its_neighbours() -> None:
    block = ev.Block(
        arm=Arm.EAGER, role=ev.BlockRole.WARMUP, first_index=40, steps=4, step_ns=(5, 7, MINUTE_NS, 6),
        wall_ns=MINUTE_NS, suspended_at=(42,),
    )  # fmt: skip
    assert step_times(block) == (5, 7, 6, 6)
    assert step_times(replace(block, suspended_at=())) == block.step_ns


def test_a_pair_that_was_stopped_is_none_and_the_verdict_stays() -> None:
    cold, warm = both(Compiled(speedup=1.8))
    pairs = _blocks(warm, ev.BlockRole.PAIR)
    calm, stopped = (replay(eager_process(), cold, one) for one in (warm, _stopped_in(warm, pairs[6:7])))
    assert len(stopped.processes[3].pairs) == len(calm.processes[3].pairs) - 1
    assert decide(stopped).decision is decide(calm).decision is Decision.ENABLE
    assert "suspended" in _ids(stopped) - _ids(calm)


def test_a_start_that_was_stopped_is_not_known() -> None:
    cold, warm = both(Compiled(speedup=1.8))
    first = _blocks(cold, ev.BlockRole.WARMUP)[0]
    assert first.steps == 1
    verdict = decide(replay(eager_process(), _stopped_in(cold, [first]), warm))
    assert verdict.best is not None and verdict.best.result.cold_start is None
    assert verdict.decision is Decision.TEST_CAREFULLY and "start was not measured" in verdict.headline


def test_the_first_of_two_tries_does_not_stand_for_the_mode() -> None:
    """A cold process that failed and was started again."""
    cold, warm = both(Compiled(speedup=1.8))
    failed = [cold[0], replace(cold[-1], outcome=ev.Outcome.TIMED_OUT, detail="the compile hung")]
    verdict = decide(replay(eager_process(), failed, cold, warm))
    assert verdict.decision is Decision.ENABLE
    assert verdict.best is not None and verdict.best.result.cold_start is not None
    assert verdict.best.result.cold_start.starts == 1
