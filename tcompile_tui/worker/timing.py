"""Time a block of steps without disturbing it: no allocation, write or synchronisation inside."""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter_ns, thread_time_ns
from typing import Any, Protocol

import torch

from .stepping import Step

try:
    from resource import RUSAGE_THREAD, getrusage
except ImportError:  # pragma: no cover - not on Linux
    getrusage = None  # type: ignore[assignment]

MAX_BLOCK_STEPS = 4_096
_POOL_EVENTS = 256
_READ_LAG = 64


@dataclass(frozen=True)
class BlockTiming:
    """One block: see events.Block. `boundaries_ns` are perf_counter_ns at its start and after each step's issue."""

    step_ns: tuple[int, ...]
    host_ns: tuple[int, ...]
    wall_ns: int
    cpu_ns: int
    involuntary_switches: int | None
    boundaries_ns: tuple[int, ...]


class BlockTimer(Protocol):
    def run(self, step: Step, first_index: int, steps: int) -> BlockTiming:
        """Run `steps` (at most MAX_BLOCK_STEPS) steps in a row."""
        ...


class CpuTimer:
    """One clock reading and one store a step."""

    def __init__(self) -> None:
        self._clock = array("q", bytes(8 * (MAX_BLOCK_STEPS + 1)))

    def run(self, step: Step, first_index: int, steps: int) -> BlockTiming:
        clock, now = self._clock, perf_counter_ns
        switches, cpu = _involuntary_switches(), thread_time_ns()
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
            involuntary_switches=_switches_since(switches),
            boundaries_ns=boundaries,
        )


class CudaTimer:
    """One boundary event a step, read with a lag; the device is waited for only where the block ends.

    A synchronisation per step would put launch latency on the critical path: 1 to 14 % of a step, most where
    cudagraphs matter.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._clock = array("q", bytes(8 * (MAX_BLOCK_STEPS + 1)))
        self._device_ns = array("q", bytes(8 * MAX_BLOCK_STEPS))
        self._free = [torch.cuda.Event(enable_timing=True) for _ in range(_POOL_EVENTS)]
        self._pending: deque[Any] = deque()
        self._last: Any = None
        self._read = 0

    def run(self, step: Step, first_index: int, steps: int) -> BlockTiming:
        clock, now, mark = self._clock, perf_counter_ns, self._mark
        torch.cuda.synchronize(self._device)
        self._read = 0
        switches, cpu = _involuntary_switches(), thread_time_ns()
        mark()
        clock[0] = now()
        for i in range(steps):
            step(first_index + i)
            mark()
            clock[i + 1] = now()
        cpu = thread_time_ns() - cpu
        torch.cuda.synchronize(self._device)
        wall_ns = now() - clock[0]
        self._collect(wait=True)
        self._free.append(self._last)
        self._last = None
        boundaries = tuple(clock[: steps + 1])
        return BlockTiming(
            step_ns=tuple(self._device_ns[:steps]),
            host_ns=_differences(boundaries),
            wall_ns=wall_ns,
            cpu_ns=cpu,
            involuntary_switches=_switches_since(switches),
            boundaries_ns=boundaries,
        )

    def _mark(self) -> None:
        while not self._free:
            self._pending[0].synchronize()  # the host is a whole pool ahead: the only wait inside a block
            self._collect()
        event = self._free.pop()
        event.record()
        self._pending.append(event)
        if len(self._pending) > _READ_LAG:
            self._collect()

    def _collect(self, wait: bool = False) -> None:
        """Read the boundaries that the device has passed."""
        while self._pending and (wait or self._pending[0].query()):
            event = self._pending.popleft()
            if self._last is not None:
                self._device_ns[self._read] = round(self._last.elapsed_time(event) * 1e6)
                self._read += 1
                self._free.append(self._last)
            self._last = event


def make_timer(device: torch.device) -> BlockTimer:
    return CudaTimer(device) if device.type == "cuda" else CpuTimer()


def _differences(boundaries: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(after - before for before, after in pairwise(boundaries))


def _involuntary_switches() -> int | None:
    return getrusage(RUSAGE_THREAD).ru_nivcsw if getrusage is not None else None


def _switches_since(before: int | None) -> int | None:
    after = _involuntary_switches()
    return after - before if after is not None and before is not None else None
