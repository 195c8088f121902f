"""What an epoch has beside full batches: a smaller last one, and evaluation between training."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

from ..core.step_spec import Epoch
from .failures import StageError
from .inputs import Batch, map_tensors, walk_tensors

Step: TypeAlias = Callable[[int], Any]
# All are of one shape: further ones compile nothing, and are not compared.
_MOST_EVALUATIONS = 4
# Half of fewer samples is one, with which a batch norm cannot train.
_LEAST_TO_HALVE = 4
_Guard: TypeAlias = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass(frozen=True)
class UnlikeStep:
    """A step on another batch than the full one, or an evaluation; `batch` says which."""

    batch: str
    run: Step


def usual_epoch(batch: Batch, evaluates: bool) -> Epoch:
    """What most training has: a last batch of half the samples, and an evaluation."""
    full = _samples(batch)
    return Epoch(last=full // 2 if full >= _LEAST_TO_HALVE else None, eval=1 if evaluates else 0)


def epoch_steps(
    epoch: Epoch, model: torch.nn.Module, batch: Batch, train_on: Callable[[list[Batch]], Step], autocast: _Guard
) -> list[UnlikeStep]:
    """One epoch from its last full batch on. `train_on` makes a training step on batches, `model` is what it calls.
    Raises StageError where the last batch cannot be cut from a full one."""
    steps = []
    if epoch.last is not None:
        steps.append(UnlikeStep(f"a last batch of {epoch.last}", train_on([last_batch(batch, epoch.last)])))
    for guard in (torch.no_grad, torch.inference_mode):
        evaluation = UnlikeStep(f"evaluation under {guard.__name__}", _evaluation(model, batch, guard, autocast))
        steps += [evaluation] * min(epoch.eval, _MOST_EVALUATIONS)
    return steps


def going_on(steps: Sequence[UnlikeStep], tell: Callable[[str, Exception], None]) -> list[UnlikeStep]:
    """The same for an epoch that nobody asked for: a batch that fails is told and left out from then on."""
    failed: set[str] = set()

    def carefully(step: UnlikeStep) -> UnlikeStep:
        def run(index: int) -> None:
            if step.batch in failed:
                return
            try:
                step.run(index)
            except Exception as error:
                failed.add(step.batch)
                tell(step.batch, error)

        return replace(step, run=run)

    return [carefully(step) for step in steps]


def last_batch(batch: Batch, size: int) -> Batch:
    """The first `size` samples: of every tensor whose first dimension is that of the first one."""
    full = _samples(batch)
    if size >= full:
        raise StageError(f"--epoch last={size}: a full batch has {full} samples, and the last one must have fewer")

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() == 0 or tensor.size(0) != full:
            return tensor
        return tensor.detach()[:size].clone().requires_grad_(tensor.requires_grad)

    return replace(batch, args=map_tensors(batch.args, cut), kwargs=map_tensors(batch.kwargs, cut))


def _samples(batch: Batch) -> int:
    tensors = (tensor for _, tensor in walk_tensors((batch.args, batch.kwargs)) if tensor.dim() > 0)
    return next((tensor.size(0) for tensor in tensors), 0)


def _evaluation(model: torch.nn.Module, batch: Batch, guard: _Guard, autocast: _Guard) -> Step:
    def evaluate(index: int) -> None:
        training = {module for module in model.modules() if module.training}
        model.eval()
        try:
            with guard(), autocast():
                model(*batch.args, **batch.kwargs)
        finally:
            for module in training:
                module.training = True

    return evaluate
