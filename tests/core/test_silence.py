"""A worker that says nothing for long: what a person reads of it, and when it counts as idle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.silence import idle_s, silence_text
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.state import RunState

BUSY = ev.HostSample(
    cpu_percent=50, memory_used_bytes=1, memory_total_bytes=2, worker_cpu_percent=99.0, busiest="cc1plus"
)
IDLE = replace(BUSY, worker_cpu_percent=0.0, busiest=None)


def _state(*samples: ev.HostSample, heard_s: float = 10.0) -> RunState:
    """A cold process that was heard last at `heard_s`; a sample each second from then on."""
    state = RunState()
    state.apply(ev.PhaseStarted(t_s=1.0, process=1, phase=Phase.COLD, mode=Mode.DEFAULT, pid=7, limit_s=60))
    state.apply(ev.FrameStarted(t_s=heard_s, process=1, compile_id="0/0", function="forward", file="n.py", line=1))
    for second, sample in enumerate(samples, 1):
        state.apply(ev.stamp(sample, heard_s + second, 0))
    return state


@pytest.mark.parametrize(
    ("sample", "text"),
    [
        (BUSY, "no progress for 42 s in g++"),
        (replace(BUSY, busiest="ptxas"), "no progress for 42 s in ptxas"),
        (replace(BUSY, busiest=None), "no progress for 42 s"),
        (replace(BUSY, worker_cpu_percent=None), "no progress for 42 s"),
        (replace(IDLE, busiest="cc1plus"), "no progress for 42 s in g++"),
        (IDLE, "no progress for 42 s, and no CPU used"),
    ],
)
def test_a_long_silence_is_told_with_the_program_that_is_at_work(sample: ev.HostSample, text: str) -> None:
    assert silence_text(_state(sample), 52.0) == text


def test_a_short_one_is_not_worth_a_word_and_an_ended_process_is_not_silent() -> None:
    state = _state(BUSY)
    assert silence_text(state, 29.0) is None
    state.apply(ev.PhaseEnded(t_s=30.0, process=1, phase=Phase.COLD, outcome=ev.Outcome.OK, seconds=29))
    assert silence_text(state, 90.0) is None


def test_idle_is_the_time_since_it_last_worked_or_spoke() -> None:
    def seconds(*samples: ev.HostSample) -> float:
        state = _state(*samples)
        return idle_s(state, state.processes[1])

    assert seconds() == seconds(BUSY) == seconds(IDLE) == 0
    assert seconds(*[IDLE] * 31) == 30
    assert seconds(*[IDLE] * 20, BUSY, *[IDLE] * 11) == 10
    assert seconds(*[IDLE] * 20, replace(IDLE, worker_cpu_percent=None)) == 0, "not known"
    assert seconds(*[IDLE] * 20, replace(IDLE, busiest="ld")) == 0, "it waits for a CPU or a disk"
    state = _state(*[IDLE] * 20)
    state.apply(ev.GraphCaptured(t_s=31.0, process=1, compile_id="0/0", ops=1))
    assert idle_s(state, state.processes[1]) == 0
