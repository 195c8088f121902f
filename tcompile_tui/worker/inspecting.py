"""The phase of `tcompile-tui inspect`: what the model is, and the inputs that it takes. Nothing is measured."""

from __future__ import annotations

import copy
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from ..core.events import InputsInspected, ModelInspected
from ..core.inspection import Check, InputSource, InspectedInput, InspectedParameter
from ..core.spec import Job, TensorSpec
from .bench import Stage
from .channel import Channel
from .dry_run import Refusal, try_forward
from .failures import StageError
from .inputs import Batch, from_file, map_tensors, walk_tensors
from .loading import UserFile, build_model
from .proposing import Search, Searched, Wanted, first_proposal

_META = torch.device("meta")
_CPU = torch.device("cpu")
# A model that needs values is tried for real, if that does not take all memory.
_MAX_TRIED_BYTES = 4 << 30
_BESIDE_MAIN = ("decoder_input_ids", "pixel_values")
_NO_TENSOR = {"int", "float", "bool", "str", "dict", "list", "bytes"}
_NO_TENSOR_OF = ("list[", "tuple[", "dict[", "sequence[", "mapping[", "iterable[", "callable")


def inspect_model(job: Job, channel: Channel, stage: Stage, user: UserFile) -> None:
    """Send what the model is as soon as it is known, then its inputs: a forward may hang."""
    stage.name = "build"
    models = _Models(user, job)
    channel.send(_facts(models, user, job))
    stage.name = "inputs"
    channel.send(_inputs_of(models, user, job))


class _Models:
    """The model without values, which costs neither time nor memory, and for real where that does not do."""

    def __init__(self, user: UserFile, job: Job) -> None:
        self._user = user
        self._job = job
        self._real: nn.Module | None = None
        self.meta = self._in_mode(self._built_on_meta() or _on_meta(self.real))

    @property
    def real(self) -> nn.Module:
        if self._real is None:
            self._real = self._in_mode(build_model(self._user, self._job))
        return self._real

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(tensor.device) for tensor in _tensors(self._real))) if self._real else ()

    def _built_on_meta(self) -> nn.Module | None:
        """None for a constructor that asks for values, or loads them from somewhere."""
        if isinstance(self._user.entry, nn.Module):
            return None
        try:
            with _META:
                model = build_model(self._user, self._job)
        except StageError:
            raise
        except Exception:
            return None
        return model if all(tensor.device == _META for tensor in _tensors(model)) else None

    def _in_mode(self, model: nn.Module) -> nn.Module:
        return model.train(self._user.training_mode(self._user.task(self._job.spec.task)))


def _on_meta(model: nn.Module) -> nn.Module:
    """A copy that holds no values. Tensors that belong to no module stay what they are."""
    memo: dict[int, Any] = {}
    for tensor in _tensors(model):
        empty = torch.empty_like(tensor, device=_META)
        is_parameter = isinstance(tensor, nn.Parameter)
        memo[id(tensor)] = nn.Parameter(empty, requires_grad=tensor.requires_grad) if is_parameter else empty
    return copy.deepcopy(model, memo)


def _tensors(model: nn.Module) -> list[torch.Tensor]:
    return [tensor for tensor in (*model.parameters(), *model.buffers()) if not nn.parameter.is_lazy(tensor)]


# ---------------------------------------------------------------- the model


def _facts(models: _Models, user: UserFile, job: Job) -> ModelInspected:
    parameters = [tensor for tensor in models.meta.parameters() if not nn.parameter.is_lazy(tensor)]
    elements: Counter[str] = Counter()
    for parameter in parameters:
        elements[_name_of(parameter.dtype)] += parameter.numel()
    return ModelInspected(
        class_name=type(models.meta).__name__,
        parameters=sum(elements.values()),
        parameter_bytes=_bytes_of(parameters),
        buffer_bytes=_bytes_of(tensor for tensor in models.meta.buffers() if not nn.parameter.is_lazy(tensor)),
        dtypes=tuple(dtype for dtype, _ in elements.most_common()),
        devices=models.devices,
        forward=tuple(_parameter(each) for each in _signature(models.meta)),
        task=user.task(job.spec.task),
        loss=user.loss is not None,
    )


def _signature(model: nn.Module) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        return []


def _parameter(parameter: inspect.Parameter) -> InspectedParameter:
    default = None if parameter.default is parameter.empty else _short(repr(parameter.default))
    stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" * (parameter.kind is parameter.VAR_KEYWORD)
    annotation = _annotation(parameter)
    return InspectedParameter(
        stars + parameter.name, _short(annotation) if annotation else None, default, _is_required(parameter)
    )


