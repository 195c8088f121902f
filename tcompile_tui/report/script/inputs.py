"""The piece that makes the inputs: from the command line, a saved batch, the model's file, or as a library's model
got them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcompile_tui.core.events import TensorInfo
from tcompile_tui.core.input_spec import TensorSpec, read_input
from tcompile_tui.core.spec import Source
from tcompile_tui.report.script.facts import INPUT_SEED, Facts, literal
from tcompile_tui.report.script.model import load_function

_AS_CALL = """
def as_call(made):
    if isinstance(made, (tuple, list)):
        return tuple(made), {}
    return ((), dict(made)) if hasattr(made, "keys") else ((made,), {})


"""


def inputs_piece(facts: Facts) -> str:
    spec = facts.spec
    wanted = f"torch.{spec.dtype} if value.is_floating_point() else value.dtype" if spec.dtype else "value.dtype"
    layout = ""
    if spec.step.channels_last:
        layout = """
        if value.dim() == 4 and value.is_floating_point():
            moved = moved.contiguous(memory_format=torch.channels_last)"""
    making = _making(facts)
    return f"""\
# ---------------------------------------------------------------- its inputs


def place(value):
    if isinstance(value, torch.Tensor):
        moved = value.detach().to(DEVICE, {wanted}){layout}
        return moved.requires_grad_(value.requires_grad)
    if isinstance(value, (tuple, list)):
        items = [place(item) for item in value]
        return items if isinstance(value, list) else value._make(items) if hasattr(value, "_make") else tuple(items)
    return {{key: place(item) for key, item in value.items()}} if isinstance(value, dict) else value

{_AS_CALL if "as_call" in making or facts.further_calls else chr(10)}\
def make_batch():
    made = {making}
    return place(made)


seed({INPUT_SEED})
batches = [make_batch() for _ in range({facts.model.input_batches})]
if any(torch.nn.parameter.is_lazy(tensor) for tensor in model.parameters()):
    with torch.no_grad():
        model(*batches[0][0], **batches[0][1])"""


def _making(facts: Facts) -> str:
    """An expression for one batch: (positional, by name)."""
    spec = facts.spec
    if spec.inputs_from is not None:
        file, _, function = spec.inputs_from.rpartition(":")
        if file.endswith(".py"):
            return f"as_call({load_function(file, function, facts.cwd)}())"
        path = literal(str(Path(spec.inputs_from).expanduser()))
        return f'as_call(torch.load({path}, map_location="cpu", weights_only=True))'
    if spec.inputs:
        sizes = {dim.name: dim.size for dim in spec.dims}
        return _call([(name or "", _value(value, sizes)) for name, value in map(read_input, spec.inputs)])
    if facts.source is not None:
        tensors = [(each.path if not each.path.startswith("args[") else "", each) for each in facts.model.inputs]
        return _call([(name, _natural(facts, each)) for name, each in tensors])
    return "as_call(module.example_inputs())"


def _call(values: list[tuple[str, str]]) -> str:
    args = [text for name, text in values if not name]
    kwargs = ", ".join(f"{literal(name)}: {text}" for name, text in values if name)
    return f"({', '.join(args)}{',' if args else ''}), {{{kwargs}}}"


def _value(value: Any, sizes: Mapping[str, int]) -> str:
    if isinstance(value, TensorSpec):
        return _random(value.with_sizes(sizes))
    if isinstance(value, tuple):
        return f"({''.join(f'{_value(item, sizes)}, ' for item in value).rstrip()})"
    if isinstance(value, list):
        return f"[{', '.join(_value(item, sizes) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(key)}: {_value(item, sizes)}' for key, item in value.items())}}}"
    if isinstance(value, float):
        return f"float({literal(str(value))})"  # inf and nan too
    return literal(value)


def _random(spec: TensorSpec) -> str:
    layout = f".to(memory_format=torch.{spec.layout})" if spec.layout else ""
    return f"{_drawn(spec)}{layout}{'.requires_grad_()' if spec.requires_grad else ''}"


def _drawn(spec: TensorSpec) -> str:
    shape, dtype = literal(spec.shape), f"torch.{spec.dtype}"
    if spec.distribution == "zeros":
        return f"torch.zeros({shape}, dtype={dtype})"
    if spec.dtype == "bool":
        return f"torch.randint(0, 2, {shape}, dtype=torch.bool)"
    if "float" in spec.dtype or "complex" in spec.dtype:
        draw = "rand" if spec.distribution == "uniform" else "randn"
        return f"torch.{draw}({shape}, dtype={dtype})"
    low, high = (spec.low, spec.high) if spec.low is not None else (0, 2)
    return f"torch.randint({low}, {high}, {shape}, dtype={dtype})"


# ---------------------------------------------------------------- of a library's model


def _natural(facts: Facts, tensor: TensorInfo) -> str:
    """Values like those that the run drew, in the shape that it recorded."""
    shape = literal(tensor.shape)
    if facts.source is not Source.TRANSFORMERS or "int" not in tensor.dtype:
        return f"torch.randn({shape}, dtype=torch.{tensor.dtype})"
    if "mask" in tensor.path:
        return f"torch.ones({shape}, dtype=torch.{tensor.dtype})"
    if tensor.path == "labels" and len(tensor.shape) == 1:
        return f"torch.randint(0, model.config.num_labels, {shape})"
    if tensor.path == "labels" and len(tensor.shape) > 2:  # classes of an image's points
        return f"torch.zeros({shape}, dtype=torch.{tensor.dtype})"
    low = 1 if tensor.path == "labels" else 0  # 0 is no letter for CTC
    return f'torch.randint({low}, getattr(model.config, "text_config", model.config).vocab_size, {shape})'
