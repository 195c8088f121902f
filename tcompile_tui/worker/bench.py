"""What a phase works with: the device, the model on it, its inputs, and a second copy of it."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ..core.events import ModelReady, WorkerReady
from ..core.spec import Job, Task
from ..core.step_spec import BuiltinOptimizer, FileFunction
from . import compiler
from .channel import Channel
from .failures import StageError, text_of
from .inputs import Batch, describe_inputs, make_batches
from .lifetime import Suspensions
from .loading import UserFile, build_model
from .regions import repeated_block
from .timing import BlockTimer

# The second copy of a model must leave room for both arms' activations.
_COPY_HEADROOM = 2.5
_OPTIMIZERS = {BuiltinOptimizer.ADAMW: "AdamW", BuiltinOptimizer.SGD: "SGD"}


class Stage:
    """Which part of the work is in hand, for the record of a failure."""

    def __init__(self) -> None:
        self.name = "start"
        self.compiled = False


@dataclass
class Bench:
    """The loaded model with everything that its steps need."""

    job: Job
    channel: Channel
    signals: compiler.CompileSignals
    stage: Stage
    user: UserFile
    device: torch.device
    timer: BlockTimer
    task: Task
    suspensions: Suspensions = field(default_factory=Suspensions)
    loop: int = 0

    @property
    def training(self) -> bool:
        return self.task is Task.TRAIN


def open_device(job: Job) -> torch.device:
    """The supervisor made one GPU visible, so that it is device 0 whatever the machine has."""
    if job.spec.device == "cpu":
        return torch.device("cpu")
    try:
        torch.cuda.init()
    except Exception as error:
        raise StageError(
            f"torch {torch.__version__} cannot use the GPU ({error}): check the driver, or use --device cpu",
            fault="environment",
        ) from error
    return torch.device("cuda", 0)


def worker_facts(device: torch.device, capabilities: tuple[str, ...]) -> WorkerReady:
    on_gpu = device.type == "cuda"
    properties = torch.cuda.get_device_properties(device) if on_gpu else None
    return WorkerReady(
        python_version=".".join(map(str, sys.version_info[:3])),
        torch_version=torch.__version__,
        cuda_version=torch.version.cuda,
        device_name=properties.name if properties is not None else "CPU",
        sm_count=properties.multi_processor_count if properties is not None else None,
        threads=torch.get_num_threads(),
        matmul_precision=torch.get_float32_matmul_precision(),
        capabilities=capabilities,
    )


def prepare(bench: Bench) -> tuple[torch.nn.Module, list[Batch]]:
    job, stage = bench.job, bench.stage
    stage.name = "build"
    model = build_model(bench.user, job)
    model = _placed(model, bench)
    model.train(bench.user.training_mode(bench.task))
    stage.name = "inputs"
    batches = make_batches(bench.user, model, job.spec, bench.device)
    if any(torch.nn.parameter.is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        with torch.no_grad():  # lazy modules get their parameters from a first call, in the user's loop too
            model(*batches[0].args, **batches[0].kwargs)
    bench.channel.send(_model_facts(bench, model, batches))
    return model, batches


def _placed(model: torch.nn.Module, bench: Bench) -> torch.nn.Module:
    """On the device, in the type and the memory format that are asked for."""
    spec = bench.job.spec
    model = model.to(bench.device, getattr(torch, spec.dtype)) if spec.dtype else model.to(bench.device)
    return model.to(memory_format=torch.channels_last) if spec.step.channels_last else model


def _model_facts(bench: Bench, model: torch.nn.Module, batches: list[Batch]) -> ModelReady:
    parameters = list(model.parameters())
    file, line = _place_of(type(model))
    forward_file, forward_line = _place_of(type(model).forward)
    return ModelReady(
        class_name=type(model).__name__,
        file=file,
        line=line,
        parameters=sum(p.numel() for p in parameters),
        parameter_bytes=sum(p.numel() * p.element_size() for p in parameters),
        training=bench.training,
        inputs=describe_inputs(batches[0]),
        input_batches=len(batches),
        optimizer=_optimizer_text(bench) if bench.training else None,
        loss=_loss_text(bench) if bench.training else None,
        forward_file=forward_file,
        forward_line=forward_line,
        repeated=repeated_block(model),
    )


def _optimizer_text(bench: Bench) -> str:
    step = bench.job.spec.step
    if step.own is not None:
        return f"in {step.own.name}()"
    name = step.optimizer.name if isinstance(step.optimizer, FileFunction) else _OPTIMIZERS[step.optimizer]
    compiled = ", compiled with the model" if step.compile_optimizer else ""
    clipped = f", gradients clipped to {step.grad_clip:g}" if step.grad_clip is not None else ""
    micro_batches = f", {step.accumulate} micro-batches a step" if step.accumulate > 1 else ""
    return f"{name} lr 0{compiled}{clipped}{micro_batches}"


def _loss_text(bench: Bench) -> str:
    step = bench.job.spec.step
    if step.own is not None:
        return f"in {step.own.name}()"
    if step.loss is not None:
        return f"{step.loss.name}()"
    return "the file's loss()" if bench.user.loss else "mean square"


def _place_of(code: Callable[..., Any] | type) -> tuple[str | None, int | None]:
    try:
        return inspect.getsourcefile(code), inspect.getsourcelines(code)[1]
    except (OSError, TypeError):
        return None, None


def second_copy(bench: Bench, model: torch.nn.Module) -> tuple[torch.nn.Module, str]:
    """An identical, independent model for the other arm; where memory is short one that shares every tensor."""
    bench.stage.name = "second copy of the model"
    if not copy_fits(bench):
        shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
        return copy.deepcopy(model, shared), "both arms share one set of parameters, because memory is short"
    try:
        return copy.deepcopy(model), "each arm has its own copy of the model"
    except Exception as error:
        other = build_model(bench.user, bench.job)
        if other is model:
            raise StageError(
                f"both arms need a model of their own, but this one cannot be copied ({type(error).__name__}:"
                f" {text_of(error)}): add `def make_model():` that builds a new one"
            ) from error
        other = _placed(other, bench)
        other.load_state_dict(model.state_dict())
        other.train(model.training)
        return (
            other,
            f"the other arm's model was built again, because copying failed ({type(error).__name__})",
        )


def copy_fits(bench: Bench) -> bool:
    """Is there room for the model and the other arm's activations once more, on a GPU?"""
    peak_bytes = bench.job.eager_peak_bytes
    if bench.device.type != "cuda" or peak_bytes is None:
        return True
    free_bytes: int = torch.cuda.mem_get_info(bench.device)[0]
    return _COPY_HEADROOM * peak_bytes <= free_bytes
