"""The command that does what the form says."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

_LINES = 2


class CommandBar(Widget, can_focus=True):
    """Always visible. Where the keys are while nothing is being written: enter runs, like `r`."""

    BINDINGS: ClassVar[list[Binding]] = [Binding("enter", "screen.run", "Run", show=False)]  # type: ignore[assignment]
    SCOPED_CSS = False  # a scope would hide the classes of screen and app
    DEFAULT_CSS = f"""
    CommandBar {{ height: {_LINES + 1}; padding: 0 1; border-top: solid $primary-darken-1; border-title-color: $text; }}
    CommandBar:focus {{ border-top: solid $accent; }}
    .-ascii CommandBar, .-ascii CommandBar:focus {{ border-top: ascii $primary-darken-1; }}
    """

    command: reactive[str] = reactive("")
    can_run: reactive[bool] = reactive(False)

    def render(self) -> Content:
        """The command on two lines, broken between words; more is left to `y`."""
        lines = _wrapped(self.command, max(1, self.size.width - 2))
        if len(lines) > _LINES:
            lines = [*lines[: _LINES - 1], lines[_LINES - 1][: max(0, self.size.width - 8)] + " ..."]
        text = Content("\n  ".join(lines))
        return Content("$ ").stylize("dim") + (text if self.can_run else text.stylize("dim"))


def _wrapped(text: str, width: int) -> list[str]:
    """Whole words a line where they fit."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
