"""Text that would do something to a terminal, put wherever a run holds text of others."""

from __future__ import annotations

import enum
import re
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tcompile_tui.core.events import Event

PAYLOADS = {
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "title": "\x1b]0;owned\x1b\\",
    "hyperlink": "\x1b]8;;http://evil/\x07",
    "clear": "\x1b[2J\x1b[H",
    "eight bits": "\x9b31m\x9d0;owned\x9c",
    "device string": "\x1bP+q544e\x1b\\",
    "reset": "\x1bc",
    "bidi": "\u202e\u2066txt.exe\u2069\u061c",
    "invisible": "\u200b\u2060\ufeff\U000e0041",
    "overwrite": "\rno\x08\x7f\x0b\x0c\x00",
    "markup": "[bold red][@click=app.quit]x[/]",
}
HOSTILE = "".join(PAYLOADS.values())
# What may never reach a terminal from text of others. Its own control sequences are not in what these tests look at.
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)

_Record = TypeVar("_Record")
# Names that records refer to each other by, or that are read as a part of the program.
_KEPT = {"kind", "run_id", "compile_id", "stage_name", "device", "code", "gb_id", "fault", "dtype"}


def poisoned(event: Event) -> Event:
    """The record with hostile text in front of every text of others."""
    return _poisoned(event)


def _poisoned(record: _Record) -> _Record:
    changes = {f.name: _value(getattr(record, f.name)) for f in fields(record) if f.name not in _KEPT}  # type: ignore[arg-type]
    return replace(record, **changes)  # type: ignore[type-var]


def _value(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        return HOSTILE + value
    if isinstance(value, tuple):
        return tuple(map(_value, value))
    return _poisoned(value) if is_dataclass(value) and type(value).__name__ not in ("RunSpec", "Plan") else value


def found_in(text: str) -> list[str]:
    """The forbidden characters that a text to be shown still has, with what is around them."""
    return [repr(text[max(0, m.start() - 20) : m.end() + 20]) for m in FORBIDDEN.finditer(text)]
