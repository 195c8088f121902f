"""Constructor arguments as a person writes them: `--arg hidden=256`, `--arg act=relu`, `--arg config=@config.json`.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .spec_error import SpecError

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_WORD = re.compile(r"[\w./:+~-]+")


@dataclass(frozen=True)
class Argument:
    """One argument, its value as written. A dotted name is a field of a config: `config.hidden`."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}={self.text}"

    @property
    def parameter(self) -> str:
        """The parameter that it is for."""
        return self.name.partition(".")[0]

    @property
    def file(self) -> str | None:
        """The JSON or YAML file that holds the value, if it is written as one."""
        return self.text[1:] if self.text.startswith("@") else None


def parse_arguments(texts: Sequence[str]) -> tuple[Argument, ...]:
    """Read every `--arg`. Raises SpecError."""
    arguments: list[Argument] = []
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not _NAME.fullmatch(name):
            raise SpecError(f"cannot read the argument '{text}': write --arg hidden=256")
        argument = Argument(name, value)
        if name in (known.name for known in arguments):
            raise SpecError(f"the argument '{name}' is given twice")
        if argument.file is None:
            read_value(argument)
        elif not argument.file:
            raise SpecError(f"no file after @ in '{text}': write --arg {name}=@config.json")
        arguments.append(argument)
    return tuple(arguments)


def read_value(argument: Argument) -> Any:
    """The value: JSON, else a Python literal, else a single word as text. Raises SpecError."""
    text = argument.text
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ast.literal_eval(text)
    if _WORD.fullmatch(text):
        return text
    raise SpecError(
        f"cannot read the value of '{argument}': write a number, True, None, a word, or JSON such as [64, 128]"
    )
