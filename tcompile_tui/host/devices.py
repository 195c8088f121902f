"""The device under test: which one, why, and how its worker sees only that one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tcompile_tui.core.events import Event
from tcompile_tui.core.spec import SpecError
from tcompile_tui.host.gpu import GpuReader, Gpus, choose_gpu
from tcompile_tui.host.machine import HostReader, cpu_name
from tcompile_tui.host.reclaim import descendants_of


@dataclass(frozen=True)
class Device:
    """`kind` is `cpu` or `cuda`; `environment` makes the chosen GPU the worker's only one, so that its cuda:0 and
    NVML's readings are the same device."""

    kind: str
    name: str
    why: str
    uuid: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def reader(
        self, worker_pid: Callable[[], int | None], wants_energy: Callable[[], bool] = lambda: False
    ) -> Callable[[], list[Event]]:
        """A function that reads GPU and host once, for a sampler's thread."""
        host = HostReader(worker_pid)
        gpu = GpuReader(self.uuid) if self.uuid is not None else None

        def read() -> list[Event]:
            samples: list[Event] = [host.read()]
            if gpu is not None:
                root = worker_pid()
                pids = {root, *descendants_of(root)} if root is not None else set()
                samples.append(gpu.read(pids, with_energy=wants_energy()))
            return samples

        return read


def choose_device(asked: str, environment: Mapping[str, str], torch_has_cuda: bool) -> Device:
    """`auto` takes the GPU where there is one that torch can use. Raises SpecError for a device that is not there."""
    if asked == "cpu":
        return Device("cpu", cpu_name(), "asked for")
    with Gpus() as nvml:
        gpus = nvml.list_gpus()
    if asked == "auto" and not (gpus and torch_has_cuda):
        return Device("cpu", cpu_name(), "there is no NVIDIA GPU" if not gpus else "this torch is built for CPU only")
    if not torch_has_cuda:
        raise SpecError(f"--device {asked}: this torch is built for CPU only; choose another one with --python")
    if not gpus:
        raise SpecError(f"--device {asked}: no NVIDIA GPU was found here (NVML sees none); use --device cpu")
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    gpu = choose_gpu(gpus, asked, visible)
    if gpu is None:
        if asked == "auto":
            return Device("cpu", cpu_name(), f"CUDA_VISIBLE_DEVICES={visible!r} shows no GPU")
        raise SpecError(f"--device {asked}: CUDA_VISIBLE_DEVICES={visible!r} shows no GPU")
    return Device("cuda", gpu.name, _why(asked, len(gpus)), gpu.uuid, {"CUDA_VISIBLE_DEVICES": gpu.uuid})


def _why(asked: str, number: int) -> str:
    if asked.startswith("cuda:"):
        return "asked for"
    return "the only GPU" if number == 1 else f"the least busy of {number} GPUs"
