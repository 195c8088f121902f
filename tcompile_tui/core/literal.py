"""Text of others, made safe to show: no escape sequence, no control byte, no mark that turns the writing around."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Control characters of both sets; zero width, direction and line separators; the invisible copies of ASCII.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_NOT_IN_A_NAME = re.compile(rf"{_CONTROL.pattern}|[\t\n]")
_TAB_SIZE = 4


def literal(text: str, ascii_only: bool = False) -> str:
    """`text` without escape sequences, control characters and marks that turn the direction of writing. Line ends
    stay, tabs become blanks; lone surrogates (bytes of a file name) are shown as escapes."""
    plain = _CONTROL.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n"))).expandtabs(_TAB_SIZE)
    encoding = "ascii" if ascii_only else "utf-8"
    return plain.encode(encoding, "backslashreplace").decode(encoding)


def escaped(name: str) -> str:
    """A name on one line, with escapes in place of what `literal` leaves out: it can still be told from another."""
    shown = _NOT_IN_A_NAME.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), name)
    return shown.encode("utf-8", "backslashreplace").decode("utf-8")


def one_line(text: str, ascii_only: bool = False) -> str:
    """`literal` text with every run of white space as one blank."""
    return " ".join(literal(text, ascii_only).split())
