"""Latencies: percentiles of steps that were waited for, beside the throughput of those that were not."""

from __future__ import annotations

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.latency import Latency, latency
from tcompile_tui.core.spec import Arm
from tcompile_tui.core.verdict import decide
from tcompile_tui.core.verdict_json import verdict_document
from tcompile_tui.report.text import verdict_text
from tests.core.streams import Compiled, Process, cold_process, eager_process, replay, warm_process

MS = 1_000_000


@pytest.mark.parametrize(
    ("steps_ms", "expected"),
    [
        ([], None),
        ([3], Latency(3.0, None, 1)),
        ([9, 1, 2, 3], Latency(2.0, None, 4)),
        (list(range(1, 101)), Latency(50.0, 99.0, 100)),
        ([1] * 198 + [50, 70], Latency(1.0, 1.0, 200)),
    ],
)
def test_percentiles_are_of_steps_that_were_measured(steps_ms: list[int], expected: Latency | None) -> None:
    assert latency([ms * MS for ms in steps_ms]) == expected


def _waited_for(arm: Arm, *steps_ms: float) -> ev.Block:
    steps = tuple(int(ms * MS) for ms in steps_ms)
    return ev.Block(
        arm=arm, role=ev.BlockRole.LATENCY, first_index=0, steps=len(steps), step_ns=steps, wall_ns=sum(steps)
    )


def _run(latencies: Process) -> Process:
    warm = warm_process(Compiled())
    warm[-2:-2] = latencies
    return warm


def test_latencies_are_told_beside_the_speedup_and_are_no_part_of_it() -> None:
    blocks: Process = [_waited_for(arm, *[ms] * 60) for arm, ms in ((Arm.EAGER, 12), (Arm.COMPILED, 9)) for _ in "ab"]
    state = replay(eager_process(), cold_process(Compiled()), _run(blocks))
    without = replay(eager_process(), cold_process(Compiled()), _run([]))
    (result,) = (judged.result for judged in decide(state).modes)
    assert result.latency == {Arm.EAGER: Latency(12.0, 12.0, 120), Arm.COMPILED: Latency(9.0, 9.0, 120)}
    (plain,) = (judged.result for judged in decide(without).modes)
    assert (result.speedup, result.compiled_ms, result.warm_start) == (
        plain.speedup,
        plain.compiled_ms,
        plain.warm_start,
    )
    document = verdict_document(state, decide(state))["per_mode"]["default"]["latency_ms"]
    assert document["compiled"] == {"p50": 9.0, "p99": 9.0, "steps": 120}
    assert "12.0 ms (p99 12.0 ms) eager, 9.00 ms (p99 9.00 ms) compiled" in " ".join(
        verdict_text(state, decide(state)).split()
    )


def test_what_was_not_measured_is_not_told() -> None:
    state = replay(eager_process(), cold_process(Compiled()), _run([]))
    assert "latency" not in verdict_text(state, decide(state))
    document = verdict_document(state, decide(state))["per_mode"]["default"]["latency_ms"]
    assert document == {"eager": None, "compiled": None}
