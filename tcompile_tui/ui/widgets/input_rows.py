"""The model's inputs: one row for each parameter of forward."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from tcompile_tui.ui.setup_form import InputRow
from tcompile_tui.ui.widgets.choices import LABEL_COLUMNS
from tcompile_tui.ui.widgets.field import Field
from tcompile_tui.ui.widgets.literal import one_line

_NOT_KNOWN = "once a model is chosen"


class InputRows(Vertical):
    """Empty until it is told what the model takes."""

    DEFAULT_CSS = """
    InputRows { height: auto; }
    InputRows > Static { height: auto; }
    """

    def __init__(self) -> None:
        super().__init__(id="inputs")
        self._rows: tuple[InputRow, ...] = ()
        self._fields: list[Field] = []
        self._source = Static(_headline(_NOT_KNOWN))

    def compose(self) -> ComposeResult:
        yield self._source

    @property
    def rows(self) -> tuple[InputRow, ...]:
        return self._rows

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """What is written, by parameter."""
        pairs = zip(self._rows, self._fields, strict=True)
        return tuple((row.name, field.line.value) for row, field in pairs if field.line.value.strip())

    @property
    def fields(self) -> list[Field]:
        """One for each of `rows`."""
        return self._fields

    def show(self, rows: tuple[InputRow, ...], texts: Mapping[str, str], from_file: bool) -> None:
        """`from_file`: the file gives the inputs itself, and what is written here stands in for them."""
        self._source.update(_headline(_source_of(rows, from_file)))
        for field in self._fields:
            field.remove()
        self._rows = rows
        self._fields = [self._field(row, rows, texts.get(row.name, "")) for row in rows]
        self.mount(*self._fields)

    def _field(self, row: InputRow, rows: tuple[InputRow, ...], text: str) -> Field:
        longest = max(len(one_line(each.name)) for each in rows)
        label = f"{one_line(row.name):<{longest}} =" if row.name else ""
        line = Input(text, placeholder=f"{'e.g.' if row.required else 'optional:'} {row.example}")
        return Field(row.key, label, line, classes="-sub")


def _source_of(rows: tuple[InputRow, ...], from_file: bool) -> str:
    if from_file:
        return "from example_inputs(), or write" if rows else "from example_inputs()"
    if not rows:
        return _NOT_KNOWN
    return "as forward takes them:" if rows[0].name else "name=dtype[shape], separated by spaces"


def _headline(text: str) -> Content:
    return Content.assemble(("Inputs".ljust(LABEL_COLUMNS), "bold"), (text, "dim"))
