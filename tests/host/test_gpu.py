"""GPUs through NVML, against a fake driver behind the real binding's names and signatures."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from tcompile_tui.core.events import GpuSample
from tcompile_tui.core.spec import SpecError
from tcompile_tui.host.gpu import GpuInfo, GpuReader, Gpus, choose_gpu, clock_reasons

GIB = 1 << 30
FIRST, SECOND = "GPU-aaaa1111", "GPU-bbbb2222"
SLICE = "MIG-cccc3333"
WORKER = 5_000_001  # above the largest PID of Linux, 2**22
STRANGER = os.getpid()  # a process that exists here and is no worker
HIDDEN = 5_000_002


class FakeNvml:
    """Has what the installed pynvml has. A call without an answer is refused; one that the binding could not
    take fails the test. Handles are UUIDs."""

    def __init__(self, **answers: Callable[..., Any]) -> None:
        self.answers: dict[str, Callable[..., Any]] = {
            "nvmlInit": lambda: None,
            "nvmlShutdown": lambda: None,
            **answers,
        }
        self.called: list[str] = []
        self.misused: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        real = getattr(pynvml, name)

        def call(*arguments: Any) -> Any:
            self.called.append(name)
            try:
                inspect.signature(real).bind(*arguments)
            except TypeError as error:
                self.misused.append(f"{name}: {error}")
            if name not in self.answers:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            return self.answers[name](*arguments)

        return call


Install = Callable[..., FakeNvml]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    fakes: list[FakeNvml] = []

    def put(**answers: Callable[..., Any]) -> FakeNvml:
        fakes.append(FakeNvml(**answers))
        monkeypatch.setitem(sys.modules, "pynvml", fakes[-1])
        return fakes[-1]

    yield put
    assert [misuse for fake in fakes for misuse in fake.misused] == []


def refuse(*_: Any) -> Any:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)


def memory(used: int, total: int) -> SimpleNamespace:
    return SimpleNamespace(used=used, total=total, free=total - used)


def process(pid: int, used: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def two_gpus() -> dict[str, Callable[..., Any]]:
    return {
        "nvmlSystemGetDriverVersion": lambda: "580.1",
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: (FIRST, SECOND)[index],
        "nvmlDeviceGetUUID": lambda handle: handle,
        "nvmlDeviceGetName": lambda handle: "NVIDIA H200",
        "nvmlDeviceGetMemoryInfo": lambda handle: memory(GIB if handle == FIRST else 0, 80 * GIB),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=7 if handle == FIRST else 0),
        "nvmlDeviceGetPersistenceMode": lambda handle: 1,
        "nvmlDeviceGetMigMode": lambda handle: [0, 0],
    }


# ---------------------------------------------------------------- listing


def test_lists_what_the_driver_tells(install: Install) -> None:
    fake = install(**two_gpus())
    with Gpus() as gpus:
        first, second = gpus.list_gpus()
    assert first == GpuInfo(0, FIRST, "NVIDIA H200", 80 * GIB, GIB, 7.0, "580.1", True, False)
    assert (second.index, second.uuid, second.memory_used_bytes) == (1, SECOND, 0)
    assert fake.called[-1] == "nvmlShutdown"


def test_no_driver_means_no_gpus(install: Install) -> None:
    install(**{**two_gpus(), "nvmlInit": refuse})
    with Gpus() as gpus:
        assert gpus.list_gpus() == ()


def test_no_binding_means_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Gpus() as gpus:
        assert gpus.list_gpus() == ()
    assert GpuReader(FIRST).read({WORKER}) == GpuSample()


def test_what_the_driver_refuses_is_none(install: Install) -> None:
    known = ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID")
    install(**{name: answer for name, answer in two_gpus().items() if name in known})
    with Gpus() as gpus:
        assert gpus.list_gpus()[0] == GpuInfo(0, FIRST, "NVIDIA GPU")


def test_a_lost_gpu_does_not_hide_the_others(install: Install) -> None:
    install(**{**two_gpus(), "nvmlDeviceGetHandleByIndex": lambda index: SECOND if index == 1 else refuse()})
    with Gpus() as gpus:
        assert [(found.index, found.uuid) for found in gpus.list_gpus()] == [(1, SECOND)]


def test_a_gpu_in_mig_mode_is_listed_as_its_instances(install: Install) -> None:
    answers = two_gpus() | {
        "nvmlDeviceGetMigMode": lambda handle: [int(handle == FIRST), 0],
        "nvmlDeviceGetMaxMigDeviceCount": lambda handle: 7,
        "nvmlDeviceGetMigDeviceHandleByIndex": lambda handle, slot: SLICE if slot == 2 else refuse(),
    }
    install(**answers)
    with Gpus() as gpus:
        found = gpus.list_gpus()
    assert [(one.index, one.uuid, one.mig) for one in found] == [(0, SLICE, True), (1, SECOND, False)]


# ---------------------------------------------------------------- choosing

BUSY = GpuInfo(0, FIRST, "a", 80, 0, 90.0)
HOLDING = GpuInfo(1, SECOND, "b", 80, 40, 0.0)
IDLE = GpuInfo(2, "GPU-bbbc9999", "c", 80, 10, 0.0)
INSTANCE = GpuInfo(3, SLICE, "d", 10, 0, None, mig=True)
ALL = (BUSY, HOLDING, IDLE, INSTANCE)


@pytest.mark.parametrize(
    ("asked", "visible", "expected"),
    [
        ("auto", None, IDLE),  # the least used, then the least memory; unknown use comes last
        ("cuda", None, IDLE),
        ("cuda:1", None, HOLDING),
        ("auto", "0,1", HOLDING),
        ("cuda:0", "2,0", IDLE),
        ("cuda:1", " 2 , 0 ", BUSY),
        ("cuda:0", "GPU-aa", BUSY),
        ("cuda:1", f"{FIRST},GPU-bbbb", HOLDING),
        ("cuda", SLICE, INSTANCE),
        ("cuda:0", "MIG-c", INSTANCE),
        ("cuda", "", None),
        ("cuda", "-1", None),
        ("auto", "NoDevFiles", None),
        ("cuda", "GPU-bbb", None),  # ambiguous
        ("cuda", "0,-1,2", BUSY),  # the list ends at the first that is none
        ("cuda", "2,2", None),  # as CUDA has it
    ],
)
def test_choice(asked: str, visible: str | None, expected: GpuInfo | None) -> None:
    assert choose_gpu(ALL, asked, visible) == expected


def test_without_gpus_there_is_nothing_to_choose() -> None:
    assert choose_gpu((), "auto", None) is None
    assert choose_gpu((), "cuda", "0") is None


@pytest.mark.parametrize(
    ("gpus", "asked", "visible", "message"),
    [
        (ALL, "cuda:4", None, "--device cuda:4: only cuda:0 to cuda:3 exist"),
        (ALL, "cuda:1", "2", "--device cuda:1: only cuda:0 exists with CUDA_VISIBLE_DEVICES='2'"),
        ((), "cuda:0", None, "--device cuda:0: no NVIDIA GPU can be seen; use --device cpu"),
        (
            ALL,
            "cuda:0",
            "",
            "--device cuda:0: no NVIDIA GPU can be seen with CUDA_VISIBLE_DEVICES=''; use --device cpu",
        ),
    ],
)
def test_an_ordinal_that_does_not_exist(
    gpus: tuple[GpuInfo, ...], asked: str, visible: str | None, message: str
) -> None:
    with pytest.raises(SpecError) as caught:
        choose_gpu(gpus, asked, visible)
    assert str(caught.value) == message


# ---------------------------------------------------------------- reading


def board() -> dict[str, Callable[..., Any]]:
    """A GPU on which a worker and another process are."""
    return two_gpus() | {
        "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
        "nvmlDeviceGetClockInfo": lambda handle, kind: 1980 if kind == pynvml.NVML_CLOCK_SM else 1,
        "nvmlDeviceGetPowerUsage": lambda handle: 650_500,
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700_000,
        "nvmlDeviceGetTemperature": lambda handle, sensor: 61 if sensor == pynvml.NVML_TEMPERATURE_GPU else 1,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: pynvml.nvmlClocksEventReasonSwPowerCap,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [process(WORKER, GIB), process(STRANGER, 5)],
        "nvmlDeviceGetGraphicsRunningProcesses": lambda handle: [],
        "nvmlDeviceGetProcessUtilization": lambda handle, since_us: [
            SimpleNamespace(pid=STRANGER, timeStamp=2, smUtil=30),
            SimpleNamespace(pid=STRANGER, timeStamp=1, smUtil=80),
            SimpleNamespace(pid=WORKER, timeStamp=2, smUtil=60),
        ],
    }


def test_a_full_sample(install: Install) -> None:
    install(**board())
    assert GpuReader(FIRST).read({WORKER}) == GpuSample(
        utilisation_percent=7.0,
        memory_used_bytes=GIB,
        memory_total_bytes=80 * GIB,
        sm_clock_mhz=1980.0,
        power_w=650.5,
        power_limit_w=700.0,
        temperature_c=61.0,
        throttle_reasons=("power cap",),
        other_pids=(STRANGER,),
        other_memory_bytes=5,
        other_utilisation_percent=30.0,
    )


def test_the_energy_counter_is_read_only_when_it_is_wanted(install: Install) -> None:
    fake = install(**board(), nvmlDeviceGetTotalEnergyConsumption=lambda handle: 7_500)
    reader = GpuReader(FIRST)
    assert reader.read(set()).energy_j is None
    assert "nvmlDeviceGetTotalEnergyConsumption" not in fake.called
    first, second = reader.read(set(), with_energy=True), reader.read(set(), with_energy=True)
    assert first.energy_j == second.energy_j == 7.5
    assert first.energy_read_s is not None and second.energy_read_s is not None
    assert second.energy_read_s > first.energy_read_s


def test_a_board_without_an_energy_counter_has_no_reading(install: Install) -> None:
    install(**board())
    sample = GpuReader(FIRST).read(set(), with_energy=True)
    assert (sample.energy_j, sample.energy_read_s) == (None, None)


@pytest.mark.parametrize(
    ("refused", "field"),
    [
        ("nvmlDeviceGetUtilizationRates", "utilisation_percent"),
        ("nvmlDeviceGetMemoryInfo", "memory_total_bytes"),
        ("nvmlDeviceGetClockInfo", "sm_clock_mhz"),
        ("nvmlDeviceGetPowerUsage", "power_w"),
        ("nvmlDeviceGetEnforcedPowerLimit", "power_limit_w"),
        ("nvmlDeviceGetTemperature", "temperature_c"),
        ("nvmlDeviceGetCurrentClocksEventReasons", "throttle_reasons"),
        ("nvmlDeviceGetComputeRunningProcesses", "other_pids"),
        ("nvmlDeviceGetProcessUtilization", "other_utilisation_percent"),
    ],
)
def test_one_refusal_costs_one_field(install: Install, refused: str, field: str) -> None:
    answers = board()
    del answers[refused]
    install(**answers)
    sample = GpuReader(FIRST).read({WORKER})
    assert getattr(sample, field) is None
    others = ("utilisation_percent", "power_w", "sm_clock_mhz", "temperature_c")
    assert all(getattr(sample, other) is not None for other in others if other != field)


def test_an_unknown_uuid_reads_as_nothing(install: Install) -> None:
    install(**{**board(), "nvmlDeviceGetHandleByUUID": refuse})
    assert GpuReader(FIRST).read({WORKER}) == GpuSample()


def test_making_a_reader_calls_nothing(install: Install) -> None:
    fake = install(**board())
    reader = GpuReader(FIRST)
    assert fake.called == []
    reader.read(set())
    reader.read(set())
    assert fake.called.count("nvmlInit") == 1


def test_older_drivers_call_the_clock_reasons_otherwise(install: Install) -> None:
    answers = board()
    del answers["nvmlDeviceGetCurrentClocksEventReasons"]
    answers["nvmlDeviceGetCurrentClocksThrottleReasons"] = lambda handle: 0x40
    install(**answers)
    assert GpuReader(FIRST).read(set()).throttle_reasons == ("hardware thermal slowdown",)


def test_clock_reasons() -> None:
    assert clock_reasons(0) == ()
    assert clock_reasons(0x1 | 0x8 | 0x80) == ("idle", "hardware slowdown", "power brake slowdown")
    assert clock_reasons(0x4 | 0x4000) == ("power cap", "0x4000")
    assert "0x" not in "".join(clock_reasons(pynvml.nvmlClocksEventReasonAll))


def test_a_mig_instance_takes_clocks_and_power_from_its_gpu(install: Install) -> None:
    answers = board() | {
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": lambda handle: FIRST,
        "nvmlDeviceGetPowerUsage": lambda handle: 300_000 if handle == FIRST else refuse(),
        "nvmlDeviceGetUtilizationRates": refuse,
        "nvmlDeviceGetMemoryInfo": lambda handle: memory(3, 10) if handle == SLICE else refuse(),
        "nvmlDeviceGetTotalEnergyConsumption": lambda handle: 7_500,
    }
    install(**answers)
    sample = GpuReader(SLICE).read(set(), with_energy=True)
    assert sample.energy_j is None, "the counter is that of all instances"
    assert (sample.power_w, sample.memory_total_bytes, sample.utilisation_percent) == (300.0, 10, None)


# ---------------------------------------------------------------- other processes


def others_seen(install: Install, processes: list[SimpleNamespace], workers: set[int]) -> tuple[Any, ...]:
    install(**{**board(), "nvmlDeviceGetComputeRunningProcesses": lambda handle: processes})
    sample = GpuReader(FIRST).read(workers)
    return sample.other_pids, sample.other_memory_bytes, sample.other_utilisation_percent


def test_alone_on_the_gpu(install: Install) -> None:
    assert others_seen(install, [process(WORKER, 9)], {WORKER}) == ((), 0, 0.0)


def test_pids_that_a_container_hides_are_not_available(install: Install) -> None:
    assert others_seen(install, [], {WORKER}) == (None, None, None)
    assert others_seen(install, [process(HIDDEN, 9)], {WORKER}) == (None, None, None)
    assert others_seen(install, [process(WORKER, 9), process(0, 9)], {WORKER}) == (None, None, None)


def test_others_show_before_the_worker_does(install: Install) -> None:
    assert others_seen(install, [process(STRANGER, 9)], set()) == ((STRANGER,), 9, 30.0)


def test_memory_of_others_is_unknown_when_one_is(install: Install) -> None:
    assert others_seen(install, [process(WORKER, 9), process(STRANGER, None)], {WORKER})[:2] == (
        (STRANGER,),
        None,
    )


def test_an_unknown_share_is_not_a_number(install: Install) -> None:
    unknown = SimpleNamespace(pid=STRANGER, timeStamp=1, smUtil=2**32 - 1)
    install(**{**board(), "nvmlDeviceGetProcessUtilization": lambda handle, since_us: [unknown]})
    assert GpuReader(FIRST).read({WORKER}).other_utilisation_percent is None


def test_a_dying_worker_is_still_ours(install: Install) -> None:
    install(**{**board(), "nvmlDeviceGetComputeRunningProcesses": lambda handle: [process(WORKER, 9)]})
    reader = GpuReader(FIRST)
    reader.read({WORKER})
    assert reader.read(set()).other_pids == ()


def test_a_graphics_process_counts_once(install: Install) -> None:
    both = [process(STRANGER, 5)]
    install(**{**board(), "nvmlDeviceGetGraphicsRunningProcesses": lambda handle: both})
    sample = GpuReader(FIRST).read({WORKER})
    assert (sample.other_pids, sample.other_memory_bytes) == ((STRANGER,), 5)
