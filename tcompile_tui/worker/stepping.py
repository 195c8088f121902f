"""One step of an arm: what the user's loop does once, the same for eager and compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from ..core.spec import RunSpec, Task
from . import compiler
from .failures import StageError
from .inputs import Batch, walk_tensors
from .loading import UserFile

# Called with the step's index; returns the model's output, or `Trained`, which the caller drops at once: outputs of
# a cudagraph must not be held over the next step.
Step: TypeAlias = Callable[[int], Any]
Loss: TypeAlias = Callable[[Any], torch.Tensor]


@dataclass(frozen=True)
class Trained:
    """What a training step leaves behind beside its gradients: of the last micro-batch."""

    output: Any
    loss: torch.Tensor


def make_step(
    user: UserFile,
    model: torch.nn.Module,
    batches: list[Batch],
    spec: RunSpec,
    task: Task,
    device: torch.device,
    updates: bool = True,
) -> Step:
    """The step of one arm around `model`, whether it is compiled or not. Without `updates` a training step ends with
    its gradients, as the optimizer would get them."""
    begin, autocast = _step_marker(device), _autocast(spec, device)
    if task is Task.INFER:
        if spec.accumulate > 1:
            raise StageError(f"--accumulate {spec.accumulate} is for training: add --task train, or leave it out")
        return _inference_step(model, batches, begin, autocast)
    forward = _forward(model, begin, autocast, user.loss or mean_square)
    return _training_step(model, batches, forward, spec.accumulate, _scaler(spec, device), updates)


def _inference_step(
    model: torch.nn.Module, batches: list[Batch], begin: Callable[[], None], autocast: _Autocast
) -> Step:
    count = len(batches)

    def step(index: int) -> Any:
        begin()
        batch = batches[index % count]
        with torch.no_grad(), autocast():
            return model(*batch.args, **batch.kwargs)

    return step


def _forward(
    model: torch.nn.Module, begin: Callable[[], None], autocast: _Autocast, loss_of: Loss
) -> Callable[[Batch], Trained]:
    """Output and loss of one batch. Each is an invocation of its own for cudagraphs."""

    def forward(batch: Batch) -> Trained:
        begin()
        with autocast():
            output = model(*batch.args, **batch.kwargs)
            return Trained(output, loss_of(output))

    return forward


def _training_step(
    model: torch.nn.Module,
    batches: list[Batch],
    forward: Callable[[Batch], Trained],
    micro_batches: int,
    scaler: Any,
    updates: bool,
) -> Step:
    """zero_grad, forward, loss, backward, optimizer step. Learning rate 0: the work of a step without its drift.
    Several micro-batches add up their gradients, each loss divided by their number."""
    count = len(batches)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained and not any(t.requires_grad for _, t in walk_tensors((batches[0].args, batches[0].kwargs))):
        raise StageError("nothing to train: no parameter of the model requires a gradient; use --task infer")
    optimizer = torch.optim.AdamW(trained, lr=0.0) if trained else None
    scaler = scaler if optimizer is not None else None

    def accumulate(first: int) -> Trained:
        for index in range(first, first + micro_batches):
            result = forward(batches[index % count])
            loss = result.loss if micro_batches == 1 else result.loss / micro_batches
            (loss if scaler is None else scaler.scale(loss)).backward()
        return result

    def step(index: int) -> Trained:
        if optimizer is not None:
            optimizer.zero_grad(set_to_none=True)
        result = accumulate(index * micro_batches)
        if scaler is not None and updates:
            scaler.step(optimizer)
            scaler.update()
        elif scaler is not None:
            scaler.unscale_(optimizer)
            scaler.update()
        elif optimizer is not None and updates:
            optimizer.step()
        return result

    return step


def mean_square(output: Any) -> torch.Tensor:
    """The default loss: mean of squares of the first floating tensor that has a gradient (an output may hold an
    input that was passed through), in float32 (a sum is inf in float16)."""
    for _, tensor in walk_tensors(output):
        if tensor.is_floating_point() and tensor.requires_grad:
            return tensor.float().square().mean()
    raise StageError("the model returns no floating tensor to train on: add `def loss(output):` to the file")


def _step_marker(device: torch.device) -> Callable[[], None]:
    """Tells cudagraphs where a step begins. Without Inductor there are none, and the mark itself would import it:
    seconds that an eager step does not cost."""
    if device.type == "cuda" and compiler.is_imported():
        mark: Callable[[], None] = torch.compiler.cudagraph_mark_step_begin
        return mark
    return _nothing


def _nothing() -> None:
    pass


_Autocast: TypeAlias = Callable[[], contextlib.AbstractContextManager[Any]]


def _autocast(spec: RunSpec, device: torch.device) -> _Autocast:
    if spec.amp is None:
        return contextlib.nullcontext
    dtype = torch.bfloat16 if spec.amp == "bf16" else torch.float16
    return lambda: torch.autocast(device.type, dtype=dtype)


def _scaler(spec: RunSpec, device: torch.device) -> Any:
    """float16 gradients need loss scaling, and its cost is part of a step."""
    return torch.amp.GradScaler(device.type) if spec.amp == "fp16" and device.type == "cuda" else None
