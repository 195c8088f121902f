"""The GPU that a run would take: whether torch can use it, and what would spoil a measurement on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tcompile_tui.core.units import count, plural, size
from tcompile_tui.host.check import Check, Level
from tcompile_tui.host.gpu import GpuInfo, GpuReader, Gpus, GpuTraits, choose_gpu

BIG_GPU_SMS = 68
"""torch._inductor.utils.is_big_gpu: below it max-autotune leaves matrix products alone."""
_OLDEST_TRITON_CAPABILITY = (7, 0)
_BUSY_PERCENT = 5.0
_NORMAL_REASONS = frozenset({"idle", "application clocks", "power cap"})  # no fault of the machine


@dataclass(frozen=True)
class GpuLook:
    """The device that a run would take, None without one, and how it is just now."""

    info: GpuInfo | None
    number_of_gpus: int
    traits: GpuTraits
    others: tuple[int, ...] | None = None
    utilisation_percent: float | None = None
    sm_clock_mhz: float | None = None
    throttle_reasons: tuple[str, ...] | None = None


def look_at_gpu(environment: Mapping[str, str]) -> GpuLook:
    """Asks the driver, which may never answer."""
    with Gpus() as nvml:
        gpus = nvml.list_gpus()
        info = choose_gpu(gpus, "auto", environment.get("CUDA_VISIBLE_DEVICES")) if gpus else None
        traits = nvml.traits(info) if info is not None else GpuTraits()
    if info is None:
        return GpuLook(None, len(gpus), traits)
    sample = GpuReader(info.uuid).read(set())
    return GpuLook(
        info, len(gpus), traits, sample.other_pids, sample.utilisation_percent, sample.sm_clock_mhz,
        sample.throttle_reasons,
    )  # fmt: skip


def gpu_checks(look: GpuLook, torch_cuda: str | None) -> Iterator[Check]:
    """`torch_cuda` is what torch is built for, None without."""
    info, traits = look.info, look.traits
    if info is None:
        yield _no_gpu(look, torch_cuda)
        return
    driver = f"driver {info.driver_version or 'n/a'}"
    cuda = f" (CUDA {_dotted(traits.driver_cuda)})" if traits.driver_cuda is not None else ""
    what = f"{info.name}, {size(info.memory_total_bytes)}, {driver}{cuda}"
    yield Check("GPU", Level.FINE, f"{what}; the one of {look.number_of_gpus} that a run would take")
    yield from _fit(traits, torch_cuda)
    yield from _multiprocessors(traits)
    if info.mig:
        yield Check("MIG", Level.NOTE, "an instance of a shared GPU: neighbours share its power and clocks")
    if info.persistence is False:
        fix = "sudo nvidia-smi -pm 1, or start nvidia-persistenced"
        yield Check("persistence", Level.NOTE, "off: the first CUDA call of every process takes seconds longer", fix)
    yield from _load(look)


def _no_gpu(look: GpuLook, torch_cuda: str | None) -> Check:
    if look.number_of_gpus:
        text = f"CUDA_VISIBLE_DEVICES hides all of {plural(look.number_of_gpus, 'GPU')}"
        return Check("GPU", Level.WARNING, text, "unset CUDA_VISIBLE_DEVICES, or set it to one that is there")
    if torch_cuda is not None:
        text = "no NVIDIA GPU is seen, though torch is built for CUDA: a run measures the CPU"
        return Check(
            "GPU", Level.NOTE, text, "if there should be one, see that nvidia-smi lists it (container: --gpus)"
        )
    return Check("GPU", Level.FINE, "none; a run measures the CPU")


def _fit(traits: GpuTraits, torch_cuda: str | None) -> Iterator[Check]:
    """Whether torch, driver and GPU go together."""
    if torch_cuda is None:
        fix = "install a torch that is built for CUDA, see pytorch.org/get-started"
        yield Check("CUDA", Level.WARNING, "this torch cannot use the GPU: a run measures the CPU", fix)
        return
    major = torch_cuda.partition(".")[0]
    if traits.driver_cuda is not None and major.isdecimal() and int(major) > traits.driver_cuda[0]:
        text = f"torch is built for CUDA {torch_cuda}, the driver knows {_dotted(traits.driver_cuda)} at most"
        fix = f"update the driver, or install a torch for CUDA {traits.driver_cuda[0]}"
        yield Check("CUDA", Level.BLOCKER, text, fix)
    if traits.capability is not None and traits.capability < _OLDEST_TRITON_CAPABILITY:
        text = f"compute capability {_dotted(traits.capability)}: Triton needs 7.0 or newer"
        yield Check("CUDA", Level.BLOCKER, text, "use a newer GPU, or stay eager on this one")


def _multiprocessors(traits: GpuTraits) -> Iterator[Check]:
    if traits.sm_count is None:
        return
    if traits.sm_count < BIG_GPU_SMS:
        text = f"{traits.sm_count} of the {BIG_GPU_SMS} that max-autotune wants: it leaves matrix products alone"
        yield Check("SMs", Level.NOTE, text, "expect from max-autotune what default gives; pointwise kernels are tuned")
    else:
        yield Check("SMs", Level.FINE, f"{traits.sm_count}: max-autotune tunes matrix products too")


def _load(look: GpuLook) -> Iterator[Check]:
    if look.others:
        busy = (look.utilisation_percent or 0) >= _BUSY_PERCENT
        pids = ", ".join(map(str, look.others[:5]))
        text = (
            f"{plural(len(look.others), 'other process')} on the GPU ({pids}), {count(look.utilisation_percent)} % busy"
        )
        fix = "wait for them, or choose another GPU with --device: step times depend on them"
        yield Check("GPU use", Level.WARNING if busy else Level.NOTE, text, fix)
    elif look.others is None:
        yield Check("GPU use", Level.NOTE, "who else uses the GPU cannot be seen from here (a container hides it)")
    slow = [reason for reason in look.throttle_reasons or () if reason not in _NORMAL_REASONS]
    if slow:
        fix = "let it cool, or look at its power supply and limits (nvidia-smi -q -d PERFORMANCE)"
        yield Check("clocks", Level.WARNING, f"slowed down: {', '.join(slow)}", fix)
    elif look.sm_clock_mhz is not None:
        most = f" of {count(look.traits.max_sm_clock_mhz)}" if look.traits.max_sm_clock_mhz is not None else ""
        yield Check("clocks", Level.FINE, f"{count(look.sm_clock_mhz)}{most} MHz")


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
