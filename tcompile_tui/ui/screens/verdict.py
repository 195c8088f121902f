"""Verdict: the decision, what it stands on, and what to do with it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Footer, OptionList, Static

from tcompile_tui.core.events import WorkerFailed
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import plural
from tcompile_tui.core.verdict import ExitCode, verdict_of
from tcompile_tui.host.run_folder import RunFolder, write_atomically
from tcompile_tui.report.formats import ReportFormat
from tcompile_tui.ui.commands import Command, CommandScreen
from tcompile_tui.ui.saving import CannotSaveError, save_report
from tcompile_tui.ui.screens.finding import FindingScreen, break_site
from tcompile_tui.ui.screens.log import LogScreen
from tcompile_tui.ui.screens.save import SaveScreen
from tcompile_tui.ui.widgets.decision_look import next_step
from tcompile_tui.ui.widgets.finding_list import FindingList
from tcompile_tui.ui.widgets.literal import literal, one_line
from tcompile_tui.ui.widgets.mode_table import ModeTable
from tcompile_tui.ui.widgets.shape_table import ShapeTable
from tcompile_tui.ui.widgets.total_time_plot import TotalTimePlot, mode_letters, total_times
from tcompile_tui.ui.widgets.verdict_facts import VerdictFacts
from tcompile_tui.ui.widgets.verdict_head import VerdictHead

if TYPE_CHECKING:
    from tcompile_tui.ui.app import TCompileApp

PASTE_FILE = "paste.txt"
_TRACEBACK_LINES = 12


class VerdictScreen(CommandScreen[None]):
    """The verdict of a run that has ended, or of one that was cut short, from what it left."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("y", "copy", "Copy", "Copy the line to paste (OSC 52), and write it to paste.txt"),
        Command("enter", "open_finding", "Open", "Open the finding: source, explanation, hints", priority=True),
        Command("b", "breaks", "Breaks", "Only the graph breaks, or all findings again"),
        Command("l", "log", "Log", "What the model printed"),
        Command("t", "tracebacks", "Traceback", "The tracebacks of what failed"),
        Command("s", "save_report", "Save", "Save a report: text, Markdown, html, JSON, a script, CSV"),
        Command("r", "rerun", "Rerun", "To Setup, with this model; what failed is said there too"),
        Command("h", "runs", "Runs", "Earlier runs"),
        Command("x", "caches", "Caches", "The compile caches, this run's among them, and clearing them"),
        Command("q,escape", "back", "Back", "Back, in the end to Setup"),
        Command("pagedown,space", "page_down", "Page down", "Further down", show=False, priority=True),
        Command("pageup", "page_up", "Page up", "Further up", show=False, priority=True),
        Command("home", "top", "Top", "To the top", show=False, priority=True),
        Command("end", "bottom", "End", "To the end", show=False, priority=True),
    )
    HELP = """\
The decision is made for the planned run: a cold start is paid once, then every step saves time.
speedup     eager step time over compiled step time, from neighbouring pairs of blocks, with its 95 % interval
paid back   steps after which the compiled run has caught up, with empty caches (cold) and filled ones (warm)
saves       share of the eager run's time that is saved, the cold start paid
outputs     compiled outputs (and gradients) against eager's: same, within rounding, uncertain or different
plot        total time over steps; a letter names a line, ^ is the best mode's break-even
findings    !! keeps it from a plain ENABLE, ! warning, > advice, - note"""
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]]] = [(0, "-tiny"), (76, "-narrow"), (104, "-wide")]  # type: ignore[misc]
    DEFAULT_CSS = """
    VerdictScreen > .title { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
    VerdictScreen #page { height: 1fr; scrollbar-size-vertical: 1; }
    VerdictScreen .row { height: auto; }
    VerdictScreen #facts { width: auto; height: auto; min-height: 9; }
    VerdictScreen #plot { width: 1fr; height: 9; }
    VerdictScreen #findings { width: 1fr; height: auto; }
    VerdictScreen #modes { width: auto; height: auto; }
    VerdictScreen #modes:first-child { width: 1fr; }
    VerdictScreen #shapes { height: auto; overflow-x: auto; }
    VerdictScreen #where, VerdictScreen #traceback { height: auto; }
    VerdictScreen.-narrow #lower, VerdictScreen.-tiny #lower, VerdictScreen.-tiny #upper { layout: vertical; }
    VerdictScreen.-narrow #modes, VerdictScreen.-tiny #modes { width: 1fr; overflow-x: auto; }
    VerdictScreen.-tiny #facts { width: 1fr; overflow-x: auto; }
    VerdictScreen.-narrow #facts { height: 8; min-height: 8; }
    VerdictScreen.-narrow #plot { height: 8; }
    """

    def __init__(self, folder: RunFolder, state: RunState) -> None:
        super().__init__()
        self._folder = folder
        self._state = state
        self._verdict = verdict_of(state)
        self._times = total_times(self._verdict)

    # ------------------------------------------------------------ what is shown

    def compose(self) -> ComposeResult:
        ascii_only, verdict = self._program.ascii_only, self._verdict
        best, run = verdict.best, self._state.run
        yield Static(self._title(), classes="title")
        with VerticalScroll(id="page", can_focus=not verdict.findings):
            yield VerdictHead(verdict, next_step(verdict, self._state), ascii_only, id="head")
            if best is not None and best.result.speedup is not None:
                with Horizontal(id="upper", classes="row"):
                    with Vertical(id="facts", classes="panel") as facts:
                        facts.border_title = Content(
                            f"{mode_letters(verdict)[best.result.mode]} {best.result.mode.value}{verdict.usual_text}"
                        )
                        yield VerdictFacts(best, verdict, run.spec if run is not None else None)
                    if self._times is not None:
                        with Vertical(id="plot", classes="panel") as plot:
                            plot.border_title = f"total time{verdict.usual_text}, e eager"
                            yield TotalTimePlot(self._times, ascii_only)
            if not verdict.is_answer:
                with Vertical(id="where", classes="panel") as where:
                    where.border_title = "where to look"
                    yield Static(self._where())
                yield from self._traceback()
            if verdict.shapes is not None:
                with Vertical(id="shapes", classes="panel") as shapes:
                    shapes.border_title = "shapes"
                    yield ShapeTable(verdict.shapes, ascii_only)
            with Horizontal(id="lower", classes="row"):
                if verdict.findings:
                    with Vertical(id="findings", classes="panel"):
                        yield FindingList(verdict.findings, ascii_only, id="finding-list")
                if any(judged.result.graphs is not None for judged in verdict.modes):
                    with Vertical(id="modes", classes="panel") as modes:
                        modes.border_title = "modes" if len(verdict.modes) > 1 else "all figures"
                        yield ModeTable(verdict)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        findings = self._findings
        if findings is not None:
            self._name_findings(findings)
            findings.focus()
        else:
            self._page.focus()

    def _title(self) -> Content:
        run = self._state.run
        if run is None:
            return Content.assemble(("Verdict", "bold"), "  of a run that left no records")
        task = f"{run.spec.task.value}, " if run.spec.task is not None else ""
        facts = f"{task}{run.device_name}, torch {run.torch_version}"
        target = one_line(str(run.spec.target), self._program.ascii_only)
        return Content.assemble(
            ("Verdict  ", "bold"), target, (f"  {one_line(facts)}{self._cut_short}", "$foreground-muted")
        )

    @property
    def _cut_short(self) -> str:
        return ", the run was cut short" if self._state.ended is None else ""

    def _where(self) -> Content:
        """Files that tell more, and the failing place in the user's own code."""
        rows = []
        failure = self._failure
        if failure is not None and failure.file is not None:
            rows.append(("place", f"{failure.file}:{failure.line}"))
            if failure.source:
                rows.append(("", failure.source.strip()))
        if self._folder.tracebacks.exists():
            rows.append(("traceback", f"{self._folder.tracebacks}  (t)"))
        if self._folder.log.exists():
            rows.append(("log", f"{self._folder.log}  (l)"))
        rows.append(("run folder", str(self._folder.path)))
        parts = [Content.assemble((name.ljust(12), "$foreground-muted"), one_line(text)) for name, text in rows]
        return Content("\n").join(parts)

    def _traceback(self) -> ComposeResult:
        """The end of the failure's traceback: what names the cause is there."""
        failure = self._failure
        if failure is not None and failure.traceback.strip():
            lines = literal(failure.traceback, self._program.ascii_only).rstrip().split("\n")[-_TRACEBACK_LINES:]
            with Vertical(id="traceback", classes="panel") as panel:
                panel.border_title = "end of the traceback"
                yield Static(Content("\n".join(lines)))

    @property
    def _failure(self) -> WorkerFailed | None:
        return next((p.failure for p in reversed(self._state.processes.values()) if p.failure is not None), None)

    def _name_findings(self, findings: FindingList) -> None:
        found, breaks = len(self._verdict.findings), len(findings.breaks)
        title = (
            f"{plural(breaks, 'graph break')} (b: all findings)" if findings.breaks_only else plural(found, "finding")
        )
        if breaks and not findings.breaks_only:
            title += f", {plural(breaks, 'graph break')} (b)"
        self.query_one("#findings").border_title = title

    # ------------------------------------------------------------ small views

    @property
    def _program(self) -> TCompileApp:
        return cast("TCompileApp", self.app)

    @property
    def _page(self) -> VerticalScroll:
        return self.query_one("#page", VerticalScroll)

    @property
    def _findings(self) -> FindingList | None:
        return self.query_one("#finding-list", FindingList) if self._verdict.findings else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "copy":
            return self._verdict.paste_line is not None
        if action == "tracebacks":
            return self._folder.tracebacks.exists()
        if action == "breaks":
            return any(finding.id == "graph-break" for finding in self._verdict.findings)
        if action == "open_finding":
            return bool(self._verdict.findings)
        return True

    # ------------------------------------------------------------ moving

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        findings = self._findings
        if findings is None or (event.option_index == 0 and self._page.scroll_y == 0):
            return
        row, height = findings.rows_of(event.option_index)
        top = findings.region.y - self._page.region.y + self._page.scroll_offset.y + row
        if top < self._page.scroll_offset.y:
            self._page.scroll_to(y=top, animate=False)
        elif top + height > self._page.scroll_offset.y + self._page.size.height:
            self._page.scroll_to(y=top + height - self._page.size.height, animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_open_finding()

    def action_page_down(self) -> None:
        self._page.scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        self._page.scroll_page_up(animate=False)

    def action_top(self) -> None:
        self._page.scroll_home(animate=False)

    def action_bottom(self) -> None:
        self._page.scroll_end(animate=False)

    # ------------------------------------------------------------ commands

    def action_copy(self) -> None:
        line = self._verdict.paste_line
        if line is None:
            return
        self.app.copy_to_clipboard(line)
        path = self._folder.path / PASTE_FILE
        if self._write(path, line + "\n"):
            self.app.notify(f"copied, and written to {path}", title=line, markup=False)

    def action_save_report(self) -> None:
        self.app.push_screen(SaveScreen(), self._save)

    def _save(self, format: ReportFormat | None) -> None:
        if format is not None:
            self.run_worker(partial(self._write_report, format), thread=True, group="save")

    def _write_report(self, format: ReportFormat) -> None:
        """In a thread: plotting takes seconds."""
        try:
            path = save_report(self._folder, self._state, self._verdict, format)
        except CannotSaveError as error:
            self.app.notify(str(error), severity="error", markup=False)
        else:
            self.app.notify(str(path), title="report written", markup=False)

    def _write(self, path: Path, text: str) -> bool:
        try:
            write_atomically(path, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            self.app.notify(f"cannot write {path}: {error.strerror or error}", severity="error", markup=False)
            return False
        return True

    def action_open_finding(self) -> None:
        finding = self._findings.chosen if self._findings is not None else None
        if finding is not None:
            info = self._folder.read_info()
            cwd = Path(info.cwd) if info is not None else None
            site = break_site(self._state, finding)
            self.app.push_screen(FindingScreen(finding, site, cwd, self._program.ascii_only))

    def action_breaks(self) -> None:
        findings = self._findings
        if findings is not None:
            findings.show_breaks_only(not findings.breaks_only)
            self._name_findings(findings)

    def action_log(self) -> None:
        self.app.push_screen(LogScreen(self._folder.log))

    def action_tracebacks(self) -> None:
        self.app.push_screen(LogScreen(self._folder.tracebacks))

    def action_rerun(self) -> None:
        run = self._state.run
        may_be_corrected = self._verdict.exit_code in (ExitCode.BAD_INPUT, ExitCode.EAGER_FAILS)
        complaint = self._verdict.headline if may_be_corrected else ""
        self._program.show_setup(str(run.spec.target) if run is not None else None, complaint)

    def action_runs(self) -> None:
        self._program.show_runs()

    def action_caches(self) -> None:
        self._program.show_caches(self._folder)

    def action_back(self) -> None:
        # Below this screen there is the one that led here, or Textual's own empty one.
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()
        else:
            self.action_rerun()
