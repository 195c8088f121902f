"""The inputs of a model as a person writes them: `ids=int64[B,512]<0,50257>`, `(float32[2,3], 0.5, {mask: none})`.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from .spec_error import SpecError

INTEGER_DTYPES = ("int8", "int16", "int32", "int64", "uint8")
FLOATING_DTYPES = ("float16", "bfloat16", "float32", "float64")
COMPLEX_DTYPES = ("complex64", "complex128")
DTYPES = (*FLOATING_DTYPES, *INTEGER_DTYPES, "bool", *COMPLEX_DTYPES)
DTYPE_ALIASES = {
    "half": "float16", "float": "float32", "double": "float64",
    "short": "int16", "int": "int32", "long": "int64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
    "fp16": "float16", "fp32": "float32",
}  # fmt: skip
LAYOUT_RANKS = {"channels_last": 4, "channels_last_3d": 5}
DISTRIBUTIONS = ("normal", "uniform", "zeros")
GRAD = "grad"
STRIDES = "strides"

# ---------------------------------------------------------------- sizes with a name


@dataclass(frozen=True)
class Dim:
    """A size that several inputs share, or that a library's natural inputs have: `B=32`."""

    name: str
    size: int

    def __str__(self) -> str:
        return f"{self.name}={self.size}"


def parse_dims(texts: Sequence[str]) -> tuple[Dim, ...]:
    """Read every `--dim`. Raises SpecError."""
    dims: list[Dim] = []
    for text in texts:
        name, _, size = (part.strip() for part in text.partition("="))
        if not name.isidentifier() or not _is_size(size):
            raise SpecError(f"cannot read the size '{text}': write --dim B=32")
        if name in (dim.name for dim in dims):
            raise SpecError(f"the size '{name}' is given twice")
        dims.append(Dim(name, int(size)))
    return tuple(dims)


# ---------------------------------------------------------------- one tensor


@dataclass(frozen=True)
class TensorSpec:
    """One input tensor: dtype, shape and, for integers, the half-open range its values are drawn from. Sizes and
    bounds are numbers, or names that `--dim` gives a size. `strides` are in elements; `layout` is a memory format of
    torch and `distribution` one of DISTRIBUTIONS, None for torch's own layout and for normal values."""

    dtype: str
    shape: tuple[int | str, ...]
    name: str | None = None
    low: int | str | None = None
    high: int | str | None = None
    layout: str | None = None
    strides: tuple[int, ...] | None = None
    distribution: str | None = None
    requires_grad: bool = False

    def __str__(self) -> str:
        values = "" if self.low is None else f"<{self.low},{self.high}>"
        strides = None if self.strides is None else f"{STRIDES}[{','.join(map(str, self.strides))}]"
        words = [self.layout, strides, self.distribution, GRAD if self.requires_grad else None]
        further = "".join(f"@{word}" for word in words if word)
        shape = ",".join(map(str, self.shape))
        return f"{self.name + '=' if self.name else ''}{self.dtype}[{shape}]{values}{further}"

    @property
    def size_names(self) -> tuple[str, ...]:
        """The names that `--dim` has to give a size."""
        return tuple(size for size in (*self.shape, self.low, self.high) if isinstance(size, str))

    def with_sizes(self, sizes: Mapping[str, int]) -> TensorSpec:
        """The same with numbers for names. Raises SpecError where a name has no size or a range becomes empty."""

        def number(size: int | str) -> int:
            if isinstance(size, int):
                return size
            if size not in sizes:
                raise SpecError(f"the size {size} in '{self}' is not given: write its number, or add --dim {size}=8")
            return sizes[size]

        shape = tuple(map(number, self.shape))
        if self.low is None or self.high is None:
            return replace(self, shape=shape)
        low, high = number(self.low), number(self.high)
        _check_range(low, high, self.dtype, str(self))
        return replace(self, shape=shape, low=low, high=high)


_TENSOR = re.compile(
    r"\s*(?P<dtype>[A-Za-z_][\w.]*)\s*\[(?P<shape>[^\]]*)\]\s*(?:<(?P<range>[^>]*)>)?\s*"
    r"(?P<further>(?:@\s*\w*\s*(?:\[[^\]]*\])?\s*)*)"
)
_FURTHER = re.compile(r"@\s*(\w*)\s*(?:\[([^\]]*)\])?\s*")
_MAX_SIZE_DIGITS = 18  # a size is an int64
_MAX_BOUND = 2**63 - 1  # torch.randint takes its bounds as int64, the excluded upper one too


def parse_tensor(text: str) -> TensorSpec:
    """Read one tensor: `[name=]dtype[shape][<low,high>][@further]`, for example `ids=int64[4,512]<0,50257>` or
    `x=float32[B,3,224,224]@channels_last@grad`.

    Raises SpecError with the part that is wrong.
    """
    name, value = _split_name(text)
    match = _TENSOR.fullmatch(value)
    if match is None:
        raise _unreadable(text)
    return replace(_read_tensor(match, text), name=name)


def _unreadable(text: str) -> SpecError:
    return SpecError(f"cannot read the input '{text}': write name=float32[4,3,224,224] or ids=int64[4,512]<0,50257>")


