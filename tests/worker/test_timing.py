"""How blocks of steps are timed, and how long compared blocks are."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st

from tcompile_tui.worker.loop import plan_latency_steps, plan_pair_steps
from tcompile_tui.worker.timing import MAX_BLOCK_STEPS, CpuTimer, CudaTimer, GroupPlan, plan_groups

pytestmark = pytest.mark.xdist_group("torch")
MILLISECOND = 1_000_000


def test_boundaries_enclose_every_step_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1_000]
    monkeypatch.setattr("tcompile_tui.worker.timing.perf_counter_ns", lambda: clock[0])
    indices = []

    def step(index: int) -> None:
        indices.append(index)
        clock[0] += 10 * (index + 1)

    timer = CpuTimer()
    timer.run(step, 0, MAX_BLOCK_STEPS)
    indices.clear()
    clock[0] = 1_000
    timing = timer.run(step, 5, 3)
    assert indices == [5, 6, 7]
    assert timing.boundaries_ns == (1_000, 1_060, 1_130, 1_210), "nothing of the longer block before"
    assert timing.step_ns == (60, 70, 80) and timing.wall_ns == 210
    assert timing.host_ns == ()


class FakeDevice:
    """A device that is 5 ns a mark late: events record its clock, and nothing may read them before the wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock_ns = 0
        self.recorded: list[FakeEvent] = []
        self.waited_at: list[int] = []
        monkeypatch.setattr(torch.cuda, "Event", lambda enable_timing: FakeEvent(self))
        monkeypatch.setattr(torch.cuda, "synchronize", lambda device: self.waited_at.append(len(self.recorded)))


class FakeEvent:
    def __init__(self, device: FakeDevice) -> None:
        self._device = device
        self.at_ns = -1

    def record(self) -> None:
        self._device.clock_ns += 5
        self.at_ns = self._device.clock_ns
        self._device.recorded.append(self)

    def elapsed_time(self, later: FakeEvent) -> float:
        assert self._device.waited_at[-1] == len(self._device.recorded), "events are read when the block is over"
        return (later.at_ns - self.at_ns) / 1e6


def test_each_step_on_a_device_lies_between_two_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    device = FakeDevice(monkeypatch)

    def step(index: int) -> None:
        device.clock_ns += 100 * index

    timer = CudaTimer(torch.device("cuda", 0))
    for first in (7, 1):
        timing = timer.run(step, first, 3)
        assert timing.step_ns == tuple(100 * index + 5 for index in range(first, first + 3))
        assert len(timing.host_ns) == 3 and len(timing.boundaries_ns) == 4
        assert timing.group_steps == 1


def test_short_steps_on_a_device_share_a_mark_and_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    device = FakeDevice(monkeypatch)

    def step(index: int) -> None:
        device.clock_ns += 100 + index

    timing = CudaTimer(torch.device("cuda", 0)).run(step, 0, 12, GroupPlan(lead=2, size=4))
    # Steps 0 and 1 by themselves, 2 to 5 and 6 to 9 together, 10 and 11 are what is left.
    groups = [105] + [106] + [round(103.5 + 5 / 4)] * 4 + [round(107.5 + 5 / 4)] * 4 + [round(110.5 + 5 / 2)] * 2
    assert timing.step_ns == tuple(groups)
    assert len(device.recorded) == 1 + 5
    assert timing.group_steps == 4 and len(timing.host_ns) == 12


@pytest.mark.parametrize(
    ("step_ns", "size"), [(80_000.0, 25), (1_000_000.0, 2), (2_000_000.0, 1), (9e9, 1), (0.0, 2_000_000)]
)
def test_groups_are_long_enough_to_hide_their_mark(step_ns: float, size: int) -> None:
    assert plan_groups(step_ns, lead=2) == GroupPlan(2, size)


@given(steps=st.integers(1, 300), lead=st.integers(0, 5), size=st.integers(1, 400))
def test_any_plan_times_every_step(steps: int, lead: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        device = FakeDevice(monkeypatch)

        def step(index: int) -> None:
            device.clock_ns += 1_000_000

        timing = CudaTimer(torch.device("cuda", 0)).run(step, 0, steps, GroupPlan(lead, size))
    assert len(timing.step_ns) == steps
    assert all(1_000_000 <= ns <= 1_000_005 for ns in timing.step_ns)


def test_the_cpu_time_of_a_block_is_that_of_its_work() -> None:
    def busy(index: int) -> None:
        sum(range(20_000))

    timing = CpuTimer().run(busy, 0, 20)
    assert 0 < timing.cpu_ns <= timing.wall_ns * 1.05
    assert timing.involuntary_switches is not None and timing.involuntary_switches >= 0


def test_pages_of_a_block_are_counted() -> None:
    def touch(index: int) -> None:
        bytearray(32 << 20)

    timing = CpuTimer().run(touch, 0, 3)
    calm = CpuTimer().run(lambda index: None, 0, 3)
    assert timing.minor_faults is not None and calm.minor_faults is not None
    assert timing.minor_faults > calm.minor_faults


@pytest.mark.parametrize(
    ("step_ns", "steps"),
    [
        (0, 4_094),  # as many as a block can hold
        (100_000, 200),  # 20 ms
        (2 * MILLISECOND, 10),
        (2.6 * MILLISECOND, 8),  # at least 8
        (125 * MILLISECOND, 8),  # 1 s at most ...
        (126 * MILLISECOND, 7),
        (400 * MILLISECOND, 2),
        (60_000 * MILLISECOND, 2),  # ... but two
    ],
)
def test_compared_blocks_are_long_enough_and_bounded(step_ns: float, steps: int) -> None:
    assert plan_pair_steps(step_ns) == steps


@pytest.mark.parametrize(
    ("step_ns", "steps"), [(0, 20), (MILLISECOND, 20), (30 * MILLISECOND, 10), (200 * MILLISECOND, 1), (9e12, 1)]
)
def test_latencies_take_a_bounded_time(step_ns: float, steps: int) -> None:
    assert plan_latency_steps(step_ns) == steps
