"""The options that Setup offers, and what each means in a few words."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tcompile_tui.core.spec import Mode, Preset, SpecError, Task
from tcompile_tui.core.units import percent, size
from tcompile_tui.host.gpu import GpuInfo, Gpus, choose_gpu
from tcompile_tui.ui.widgets.choices import Option

AS_BUILT = ""
TASKS = (
    Option(Task.INFER.value, "infer", "a forward pass"),
    Option(Task.TRAIN.value, "train", "with loss and AdamW"),
    Option(Task.DECODE.value, "decode", "a prompt, then tokens"),
    Option(Task.SERVE.value, "serve", "requests, waited for"),
)
MODES = (
    Option(Mode.DEFAULT.value, "default", "a good first try"),
    Option(Mode.REDUCE_OVERHEAD.value, "reduce-overhead", "CUDA graphs: for short steps"),
    Option(Mode.MAX_AUTOTUNE.value, "max-autotune", "tries kernels: long compile"),
    Option(Mode.MAX_AUTOTUNE_NO_CUDAGRAPHS.value, "max-autotune-no-cudagraphs", "the same without CUDA graphs"),
    Option("regional", "regional", "each repeated block alone"),
)
DTYPES = (
    Option(AS_BUILT, "keep", "as the model is built"),
    Option("float32", "fp32", "convert"),
    Option("bfloat16", "bf16", "convert"),
    Option("float16", "fp16", "convert"),
    Option("float64", "fp64", "convert"),
)
AMPS = (
    Option(AS_BUILT, "off", "no autocast"),
    Option("bf16", "bf16", "steps under autocast"),
    Option("fp16", "fp16", "steps under autocast"),
)
PLAN_UNITS = (Option("hours", "hours", "of eager steps"), Option("steps", "steps"))
DEVICES = (Option("auto", "auto", "least busy GPU, else CPU"), Option("cpu", "cpu"))


def preset_options(with_smoke: bool) -> tuple[Option, ...]:
    """The smoke preset decides too little to be offered unasked."""
    offered = [preset for preset in Preset if with_smoke or preset is not Preset.SMOKE]
    return tuple(Option(each.value, each.value, f"at most {each.budget_s / 60:.0f} min") for each in offered)


def device_options() -> tuple[Option, ...]:
    """With the GPUs there are; the driver may take its time."""
    with Gpus() as driver:
        gpus = driver.list_gpus()
    return (*DEVICES, *_numbered(gpus, os.environ.get("CUDA_VISIBLE_DEVICES")))


def _numbered(gpus: Sequence[GpuInfo], visible: str | None) -> list[Option]:
    """As `cuda:N` counts them."""
    found: list[Option] = []
    for number in range(len(gpus)):
        try:
            gpu = choose_gpu(gpus, f"cuda:{number}", visible)
        except SpecError:
            break
        if gpu is not None:
            found.append(Option(f"cuda:{number}", f"cuda:{number}", _about(gpu)))
    return found


def _about(gpu: GpuInfo) -> str:
    busy = None if gpu.utilisation_percent is None else gpu.utilisation_percent / 100
    name = gpu.name.removeprefix("NVIDIA ")
    return f"{name}, {size(gpu.memory_total_bytes)}, {percent(busy)} busy"
