"""Text that wraps between words, but never between a number and its unit."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tcompile_tui.report.text import unbroken

# Stands for a blank while lines are found: one cell wide, and no blank to what looks for one.
_GLUE = "\ue000"


def wrapped(text: Content, width: int) -> list[Content]:
    """Lines of at most `width` cells; only words that are longer are broken."""
    glued = Content(unbroken(text.plain, _GLUE), list(text.spans))
    lines = glued.wrap(max(1, width))
    return [Content(line.plain.replace(_GLUE, " "), list(line.spans)).rstrip() for line in lines]


class Prose(Widget):
    """Sentences with figures in them."""

    DEFAULT_CSS = """
    Prose { height: auto; }
    """

    def __init__(self, text: Content, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._text = text

    def render(self) -> Content:
        return Content("\n").join(wrapped(self._text, self.content_size.width))

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return self._text.cell_length

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(wrapped(self._text, width))
