"""The model's inputs: one row for each parameter of forward."""

from __future__ import annotations

from collections.abc import Mapping

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from tcompile_tui.ui.inspecting import Answer, RowProposal
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
        self._proposals: Mapping[str, RowProposal] = {}
        self._usual = _NOT_KNOWN
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

    def show(self, rows: tuple[InputRow, ...], texts: Mapping[str, str], giver: str | None) -> None:
        """`giver` gives the inputs by itself, and what is written here stands in for them."""
        self._usual, self._proposals = _source_of(rows, giver), {}
        self.say("")
        for field in self._fields:
            field.remove()
        self._rows = rows
        self._fields = [self._field(row, rows, texts.get(row.name, "")) for row in rows]
        self.mount(*self._fields)

    def say(self, text: str) -> None:
        """One line in place of the usual one; "" brings that back."""
        self._source.update(_headline(text or self._usual))

    def answer(self, answer: Answer) -> Input | None:
        """Show what was found out. Proposals stand in the rows as such, not as what is written. Returns the first."""
        self._source.update(_headline(answer.summary, failed=answer.failed))
        self._proposals = answer.proposals
        for row, field in zip(self._rows, self._fields, strict=True):
            field.line.placeholder = self._placeholder(row)
        return next((f.line for r, f in zip(self._rows, self._fields, strict=True) if r.name in self._proposals), None)

    def offer_in(self, line: Widget) -> RowProposal | None:
        """The proposal that can be taken in this line, where nothing is written yet."""
        for row, field in zip(self._rows, self._fields, strict=True):
            if field.line is line and not field.line.value:
                return self._proposals.get(row.name)
        return None

    @property
    def offered(self) -> set[str]:
        """Keys of the rows that a proposal waits in."""
        return {row.key for row, field in zip(self._rows, self._fields, strict=True) if self.offer_in(field.line)}

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        """They were checked together, so all are taken, but for rows that something else is written in."""
        if self.offer_in(event.input) is None:
            return
        for field in self._fields:
            proposal = self.offer_in(field.line)
            if proposal is not None:
                field.line.value = proposal.text
        self._proposals = {}
        self.say("as proposed")

    def _placeholder(self, row: InputRow) -> str:
        proposal = self._proposals.get(row.name)
        if proposal is not None:
            return one_line(f"proposed: {proposal.text}")
        return f"{'e.g.' if row.required else 'optional:'} {row.example}"

    def _field(self, row: InputRow, rows: tuple[InputRow, ...], text: str) -> Field:
        longest = max(len(one_line(each.name)) for each in rows)
        label = f"{one_line(row.name):<{longest}} =" if row.name else ""
        line = Input(text, placeholder=self._placeholder(row))
        return Field(row.key, label, line, classes="-sub")


def _source_of(rows: tuple[InputRow, ...], giver: str | None) -> str:
    if giver is not None:
        return f"from {giver}, or write" if rows else f"from {giver}"
    if not rows:
        return _NOT_KNOWN
    return "as forward takes them:" if rows[0].name else "name=dtype[shape], separated by spaces"


def _headline(text: str, failed: bool = False) -> Content:
    said = (f"! {one_line(text)}", "$text-error") if failed else (one_line(text), "dim")
    return Content.assemble(("Inputs".ljust(LABEL_COLUMNS), "bold"), said)
