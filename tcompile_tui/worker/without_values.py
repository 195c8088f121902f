"""A model on the meta device: all of its shapes and none of its values, so that any size of model costs nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from ..core.spec import Job
from .failures import StageError
from .loading import UserFile, build_model

META = torch.device("meta")
CPU = torch.device("cpu")
_MAX_REAL_BYTES = 4 << 30


class Models:
    """The model without values, which costs neither time nor memory, and for real where that does not do."""

    def __init__(self, user: UserFile, job: Job) -> None:
        self._user = user
        self._job = job
        self._real: nn.Module | None = None
        self.devices: tuple[str, ...] = ()
        built = self._built_on_meta()
        self.meta = self._in_mode(built if built is not None else _on_meta(self.real))

    @property
    def real(self) -> nn.Module:
        """On the CPU, wherever it puts itself."""
        if self._real is None:
            model = self._in_mode(build_model(self._user, self._job))
            self.devices = tuple(dict.fromkeys(str(tensor.device) for tensor in _tensors(model)))
            self._real = model.to(CPU)
        return self._real

    @property
    def parameter_bytes(self) -> int:
        return bytes_of(_tensors(self.meta))

    @property
    def may_be_real(self) -> bool:
        """It does not take all memory."""
        return self.parameter_bytes <= _MAX_REAL_BYTES

    def _built_on_meta(self) -> nn.Module | None:
        """None for a constructor that asks for values, or loads them from somewhere."""
        if isinstance(self._user.entry, nn.Module):
            return None
        try:
            with META:
                model = build_model(self._user, self._job)
        except StageError:
            raise
        except Exception:
            return None
        return model if all(tensor.device == META for tensor in _tensors(model)) else None

    def _in_mode(self, model: nn.Module) -> nn.Module:
        return model.train(self._user.training_mode(self._user.task(self._job.spec.task)))


def _on_meta(model: nn.Module) -> nn.Module:
    """A copy that holds no values. Tensors that belong to no module stay what they are."""
    memo: dict[int, Any] = {}
    for tensor in _tensors(model):
        empty = torch.empty_like(tensor, device=META)
        is_parameter = isinstance(tensor, nn.Parameter)
        memo[id(tensor)] = nn.Parameter(empty, requires_grad=tensor.requires_grad) if is_parameter else empty
    return copy.deepcopy(model, memo)


def _tensors(model: nn.Module) -> list[torch.Tensor]:
    return [tensor for tensor in (*model.parameters(), *model.buffers()) if not nn.parameter.is_lazy(tensor)]


def bytes_of(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
