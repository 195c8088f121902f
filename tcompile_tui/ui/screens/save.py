"""In which format to save the report."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, OptionList
from textual.widgets.option_list import Option

from tcompile_tui.report.formats import ReportFormat
from tcompile_tui.ui.commands import Command, CommandScreen

_WIDTH = 68
_USES = {
    ReportFormat.TEXT: "as on the command line",
    ReportFormat.MARKDOWN: "for an issue or a pull request",
    ReportFormat.HTML: "one page with figures",
    ReportFormat.JSON: "for programs; has a schema",
    ReportFormat.SCRIPT: "plain PyTorch that measures it again",
    ReportFormat.CSV: "the time of every step",
    ReportFormat.PROMETHEUS: "for node_exporter",
}


class SaveScreen(ModalScreen[ReportFormat | None], CommandScreen[ReportFormat | None]):
    """The formats with their file names; None where nothing is chosen."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("enter", "take", "Save", "Save in this format, into the run folder", priority=True),
        Command("escape,q", "dismiss", "Back", "Back, without saving"),
    )
    HELP = "Every format is also written by `tcompile-tui report RUN --format ...`."
    DEFAULT_CSS = f"""
    SaveScreen {{ align: center middle; }}
    SaveScreen > Vertical {{ width: {_WIDTH}; max-width: 100%; height: auto; max-height: 100%; background: $surface; }}
    SaveScreen OptionList {{ height: auto; max-height: 100%; background: $surface; padding: 0; }}
    SaveScreen OptionList, SaveScreen OptionList:focus {{ border: none; }}
    """

    def compose(self) -> ComposeResult:
        with Vertical(classes="panel") as panel:
            panel.border_title = "save the report as"
            yield OptionList()
        yield Footer(show_command_palette=False, compact=True)

    def on_resize(self) -> None:
        """What a format is for has its column where there is room."""
        formats = self.query_one(OptionList)
        chosen = formats.highlighted or 0
        with_use = self.size.width >= _WIDTH
        formats.set_options(Option(_line(format, with_use), id=format.value) for format in ReportFormat)
        formats.highlighted = chosen

    def action_take(self) -> None:
        self.query_one(OptionList).action_select()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(ReportFormat(event.option.id))


def _line(format: ReportFormat, with_use: bool) -> Content:
    use = f"{_USES[format]:<38}" if with_use else ""
    return Content.assemble(f"{format.value:<12}{use}", (format.file_name, "$foreground-muted"))
