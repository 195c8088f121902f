"""Input batches: from `--input` specs or the file's `example_inputs()`, on the device, several to rotate."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..core.events import TensorInfo
from ..core.spec import DTYPES, RunSpec, TensorSpec
from .failures import StageError, text_of
from .loading import UserFile, seed_everything

# Several different batches, so that one batch does not stay in the GPU's L2 cache and no value is special.
ROTATED_BATCHES = 4
_MAX_ROTATED_BYTES = 2 << 30
_INPUT_SEED = 7_040
_DEFAULT_INTEGER_RANGE = (0, 2)


@dataclass(frozen=True)
class Batch:
    """The arguments of one call of the model. `single`: they were given as one value, not as a tuple of one."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    single: bool = False

    @property
    def as_given(self) -> Any:
        """What a step of the user's own is called with: a dict by name, or by position a tuple or the one value.
        Raises StageError where some have a name and some have none."""
        if self.args and self.kwargs:
            raise StageError("a step of your own gets one batch: give all inputs by name, or none of them")
        return self.kwargs if self.kwargs else self.args[0] if self.single else self.args


def make_batches(user: UserFile, model: torch.nn.Module, spec: RunSpec, device: torch.device) -> list[Batch]:
    """ROTATED_BATCHES batches of equal shapes (fewer when they are large). Raises StageError for bad input."""
    seed_everything(_INPUT_SEED)
    first = _make_batch(user, model, spec, device)
    _check_signature(model, first)
    batches = [first]
    size = sum(tensor.numel() * tensor.element_size() for _, tensor in walk_tensors((first.args, first.kwargs)))
    if size * ROTATED_BATCHES <= _MAX_ROTATED_BYTES:
        for _ in range(ROTATED_BATCHES - 1):
            batch = _make_batch(user, model, spec, device)
            if describe_inputs(batch) != describe_inputs(first):
                break  # the file's inputs change shape from call to call: measure the first shape only
            batches.append(batch)
    return batches


def make_further_batches(user: UserFile, spec: RunSpec, device: torch.device) -> list[Batch]:
    """Calls with other shapes or values that the real run will see: the file's `more_inputs()`, none with `--input`."""
    make = user.hook("more_inputs")
    if make is None or spec.inputs:
        return []
    seed_everything(_INPUT_SEED)
    try:
        return [_placed(_as_batch(made), spec, device) for made in make()]
    except Exception as error:
        raise StageError(f"more_inputs() failed: {type(error).__name__}: {text_of(error)}") from error


def clone_batch(batch: Batch) -> Batch:
    """A copy that shares no memory with `batch`."""
    return Batch(
        map_tensors(batch.args, lambda tensor: tensor.detach().clone().requires_grad_(tensor.requires_grad)),
        map_tensors(batch.kwargs, lambda tensor: tensor.detach().clone().requires_grad_(tensor.requires_grad)),
        batch.single,
    )


def describe_inputs(batch: Batch) -> tuple[TensorInfo, ...]:
    """Every tensor of the batch with its place in it, for example `args[0]` or `attention_mask`."""
    named = [(f"args[{i}]", value) for i, value in enumerate(batch.args)] + list(batch.kwargs.items())
    return tuple(
        TensorInfo(name + path, str(t.dtype).removeprefix("torch."), tuple(t.shape), str(t.device))
        for name, value in named
        for path, t in walk_tensors(value)
    )


def _make_batch(user: UserFile, model: torch.nn.Module, spec: RunSpec, device: torch.device) -> Batch:
    return _placed(_from_specs(spec.inputs) if spec.inputs else _from_file(user, model), spec, device)


