"""What an epoch has beside full batches: a smaller last one, and evaluation between training."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from ..core.step_spec import Epoch
from .failures import StageError
from .inputs import Batch, map_tensors, walk_tensors

Step: TypeAlias = Callable[[int], Any]
# All are of one shape: further ones compile nothing, and are not compared.
_MOST_EVALUATIONS = 4
_Guard: TypeAlias = Callable[[], contextlib.AbstractContextManager[Any]]


def epoch_steps(
    epoch: Epoch, model: torch.nn.Module, batch: Batch, train_on: Callable[[list[Batch]], Step], autocast: _Guard
) -> list[Step]:
    """One epoch from its last full batch on. `train_on` makes a training step on batches, `model` is what it calls.
    Raises StageError where the last batch cannot be cut from a full one."""
    steps = [train_on([last_batch(batch, epoch.last)])] if epoch.last is not None else []
    for guard in (torch.no_grad, torch.inference_mode):
        steps += [_evaluation(model, batch, guard, autocast)] * min(epoch.eval, _MOST_EVALUATIONS)
    return steps


def last_batch(batch: Batch, size: int) -> Batch:
    """The first `size` samples: of every tensor whose first dimension is that of the first one."""
    tensors = [tensor for _, tensor in walk_tensors((batch.args, batch.kwargs)) if tensor.dim() > 0]
    full = tensors[0].size(0) if tensors else 0
    if size >= full:
        raise StageError(f"--epoch last={size}: a full batch has {full} samples, and the last one must have fewer")

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() == 0 or tensor.size(0) != full:
            return tensor
        return tensor.detach()[:size].clone().requires_grad_(tensor.requires_grad)

    return replace(batch, args=map_tensors(batch.args, cut), kwargs=map_tensors(batch.kwargs, cut))


def _evaluation(model: torch.nn.Module, batch: Batch, guard: _Guard, autocast: _Guard) -> Step:
    def evaluate(index: int) -> None:
        model.eval()
        with guard(), autocast():
            model(*batch.args, **batch.kwargs)
        model.train()

    return evaluate