_NAME = re.compile(r"\s*(?P<name>[^=\[\]<>(){}'\"@,]*?)\s*=")


def _split_name(text: str) -> tuple[str | None, str]:
    match = _NAME.match(text)
    if match is None:
        return None, text
    if not match["name"].isidentifier():
        raise SpecError(f"'{match['name']}' in '{text}' is not a parameter name")
    return match["name"], text[match.end() :]


def _read_tensor(match: re.Match[str], text: str) -> TensorSpec:
    written = match["dtype"].removeprefix("torch.")
    dtype = DTYPE_ALIASES.get(written, written)
    if dtype not in DTYPES:
        raise SpecError(f"unknown dtype '{written}' in '{text}': one of {', '.join(DTYPES)}")
    sizes = match["shape"].split(",") if match["shape"].strip() else []
    shape = tuple(_parse_size(size, text) for size in sizes)
    low, high = _parse_range(match["range"], dtype, text)
    tensor = TensorSpec(dtype, shape, None, low, high)
    for word, inside in _FURTHER.findall(match["further"]):
        tensor = _with_further(tensor, word, inside, text)
    return tensor


def _with_further(tensor: TensorSpec, word: str, inside: str, text: str) -> TensorSpec:
    """The tensor with one more `@word` to it."""
    numeric = tensor.dtype in (*FLOATING_DTYPES, *COMPLEX_DTYPES)
    if word in LAYOUT_RANKS and not inside:
        if len(tensor.shape) != LAYOUT_RANKS[word] or tensor.strides is not None:
            raise SpecError(f"@{word} in '{text}' needs {LAYOUT_RANKS[word]} sizes and no strides")
        return replace(tensor, layout=word)
    if word == STRIDES:
        strides = inside.split(",") if inside.strip() else []
        if not all(_is_size(stride.strip()) for stride in strides) or len(strides) != len(tensor.shape):
            raise SpecError(
                f"@{STRIDES}[{inside}] in '{text}' needs {len(tensor.shape)} whole numbers, one for each size"
            )
        if tensor.layout is not None:
            raise SpecError(f"'{text}' has a layout and strides: give one of them")
        return replace(tensor, strides=tuple(map(int, strides)))
    if word in DISTRIBUTIONS and not inside:
        if word != "zeros" and not numeric:
            raise SpecError(f"@{word} in '{text}' needs a floating dtype: integers take a range, <0,100>")
        return replace(tensor, distribution=word)
    if word == GRAD and not inside:
        if not numeric:
            raise SpecError(f"@{GRAD} in '{text}' needs a floating dtype, not {tensor.dtype}")
        return replace(tensor, requires_grad=True)
    known = (*LAYOUT_RANKS, *DISTRIBUTIONS, GRAD, f"{STRIDES}[...]")
    raise SpecError(f"unknown '@{word}' in '{text}': one of {', '.join(known)}")


def _is_size(size: str) -> bool:
    return size.isascii() and size.isdigit() and len(size) <= _MAX_SIZE_DIGITS


def _parse_size(size: str, text: str) -> int | str:
    size = size.strip()
    if size.isidentifier():
        return size
    if not _is_size(size):
        raise SpecError(f"'{size}' in '{text}' is not a size: sizes are whole numbers from 0 up, or a name for --dim")
    return int(size)


def _parse_range(written: str | None, dtype: str, text: str) -> tuple[int | str | None, int | str | None]:
    if written is None:
        return None, None
    if dtype not in INTEGER_DTYPES:
        raise SpecError(f"a range in '{text}' needs an integer dtype, not {dtype}")
    try:
        low, high = (_parse_bound(bound.strip()) for bound in written.split(","))
    except ValueError:
        raise SpecError(f"cannot read the range '<{written}>' in '{text}': write <0,50257>") from None
    if isinstance(low, int) and isinstance(high, int):
        _check_range(low, high, dtype, text)
    return low, high


def _parse_bound(bound: str) -> int | str:
    return bound if bound.isidentifier() else int(bound)


def _check_range(low: int, high: int, dtype: str, text: str) -> None:
    bits = int(re.sub(r"\D", "", dtype))
    smallest = 0 if dtype.startswith("u") else -(2 ** (bits - 1))
    largest = smallest + 2**bits - 1
    if low >= high:
        raise SpecError(f"the range <{low},{high}> in '{text}' is empty: the upper bound is not included")
    if low < smallest or high > min(largest + 1, _MAX_BOUND):
        raise SpecError(f"the range <{low},{high}> in '{text}' does not fit into {dtype}")


# ---------------------------------------------------------------- any value

InputSpec: TypeAlias = TensorSpec | str
"""One input: a tensor, or the canonical text of anything else, `pair=(float32[2,3], 0.5)`, which `read_input` reads.
(A text, since records hold no union of classes.)"""


def parse_input(text: str) -> InputSpec:
    """Read one `--input`. Raises SpecError."""
    name, written = _split_name(text)
    value = _Reader(written, text).whole()
    if isinstance(value, TensorSpec):
        return replace(value, name=name)
    return f"{name}={format_value(value)}" if name else format_value(value)


