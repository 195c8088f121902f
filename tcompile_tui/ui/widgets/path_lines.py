"""A list of paths of any length: only the lines that are seen are made."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


@dataclass(frozen=True)
class Section:
    """A heading, and `length` lines below it; `line` makes one of them."""

    heading: str
    length: int
    line: Callable[[int], str]


class PathLines(ScrollView, can_focus=True):
    """Sections one below the other. Text has to be literal."""

    DEFAULT_CSS = """
    PathLines { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._sections: tuple[Section, ...] = ()
        self._starts: list[int] = [0]
        self._width = 0

    def show(self, sections: Sequence[Section], width: int = 0) -> None:
        """`width` is that of the longest line; more is cut off."""
        self._sections = tuple(sections)
        self._starts = [0, *accumulate(section.length + 1 for section in self._sections)]
        self._width = width
        self.virtual_size = Size(max(width, *(len(section.heading) for section in sections), 1), self._starts[-1])
        self.scroll_to(0, 0, animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        style = self.rich_style
        if number >= self._starts[-1]:
            return Strip.blank(self.size.width, style)
        index = bisect_right(self._starts, number) - 1
        section, row = self._sections[index], number - self._starts[index] - 1
        text = section.heading if row < 0 else section.line(row)
        strip = Strip([Segment(text, style + Style(bold=True) if row < 0 else style)])
        left = self.scroll_offset.x
        return strip.crop_extend(left, left + self.size.width, style)
