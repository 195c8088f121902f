"""Comparison: two recorded runs side by side, and whether the later one is a step back."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Footer, Static

from tcompile_tui.core.compare_runs import Comparison, Trend
from tcompile_tui.report.comparison import ComparedRow, comparison_tables, table_lines
from tcompile_tui.ui.commands import Command, CommandScreen
from tcompile_tui.ui.widgets.literal import literal, one_line
from tcompile_tui.ui.widgets.prose import Prose

if TYPE_CHECKING:
    from tcompile_tui.ui.app import TCompileApp

_STYLES = {Trend.WORSE: "bold $error", Trend.BETTER: "bold $success", Trend.HOST: "$warning"}


class ComparedTable(Widget):
    """Rows in columns as wide as the room allows. A row's meaning is a word in it; the colour only points it out."""

    DEFAULT_CSS = "ComparedTable { height: auto; width: 1fr; }"

    def __init__(self, rows: list[ComparedRow], ascii_only: bool) -> None:
        super().__init__()
        self._rows = rows
        self._ascii_only = ascii_only

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(table_lines(self._rows, width))

    def render(self) -> Content:
        lines = [
            Content.styled(
                literal(line, self._ascii_only), _STYLES.get(row.trend, "") if row.label else "$foreground-muted"
            )
            for row, line in table_lines(self._rows, self.size.width)
        ]
        return Content("\n").join(lines)


class ComparisonScreen(CommandScreen[None]):
    """Opened on a comparison; leads back to where it was asked for."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("escape,q", "app.pop_screen", "Back", "Back to the runs"),
        Command("pagedown,space", "page_down", "Page down", "Further down", show=False),
        Command("pageup", "page_up", "Page up", "Further up", show=False),
    )
    HELP = """\
Every figure of the later run beside the earlier one's. A change is the later value over the earlier one.
worse, better  the 95 % interval of the change does not hold 1
in the noise   what there is lies within the intervals
maybe the host eager waits for the CPU, and a CPU of another speed moves the speedup: nothing to do with the compiler
Step times of different runs are shown, not compared: a machine's level wanders. The speedup is a ratio within a run.
One start is one draw: a cold or warm start counts as changed from about a third on."""
    DEFAULT_CSS = """
    ComparisonScreen > .title { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap;
        text-overflow: ellipsis; }
    ComparisonScreen #page { height: 1fr; scrollbar-size-vertical: 1; }
    ComparisonScreen .panel { height: auto; }
    ComparisonScreen Prose { height: auto; }
    ComparisonScreen .names { height: auto; margin-top: 1; }
    """

    def __init__(self, comparison: Comparison) -> None:
        super().__init__()
        self._comparison = comparison

    def compose(self) -> ComposeResult:
        ascii_only = self._program.ascii_only
        yield Static(self._title(), classes="title")
        with VerticalScroll(id="page"):
            with Vertical(classes="panel") as head:
                head.border_title = self._answer
                yield Prose(Content(one_line(self._comparison.summary, ascii_only)))
                yield Static(self._names(), classes="names")
            for title, rows in comparison_tables(self._comparison):
                with Vertical(classes="panel") as panel:
                    panel.border_title = title
                    yield ComparedTable(rows, ascii_only)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one("#page").focus()

    def action_page_down(self) -> None:
        self.query_one("#page").scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        self.query_one("#page").scroll_page_up(animate=False)

    @property
    def _answer(self) -> str:
        found = self._comparison
        if not found.same_question:
            return "not the same question"
        if found.worse or found.better:
            worse = "a regression" if found.is_regression else "worse" if found.worse else ""
            return " and ".join(part for part in (worse, "better" if found.better else "") if part)
        return "no change seen"

    def _title(self) -> Content:
        """With what both runs have in common."""
        run, found = self._comparison.after.state.run, self._comparison
        if run is None:
            return Content.assemble(("Compare", "bold"))
        different = {difference.name for difference in found.differences}
        facts = (("device", run.device_name), ("torch", f"torch {run.torch_version}"))
        common = ", ".join(text for name, text in facts if name not in different)
        target = Content(one_line(str(run.spec.target), self._program.ascii_only) if "model" not in different else "")
        parts = (target, Content.styled(one_line(common), "$foreground-muted"))
        return Content("  ").join([Content.styled("Compare", "bold"), *(part for part in parts if part)])

    def _names(self) -> Content:
        sides = (("before", self._comparison.before), ("after", self._comparison.after))
        longest = max(len(side.name) for _, side in sides)
        lines = [
            Content.assemble(
                (f"{label:<8}", "$foreground-muted"), f"{one_line(side.name):<{longest}}  {side.verdict.decision.value}"
            )
            for label, side in sides
        ]
        return Content("\n").join(lines)

    @property
    def _program(self) -> TCompileApp:
        return cast("TCompileApp", self.app)