def read_input(given: InputSpec) -> tuple[str | None, Any]:
    """Name and value of an input: tensors as TensorSpec, in tuples, lists and dicts of them and of plain values."""
    if isinstance(given, TensorSpec):
        return given.name, given
    name, written = _split_name(given)
    return name, _Reader(written, given).whole()


def format_value(value: Any) -> str:
    """The canonical text of a value that `read_input` gives."""
    if isinstance(value, tuple):
        return f"({', '.join(map(format_value, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {format_value(item)}' for key, item in value.items())}}}"
    return str(value) if isinstance(value, TensorSpec) else repr(value)


def tensors_in(value: Any) -> Iterator[TensorSpec]:
    """The tensors of a value that `read_input` gives."""
    if isinstance(value, TensorSpec):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def parse_inputs(texts: Sequence[str]) -> tuple[InputSpec, ...]:
    """Read every `--input`; positional ones come before named ones, a name comes once."""
    specs = tuple(parse_input(text) for text in texts)
    names = [read_input(spec)[0] for spec in specs]
    for name in names:
        if name is not None and names.count(name) > 1:
            raise SpecError(f"the input '{name}' is given twice")
    first_named = next((i for i, name in enumerate(names) if name), len(names))
    for spec, name in list(zip(specs, names, strict=True))[first_named:]:
        if not name:
            raise SpecError(f"the input '{spec}' has no name but follows one that has: put it first")
    return specs


def check_sizes(inputs: Sequence[InputSpec], dims: Sequence[Dim]) -> None:
    """Every named size has a number and every number a use. Raises SpecError."""
    sizes = {dim.name: dim.size for dim in dims}
    used: set[str] = set()
    for given in inputs:
        for tensor in tensors_in(read_input(given)[1]):
            tensor.with_sizes(sizes)
            used.update(tensor.size_names)
    for name in sizes:
        if name not in used:
            raise SpecError(f"no input has a size {name}, as --dim says: write it in a shape, float32[{name},128]")


_LITERAL = re.compile(r"\s*([+-]?(?:\d(?:e[+-]\d|[\w.])*|\.\d\w*|inf)|[A-Za-z_]\w*)\s*", re.IGNORECASE)
_QUOTED = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*""", re.DOTALL)
_CONSTANTS = {"none": None, "null": None, "true": True, "false": False}
_MAX_DEPTH = 32


class _Reader:
    """Reads one value from left to right; `shown` is what an error quotes."""

    def __init__(self, text: str, shown: str) -> None:
        self._text = text
        self._shown = shown
        self._at = 0

    def whole(self) -> Any:
        value = self._value(0)
        if self._text[self._at :].strip():
            raise _unreadable(self._shown)
        return value

    def _value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise SpecError(f"'{self._shown[:60]}' is nested too deeply: write a file with `def example_inputs():`")
        if self._take("("):
            return tuple(self._items(")", depth))
        if self._take("["):
            return self._items("]", depth)
        if self._take("{"):
            return self._pairs(depth)
        if tensor := _TENSOR.match(self._text, self._at):
            self._at = tensor.end()
            return _read_tensor(tensor, self._shown)
        return self._plain()

    def _items(self, end: str, depth: int) -> list[Any]:
        items: list[Any] = []
        while not self._take(end):
            items.append(self._value(depth + 1))
            self._separate(end)
        return items

    def _pairs(self, depth: int) -> dict[str, Any]:
        pairs: dict[str, Any] = {}
        while not self._take("}"):
            key = self._key()
            if not self._take(":"):
                raise _unreadable(self._shown)
            pairs[key] = self._value(depth + 1)
            self._separate("}")
        return pairs

    def _key(self) -> str:
        if (quoted := self._quoted()) is not None:
            return quoted
        match = _LITERAL.match(self._text, self._at)
        if match is None or not match[1].isidentifier():
            raise _unreadable(self._shown)
        self._at = match.end()
        return match[1]

    def _plain(self) -> Any:
        """A text in quotes, a number, none, true or false."""
        if (quoted := self._quoted()) is not None:
            return quoted
        match = _LITERAL.match(self._text, self._at)
        if match is None:
            raise _unreadable(self._shown)
        self._at = match.end()
        word = match[1].lower()
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        try:
            return float(word) if word.lstrip("+-") == "inf" else ast.literal_eval(word)
        except (ValueError, SyntaxError):
            raise _unreadable(self._shown) from None

    def _quoted(self) -> str | None:
        match = _QUOTED.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        try:
            value = ast.literal_eval(match[1])
        except (ValueError, SyntaxError):
            raise _unreadable(self._shown) from None
        assert isinstance(value, str)
        return value

    def _separate(self, end: str) -> None:
        """A comma, or the end ahead."""
        if not self._take(",") and not self._text[self._at :].lstrip().startswith(end):
            raise _unreadable(self._shown)

    def _take(self, character: str) -> bool:
        rest = self._text[self._at :]
        stripped = rest.lstrip()
        if not stripped.startswith(character):
            return False
        self._at += len(rest) - len(stripped) + 1
        return True