def _annotation(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _is_required(parameter: inspect.Parameter) -> bool:
    variadic = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in variadic


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# ---------------------------------------------------------------- its inputs


def _inputs_of(models: _Models, user: UserFile, job: Job) -> InputsInspected:
    problem = None
    if user.hook("example_inputs") is not None:
        try:
            return _given(models, from_file(user, models.meta, job.spec))
        except StageError as error:
            problem = str(error)
    proposed = _proposed(models)
    return replace(proposed, problem=proposed.problem or problem)


def _given(models: _Models, batch: Batch) -> InputsInspected:
    """What the file gives, tried."""
    refusal, check = _tried(models, batch)
    named = [("", value) for value in batch.args] + list(batch.kwargs.items())
    inputs = [
        InspectedInput(name, _described(value)) if isinstance(value, torch.Tensor) else None for name, value in named
    ]
    if None in inputs:  # tensors inside of other things, by their place
        placed = [*((f"args[{i}]", v) for i, v in enumerate(batch.args)), *batch.kwargs.items()]
        inputs = [InspectedInput(n + path, _described(t)) for n, value in placed for path, t in walk_tensors(value)]
    problem = f"a forward with them fails: {refusal.text}" if refusal is not None else None
    found = tuple(each for each in inputs if each is not None)
    return InputsInspected(source=InputSource.FILE, inputs=found, check=check, problem=problem)


def _tried(models: _Models, batch: Batch) -> tuple[Refusal | None, Check | None]:
    for check, device in ((Check.META, _META), (Check.CPU, _CPU)):
        if check is Check.CPU and not _can_be_tried(models):
            return None, None
        model = models.meta if check is Check.META else models.real
        placed = Batch(*(map_tensors(part, lambda t: t.detach().to(device)) for part in (batch.args, batch.kwargs)))  # noqa: B023
        refusal = try_forward(model, placed, {}).refusal
        if refusal is None:
            return None, check
        if check is Check.CPU or not refusal.without_values:
            return refusal, None
    raise AssertionError("the second try is the last")


def _can_be_tried(models: _Models) -> bool:
    return _bytes_of(_tensors(models.meta)) <= _MAX_TRIED_BYTES


def _bytes_of(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _described(tensor: torch.Tensor) -> str:
    """Of integers also the range that is seen in them."""
    spec = TensorSpec(_name_of(tensor.dtype), tuple(tensor.shape))
    if tensor.dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64) and tensor.numel():
        spec = replace(spec, low=int(tensor.min()), high=int(tensor.max()) + 1)
    return str(spec)


def _proposed(models: _Models) -> InputsInspected:
    parameters = _signature(models.meta)
    unfit = next((each for each in parameters if _is_required(each) and not _may_be_tensor(each)), None)
    if unfit is not None:
        return _no_proposal(f"forward needs {unfit.name}: {_annotation(unfit)}, which is no tensor")
    if not parameters:
        return _no_proposal("forward takes no input")
    searched: tuple[Searched, Check] | None = None
    for wanted in _choices(models.meta, parameters):
        searched = _searched(models, wanted)
        if searched[0].refusal is None:
            break
    if searched is None:
        return _no_proposal("forward takes no tensor")
    (proposal, refusal), check = (searched[0].proposal, searched[0].refusal), searched[1]
    if refusal is not None:
        nearest = ", ".join(map(str, proposal.specs))
        why = " ".join(refusal.text.split())[:160]
        return _no_proposal(f"found none that fits; the nearest, {nearest}, fails: {why}")
    inputs = tuple(
        InspectedInput(spec.name or "", str(replace(spec, name=None)), guess.how)
        for spec, (_, guess) in zip(proposal.specs, proposal.guesses, strict=True)
    )
    return InputsInspected(source=InputSource.PROPOSED, inputs=inputs, check=check)


def _searched(models: _Models, wanted: tuple[Wanted, ...]) -> tuple[Searched, Check]:
    on_meta = Search(models.meta, _META).run(first_proposal(models.meta, wanted))
    needs_values = on_meta.refusal is not None and on_meta.refusal.without_values
    if not needs_values or not _can_be_tried(models):
        return on_meta, Check.META
    return Search(models.real, _CPU).run(on_meta.proposal), Check.CPU


def _no_proposal(why: str) -> InputsInspected:
    return InputsInspected(
        source=InputSource.PROPOSED, inputs=(), check=None, problem=f"{why}: add `def example_inputs():` to the file"
    )


def _choices(model: nn.Module, parameters: list[inspect.Parameter]) -> Iterator[tuple[Wanted, ...]]:
    """Which parameters to give: those without default; where none has to be given, the model's main one, alone and
    with what language models of two parts take beside it."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    make: Callable[[inspect.Parameter], Wanted] = lambda p: Wanted(p.name, _annotation(p), p.kind not in by_place)  # noqa: E731
    required = tuple(make(parameter) for parameter in parameters if _is_required(parameter))
    if required:
        yield required
        return
    named = {parameter.name: parameter for parameter in parameters if parameter.kind not in variadic}
    first = next((each for each in parameters if each.kind in by_place or _may_be_tensor(each)), None)
    main = named.get(getattr(model, "main_input_name", ""), first)
    if main is None:
        return
    yield (make(main),)
    for other in _BESIDE_MAIN:
        if other in named and other != main.name:
            yield make(main), make(named[other])


def _may_be_tensor(parameter: inspect.Parameter) -> bool:
    """By its annotation; without one it may."""
    plain = _annotation(parameter).lower().replace("typing.", "")
    optional = plain.removeprefix("optional[").removesuffix("]").removesuffix(" | none").strip()
    return optional not in _NO_TENSOR and not optional.startswith(_NO_TENSOR_OF)
