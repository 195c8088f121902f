"""Are the outputs right? Runs both arms on the same inputs and state, and a twin in higher precision beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..core.events import ComparisonKind, Level, Notice
from .bench import Bench, copy_fits
from .compare import Arithmetic, compare_snapshots, snapshot_outputs
from .failures import text_of
from .inputs import Batch, clone_batch, map_tensors, walk_tensors
from .loading import seed_everything
from .loop import STEP_SEED, Loop
from .randomness import RUNS, Run, compare_distributions, is_random
from .reference import Reference
from .stepping import make_step

_OTHER_STEP_SEED = 12
_LOW_PRECISION = (torch.bfloat16, torch.float16)
_MAX_RANDOM_RUNS_S = 120.0
_TF32_CONVOLUTIONS = (torch.nn.modules.conv._ConvNd, torch.nn.RNNBase)


class FirstState:
    """Inputs and everything in the models that a step may change, as before the first step. `own_code`: the step or
    its optimizer is the user's, so any weight may move."""

    def __init__(self, models: Iterable[torch.nn.Module], batches: list[Batch], own_code: bool = False) -> None:
        self.batches = [clone_batch(batch) for batch in batches]
        changing = [tensor for model in models for tensor in _changing(model)]
        changing += [tensor for model in models for tensor in model.parameters() if own_code]
        changing += [tensor for batch in batches for _, tensor in walk_tensors((batch.args, batch.kwargs))]
        self._values = [(tensor, tensor.detach().clone()) for tensor in {id(t): t for t in changing}.values()]

    def restore(self) -> None:
        """In place: cudagraphs hold the addresses."""
        with torch.no_grad():
            for tensor, value in self._values:
                if not _equal(tensor, value):
                    tensor.copy_(value)


def check_accuracy(
    bench: Bench, original: torch.nn.Module, state: FirstState, compiled: Loop, first_outputs: dict[str, Any]
) -> None:
    """Eager twice (with other random numbers the second time) against the first compiled step and one after the
    warm-up. Memory that does not suffice costs the rest of the check, not the run."""
    try:
        _check(bench, original, state, compiled, first_outputs)
    except torch.OutOfMemoryError as error:
        text = f"the outputs could not be compared to the end: {text_of(error).splitlines()[0]}"
        bench.channel.send(Notice(level=Level.WARNING, code="accuracy-memory", text=text))
        torch.cuda.empty_cache()
    bench.signals.take_activity_ns()


def _check(
    bench: Bench, original: torch.nn.Module, state: FirstState, compiled: Loop, first_outputs: dict[str, Any]
) -> None:
    arithmetic, reference = arithmetic_of(bench, original), _load_reference(bench)
    eager_run, compiled_run = _eager_run(bench, original, state), _compiled_run(state, compiled)
    eager = eager_run(STEP_SEED)
    twice = compare_snapshots(ComparisonKind.EAGER_TWICE, eager, eager_run(_OTHER_STEP_SEED), arithmetic)
    bench.channel.send(twice)
    bench.channel.send(compare_snapshots(ComparisonKind.COMPILED, eager, first_outputs, arithmetic, reference))
    first_outputs.clear()
    later = compiled_run(STEP_SEED)
    bench.channel.send(compare_snapshots(ComparisonKind.STEADY, eager, later, arithmetic, reference))
    del eager, later
    if is_random(twice) and 2 * RUNS * compiled.recent_step_ns / 1e9 < _MAX_RANDOM_RUNS_S:
        bench.channel.send(compare_distributions(eager_run, compiled_run, arithmetic.low_precision))


def _eager_run(bench: Bench, original: torch.nn.Module, state: FirstState) -> Run:
    def run(seed: int) -> dict[str, Any]:
        state.restore()
        inputs = [clone_batch(batch) for batch in state.batches]
        step = make_step(bench.user, original, inputs, bench.job.spec, bench.task, bench.device, updates=False)
        seed_everything(seed)
        outputs = snapshot_outputs(step(0), original, with_gradients=bench.training)
        original.zero_grad(set_to_none=True)
        state.restore()
        return outputs

    return run


def _compiled_run(state: FirstState, compiled: Loop) -> Run:
    def run(seed: int) -> dict[str, Any]:
        state.restore()
        outputs = compiled.outputs_of_first_inputs(seed)
        state.restore()
        return outputs

    return run


