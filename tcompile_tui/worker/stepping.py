"""One step of an arm: what the user's loop does once, the same for eager and compiled."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from ..core.compile_options import KeyValueCache
from ..core.spec import RunSpec, Task
from ..core.step_spec import BuiltinOptimizer, StepSpec
from . import compiler
from .decoding import Decoding
from .failures import StageError
from .inputs import Batch, walk_tensors
from .loading import UserFile

# Called with the step's index; returns the model's output, or `Trained`, which the caller drops at once: outputs of
# a cudagraph must not be held over the next step.
Step: TypeAlias = Callable[[int], Any]
Loss: TypeAlias = Callable[[Any], torch.Tensor]


_SGD_MOMENTUM = 0.9


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
    optimizer: torch.optim.Optimizer | None = None,
    cache: KeyValueCache = KeyValueCache.GROWING,
) -> Step:
    """The step of one arm around `model`, whether it is compiled or not. Without `updates` a training step ends with
    its gradients, as the optimizer would get them. `optimizer` is one that `make_optimizer` made for the model;
    `cache` is the one to decode with."""
    begin, autocast = _step_marker(device), make_autocast(spec, device)
    if task is Task.DECODE:
        return Decoding(model, batches, spec.new_tokens, cache, begin, autocast)
    optimizer = optimizer or make_optimizer(user, model, spec, task)
    if user.own.step is not None:
        return _own_step(user.own.step, model, batches, begin, optimizer)
    if task is not Task.TRAIN:
        if spec.step.accumulate > 1:
            raise StageError(f"--accumulate {spec.step.accumulate} is for training: add --task train, or leave it out")
        return _inference_step(model, batches, begin, autocast)
    forward = _forward(model, begin, autocast, user.loss or mean_square)
    return _training_step(model, batches, forward, spec.step, optimizer, _scaler(spec, device), updates)


def make_optimizer(user: UserFile, model: torch.nn.Module, spec: RunSpec, task: Task) -> torch.optim.Optimizer | None:
    """Learning rate 0: the work of a step without its drift. None where there is nothing to train."""
    trained = trained_parameters(model)
    if task is not Task.TRAIN or not trained:
        return None
    if user.own.optimizer is None:
        if spec.step.optimizer is BuiltinOptimizer.SGD:
            return torch.optim.SGD(trained, lr=0.0, momentum=_SGD_MOMENTUM)
        return torch.optim.AdamW(trained, lr=0.0)
    optimizer = user.own.optimizer(model)
    if not isinstance(optimizer, torch.optim.Optimizer):
        got = type(optimizer).__name__
        raise StageError(f"{spec.step.optimizer} returned a {got}, not a torch.optim.Optimizer")
    for group in optimizer.param_groups:
        if isinstance(group.get("lr"), torch.Tensor):
            group["lr"].zero_()
        else:
            group["lr"] = 0.0
    return optimizer


def trained_parameters(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def _own_step(
    own: Callable[..., Any],
    model: torch.nn.Module,
    batches: list[Batch],
    begin: Callable[[], None],
    optimizer: torch.optim.Optimizer | None,
) -> Step:
    """The user's function: `own(model, batch)`, with the optimizer too if it takes one of that name."""
    count = len(batches)
    given = [batch.as_given for batch in batches]
    further = {"optimizer": optimizer} if "optimizer" in inspect.signature(own).parameters else {}

    def step(index: int) -> Any:
        begin()
        return own(model, given[index % count], **further)

    return step


def _inference_step(
    model: torch.nn.Module, batches: list[Batch], begin: Callable[[], None], autocast: Autocast
) -> Step:
    count = len(batches)

    def step(index: int) -> Any:
        begin()
        batch = batches[index % count]
        with torch.no_grad(), autocast():
            return model(*batch.args, **batch.kwargs)

    return step


def _forward(
    model: torch.nn.Module, begin: Callable[[], None], autocast: Autocast, loss_of: Loss
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
    spec: StepSpec,
    optimizer: torch.optim.Optimizer | None,
    scaler: Any,
    updates: bool,
) -> Step:
    """zero_grad, forward, loss, backward, clipping, optimizer step. Several micro-batches add up their gradients, each
    loss divided by their number."""
    count, micro_batches = len(batches), spec.accumulate
    trained = trained_parameters(model)
    if not trained and not any(t.requires_grad for _, t in walk_tensors((batches[0].args, batches[0].kwargs))):
        raise StageError("nothing to train: no parameter of the model requires a gradient; use --task infer")
    scaler = scaler if optimizer is not None else None
    finish = _finish(trained, spec.grad_clip, optimizer, scaler, updates) if optimizer is not None else _nothing

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
        finish()
        return result

    return step


def _finish(
    trained: list[torch.nn.Parameter],
    grad_clip: float | None,
    optimizer: torch.optim.Optimizer,
    scaler: Any,
    updates: bool,
) -> Callable[[], None]:
    """What follows the backward pass. The gradients are left as the optimizer gets them: unscaled and clipped."""

    def finish() -> None:
        if scaler is not None and (grad_clip is not None or not updates):
            scaler.unscale_(optimizer)
        if grad_clip is not None:
            torch.nn.utils.clip_grad_norm_(trained, grad_clip)
        if updates and scaler is not None:
            scaler.step(optimizer)
        elif updates:
            optimizer.step()
        if scaler is not None:
            scaler.update()

    return finish


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


Autocast: TypeAlias = Callable[[], contextlib.AbstractContextManager[Any]]


def make_autocast(spec: RunSpec, device: torch.device) -> Autocast:
    if spec.amp is None:
        return contextlib.nullcontext
    dtype = torch.bfloat16 if spec.amp == "bf16" else torch.float16
    return lambda: torch.autocast(device.type, dtype=dtype)


def _scaler(spec: RunSpec, device: torch.device) -> Any:
    """float16 gradients need loss scaling, and its cost is part of a step."""
    return torch.amp.GradScaler(device.type) if spec.amp == "fp16" else None
