"""A labelled row (or column) of options: one of them, or any number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

LABEL_COLUMNS = 8
_GAP = 2
_LEAST_DETAIL = 12


@dataclass(frozen=True)
class Option:
    """`detail` is shown beside the option where there is room, and by the form while the option is current."""

    value: str
    label: str
    detail: str = ""


@dataclass(frozen=True)
class _Placed:
    index: int
    x: int
    y: int
    text: str


class Choices(Widget, can_focus=True):
    """Left and right choose in a row; up and down move in a column, where space takes or drops."""

    BINDINGS: ClassVar[list[Binding]] = [  # type: ignore[assignment]
        Binding("left", "move(-1)", "Previous", show=False),
        Binding("right", "move(1)", "Next", show=False),
        Binding("up", "step(-1)", "Previous", show=False),
        Binding("down", "step(1)", "Next", show=False),
        Binding("space,enter", "take", "Take", show=False),
    ]
    DEFAULT_CSS = """
    Choices { height: auto; width: 1fr; }
    """

    options: reactive[tuple[Option, ...]] = reactive((), layout=True)
    chosen: reactive[frozenset[str]] = reactive(frozenset())
    cursor: reactive[int] = reactive(0)
    reason: reactive[str] = reactive("", layout=True)
    """Why the choice is wrong; shown below it."""

    @dataclass
    class Changed(Message):
        """A person chose something else."""

        choices: Choices

        @property
        def control(self) -> Choices:
            return self.choices

    @dataclass
    class Moved(Message):
        """Another option is current."""

        choices: Choices

    def __init__(
        self,
        label: str,
        options: Iterable[Option],
        chosen: Iterable[str] = (),
        *,
        id: str,
        column: bool = False,
        several: bool = False,
        detail_columns: int = 0,
        ascii_only: bool = False,
    ) -> None:
        """`detail_columns` of a column are for details, even if labels must be cut for them."""
        super().__init__(id=id)
        self._detail_columns = detail_columns
        self._label = label
        self._column = column
        self._several = several
        self._ascii_only = ascii_only
        self.set_reactive(Choices.options, tuple(options))
        self.set_reactive(Choices.chosen, frozenset(chosen))
        self.set_reactive(Choices.cursor, self._first_chosen())

    @property
    def value(self) -> str:
        """The one that is chosen, "" if none is."""
        return next((option.value for option in self.options if option.value in self.chosen), "")

    @property
    def detail(self) -> str:
        """About the current option."""
        if not self.options:
            return ""
        option = self.options[min(self.cursor, len(self.options) - 1)]
        return f"{option.label}: {option.detail}" if option.detail else option.label

    def show(self, options: Sequence[Option], chosen: Iterable[str]) -> None:
        """Other options, from the program: posts nothing."""
        self.options = tuple(options)
        self.choose(chosen)

    def choose(self, chosen: Iterable[str]) -> None:
        """From the program: posts nothing."""
        self.chosen = frozenset(chosen)
        self.cursor = self._first_chosen()

    def _first_chosen(self) -> int:
        return next((i for i, option in enumerate(self.options) if option.value in self.chosen), 0)

    # ------------------------------------------------------------ keys and mouse

    def action_move(self, by: int) -> None:
        self._go_to(self.cursor + by)

    def action_step(self, by: int) -> None:
        """Inside a column to the next option, else to the next field."""
        if self._column and 0 <= self.cursor + by < len(self.options):
            self._go_to(self.cursor + by)
        elif by > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def action_take(self) -> None:
        self._take(self.cursor)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        for placed in self._placed(self.size.width):
            if placed.y == offset.y and placed.x <= offset.x < placed.x + len(placed.text):
                self.cursor = placed.index
                self._take(placed.index)

    def _go_to(self, index: int) -> None:
        if not 0 <= index < len(self.options):
            return
        self.cursor = index
        if self._column and isinstance(self.parent, Widget):
            self.parent.scroll_to_region(Region(0, self.virtual_region.y + index, 1, 1), animate=False)
        if not self._several:
            self._take(index)
        self.post_message(self.Moved(self))

    def _take(self, index: int) -> None:
        if not self.options:
            return
        value = self.options[index].value
        chosen = self.chosen ^ {value} if self._several else frozenset({value})
        if chosen != self.chosen:
            self.chosen = chosen
            self.post_message(self.Changed(self))

    # ------------------------------------------------------------ looks

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._rows(width) + bool(self.reason)

    def _rows(self, width: int) -> int:
        return max((placed.y for placed in self._placed(width)), default=0) + 1

    def render(self) -> Content:
        width = self.size.width
        lines: dict[int, Content] = {0: Content.styled(self._label.ljust(self._indent), "bold")}
        for placed in self._placed(width):
            line = lines.get(placed.y, Content(""))
            lines[placed.y] = line.pad_right(placed.x - line.cell_length) + self._styled(placed)
        if self.reason:
            lines[self._rows(width)] = Content.styled(f"{'':{self._indent}}! {self.reason}", "$text-error")
        return Content("\n").join(self._with_detail(y, lines[y], width) for y in sorted(lines))

    def _styled(self, placed: _Placed) -> Content:
        taken = self.options[placed.index].value in self.chosen
        here = self.has_focus and placed.index == self.cursor
        return Content.styled(placed.text, "bold reverse" if here else "bold" if taken else "dim")

    def _with_detail(self, y: int, line: Content, width: int) -> Content:
        """The details stand in a column of their own, so the longest label decides where, and if."""
        if self._column:
            longest = max((placed.x + len(placed.text) for placed in self._placed(width)), default=0)
            detail = self.options[y].detail if y < len(self.options) else ""
        else:
            longest = line.cell_length
            chosen = next((option.detail for option in self.options if option.value in self.chosen), "")
            detail = chosen if y == self._rows(width) - 1 else ""
        room = width - longest - _GAP
        if not detail or room < min(len(detail), _LEAST_DETAIL):
            return line
        cut = detail if len(detail) <= room else detail[: room - 1] + ("~" if self._ascii_only else "…")
        return line.pad_right(longest + _GAP - line.cell_length) + Content.styled(cut, "dim")

    @property
    def _indent(self) -> int:
        return LABEL_COLUMNS if self._label else 0

    def _placed(self, width: int) -> list[_Placed]:
        """Where each option stands; a row goes on below when it is full."""
        found: list[_Placed] = []
        x, y = self._indent, 0
        for index, option in enumerate(self.options):
            text = f"{self._mark(option)} {option.label}"
            if self._column:
                room = width - self._indent
                text = self._cut(text, room - (self._detail_columns if room > 2 * _LEAST_DETAIL else 0))
                found.append(_Placed(index, self._indent, index, text))
                continue
            if x > self._indent and x + len(text) > width:
                x, y = self._indent, y + 1
            found.append(_Placed(index, x, y, text))
            x += len(text) + _GAP
        return found

    def _cut(self, text: str, room: int) -> str:
        return text if len(text) <= room else text[: max(0, room - 1)] + ("~" if self._ascii_only else "…")

    def _mark(self, option: Option) -> str:
        taken = option.value in self.chosen
        if self._several:
            return "[x]" if taken else "[ ]"
        if self._ascii_only:
            return "(*)" if taken else "( )"
        return "●" if taken else "○"