def _placed(batch: Batch, spec: RunSpec, device: torch.device) -> Batch:
    """On the device; floating tensors in the dtype of the model and images in its memory format, where one is asked
    for."""
    dtype = getattr(torch, spec.dtype) if spec.dtype else None

    def place(tensor: torch.Tensor) -> torch.Tensor:
        placed = tensor.to(device, dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype)
        is_image = spec.step.channels_last and placed.dim() == 4 and placed.is_floating_point()
        return placed.contiguous(memory_format=torch.channels_last) if is_image else placed

    return replace(batch, args=map_tensors(batch.args, place), kwargs=map_tensors(batch.kwargs, place))


def _from_specs(specs: tuple[TensorSpec, ...]) -> Batch:
    args = tuple(random_tensor(spec) for spec in specs if not spec.name)
    return Batch(args, {spec.name: random_tensor(spec) for spec in specs if spec.name}, single=len(specs) == 1)


def random_tensor(spec: TensorSpec) -> torch.Tensor:
    """Values as a model may see them: normal floats, integers in range. Never zeros: they change power and clocks."""
    assert spec.dtype in DTYPES
    dtype = getattr(torch, spec.dtype)
    if spec.dtype == "bool":
        return torch.randint(0, 2, spec.shape, dtype=torch.bool)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(spec.shape, dtype=dtype)
    low, high = (spec.low, spec.high) if spec.low is not None and spec.high is not None else _DEFAULT_INTEGER_RANGE
    return torch.randint(low, high, spec.shape, dtype=dtype)


def _from_file(user: UserFile, model: torch.nn.Module) -> Batch:
    make = user.hook("example_inputs")
    if make is None:
        raise StageError(
            f"no input given: add --input 'name=float32[...]' for {_parameters_text(model)}, "
            "or `def example_inputs():` to the file"
        )
    try:
        made = make()
    except StageError:
        raise
    except Exception as error:
        raise StageError(f"example_inputs() failed: {type(error).__name__}: {text_of(error)}") from error
    return _as_batch(made)


def _as_batch(made: Any) -> Batch:
    """A mapping (a tokenizer returns one that is no dict) holds arguments by name, a tuple or list by position;
    anything else is the only argument."""
    if isinstance(made, Mapping):
        return Batch((), dict(made))
    return Batch(tuple(made), {}) if isinstance(made, (tuple, list)) else Batch((made,), {}, single=True)


def _parameters_text(model: torch.nn.Module) -> str:
    try:
        return f"forward{inspect.signature(model.forward)}"
    except (TypeError, ValueError):
        return "forward(...)"


def _check_signature(model: torch.nn.Module, batch: Batch) -> None:
    """A missing or unknown argument is the input's fault and is said before anything runs."""
    try:
        signature = inspect.signature(model.forward)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*batch.args, **batch.kwargs)
    except TypeError as error:
        raise StageError(f"the inputs do not fit {_parameters_text(model)}: {error}") from error


def map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same structure with every tensor changed: lists, (named) tuples, mappings and dataclasses are entered.
    What a container is beside its items is kept, and no constructor runs again."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple):
        items = [map_tensors(item, change) for item in value]
        return value._make(items) if hasattr(value, "_make") else tuple(items)
    if isinstance(value, list):
        return [map_tensors(item, change) for item in value]
    if isinstance(value, MutableMapping):
        changed = copy.copy(value)
        for key, item in value.items():
            changed[key] = map_tensors(item, change)
        return changed
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        twin: Any = copy.copy(value)
        for field in dataclasses.fields(value):
            # Past the __setattr__ of a frozen one.
            object.__setattr__(twin, field.name, map_tensors(getattr(value, field.name), change))
        return twin
    return value


def walk_leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its path: `[0]`, `.logits`, `['hidden'][1]`."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            yield from walk_leaves(item, f"{path}[{i}]")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from walk_leaves(item, f"{path}[{key!r}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from walk_leaves(getattr(value, field.name), f"{path}.{field.name}")
    else:
        yield path, value


def walk_tensors(value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors among the leaves."""
    return ((path, leaf) for path, leaf in walk_leaves(value) if isinstance(leaf, torch.Tensor))
