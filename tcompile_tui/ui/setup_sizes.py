"""What Setup reads beside the rows of inputs: sizes with a name, and a batch that comes from a file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcompile_tui.core.input_spec import InputSpec, read_input, tensors_in
from tcompile_tui.core.shape_spec import ShapeSequence, parse_distribution, split_dims
from tcompile_tui.core.spec import Dim, SpecError, Target, check_sizes, parse_dims, parse_target

SIZES = "sizes"
BATCH = "batch"
# A comma is also what stands between the values of one size.
_BETWEEN_SIZES = re.compile(r"[\s;]+|,\s*(?=\w+\s*=)")
EXAMPLE_INPUTS = "example_inputs()"


def inputs_giver(target: str) -> str:
    """What gives a model its inputs where none are written: its file's function, or the library that it is from."""
    try:
        source = parse_target(target).source
    except SpecError:
        return EXAMPLE_INPUTS
    return source.value if source is not None else EXAMPLE_INPUTS


def read_sizes(text: str, errors: dict[str, str]) -> tuple[tuple[Dim, ...], ShapeSequence | None]:
    """`B=8 T=512`, as `--dim` takes them one by one; several values (`T=64,128`) or a distribution as in `--shapes`
    (`T=16..512`, `B=1:5,8:3`) are a sequence of shapes, whose most frequent one is among the sizes."""
    words = [word for word in _BETWEEN_SIZES.split(text.strip()) if word]
    drawn = [word for word in words if ":" in word or ".." in word]
    try:
        single, sequence = split_dims([word for word in words if word not in drawn])
        if drawn and sequence is not None:
            raise SpecError(f"write all that changes in one way: several values, or {drawn[0]}")
        sequence = parse_distribution(";".join(drawn)) if drawn else sequence
        dims = parse_dims(single)
    except SpecError as error:
        errors[SIZES] = str(error).replace("--dim ", "").replace(", or name a file", "")
        return (), None
    if sequence is None:
        return dims, None
    if not sequence.varying or {dim.name for dim in dims} & set(sequence.names):
        errors[SIZES] = "each size once, and of those that change more than one value"
        return (), None
    return (*dims, *sequence.usual), sequence


def check_sizes_of(inputs: Sequence[InputSpec], dims: Sequence[Dim]) -> None:
    """Every name in `inputs` has a number; sizes without a use are left for `unused_sizes`. Raises SpecError."""
    used = size_names(inputs)
    check_sizes(inputs, [dim for dim in dims if dim.name in used])


def size_names(inputs: Sequence[InputSpec]) -> set[str]:
    return {name for each in inputs for tensor in tensors_in(read_input(each)[1]) for name in tensor.size_names}


def see_unused_sizes(
    dims: Sequence[Dim], inputs: Sequence[InputSpec], target: Target | None, errors: dict[str, str]
) -> None:
    """A library's own inputs have sizes too, which only the library knows."""
    if not inputs and target is not None and target.source is not None:
        return
    unused = [dim.name for dim in dims if dim.name not in size_names(inputs)]
    if unused and not any(key.startswith("input ") for key in errors):
        errors.setdefault(SIZES, f"no input has a size {unused[0]}: write it in a shape, float32[{unused[0]},128]")


def read_batch(text: str, inputs_written: bool, sizes_written: bool, errors: dict[str, str]) -> str | None:
    """The file as `--inputs` takes it."""
    batch = text.strip()
    if not batch:
        return None
    if inputs_written:
        errors[BATCH] = "inputs are written above: give those, or a batch"
        return None
    if sizes_written:
        errors[SIZES] = "a batch has its own sizes: leave these out"
        return None
    if batch.endswith(".py"):
        errors[BATCH] = f"which function makes it? write {batch}:make_batch"
        return None
    return batch
