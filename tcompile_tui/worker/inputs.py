"""Input batches: from `--input` specs or the file's `example_inputs()`, on the device, several to rotate."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..core.events import TensorInfo
from ..core.input_spec import read_input
from ..core.spec import DTYPES, RunSpec, SpecError, TensorSpec
from .failures import StageError, text_of
from .input_files import load_inputs
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
    """Calls with other shapes or values that the real run will see: the file's `more_inputs()`, none with inputs from
    elsewhere."""
    make = user.hook("more_inputs")
    if make is None or spec.inputs or spec.inputs_from is not None:
        return []
    seed_everything(_INPUT_SEED)
    try:
        return [_placed(as_batch(made), spec, device) for made in make()]
    except Exception as error:
        raise StageError(f"more_inputs() failed: {type(error).__name__}: {text_of(error)}") from error


def map_batch(batch: Batch, change: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
    """The same arguments with other tensors."""
    return replace(batch, args=map_tensors(batch.args, change), kwargs=map_tensors(batch.kwargs, change))


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


def make_batch_of(user: UserFile, model: torch.nn.Module, spec: RunSpec, device: torch.device) -> Batch:
    """One batch of the sizes that `spec` names, of `--input` or of a library's model."""
    set_sizes = user.hook("set_sizes") if spec.target.source is not None else None
    if set_sizes is not None:
        set_sizes(spec.dims)
    return _make_batch(user, model, spec, device)


def _make_batch(user: UserFile, model: torch.nn.Module, spec: RunSpec, device: torch.device) -> Batch:
    if spec.inputs_from is not None:
        batch = as_batch(load_inputs(spec.inputs_from))
    else:
        batch = _from_specs(spec) if spec.inputs else from_file(user, model, spec)
    return _placed(batch, spec, device)


def _placed(batch: Batch, spec: RunSpec, device: torch.device) -> Batch:
    """On the device; floating tensors in the dtype of the model and images in its memory format, where one is asked
    for."""
    dtype = getattr(torch, spec.dtype) if spec.dtype else None

    def place(tensor: torch.Tensor) -> torch.Tensor:
        wanted = dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype
        if spec.step.channels_last and tensor.dim() == 4 and tensor.is_floating_point():
            moved = tensor.detach().to(device, wanted).contiguous(memory_format=torch.channels_last)
            return moved.requires_grad_(tensor.requires_grad)
        if tensor.device == device and tensor.dtype == wanted:
            return tensor
        moved = tensor.detach().to(device, wanted)
        with contextlib.suppress(RuntimeError):  # no strides at all (sparse, nested), or places that overlap
            if moved.stride() != tensor.stride():
                moved = _with_strides(moved, tensor.stride())
        return moved.requires_grad_(tensor.requires_grad)

    return map_batch(batch, place)


def _from_specs(spec: RunSpec) -> Batch:
    sizes = {dim.name: dim.size for dim in spec.dims}
    given = [read_input(each) for each in spec.inputs]
    try:
        values = [(name, _made(value, sizes)) for name, value in given]
    except SpecError as error:
        raise StageError(str(error)) from error
    args = tuple(value for name, value in values if not name)
    return Batch(args, {name: value for name, value in values if name}, single=len(values) == 1)


def _made(value: Any, sizes: Mapping[str, int]) -> Any:
    """The value with tensors for their specs."""
    if isinstance(value, TensorSpec):
        return random_tensor(value.with_sizes(sizes))
    if isinstance(value, (tuple, list)):
        return type(value)(_made(item, sizes) for item in value)
    if isinstance(value, dict):
        return {key: _made(item, sizes) for key, item in value.items()}
    return value


def random_tensor(spec: TensorSpec) -> torch.Tensor:
    """Values as a model may see them: normal floats, integers in range. Zeros only where they are asked for: they
    change power and clocks."""
    tensor = _laid_out(_random_values(spec), spec)
    return tensor.requires_grad_() if spec.requires_grad else tensor


def _random_values(spec: TensorSpec) -> torch.Tensor:
    assert spec.dtype in DTYPES
    dtype, shape = getattr(torch, spec.dtype), spec.shape
    if spec.distribution == "zeros":
        return torch.zeros(shape, dtype=dtype)
    if spec.dtype == "bool":
        return torch.randint(0, 2, shape, dtype=torch.bool)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.rand(shape, dtype=dtype) if spec.distribution == "uniform" else torch.randn(shape, dtype=dtype)
    low, high = (spec.low, spec.high) if spec.low is not None and spec.high is not None else _DEFAULT_INTEGER_RANGE
    return torch.randint(low, high, shape, dtype=dtype)


def _laid_out(tensor: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    if spec.layout is not None:
        return tensor.to(memory_format=getattr(torch, spec.layout))
    if spec.strides is None:
        return tensor
    return _with_strides(tensor, spec.strides)


def _with_strides(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The same values, laid out so; where a stride is 0, the first of each such row."""
    laid_out = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    written = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)
    laid_out[written].copy_(tensor[written])
    return laid_out


def from_file(user: UserFile, model: torch.nn.Module, spec: RunSpec) -> Batch:
    """What `example_inputs()` returns. Raises StageError if there is none, or if it fails."""
    make = user.hook("example_inputs")
    if make is None:
        raise StageError(
            f"no input given: see what `tcompile-tui inspect {shlex.quote(str(spec.target))}` proposes, add "
            f"`def example_inputs():` to the file, or --input 'name=float32[...]' for {_parameters_text(model)}"
        )
    try:
        made = make()
    except StageError:
        raise
    except Exception as error:
        raise StageError(f"example_inputs() failed: {type(error).__name__}: {text_of(error)}") from error
    return as_batch(made)


def as_batch(made: Any) -> Batch:
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
