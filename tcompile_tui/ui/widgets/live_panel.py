"""What the panels of a running measurement have in common: lines of text that are drawn again only when they change."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import duration

DIM = "$foreground-muted"
_TENTHS_BELOW_S = 60.0


def cut(text: str, width: int, ascii_only: bool = False) -> str:
    """`text` in at most `width` cells; a mark says that something is missing."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1) + ("~" if ascii_only else "…") if width > 0 else ""


def ticking(seconds: float) -> str:
    """Seconds that go on, with one decimal: `6.1 s`, `2 min 05 s`."""
    return f"{max(0.0, seconds):.1f} s" if seconds < _TENTHS_BELOW_S else duration(seconds)


class LivePanel(Static):
    """Shows `lines` of the state in the room there is. `ascii_only` is for a terminal that does not take UTF-8."""

    DEFAULT_CSS = """
    LivePanel { text-wrap: nowrap; text-overflow: clip; }
    """
    GROWS: ClassVar[bool] = False
    """Whether the number of lines decides the panel's height, and not the other way round."""

    def __init__(self, *, ascii_only: bool = False, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self.ascii_only = ascii_only
        self._given: tuple[RunState, float] | None = None
        self._drawn: list[Content] = []

    def lines(self, state: RunState, now_s: float, width: int, height: int) -> list[Content]:
        """At most `height` lines of at most `width` cells; `now_s` counts from the start of the run."""
        raise NotImplementedError

    def heading(self, state: RunState) -> str:
        """The panel's title; empty for none."""
        return ""

    def show(self, state: RunState, now_s: float) -> None:
        """Take in the state; cheap when nothing that is shown has changed."""
        self._given = state, now_s
        self._redraw()

    def on_resize(self) -> None:
        self._redraw()

    def _redraw(self) -> None:
        if self._given is None:
            return
        state, now_s = self._given
        name_pane(self, self.heading(state), self.ascii_only)
        width, height = self.content_size
        if width < 1 or (height < 1 and not self.GROWS):
            return
        lines = self.lines(state, now_s, width, height)
        if not _same(lines, self._drawn):
            grown = self.GROWS and len(lines) != len(self._drawn)
            self._drawn = lines
            self.update(Content("\n").join(lines), layout=grown)


def name_pane(pane: Widget, text: str, ascii_only: bool) -> None:
    """A title in the upper border of a pane, as wide as it may be. A box sets it off from its line, a mere line
    above does not."""
    boxed = bool(pane.styles.border_left[0])
    title = cut(text, max(0, pane.size.width - 4), ascii_only)
    title = title if boxed or not title else f" {title} "
    if str(pane.border_title or "") != title:
        pane.border_title = Content(title)


def _same(lines: list[Content], others: list[Content]) -> bool:
    """Contents compare by their text alone; a change of style counts too."""
    return len(lines) == len(others) and all(
        line.plain == other.plain and line.spans == other.spans for line, other in zip(lines, others)
    )


def spread(left: Content, right: str, width: int, right_style: str = "") -> Content:
    """`left` at the left, `right` at the right end of `width` cells."""
    room = width - cell_len(right)
    if room < 1:
        return left.truncate(width)
    return Content.assemble(left.truncate(room - 1, pad=True), " ", (right, right_style))
