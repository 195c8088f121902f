"""What the terminal can show."""

from __future__ import annotations

import sys


def is_ascii_only() -> bool:
    """True if the stream that Textual draws on cannot carry box and braille characters."""
    encoding = getattr(sys.__stderr__, "encoding", None) or "ascii"
    return "utf" not in encoding.lower()
