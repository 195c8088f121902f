"""What to say of a worker that has not been heard for a while: that it is not forgotten, and what it is at."""

from __future__ import annotations

from itertools import takewhile

from tcompile_tui.core.events import HostSample
from tcompile_tui.core.state import ProcessState, RunState

_WORTH_SAYING_S = 20.0
_IDLE_CPU_PERCENT = 1.0
# A compiler's driver only waits for the program that does its work.
_KNOWN_AS = {"cc1plus": "g++", "cc1": "gcc", "clang-cpp": "clang", "collect2": "the linker", "ld": "the linker"}


def silent_s(process: ProcessState, now_s: float) -> float:
    """Seconds since the worker's last record, or since its start."""
    return max(0.0, now_s - max(process.heard_s, process.started_s))


def silence_text(state: RunState, now_s: float) -> str | None:
    """`no progress for 42 s in g++`; None while there is nothing to remark."""
    process = state.current
    if process is None or silent_s(process, now_s) < _WORTH_SAYING_S:
        return None
    sample = state.host[-1] if state.host else None
    text = f"no progress for {silent_s(process, now_s):.0f} s"
    if sample is None or sample.worker_cpu_percent is None:
        return text
    if _is_idle(sample):
        return f"{text}, and no CPU used"
    return f"{text} in {_KNOWN_AS.get(sample.busiest, sample.busiest)}" if sample.busiest else text


def idle_s(state: RunState, process: ProcessState) -> float:
    """For how long the worker has neither said anything nor, with all that it started, used a CPU; 0 where that is
    not known."""
    since_heard = [sample for sample in state.host if sample.t_s > process.heard_s]
    idle = list(takewhile(_is_idle, reversed(since_heard)))
    return idle[0].t_s - idle[-1].t_s if idle else 0.0


def _is_idle(sample: HostSample) -> bool:
    quiet = sample.worker_cpu_percent is not None and sample.worker_cpu_percent < _IDLE_CPU_PERCENT
    return quiet and sample.busiest is None
