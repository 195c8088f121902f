"""Findings, worst first; each with its place, wrapped to the width there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from textual import events
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tcompile_tui.core.findings import Finding
from tcompile_tui.ui.widgets.decision_look import SEVERITY_MARKS, SEVERITY_STYLES
from tcompile_tui.ui.widgets.literal import one_line
from tcompile_tui.ui.widgets.prose import wrapped

GRAPH_BREAK = "graph-break"
_INDENT = 3


def place_of(finding: Finding) -> str:
    """`model.py:12`; empty where the finding has no place."""
    if finding.file is None:
        return ""
    name = PurePath(finding.file).name
    return f"{name}:{finding.line}" if finding.line is not None else name


def finding_lines(finding: Finding, width: int, ascii_only: bool) -> Content:
    """The mark, the title and the place, wrapped with an indent."""
    title = one_line(finding.title, ascii_only)
    place = one_line(place_of(finding), ascii_only)
    text = f"{title}  {place}".rstrip() if place else title
    lines = [line.plain for line in wrapped(Content(text), max(8, width - _INDENT))]
    mark = SEVERITY_MARKS[finding.severity].ljust(_INDENT)
    body = ("\n" + " " * _INDENT).join(lines)
    place_style = "bold" if place and body.endswith(place) else ""
    if place_style:
        body = body.removesuffix(place)
        return Content.assemble((mark, SEVERITY_STYLES[finding.severity]), body, (place, place_style))
    return Content.assemble((mark, SEVERITY_STYLES[finding.severity]), body)


class FindingList(OptionList):
    """A list as high as its findings, inside a page that scrolls: above the first finding and below the last one
    the arrow keys move the page."""

    DEFAULT_CSS = """
    FindingList { height: auto; border: none; padding: 0; background: transparent; }
    FindingList:focus { border: none; background: transparent; background-tint: $foreground 0%; }
    FindingList:focus > .option-list--option-highlighted {
        background: $primary 40%; color: $foreground; text-style: bold;
    }
    """

    def __init__(self, findings: Sequence[Finding], ascii_only: bool = False, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._all = tuple(findings)
        self._ascii_only = ascii_only
        self._shown = self._all
        self._rows: list[int] = []
        self.breaks_only = False

    @property
    def breaks(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self._all if finding.id == GRAPH_BREAK)

    @property
    def chosen(self) -> Finding | None:
        return self._shown[self.highlighted] if self.highlighted is not None and self._shown else None

    def show_breaks_only(self, breaks_only: bool) -> None:
        self.breaks_only = breaks_only
        self._shown = self.breaks if breaks_only else self._all
        self.highlighted = None
        self._fill()

    def rows_of(self, index: int) -> tuple[int, int]:
        """The first row of a finding, and its height."""
        return sum(self._rows[:index]), self._rows[index]

    # ------------------------------------------------------------ Textual

    def on_resize(self, event: events.Resize) -> None:
        self._fill()

    def action_cursor_down(self) -> None:
        page = self._page
        if page is not None and self.highlighted == len(self._shown) - 1:
            page.scroll_down(animate=False)
        else:
            super().action_cursor_down()

    def action_cursor_up(self) -> None:
        page = self._page
        if page is not None and (not self.highlighted or self._is_above(page)):
            page.scroll_up(animate=False)
        else:
            super().action_cursor_up()

    @property
    def _page(self) -> VerticalScroll | None:
        return next((node for node in self.ancestors if isinstance(node, VerticalScroll)), None)

    def _is_above(self, page: VerticalScroll) -> bool:
        return self.highlighted is not None and self.region.y + self.rows_of(self.highlighted)[0] < page.region.y

    def _fill(self) -> None:
        width = self.size.width - 2
        if width <= 0:
            return
        index = self.highlighted or 0
        prompts = [finding_lines(finding, width, self._ascii_only) for finding in self._shown]
        self._rows = [prompt.plain.count("\n") + 1 for prompt in prompts]
        self.set_options(Option(prompt) for prompt in prompts)
        self.highlighted = min(index, len(prompts) - 1) if prompts else None
