"""What the terminal can show."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.driver import Driver


def is_ascii_only() -> bool:
    """True if the stream that Textual draws on cannot carry box and braille characters."""
    encoding = getattr(sys.__stderr__, "encoding", None) or "ascii"
    return "utf" not in encoding.lower()


def in_ascii(driver: type[Driver]) -> type[Driver]:
    """The driver, with a dot for the ellipsis that Textual puts where it cuts a label."""

    class AsciiDriver(driver):  # type: ignore[misc, valid-type]
        def write(self, data: str) -> None:
            super().write(data.replace("\N{HORIZONTAL ELLIPSIS}", "."))

    return AsciiDriver
