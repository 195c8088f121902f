"""The keys of a screen, and what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Static

from tcompile_tui.ui.commands import Command, CommandScreen, commands_of

_TERM = re.compile(r"(?P<term>\S.*?)\s{2,}(?P<text>\S.*)")


class HelpScreen(ModalScreen[None], CommandScreen[None]):
    """Help for `screen`, from its SCREEN_COMMANDS and its HELP. A line of HELP such as
    `speedup   what it means`, with two blanks or more after the term, becomes a row of two columns."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("escape,q,question_mark,enter", "dismiss", "Back", "Close the help"),
    )
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll { width: 100%; max-width: 92; height: auto; max-height: 100%; margin: 0 1;
        background: $surface; scrollbar-size-vertical: 1; }
    HelpScreen Static { height: auto; }
    HelpScreen Horizontal { height: auto; }
    HelpScreen .term { color: $accent; text-style: bold; margin-right: 2; }
    HelpScreen .text { width: 1fr; }
    """

    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self._about = screen

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="panel") as panel:
            panel.border_title = "Help"
            yield from _two_columns(list(self._explanations()))
            yield Static("")
            commands = commands_of(self._about, self.app)
            yield from _two_columns([(self._key_names(command), command.help) for command in commands])
        yield Footer(show_command_palette=False)

    def _explanations(self) -> Iterator[tuple[str, str]]:
        for line in getattr(self._about, "HELP", "").strip().splitlines():
            match = _TERM.fullmatch(line.strip())
            yield (match["term"], match["text"]) if match else ("", line.strip())

    def _key_names(self, command: Command) -> str:
        bindings = command.binding.make_bindings([command.binding])
        return " ".join(self.app.get_key_display(binding) for binding in bindings)


def _two_columns(rows: list[tuple[str, str]]) -> Iterator[Static | Horizontal]:
    """Rows whose second column wraps within itself; a row without a term has the whole width."""
    width = max((len(term) for term, _ in rows), default=0)
    for term, text in rows:
        explanation = Static(Content(text), classes="text")
        if term:
            name = Static(Content(term), classes="term")
            name.styles.width = width
            yield Horizontal(name, explanation)
        else:
            yield explanation
