"""The phase of `tcompile-tui inspect`: what the model is, and the inputs that it takes. Nothing is measured."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import nn

from ..core.events import InputsInspected, ModelInspected
from ..core.inspection import Check, InputSource, InspectedInput, InspectedParameter
from ..core.spec import Job, TensorSpec
from .bench import Stage
from .channel import Channel
from .dry_run import Refusal, try_forward
from .failures import StageError
from .guesses import BATCH
from .inputs import Batch, from_file, map_tensors, walk_tensors
from .loading import UserFile
from .proposing import Proposal, Search, Searched, Wanted, first_proposal
from .without_values import CPU, META, Models, bytes_of

# What the meta device did not refuse is also tried for real, if that takes seconds.
_SMALL_BYTES = 256 << 20
_FEW = 2
_BESIDE_MAIN = ("decoder_input_ids", "pixel_values")
_NO_TENSOR = {"int", "float", "bool", "str", "dict", "list", "bytes"}
_NO_TENSOR_OF = ("list[", "tuple[", "dict[", "sequence[", "mapping[", "iterable[", "callable")


def inspect_model(job: Job, channel: Channel, stage: Stage, user: UserFile) -> None:
    """Send what the model is as soon as it is known, then its inputs, perhaps again when they are surer: a forward may
    hang."""
    stage.name = "build"
    models = Models(user, job)
    channel.send(_facts(models, user, job))
    stage.name = "inputs"
    for inputs in _inputs_of(models, user, job):
        channel.send(inputs)


# ---------------------------------------------------------------- the model


def _facts(models: Models, user: UserFile, job: Job) -> ModelInspected:
    parameters = [tensor for tensor in models.meta.parameters() if not nn.parameter.is_lazy(tensor)]
    elements: Counter[str] = Counter()
    for parameter in parameters:
        elements[_name_of(parameter.dtype)] += parameter.numel()
    return ModelInspected(
        class_name=type(models.meta).__name__,
        parameters=sum(elements.values()),
        parameter_bytes=bytes_of(parameters),
        buffer_bytes=bytes_of(tensor for tensor in models.meta.buffers() if not nn.parameter.is_lazy(tensor)),
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


def _inputs_of(models: Models, user: UserFile, job: Job) -> Iterator[InputsInspected]:
    """What is known, then what is known better."""
    problem = None
    if user.hook("example_inputs") is not None:
        try:
            given = from_file(user, models.meta, job.spec)
        except StageError as error:
            problem = str(error)
        else:
            yield _given(models, given)
            return
    for proposed in _proposed(models):
        yield replace(proposed, problem=proposed.problem or problem)


def _given(models: Models, batch: Batch) -> InputsInspected:
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


def _tried(models: Models, batch: Batch) -> tuple[Refusal | None, Check | None]:
    for check, device in ((Check.META, META), (Check.CPU, CPU)):
        if check is Check.CPU and not models.may_be_real:
            return None, None
        model = models.meta if check is Check.META else models.real
        placed = Batch(*(map_tensors(part, lambda t: t.detach().to(device)) for part in (batch.args, batch.kwargs)))  # noqa: B023
        refusal = try_forward(model, placed, {}).refusal
        if refusal is None:
            return None, check
        if check is Check.CPU or not refusal.without_values:
            return refusal, None
    raise AssertionError("the second try is the last")


def _described(tensor: torch.Tensor) -> str:
    """Of integers also the range that is seen in them."""
    spec = TensorSpec(_name_of(tensor.dtype), tuple(tensor.shape))
    if tensor.dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64) and tensor.numel():
        spec = replace(spec, low=int(tensor.min()), high=int(tensor.max()) + 1)
    return str(spec)


def _proposed(models: Models) -> Iterator[InputsInspected]:
    try:
        proposal, check = _search(models)
    except StageError as error:
        problem = f"{error}: add `def example_inputs():` to the file"
        yield InputsInspected(source=InputSource.PROPOSED, inputs=(), check=None, problem=problem)
        return
    yield _record(proposal, check)
    if check is Check.META and models.parameter_bytes <= _SMALL_BYTES:
        yield _tried_for_real(models, proposal)


def _tried_for_real(models: Models, proposal: Proposal) -> InputsInspected:
    """Without values nobody sees an index that is out of range. A small batch shows it as well."""
    searched = Search(models.real, CPU).run(proposal.with_size(BATCH, _FEW))
    if searched.refusal is not None:
        problem = f"a forward on the CPU fails with them: {_line(searched.refusal)}"
        return replace(_record(proposal, Check.META), problem=problem)
    return _record(searched.proposal.with_size(BATCH, proposal.sizes[BATCH]), Check.CPU)


def _record(proposal: Proposal, check: Check) -> InputsInspected:
    inputs = tuple(
        InspectedInput(spec.name or "", str(replace(spec, name=None)), guess.how)
        for spec, (_, guess) in zip(proposal.specs, proposal.guesses, strict=True)
    )
    return InputsInspected(source=InputSource.PROPOSED, inputs=inputs, check=check)


def _search(models: Models) -> tuple[Proposal, Check]:
    """Inputs that run, and how they were tried. Raises StageError with the reason why there are none."""
    parameters = _signature(models.meta)
    unfit = next((each for each in parameters if _is_required(each) and not _may_be_tensor(each)), None)
    if unfit is not None:
        raise StageError(f"forward needs {unfit.name}: {_annotation(unfit)}, which is no tensor")
    nearest: Searched | None = None
    for wanted in _choices(models.meta, parameters):
        nearest, check = _search_for(models, wanted)
        if nearest.refusal is None:
            return nearest.proposal, check
    if nearest is None or nearest.refusal is None:
        raise StageError("forward takes no tensor")
    specs = ", ".join(map(str, nearest.proposal.specs))
    raise StageError(f"found none that fits; the nearest, {specs}, fails: {_line(nearest.refusal)}")


def _search_for(models: Models, wanted: tuple[Wanted, ...]) -> tuple[Searched, Check]:
    on_meta = Search(models.meta, META).run(first_proposal(models.meta, wanted))
    needs_values = on_meta.refusal is not None and on_meta.refusal.without_values
    if not needs_values or not models.may_be_real:
        return on_meta, Check.META
    return Search(models.real, CPU).run(on_meta.proposal), Check.CPU


def _line(refusal: Refusal) -> str:
    return " ".join(refusal.text.split())[:160]


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
    offered = (each for each in parameters if each.kind is not each.VAR_KEYWORD)
    first = next((each for each in offered if each.kind in by_place or _may_be_tensor(each)), None)
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
