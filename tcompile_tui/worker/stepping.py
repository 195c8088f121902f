"""One step of an arm: what the user's loop does once, the same for eager and compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from ..core.spec import RunSpec, Task
from . import compiler
from .failures import StageError
from .inputs import Batch, walk_tensors
from .loading import UserFile

# Called with the step's index; returns the model's output, which the caller drops at once: outputs of a
# cudagraph must not be held over the next step.
Step: TypeAlias = Callable[[int], Any]
Loss: TypeAlias = Callable[[Any], torch.Tensor]


def make_step(
    user: UserFile, model: torch.nn.Module, batches: list[Batch], spec: RunSpec, task: Task, device: torch.device
) -> Step:
    """The step of one arm around `model`, whether it is compiled or not."""
    begin, autocast = _step_marker(device), _autocast(spec, device)
    if task is Task.INFER:
        return _inference_step(model, batches, begin, autocast)
    loss = user.loss or mean_square
    return _training_step(model, batches, begin, autocast, loss, _scaler(spec, device))


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


def _training_step(
    model: torch.nn.Module,
    batches: list[Batch],
    begin: Callable[[], None],
    autocast: _Autocast,
    loss_of: Loss,
    scaler: Any,
) -> Step:
    """zero_grad, forward, loss, backward, optimizer step. Learning rate 0: the work of a step without its drift."""
    count = len(batches)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained and not any(t.requires_grad for _, t in walk_tensors((batches[0].args, batches[0].kwargs))):
        raise StageError("nothing to train: no parameter of the model requires a gradient; use --task infer")
    optimizer = torch.optim.AdamW(trained, lr=0.0) if trained else None

    def step(index: int) -> Any:
        begin()
        batch = batches[index % count]
        if optimizer is not None:
            optimizer.zero_grad(set_to_none=True)
        with autocast():
            output = model(*batch.args, **batch.kwargs)
            loss = loss_of(output)
        if scaler is None or optimizer is None:
            loss.backward()
            if optimizer is not None:
                optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return output

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
