"""Guesses at an input: what a parameter's name and annotation suggest, before anything has run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..core.spec import INTEGER_DTYPES, TensorSpec

# Sizes that are open: all inputs share one batch, one image side, and one sequence length, but for a decoder's.
BATCH, LENGTH, SIDE, DECODER_LENGTH = "B", "T", "S", "D"
Dim: TypeAlias = "int | str"
Dims: TypeAlias = "tuple[Dim, ...]"
Sizes: TypeAlias = "Mapping[str, int]"
FIRST_SIZES: Sizes = {BATCH: 8, LENGTH: 128, SIDE: 224, DECODER_LENGTH: 128}

_ANY_FEATURES = 128
_ANY_VALUES = 1_000
_VARIANTS: tuple[Dims, ...] = (
    (BATCH, _ANY_FEATURES),
    (BATCH, LENGTH, _ANY_FEATURES),
    (BATCH, 3, SIDE, SIDE),
    (BATCH, _ANY_FEATURES, LENGTH),
    (BATCH, LENGTH),
    (BATCH, 1),
    (BATCH,),
)


@dataclass(frozen=True)
class Guess:
    """An input of `dims`, some of them open. `high` bounds the values of an integer, from `low` on. `preferred` is
    what an open size should be, where no other input has it."""

    dtype: str
    dims: Dims
    how: str
    high: int | None = None
    low: int = 0
    preferred: tuple[tuple[str, int], ...] = ()

    @property
    def is_integer(self) -> bool:
        return self.dtype in INTEGER_DTYPES

    def named(self, name: str) -> Guess:
        """The same for an input of that name."""
        if not name.startswith("decoder_"):
            return self
        return replace(self, dims=tuple(DECODER_LENGTH if dim == LENGTH else dim for dim in self.dims))

    def spec(self, sizes: Sizes, name: str | None = None) -> TensorSpec:
        shape = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self.dims)
        low, high = (self.low, self.high) if self.is_integer and self.high is not None else (None, None)
        return TensorSpec(self.dtype, shape, name, low, high)


_BY_NAME = "from its name"
_ASSUMED = "assumed"
_MASK = re.compile(r"mask", re.I)
_LENGTHS = re.compile(r"(^|_)(lengths?|lens?|seq_?lens?)$", re.I)
_TIMES = re.compile(r"^(t|time|times|timesteps?|sigmas?|noise_levels?)$", re.I)
_SINGLE = re.compile(r"(^|_)(user|item|id|node|labels?|targets?|class|cls|action)$", re.I)
_INTEGERS = re.compile(r"(^|_)(ids|tokens?|idx|index|indices|positions?|words?|users|items|nodes)\d*$", re.I)
_IMAGES = re.compile(r"(^|_)(images?|imgs?|pixel_values|pixels)\d*$", re.I)
_SOUND = re.compile(r"(^|_)(audio|waveforms?|wav|speech|signal)\d*$", re.I)
_INTEGER_TYPE = re.compile(r"(Long|Int)Tensor|\bU?Int(8|16|32|64)?\[")
_BOOL_TYPE = re.compile(r"BoolTensor|\bBool\[")


def guesses_for(name: str, annotation: str, dtype: str) -> tuple[Guess, ...]:
    """Likely inputs for a parameter, the likeliest first. `dtype` is the model's floating one."""
    named = _by_name(name, annotation, dtype)
    generic = [Guess(dtype, dims, _ASSUMED) for dims in _VARIANTS]
    integers = [Guess("int64", dims, _ASSUMED, _ANY_VALUES) for dims in ((BATCH, LENGTH), (BATCH,))]
    if _INTEGER_TYPE.search(annotation):
        return (*(guess for guess in named if guess.is_integer), *integers)
    return (*named, *generic, *integers)


def _by_name(name: str, annotation: str, dtype: str) -> tuple[Guess, ...]:
    if _BOOL_TYPE.search(annotation):
        return _masks(("bool",))
    if _MASK.search(name):
        return _masks(("int64", "bool", dtype) if "attention" in name else ("bool", dtype, "int64"))
    if _LENGTHS.search(name):  # all full: some layers want them sorted
        full = FIRST_SIZES[LENGTH]
        return (Guess("int64", (BATCH,), _BY_NAME, full + 1, low=full), Guess("int64", (BATCH,), _BY_NAME, 2, low=1))
    if _TIMES.search(name):
        column = Guess(dtype, (BATCH, 1), _BY_NAME)
        return Guess("int64", (BATCH,), _BY_NAME, _ANY_VALUES), Guess(dtype, (BATCH,), _BY_NAME), column
    if _SINGLE.search(name):
        return (Guess("int64", (BATCH,), _BY_NAME, _ANY_VALUES), Guess("int64", (BATCH, LENGTH), _BY_NAME, _ANY_VALUES))
    if _INTEGERS.search(name):
        return (Guess("int64", (BATCH, LENGTH), _BY_NAME, _ANY_VALUES),)
    if _IMAGES.search(name):
        return (Guess(dtype, (BATCH, 3, SIDE, SIDE), _BY_NAME), Guess(dtype, (BATCH, 1, SIDE, SIDE), _BY_NAME))
    if _SOUND.search(name):
        return (Guess(dtype, (BATCH, LENGTH), _BY_NAME, preferred=((LENGTH, 16_000),)),)
    return ()


def _masks(dtypes: tuple[str, ...]) -> tuple[Guess, ...]:
    """Of the tokens, of token pairs, and with room for the heads."""
    shapes: tuple[Dims, ...] = (
        (BATCH, LENGTH),
        (LENGTH, LENGTH),
        (BATCH, LENGTH, LENGTH),
        (BATCH, 1, LENGTH, LENGTH),
        (BATCH, LENGTH, 1),
        (BATCH, 1, SIDE, SIDE),
    )
    return tuple(Guess(dtype, dims, _BY_NAME, 2 if dtype == "int64" else None) for dims in shapes for dtype in dtypes)
