"""A text file of a run as it stands: what the model printed, or the tracebacks."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.widgets import Footer, Log

from tcompile_tui.core.units import size
from tcompile_tui.ui.commands import Command, CommandScreen
from tcompile_tui.ui.widgets.literal import printed_lines

_TAIL_BYTES = 200_000


def read_tail(path: Path, most_bytes: int = _TAIL_BYTES) -> tuple[list[str], int]:
    """The last lines of a file, and how many bytes before them are left out. Raises OSError."""
    with path.open("rb") as file:
        length = file.seek(0, 2)
        left_out = max(0, length - most_bytes)
        file.seek(left_out)
        text = file.read(most_bytes).decode("utf-8", "replace")
    lines = printed_lines(text.rstrip("\n"))
    return (lines[1:] if left_out else lines), left_out


class LogScreen(ModalScreen[None], CommandScreen[None]):
    """Shows the end of `path`."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("escape,q,l,t", "dismiss", "Back", "Back to where you came from"),
    )
    HELP = "The file as it is, without its control characters. Arrow keys, page keys, home and end move."
    DEFAULT_CSS = """
    LogScreen > Log { height: 1fr; background: $surface; overflow: auto; scrollbar-size: 1 1; }
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def compose(self) -> ComposeResult:
        log = Log(classes="panel", auto_scroll=True)
        log.border_title = self._path.name
        yield log
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        log = self.query_one(Log)
        try:
            lines, left_out = read_tail(self._path)
        except OSError as error:
            lines, left_out = [f"{self._path}: {error.strerror or error}"], 0
        if not any(lines):
            lines = ["nothing was printed"]
        if left_out:
            log.border_subtitle = f"the end; {size(left_out)} before it are in the file"
        log.write_lines(lines)
        # Only after the layout is it known that there is something to scroll.
        self.call_after_refresh(log.scroll_end, animate=False, x_axis=False)
        log.focus()
