"""A question with yes or no."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tcompile_tui.ui.commands import Command, CommandScreen


class ConfirmScreen(ModalScreen[bool], CommandScreen[bool]):
    """`question`, and what `y` does in a few words. Everything but `y` is no."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("y", "answer(True)", "Yes", "Do it"),
        Command("n,escape,q,enter", "answer(False)", "No", "Leave it"),
    )
    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; }
    ConfirmScreen > Vertical { width: auto; max-width: 90%; height: auto; background: $surface; padding: 1 2; }
    ConfirmScreen Static { width: auto; max-width: 100%; height: auto; }
    ConfirmScreen .keys { margin-top: 1; }
    """

    def __init__(self, question: str, yes: str) -> None:
        super().__init__()
        self._question = question
        self._yes = yes

    def compose(self) -> ComposeResult:
        with Vertical(classes="panel"):
            yield Static(Content(self._question))
            keys = Content.assemble(("y ", "bold"), self._yes, ("    n ", "bold"), "leave it")
            yield Static(keys, classes="keys")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)
