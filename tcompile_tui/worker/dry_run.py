"""A forward that is only tried: does it run, and if not, which layer or operation refused which input?"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from .failures import text_of
from .inputs import Batch, walk_tensors
from .layer_needs import Need, need_of

_Names = frozenset[str]


@dataclass(frozen=True)
class Refusal:
    """Why a forward did not run. `inputs` are the parameters that what was refused was made of, `unchanged` if it
    still had the input's own shape. `need` is that of the layer, None if it was an operation that refused: then
    `others` are the shapes of the tensors that came from elsewhere. `shape` is that of what was refused."""

    text: str
    inputs: _Names = frozenset()
    need: Need | None = None
    unchanged: bool = False
    shape: tuple[int, ...] = ()
    others: tuple[tuple[int, ...], ...] = ()
    without_values: bool = False


@dataclass
class Trial:
    """What one forward showed. `reached` is the first layer with a need that took each input as it is, `bounds` the
    smallest vocabulary that each input's values went into. `progress` counts the layers that were called."""

    refusal: Refusal | None = None
    reached: dict[str, Need] = field(default_factory=dict)
    bounds: dict[str, int] = field(default_factory=dict)
    progress: int = 0


class _RefusedError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


def try_forward(model: nn.Module, batch: Batch, named: Mapping[str, torch.Tensor]) -> Trial:
    """Call `model` with `batch`; `named` are the tensors in it whose way is followed. Raises only what is no
    Exception."""
    trial, origins = Trial(), _Origins(named)
    watcher = _Watcher(trial, origins, named)
    # In front: lazy layers take their sizes from what they are called with first.
    handles = [
        module.register_forward_pre_hook(watcher, prepend=True, with_kwargs=True)
        for module in model.modules()
        if not isinstance(module, torch.jit.ScriptModule)
    ]
    try:
        with origins:
            model(*batch.args, **batch.kwargs)
    except _RefusedError as error:
        trial.refusal = error.refusal
    except Exception as error:
        trial.refusal = origins.refused(error)
    finally:
        for handle in handles:
            handle.remove()
    return trial


class _Watcher:
    """Called before every layer."""

    def __init__(self, trial: Trial, origins: _Origins, named: Mapping[str, torch.Tensor]) -> None:
        self._trial = trial
        self._origins = origins
        self._named = named

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._trial.progress += 1
        for position, value in enumerate((*args, *kwargs.values())):
            need = need_of(module, position) if isinstance(value, torch.Tensor) else None
            if need is not None:
                self._judge(need, value)

    def _judge(self, need: Need, tensor: torch.Tensor) -> None:
        names, shape = self._origins.of(tensor), tuple(tensor.shape)
        if not names:
            # Positions that are counted, not given: as many as the sequence is long. No values, so nobody would tell.
            if need.high is not None and tensor.numel() == tensor.shape[-1:].numel() > need.high:
                raise _RefusedError(Refusal(f"{need.layer} has no place {shape[-1] - 1}", need=need, shape=shape))
            return
        unchanged = any(tuple(self._named[name].shape) == shape for name in names)
        if not need.is_met(tensor):
            text = f"{need.layer} cannot take {str(tensor.dtype).removeprefix('torch.')}{list(shape)}"
            raise _RefusedError(Refusal(text, names, need, unchanged, shape))
        for name in names if unchanged and len(names) == 1 else ():
            self._trial.reached.setdefault(name, need)
        for name in names if need.high is not None else ():
            self._trial.bounds[name] = min(need.high or 0, self._trial.bounds.get(name, need.high or 0))


class _Origins(TorchFunctionMode):  # type: ignore[misc]
    """Follows which inputs each tensor is made of."""

    def __init__(self, named: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], _Names]] = {}
        self._failed: tuple[list[tuple[torch.Tensor, _Names]], BaseException] | None = None
        for name, tensor in named.items():
            self._remember(tensor, frozenset({name}))

    def of(self, tensor: torch.Tensor) -> _Names:
        known = self._known.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else frozenset()

    def refused(self, error: Exception) -> Refusal:
        """The operation that raised it, if it was one."""
        text = next(iter(text_of(error).strip().splitlines()), "") or type(error).__name__
        without_values = isinstance(error, NotImplementedError) or "meta" in text_of(error).lower()
        tensors, raised = self._failed or ([], None)
        if raised is not error:
            return Refusal(text, without_values=without_values)
        made = [(tensor, names) for tensor, names in tensors if names]
        return Refusal(
            text,
            inputs=frozenset().union(*(names for _, names in made)),
            shape=tuple(made[0][0].shape) if made else (),
            others=tuple(tuple(tensor.shape) for tensor, names in tensors if not names),
            without_values=without_values,
        )

    def _remember(self, tensor: torch.Tensor, names: _Names) -> None:
        self._known[id(tensor)] = (weakref.ref(tensor), names)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        given = [(tensor, self.of(tensor)) for _, tensor in walk_tensors((tuple(args), kwargs))]
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            self._failed = (given, error)
            raise
        names = frozenset().union(*(names for _, names in given))
        if names:
            for _, tensor in walk_tensors(result):
                self._remember(tensor, names | self.of(tensor))
        return result
