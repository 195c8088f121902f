"""Before the largest batch is looked for: is there a GPU, and has the run it for itself?"""

from __future__ import annotations

from tcompile_tui.core.events import GpuSample
from tcompile_tui.core.fit_batch import FIT_NEEDS_GPU
from tcompile_tui.core.spec import RunSpec, SpecError
from tcompile_tui.core.units import plural, size
from tcompile_tui.host.devices import Device
from tcompile_tui.host.gpu import GpuReader

# An idle GPU's driver keeps up to about a gigabyte for itself.
_IDLE_BYTES = 2 << 30


def look_at_fit(spec: RunSpec, device: Device) -> None:
    """Raises SpecError. Asked before anything of the run is on the device."""
    if not spec.fit_batch:
        return
    if device.uuid is None:
        raise SpecError(FIT_NEEDS_GPU)
    refuse_company(GpuReader(device.uuid).read(set()), device.name)


def refuse_company(sample: GpuSample, name: str) -> None:
    """Other processes on the GPU could be hit by a search that runs out of memory. A container hides their numbers,
    but not what they hold. Raises SpecError."""
    advice = "choose another one with --device, or leave --fit-batch out"
    if sample.other_pids:
        others = plural(len(sample.other_pids), "other process")
        raise SpecError(
            f"--fit-batch needs the GPU for itself, but {others} of yours or others' is on {name}: {advice}"
        )
    held = sample.memory_used_bytes
    if sample.other_pids is None and held is not None and held > _IDLE_BYTES:
        raise SpecError(f"--fit-batch needs the GPU for itself, but {size(held)} of {name} are in use: {advice}")
