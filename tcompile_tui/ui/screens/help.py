"""The keys of a screen, and what it shows."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Static

from tcompile_tui.ui.commands import Command, CommandScreen, commands_of


class HelpScreen(CommandScreen[None], ModalScreen[None]):
    """Help for `screen`, from its COMMANDS and its HELP."""

    COMMANDS: ClassVar[tuple[Command, ...]] = (  # type: ignore[assignment]
        Command("escape,q,question_mark,enter", "dismiss", "Back", "Close the help"),
    )
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll { width: 100%; max-width: 92; height: auto; max-height: 100%; margin: 1 2;
        background: $surface; scrollbar-size-vertical: 1; }
    HelpScreen Static { height: auto; }
    HelpScreen .about { margin-bottom: 1; }
    """

    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self._about = screen

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="panel") as panel:
            panel.border_title = "Help"
            text = " ".join(getattr(self._about, "HELP", "").split(" ")).strip()
            if text:
                yield Static(Content(text), classes="about")
            yield Static(self._keys())
        yield Footer(show_command_palette=False)

    def _keys(self) -> Content:
        rows = [(self._key_names(command), command) for command in commands_of(self._about, self.app)]
        width = max(len(names) for names, _ in rows)
        labels = max(len(command.label) for _, command in rows)
        lines = [
            Content.assemble((names.rjust(width), "bold $accent"), f"  {command.label.ljust(labels)}  ", command.help)
            for names, command in rows
        ]
        return Content("\n").join(lines)

    def _key_names(self, command: Command) -> str:
        bindings = (binding for binding in command.binding.make_bindings([command.binding]))
        return " ".join(self.app.get_key_display(binding) for binding in bindings)
