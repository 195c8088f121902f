"""Time a block of steps without disturbing it: no allocation, write or synchronisation inside."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter_ns, thread_time_ns
from typing import Any, Protocol

import torch

from .stepping import Step

try:
    from resource import RUSAGE_SELF, RUSAGE_THREAD, getrusage
except ImportError:  # pragma: no cover - not on Linux
    getrusage = None  # type: ignore[assignment]

MAX_BLOCK_STEPS = 4_096
# A mark costs 5 to 10 us of a launch-bound step and a gap between cudagraph replays; this long a group hides it.
_GROUP_NS = 2_000_000


@dataclass(frozen=True)
class GroupPlan:
    """Which steps are timed as one: each of the first `lead` steps by itself, then `size` at a time."""

    lead: int = 0
    size: int = 1


EACH_STEP = GroupPlan()


def plan_groups(step_ns: float, lead: int) -> GroupPlan:
    """Groups of about 2 ms: each step by itself where it takes that long."""
    return GroupPlan(lead, max(1, round(_GROUP_NS / max(1.0, step_ns))))


@dataclass(frozen=True)
class BlockTiming:
    """One block: see events.Block. `boundaries_ns` are perf_counter_ns at its start and after each step's issue.
    Steps timed as a group of `group_steps` all have the group's mean."""

    step_ns: tuple[int, ...]
    host_ns: tuple[int, ...]
    wall_ns: int
    cpu_ns: int
    involuntary_switches: int | None
    boundaries_ns: tuple[int, ...]
    group_steps: int = 1
    minor_faults: int | None = None


class BlockTimer(Protocol):
    def run(self, step: Step, first_index: int, steps: int, plan: GroupPlan = EACH_STEP) -> BlockTiming:
        """Run `steps` (at most MAX_BLOCK_STEPS) steps in a row. A timer whose marks cost next to nothing times each
        step, whatever the plan."""
        ...


class CpuTimer:
    """One clock reading and one store a step."""

    def __init__(self) -> None:
        self._clock = array("q", bytes(8 * (MAX_BLOCK_STEPS + 1)))

    def run(self, step: Step, first_index: int, steps: int, plan: GroupPlan = EACH_STEP) -> BlockTiming:
        clock, now = self._clock, perf_counter_ns
        faults, switches, cpu = _minor_faults(), _involuntary_switches(), thread_time_ns()
        clock[0] = now()
        for i in range(steps):
            step(first_index + i)
            clock[i + 1] = now()
        cpu = thread_time_ns() - cpu
        boundaries = tuple(clock[: steps + 1])
        return BlockTiming(
            step_ns=_differences(boundaries),
            host_ns=(),
            wall_ns=boundaries[-1] - boundaries[0],
            cpu_ns=cpu,
            involuntary_switches=_since(switches, _involuntary_switches()),
            boundaries_ns=boundaries,
            minor_faults=_since(faults, _minor_faults()),
        )


class CudaTimer:
    """An event at each group's end; the device is waited for, and the events are read, when the block is over.

    A synchronisation per step would put launch latency on the critical path: 1 to 14 % of a step, most where
    cudagraphs matter. Reading events inside the block costs the host more than recording them.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._clock = array("q", bytes(8 * (MAX_BLOCK_STEPS + 1)))
        self._events: list[Any] = []

    def run(self, step: Step, first_index: int, steps: int, plan: GroupPlan = EACH_STEP) -> BlockTiming:
        clock, now = self._clock, perf_counter_ns
        ends = _group_ends(steps, plan)
        marks = self._marks(steps, ends)
        wait_for_device(self._device)
        faults, switches, cpu = _minor_faults(), _involuntary_switches(), thread_time_ns()
        self._events[0].record()
        clock[0] = now()
        for i in range(steps):
            step(first_index + i)
            mark = marks[i]
            if mark is not None:
                mark()
            clock[i + 1] = now()
        cpu = thread_time_ns() - cpu
        wait_for_device(self._device)
        wall_ns = now() - clock[0]
        boundaries = tuple(clock[: steps + 1])
        return BlockTiming(
            step_ns=self._read(ends),
            host_ns=_differences(boundaries),
            wall_ns=wall_ns,
            cpu_ns=cpu,
            involuntary_switches=_since(switches, _involuntary_switches()),
            boundaries_ns=boundaries,
            group_steps=plan.size,
            minor_faults=_since(faults, _minor_faults()),
        )

    def _marks(self, steps: int, ends: list[int]) -> list[Callable[[], None] | None]:
        """What to call after each step: the recording of its event, where a group ends."""
        while len(self._events) <= len(ends):
            self._events.append(torch.cuda.Event(enable_timing=True))
        marks: list[Callable[[], None] | None] = [None] * steps
        for end, event in zip(ends, self._events[1:]):
            marks[end - 1] = event.record
        return marks

    def _read(self, ends: list[int]) -> tuple[int, ...]:
        """Nanoseconds of each step: the mean of its group."""
        times: list[int] = []
        for end, (before, after) in zip(ends, pairwise(self._events)):
            size = end - len(times)
            times.extend([round(before.elapsed_time(after) * 1e6 / size)] * size)
        return tuple(times)


def _group_ends(steps: int, plan: GroupPlan) -> list[int]:
    """Numbers of steps done at the groups' ends; the last group may be a short one."""
    lead = min(plan.lead, steps)
    ends = [*range(1, lead + 1), *range(lead + plan.size, steps, plan.size)]
    return ends if ends and ends[-1] == steps else [*ends, steps]


def wait_for_device(device: torch.device) -> None:
    """Until all that was issued is done; on the CPU it is."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def make_timer(device: torch.device) -> BlockTimer:
    return CudaTimer(device) if device.type == "cuda" else CpuTimer()


def _differences(boundaries: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(after - before for before, after in pairwise(boundaries))


def _involuntary_switches() -> int | None:
    return getrusage(RUSAGE_THREAD).ru_nivcsw if getrusage is not None else None


def _minor_faults() -> int | None:
    """Of all threads: pages that came from the system without a disk."""
    return getrusage(RUSAGE_SELF).ru_minflt if getrusage is not None else None


def _since(before: int | None, after: int | None) -> int | None:
    return after - before if after is not None and before is not None else None
