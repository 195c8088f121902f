"""One line to write in, with its label and, while it is wrong, the reason below it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from tcompile_tui.ui.widgets.choices import LABEL_COLUMNS
from tcompile_tui.ui.widgets.literal import one_line


class Field(Vertical):
    """`key` is the field's name among the errors of the form."""

    DEFAULT_CSS = f"""
    Field {{ height: auto; }}
    Field > Horizontal {{ height: auto; }}
    Field .label {{ width: auto; min-width: {LABEL_COLUMNS}; max-width: 50%; height: 1; text-style: bold; }}
    Field Input {{ width: 1fr; scrollbar-size: 0 0; }}
    Field > .reason {{ display: none; height: auto; color: $text-error; padding-left: {LABEL_COLUMNS}; }}
    Field.-wrong > .reason {{ display: block; }}
    Field.-sub .label {{ text-style: none; padding: 0 1 0 2; }}
    """

    def __init__(
        self, key: str, label: str, line: Input, *beside: Widget, id: str | None = None, classes: str = ""
    ) -> None:
        super().__init__(id=id, classes=classes)
        line.compact = True
        self.key = key
        self.line = line
        self._label = label
        self._beside = beside
        self._reason = Static(classes="reason")

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(Content(self._label), classes="label")
            yield self.line
            yield from self._beside
        yield self._reason

    def complain(self, reason: str | None) -> None:
        """Mark the field as wrong, or with None as right. Not by colour alone: the reason begins with a mark."""
        self.set_class(reason is not None, "-wrong")
        self.line.set_class(reason is not None, "-invalid")
        if reason is not None:
            self._reason.update(Content(f"! {one_line(reason)}"))
