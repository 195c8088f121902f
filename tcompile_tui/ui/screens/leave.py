"""What becomes of a run that goes on when the program is left."""

from __future__ import annotations

import enum
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tcompile_tui.ui.commands import Command, CommandScreen


class Leave(enum.Enum):
    KEEP = "keep"
    STOP = "stop"
    CANCEL = "cancel"


class LeaveScreen(ModalScreen[Leave], CommandScreen[Leave]):
    """Asks: keep running, stop, or cancel. Nothing is chosen by accident: enter cancels."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("k", "choose('keep')", "Keep running", "Leave; the run goes on without this terminal"),
        Command("s", "choose('stop')", "Stop it", "End the run without a decision, then leave; its folder stays"),
        Command("c,escape,enter,q,ctrl+q", "choose('cancel')", "Cancel", "Stay here"),
    )
    DEFAULT_CSS = """
    LeaveScreen { align: center middle; }
    LeaveScreen > Vertical { width: auto; max-width: 90%; height: auto; background: $surface; padding: 1 2; }
    LeaveScreen Static { width: auto; max-width: 100%; height: auto; }
    LeaveScreen .keys { margin-top: 1; }
    """

    def compose(self) -> ComposeResult:
        with Vertical(classes="panel"):
            yield Static("The run goes on. What shall become of it?", markup=False)
            keys = Content.assemble(
                ("k ", "bold"), "keep it running and leave\n",
                ("s ", "bold"), "stop it and leave (no decision; its folder stays)\n",
                ("c ", "bold"), "cancel: stay here",
            )  # fmt: skip
            yield Static(keys, classes="keys")

    def action_choose(self, choice: str) -> None:
        self.dismiss(Leave(choice))
