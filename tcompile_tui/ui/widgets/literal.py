"""Text of others on the screens; what makes it safe is in core/literal.py."""

from __future__ import annotations

from tcompile_tui.core.literal import literal, one_line

__all__ = ["literal", "one_line", "printed_lines"]


def printed_lines(text: str) -> list[str]:
    """Lines as a terminal would leave them: of a progress bar that overwrote itself, the last state."""
    return [literal(line.rstrip("\r").rpartition("\r")[2]) for line in text.split("\n")]
