"""Text of others, made safe to show: no markup, no control bytes, one look in every terminal."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_TAB_SIZE = 4


def literal(text: str, ascii_only: bool = False) -> str:
    """`text` without escape sequences, control characters and marks that turn the direction of writing. Line ends
    stay, tabs become blanks."""
    plain = _CONTROL.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n"))).expandtabs(_TAB_SIZE)
    return plain.encode("ascii", "backslashreplace").decode("ascii") if ascii_only else plain


def one_line(text: str, ascii_only: bool = False) -> str:
    """`literal` text with every run of white space as one blank."""
    return " ".join(literal(text, ascii_only).split())


def printed_lines(text: str) -> list[str]:
    """Lines as a terminal would leave them: of a progress bar that overwrote itself, the last state."""
    return [literal(line.rstrip("\r").rpartition("\r")[2]) for line in text.split("\n")]