def _changing(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Buffers, and parameters that no optimizer moves: a forward may. The others stay, at learning rate 0."""
    yield from model.buffers()
    yield from (parameter for parameter in model.parameters() if not parameter.requires_grad)


def _equal(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    with contextlib.suppress(RuntimeError, NotImplementedError):  # of some layouts
        return bool(torch.equal(tensor, value))
    return False


def arithmetic_of(bench: Bench, model: torch.nn.Module) -> Arithmetic:
    """How the model calculates: what it was asked to, and what its own tensors are."""
    spec = bench.job.spec
    asked = {"bf16": "bfloat16", "fp16": "float16"}.get(spec.amp or "", spec.dtype)
    dtypes = [tensor.dtype for tensor in (*model.parameters(), *model.buffers())]
    own = [str(dtype).removeprefix("torch.") for dtype in dtypes if dtype in _LOW_PRECISION]
    low = asked if asked in ("bfloat16", "float16") else next(iter(own), None)
    on_gpu = bench.device.type == "cuda"
    tf32 = on_gpu and _uses_tf32(model)
    return Arithmetic(low, loose=tf32 or (on_gpu and bench.training), tf32=tf32)


def _uses_tf32(model: torch.nn.Module) -> bool:
    """Convolutions may by torch's default, matrix products only if the user allowed it."""
    convolves = any(isinstance(module, _TF32_CONVOLUTIONS) for module in model.modules())
    return torch.get_float32_matmul_precision() != "highest" or (convolves and bool(torch.backends.cudnn.allow_tf32))


# ---------------------------------------------------------------- the reference


def make_reference(bench: Bench, model: torch.nn.Module, batches: list[Batch]) -> None:
    """Run the first step in float64, in float32 where that does not work for a model of 16 bits, and keep what it
    gives in the job's file. A model that can do neither has no reference, and that is no failure."""
    if not copy_fits(bench):
        text = "the outputs have no reference in higher precision: it does not fit the free GPU memory"
        bench.channel.send(Notice(level=Level.WARNING, code="reference-missing", text=text))
        return
    arithmetic = arithmetic_of(bench, model)
    wanted = [torch.float64, *([torch.float32] if arithmetic.low_precision is not None else [])]
    reasons = []
    for dtype in wanted:
        name = str(dtype).removeprefix("torch.")
        try:
            reference = _run_in(bench, model, batches, dtype)
            reference.save(Path(bench.job.reference_file or ""))
        except Exception as error:
            reasons.append(f"in {name}: {text_of(error).strip().splitlines()[0][:200] or type(error).__name__}")
            model.zero_grad(set_to_none=True)
            continue
        text = f"the outputs are also compared with the same model in {name}"
        bench.channel.send(Notice(level=Level.INFO, code="reference", text="; ".join([text, *reasons])))
        return
    text = f"the outputs have no reference in higher precision ({'; '.join(reasons)})"
    bench.channel.send(Notice(level=Level.WARNING, code="reference-missing", text=text))


def _load_reference(bench: Bench) -> Reference | None:
    """None where there is none, or where its process was cut off while it wrote."""
    if bench.job.reference_file is None:
        return None
    try:
        return Reference.load(Path(bench.job.reference_file))
    except Exception:
        return None


class LowPrecisionError(Exception):
    """The model itself goes to 16 bits, whatever type it is given."""


def _run_in(bench: Bench, model: torch.nn.Module, batches: list[Batch], dtype: torch.dtype) -> Reference:
    """The step in `dtype`: parameters and inputs keep the values that they have in the model's own type."""
    name = str(dtype).removeprefix("torch.")
    spec = replace(bench.job.spec, amp=None, dtype=name)
    convert: Callable[[torch.Tensor], torch.Tensor] = lambda t: _converted(t, dtype)  # noqa: E731
    inputs = [
        replace(batch, args=map_tensors(batch.args, convert), kwargs=map_tensors(batch.kwargs, convert))
        for batch in batches
    ]
    usual = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        model = model.to(dtype)
        step = make_step(bench.user, model, inputs, spec, bench.task, bench.device, updates=False)
        seed_everything(STEP_SEED)
        with _Watch():
            result = step(0)
    finally:
        torch.set_default_dtype(usual)
    return Reference.of(name, snapshot_outputs(result, model, with_gradients=bench.training))


def _converted(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    changed = tensor.detach().to(dtype) if tensor.is_floating_point() else tensor.detach()
    return changed.clone().requires_grad_(tensor.requires_grad)


class _Watch(TorchDispatchMode):  # type: ignore[misc]
    """Raises LowPrecisionError when any operation gives 16 bits: such a twin shares eager's roundings, and could
    make its errors look smaller than they are."""

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for _, tensor in walk_tensors(result):
            if tensor.dtype in _LOW_PRECISION:
                raise LowPrecisionError(f"the model itself calculates in {str(tensor.dtype).removeprefix('torch.')}")
        return result
