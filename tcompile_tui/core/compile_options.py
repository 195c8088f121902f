"""How the compiled arm is compiled: what `--mode` and `--arm` say, as a value and as the text that names it.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import ast
import enum
import json
import re
from dataclasses import dataclass, replace
from typing import TypeAlias

from .spec_error import SpecError

OptionValue: TypeAlias = bool | int | float | str

DEFAULT_MODE = "default"
# As torch.compile knows them, cheapest to compile first.
TORCH_MODES = (DEFAULT_MODE, "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_CUDAGRAPHS = "triton.cudagraphs"
_DYNAMIC = {"true": True, "false": False, "none": None}
_KEY = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
_TEXT_VALUE = re.compile(r"[\w.+-]+")
_MAX_CHARS = 400
_HOW = "write mode=max-autotune,dynamic=true, regional, nested, or OPTION=VALUE of Inductor"


class Regions(str, enum.Enum):
    """What is done about a block that repeats. REGIONAL: each one is compiled by itself, with the same code for all.
    NESTED: the whole model is compiled, and the block in it once (torch.compiler.nested_compile_region)."""

    REGIONAL = "regional"
    NESTED = "nested"


class KeyValueCache(str, enum.Enum):
    """How a decoder keeps keys and values of the tokens so far: in tensors of one size, or in ones that grow by a token
    a step, so that each step has other shapes."""

    STATIC = "static"
    GROWING = "growing"


@dataclass(frozen=True)
class CompileOptions:
    """Arguments of torch.compile, and which part of the model it gets. `block` is the class of the repeated block,
    None for the one that covers most of the model; `inductor` are options beside those of `mode`. `cache` None means:
    where tokens are decoded, the static one."""

    mode: str = DEFAULT_MODE
    dynamic: bool | None = None
    regions: Regions | None = None
    block: str | None = None
    cache: KeyValueCache | None = None
    inductor: tuple[tuple[str, OptionValue], ...] = ()

    @property
    def label(self) -> str:
        """Its name, which reads back as the same options: `default`, `max-autotune,dynamic=true`, `regional`."""
        words = [self.mode] if self.mode != DEFAULT_MODE else []
        words += [f"dynamic={str(self.dynamic).lower()}"] if self.dynamic is not None else []
        if self.regions is not None:
            words.append(f"{self.regions.value}={self.block}" if self.block else self.regions.value)
        words += [f"cache={self.cache.value}"] if self.cache is not None else []
        words += [f"{key}={_written(value)}" for key, value in self.inductor]
        return ",".join(words) or DEFAULT_MODE

    @property
    def is_plain(self) -> bool:
        """Is there nothing but a mode?"""
        return self.label in TORCH_MODES

    @property
    def cudagraphs(self) -> bool:
        """Are they asked for?"""
        asked = dict(self.inductor).get(_CUDAGRAPHS)
        return self.mode in ("reduce-overhead", "max-autotune") if asked is None else bool(asked)

    @property
    def autotunes(self) -> bool:
        """Does it try kernels, which takes long?"""
        tunes = {"max_autotune", "max_autotune_gemm", "max_autotune_pointwise", "coordinate_descent_tuning"}
        return self.mode.startswith("max-autotune") or any(key in tunes and on for key, on in self.inductor)

    @property
    def arguments(self) -> str:
        """Those of torch.compile as Python text. torch takes a mode or options, not both: a mode's own are spelled
        out where further ones are asked for."""
        words = []
        if self.inductor:
            of_mode = f'**torch._inductor.list_mode_options("{self.mode}"), ' if self.mode != DEFAULT_MODE else ""
            words.append(
                f"options={{{of_mode}{', '.join(f'{json.dumps(key)}: {_code(v)}' for key, v in self.inductor)}}}"
            )
        elif self.mode != DEFAULT_MODE:
            words.append(f'mode="{self.mode}"')
        if self.dynamic is not None:
            words.append(f"dynamic={self.dynamic}")
        return ", ".join(words)


@dataclass(frozen=True)
class CompiledBlocks:
    """The repeated block that was compiled: the name of its class, how many there are, and the path of the container
    that holds them and nothing else, None where there is no such container."""

    block: str
    count: int
    container: str | None = None


def parse_arm(text: str) -> CompileOptions:
    """Read `--arm`: words between commas, in any order. Raises SpecError."""
    if len(text) > _MAX_CHARS:
        raise SpecError(f"--arm is longer than {_MAX_CHARS} characters")
    found = CompileOptions()
    seen: set[str] = set()
    for word in (part.strip() for part in text.split(",")):
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals and key in TORCH_MODES:
            key, value = "mode", key
        name = "regions" if key in list(Regions) else key
        if name in seen:
            raise SpecError(f"--arm {text} says {key} twice")
        seen.add(name)
        found = _with_word(found, key, value if equals or key == "mode" else None, text)
    return replace(found, inductor=tuple(sorted(found.inductor)))


def _with_word(found: CompileOptions, key: str, value: str | None, text: str) -> CompileOptions:
    if key == "mode":
        if value not in TORCH_MODES:
            raise SpecError(f"unknown mode '{value}' in --arm {text}: one of {', '.join(TORCH_MODES)}")
        return replace(found, mode=value)
    if key in list(Regions):
        if value is not None and not _KEY.fullmatch(value):
            raise SpecError(f"'{value}' in --arm {text} is no name of a class: write {key}=Block")
        return replace(found, regions=Regions(key), block=value)
    if value is None or not _KEY.fullmatch(key):
        raise SpecError(f"cannot read '{key}' in --arm {text}: {_HOW}")
    if key == "dynamic":
        if value.lower() not in _DYNAMIC:
            raise SpecError(f"dynamic={value} in --arm {text}: true, false or none")
        return replace(found, dynamic=_DYNAMIC[value.lower()])
    if key == "cache":
        if value not in list(KeyValueCache):
            raise SpecError(f"cache={value} in --arm {text}: static or growing")
        return replace(found, cache=KeyValueCache(value))
    if key in ("fullgraph", "backend"):
        instead = "give --fullgraph" if key == "fullgraph" else "Inductor is what is measured"
        raise SpecError(f"{key} is nothing to compare in --arm {text}: {instead}")
    return replace(found, inductor=(*found.inductor, (key, _read_value(value, text))))


def _read_value(text: str, arm: str) -> OptionValue:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        number = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        number = None
    if type(number) is int or (type(number) is float and abs(number) < float("inf")):
        return number
    if not _TEXT_VALUE.fullmatch(text):
        raise SpecError(f"cannot read the value '{text}' in --arm {arm}: true, false, a number or a word")
    return text


def _written(value: OptionValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _code(value: OptionValue) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)
