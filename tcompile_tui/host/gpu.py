"""NVIDIA GPUs through NVML: which there are, which to take, and how the one under test is doing.

Nothing here raises because of a driver: what NVML refuses is None. NVML calls may hang on a sick GPU, so
samples are read on a thread of their own (host/sampler.py).
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from tcompile_tui.core.events import GpuSample
from tcompile_tui.core.spec import SpecError

# The bits of NVML's clocks event reasons. Named here because bindings differ in what they define.
_CLOCK_REASONS = (
    (0x1, "idle"),
    (0x2, "application clocks"),
    (0x4, "power cap"),
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "software thermal slowdown"),
    (0x40, "hardware thermal slowdown"),
    (0x80, "power brake slowdown"),
    (0x100, "display clocks"),
    (0x200, "board limit"),
    (0x400, "reliability"),
)
# The values of NVML_CLOCK_SM and NVML_TEMPERATURE_GPU.
_SM_CLOCK = 1
_GPU_SENSOR = 0
_USE_WINDOW_US = 1_000_000
_UNKNOWN_USE_PERCENT = 100.0


@dataclass(frozen=True)
class GpuInfo:
    """One device that CUDA can open: a GPU, or a MIG instance of the GPU at `index` (`mig` is set then)."""

    index: int
    uuid: str
    name: str
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    utilisation_percent: float | None = None
    driver_version: str | None = None
    persistence: bool | None = None
    mig: bool = False


@dataclass(frozen=True)
class GpuTraits:
    """What a device can do. `sm_count` is of the MIG instance where it is one; `max_sm_clock_mhz` of the whole GPU."""

    capability: tuple[int, int] | None = None
    sm_count: int | None = None
    max_sm_clock_mhz: float | None = None
    driver_cuda: tuple[int, int] | None = None


class Gpus:
    """NVML for as long as the context is open; without NVML or driver there are simply no GPUs."""

    def __init__(self) -> None:
        self._nvml: Any | None = None

    def __enter__(self) -> Gpus:
        self._nvml = _start_nvml()
        return self

    def __exit__(self, *_: object) -> None:
        _ask(self._nvml, "nvmlShutdown")
        self._nvml = None

    def list_gpus(self) -> tuple[GpuInfo, ...]:
        """In NVML's order, which is that of the PCI bus. A GPU in MIG mode is listed as its instances."""
        driver = _ask(self._nvml, "nvmlSystemGetDriverVersion")
        found: list[GpuInfo] = []
        for index in range(_ask(self._nvml, "nvmlDeviceGetCount") or 0):
            handle = _ask(self._nvml, "nvmlDeviceGetHandleByIndex", index)
            if handle is not None:
                found += self._devices_of(index, handle, driver)
        return tuple(found)

    def traits(self, gpu: GpuInfo) -> GpuTraits:
        device = _ask(self._nvml, "nvmlDeviceGetHandleByUUID", gpu.uuid)
        board = _ask(self._nvml, "nvmlDeviceGetHandleByIndex", gpu.index)
        capability = _ask(self._nvml, "nvmlDeviceGetCudaComputeCapability", board)
        cuda = _ask(self._nvml, "nvmlSystemGetCudaDriverVersion_v2")  # 12040 is 12.4
        if gpu.mig:
            attributes = _ask(self._nvml, "nvmlDeviceGetAttributes_v2", device)
            sm_count = getattr(attributes, "multiprocessorCount", None)
        else:
            cores = _ask(self._nvml, "nvmlDeviceGetNumGpuCores", board)
            sm_count = cores // _cores_per_sm(*capability) if cores and capability else None
        return GpuTraits(
            capability=(int(capability[0]), int(capability[1])) if capability else None,
            sm_count=sm_count,
            max_sm_clock_mhz=_ask(self._nvml, "nvmlDeviceGetMaxClockInfo", board, _SM_CLOCK),
            driver_cuda=(cuda // 1000, cuda % 1000 // 10) if cuda else None,
        )

    def _devices_of(self, index: int, gpu: Any, driver: str | None) -> list[GpuInfo]:
        mig_mode = _ask(self._nvml, "nvmlDeviceGetMigMode", gpu)  # [current, pending]
        mig = bool(mig_mode and mig_mode[0])
        persistence = _ask(self._nvml, "nvmlDeviceGetPersistenceMode", gpu)
        found = []
        for handle in self._mig_instances(gpu) if mig else [gpu]:
            uuid = _ask(self._nvml, "nvmlDeviceGetUUID", handle)
            if uuid is None:
                continue
            used, total = _memory_bytes(self._nvml, handle)
            found.append(
                GpuInfo(
                    index=index,
                    uuid=uuid,
                    name=self._name(handle) or self._name(gpu) or "NVIDIA GPU",
                    memory_total_bytes=total,
                    memory_used_bytes=used,
                    utilisation_percent=_utilisation_percent(self._nvml, handle),
                    driver_version=driver,
                    persistence=None if persistence is None else bool(persistence),
                    mig=mig,
                )
            )
        return found

    def _mig_instances(self, gpu: Any) -> list[Any]:
        slots = range(_ask(self._nvml, "nvmlDeviceGetMaxMigDeviceCount", gpu) or 0)
        handles = [_ask(self._nvml, "nvmlDeviceGetMigDeviceHandleByIndex", gpu, slot) for slot in slots]
        return [handle for handle in handles if handle is not None]

    def _name(self, handle: Any) -> str | None:
        name: str | None = _ask(self._nvml, "nvmlDeviceGetName", handle)
        return name


def choose_gpu(gpus: Sequence[GpuInfo], asked: str, visible: str | None) -> GpuInfo | None:
    """The GPU for `asked` ('auto', 'cuda' or 'cuda:N') among those that CUDA_VISIBLE_DEVICES leaves visible.

    'auto' and 'cuda' take the least used, or None when there is none. Numbers count in PCI bus order. CUDA
    does the same when CUDA_DEVICE_ORDER=PCI_BUS_ID; by default it puts the fastest first, which is assumed to
    be the same order, as it is where all GPUs are alike. Raises SpecError for an N that does not exist.
    """
    candidates = tuple(gpus) if visible is None else _visible_gpus(gpus, visible)
    if asked in ("auto", "cuda"):
        return min(candidates, key=_use, default=None)
    ordinal = int(asked.removeprefix("cuda:"))
    if ordinal < len(candidates):
        return candidates[ordinal]
    under = "" if visible is None else f" with CUDA_VISIBLE_DEVICES='{visible}'"
    if not candidates:
        raise SpecError(f"--device {asked}: no NVIDIA GPU can be seen{under}; use --device cpu")
    last = len(candidates) - 1
    there = "only cuda:0 exists" if last == 0 else f"only cuda:0 to cuda:{last} exist"
    raise SpecError(f"--device {asked}: {there}{under}")


class GpuReader:
    """Reads the device with this UUID (of a GPU or a MIG instance).

    NVML is started by the first `read`, so that making a reader cannot hang. It is never shut down: that
    could hang too, and the process's end does it anyway.
    """

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._opened = False
        self._nvml: Any | None = None
        self._device: Any | None = None
        self._board: Any | None = None
        self._workers: set[int] = set()
        self._shows_workers = False

    def read(self, worker_pids: set[int], with_energy: bool = False) -> GpuSample:
        """One sample. All `worker_pids` given so far are ours: a dying worker stays listed for a moment. The energy
        counter takes 4 ms to read on some drivers, the rest microseconds."""
        self._open()
        if self._device is None:
            return GpuSample()
        self._workers |= worker_pids
        used, total = _memory_bytes(self._nvml, self._device)
        other_pids, other_memory_bytes = self._others()
        energy_j = self._energy_j() if with_energy else None
        return GpuSample(
            utilisation_percent=_utilisation_percent(self._nvml, self._device),
            memory_used_bytes=used,
            memory_total_bytes=total,
            sm_clock_mhz=self._board_figure("nvmlDeviceGetClockInfo", _SM_CLOCK),
            power_w=_watts(self._board_figure("nvmlDeviceGetPowerUsage")),
            power_limit_w=_watts(self._board_figure("nvmlDeviceGetEnforcedPowerLimit")),
            temperature_c=self._board_figure("nvmlDeviceGetTemperature", _GPU_SENSOR),
            throttle_reasons=self._throttle_reasons(),
            other_pids=other_pids,
            other_memory_bytes=other_memory_bytes,
            other_utilisation_percent=self._other_utilisation_percent(other_pids),
            energy_j=energy_j,
            energy_read_s=time.monotonic() if energy_j is not None else None,
        )

    def _open(self) -> None:
        if self._opened:
            return
        self._opened = True
        self._nvml = _start_nvml()
        self._device = _ask(self._nvml, "nvmlDeviceGetHandleByUUID", self._uuid)
        # Clocks, power and temperature belong to the whole GPU; a MIG instance has none of its own.
        parent = "nvmlDeviceGetDeviceHandleFromMigDeviceHandle"
        mig = self._uuid.startswith("MIG-") and self._device is not None
        self._board = _ask(self._nvml, parent, self._device) if mig else self._device

    def _board_figure(self, call: str, *arguments: int) -> float | None:
        value = None if self._board is None else _ask(self._nvml, call, self._board, *arguments)
        return None if value is None else float(value)

    def _energy_j(self) -> float | None:
        """Since the driver was loaded. None for a MIG instance, which is not counted by itself."""
        if self._board is not self._device:
            return None
        millijoules = _ask(self._nvml, "nvmlDeviceGetTotalEnergyConsumption", self._device)
        return None if millijoules is None else millijoules / 1000

    def _throttle_reasons(self) -> tuple[str, ...] | None:
        if self._board is None:
            return None
        mask = _ask(self._nvml, "nvmlDeviceGetCurrentClocksEventReasons", self._board)
        if mask is None:  # drivers before 535 know only the older name
            mask = _ask(self._nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", self._board)
        return None if mask is None else clock_reasons(mask)

    def _others(self) -> tuple[tuple[int, ...] | None, int | None]:
        """PIDs on the device that are not ours, and the memory they hold; None for what cannot be told."""
        processes = self._processes()
        if processes is None or not self._trusted(set(processes)):
            return None, None
        others = {pid: used for pid, used in processes.items() if pid not in self._workers}
        held = [used for used in others.values() if used is not None]
        return tuple(sorted(others)), sum(held) if len(held) == len(others) else None

    def _processes(self) -> dict[int, int | None] | None:
        """Memory in bytes by PID."""
        compute = _ask(self._nvml, "nvmlDeviceGetComputeRunningProcesses", self._device)
        if compute is None:
            return None
        graphics = _ask(self._nvml, "nvmlDeviceGetGraphicsRunningProcesses", self._device) or []
        return {process.pid: process.usedGpuMemory for process in [*graphics, *compute]}

    def _trusted(self, pids: set[int]) -> bool:
        """Whether the driver's list speaks of processes as we know them. In a container it may be empty, or
        hold the host's PIDs or zeros; it is believed once it shows a worker, or if all its PIDs exist
        here."""
        self._shows_workers = self._shows_workers or not pids.isdisjoint(self._workers)
        if 0 in pids:
            return False
        return self._shows_workers or (bool(pids) and all(psutil.pid_exists(pid) for pid in pids))

    def _other_utilisation_percent(self, other_pids: tuple[int, ...] | None) -> float | None:
        """SM time that others used within the last second."""
        if not other_pids:
            return None if other_pids is None else 0.0
        since_us = time.time_ns() // 1000 - _USE_WINDOW_US
        samples = _ask(self._nvml, "nvmlDeviceGetProcessUtilization", self._device, since_us)
        if samples is None:
            return None
        in_order = sorted(samples, key=lambda sample: sample.timeStamp)
        latest = {sample.pid: sample.smUtil for sample in in_order}
        shares = [latest.get(pid, 0) for pid in other_pids]  # who did nothing has no sample
        return None if max(shares) > 100 else min(100.0, float(sum(shares)))  # above 100: "unknown"


def clock_reasons(mask: int) -> tuple[str, ...]:
    """Short names for NVML's bitmask of why the clocks are not higher; unknown bits in hexadecimal."""
    names = [name for bit, name in _CLOCK_REASONS if mask & bit]
    unknown = mask & ~sum(bit for bit, _ in _CLOCK_REASONS)
    return (*names, hex(unknown)) if unknown else tuple(names)


def _visible_gpus(gpus: Sequence[GpuInfo], visible: str) -> tuple[GpuInfo, ...]:
    """As CUDA reads CUDA_VISIBLE_DEVICES: the first entry that names no device ends the list, and one device
    named twice leaves none."""
    found: list[GpuInfo] = []
    for entry in visible.split(","):
        gpu = _named(gpus, entry.strip())
        if gpu is None:
            break
        if gpu in found:
            return ()
        found.append(gpu)
    return tuple(found)


def _named(gpus: Sequence[GpuInfo], entry: str) -> GpuInfo | None:
    if entry.startswith(("GPU-", "MIG-")):
        matching = [gpu for gpu in gpus if gpu.uuid.startswith(entry)]
        return matching[0] if len(matching) == 1 else None
    if entry.isdecimal():
        return next((gpu for gpu in gpus if gpu.index == int(entry)), None)
    return None


def _use(gpu: GpuInfo) -> tuple[float, int]:
    """Sorts the least used first; what is not known counts as busy."""
    percent = _UNKNOWN_USE_PERCENT if gpu.utilisation_percent is None else gpu.utilisation_percent
    return percent, gpu.memory_used_bytes or 0


def _cores_per_sm(major: int, minor: int) -> int:
    """CUDA C++ Programming Guide, "Compute Capabilities": FP32 lanes of a multiprocessor."""
    return 64 if major in (6, 7, 8) and (major, minor) not in ((6, 1), (6, 2), (8, 6), (8, 7), (8, 9)) else 128


def _start_nvml() -> Any | None:
    # Imported late: it takes 0.1 s, and a machine without NVIDIA needs none of it.
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:
        return None
    return nvml


def _ask(nvml: Any | None, call: str, *arguments: object) -> Any:
    """The result of an NVML call; None without NVML, if the binding lacks the call, or the driver refuses.

    The binding raises more than NVMLError: version mismatches, undecodable text, missing names.
    """
    if nvml is None:
        return None
    try:
        return getattr(nvml, call)(*arguments)
    except Exception:
        return None


def _memory_bytes(nvml: Any | None, handle: Any) -> tuple[int | None, int | None]:
    """Used and total."""
    memory = _ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    return (None, None) if memory is None else (int(memory.used), int(memory.total))


def _utilisation_percent(nvml: Any | None, handle: Any) -> float | None:
    rates = _ask(nvml, "nvmlDeviceGetUtilizationRates", handle)
    return None if rates is None else float(rates.gpu)


def _watts(milliwatts: float | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
