"""Caches: what torch.compile keeps on disk, and clearing it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Footer, OptionList, Static
from textual.worker import Worker, get_current_worker

from tcompile_tui.core.units import plural, size
from tcompile_tui.host.cache_clear import Choice
from tcompile_tui.host.cache_kinds import COMPILE_KINDS, CacheKind, Family
from tcompile_tui.host.cache_places import all_places
from tcompile_tui.host.cache_scan import CancelledError
from tcompile_tui.host.caches import PlaceReport, entries_of_run, survey
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui.commands import Command, CommandScreen
from tcompile_tui.ui.screens.clear_caches import After, ClearScreen, Limit, Request
from tcompile_tui.ui.widgets.cache_list import CacheList, CacheRow, column_titles, describe, rows_of
from tcompile_tui.ui.widgets.literal import one_line

if TYPE_CHECKING:
    from tcompile_tui.ui.app import TCompileApp

_SHOW_S = 0.1
_OF_REPORTS = frozenset({"clear", "clear_all", "clear_old", "clear_down"})


class CachesScreen(CommandScreen[None]):
    """Everything that is found. With `about`, a run: its own caches can be cleared, and its model be run again."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("c,enter", "clear", "Clear", "Show what goes of the row under the cursor, then enter deletes it"),
        Command("a", "clear_all", "All", "Every compile cache; recorded runs stay"),
        Command("o", "clear_old", "Older", "What was written more than so many days ago"),
        Command("s", "clear_down", "Size", "Down to a size, the newest stays"),
        Command("m", "clear_run", "This run's", "What this run compiled and left in its private caches"),
        Command("y", "copy", "Copy", "Copy the line for a running process (OSC 52)"),
        Command("l", "look", "Look again", "Read the folders again"),
        Command("r", "rerun", "Rerun cold", "To Setup with this model; each run starts with empty caches"),
        Command("escape,q", "back", "Back", "Back to where you came from"),
    )
    HELP = """\
files       inodes: folders count too, and a quota of them can be used up before the bytes are
newest      how long ago the newest of it was written
in use      a process has files of it open, or has torch loaded and would compile into it
RAM         the folder lies on a tmpfs: it takes memory, and a reboot or the end of a container loses it
in memory   lines for a running process; they delete nothing on disk
Only what torch, Triton or this program wrote is deleted, told by its layout; anything else stays.
A measurement never touches these caches: it has private ones, so a cold start is cold without clearing."""
    DEFAULT_CSS = """
    CachesScreen > .title { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
    CachesScreen > #columns { height: 1; padding: 0 1; color: $foreground-muted; }
    CachesScreen #detail { height: 7; max-height: 40%; }
    """

    def __init__(self, about: RunFolder | None = None) -> None:
        super().__init__()
        self._about = about
        self._reports: list[PlaceReport] = []
        self._scanning: Worker[None] | None = None
        self._seen = 0
        self._target = _target_of(about)

    # ------------------------------------------------------------ what is shown

    def compose(self) -> ComposeResult:
        yield Static(classes="title")
        yield Static(id="columns")
        yield CacheList(self._program.ascii_only)
        with Vertical(id="detail", classes="panel"):
            yield Static(id="detail-text")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one(CacheList).focus()
        self.action_look()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        row = self._list.chosen if self.is_mounted else None
        if action == "clear":
            return row is not None and row.can_be_cleared
        if action == "copy":
            return row is not None and row.note is not None
        if action == "rerun":
            return self._target is not None
        if action == "clear_run":
            return self._about is not None and self._is_complete
        return action not in _OF_REPORTS or self._is_complete

    @property
    def _is_complete(self) -> bool:
        return bool(self._reports) and self._scanning is None

    def _draw(self) -> None:
        now_s = time.time()
        self._list.show(rows_of(self._reports), now_s)
        self.query_one("#columns", Static).update(Content(column_titles(self._list.line_width)))
        self._draw_title()
        self._describe()
        self.refresh_bindings()

    def _draw_title(self) -> None:
        caches = [report for report in self._reports if report.is_cache]
        total = f"{size(sum(r.bytes for r in caches))} in {plural(sum(r.files for r in caches), 'file')}"
        state = f"  looking: {self._seen:,} files ..." if self._scanning is not None else ""
        title = Content.assemble(("Caches  ", "bold"), total, (state, "$foreground-muted"))
        self.query_one(".title", Static).update(title)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._describe()
        self.refresh_bindings()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_clear()

    def _describe(self) -> None:
        row = self._list.chosen
        if row is not None:
            self.query_one("#detail").border_title = Content(_name_of(row))
            self.query_one("#detail-text", Static).update(describe(row, time.time(), self._program.ascii_only))

    # ------------------------------------------------------------ looking

    def action_look(self) -> None:
        """Read everything anew, in a thread that ends with this screen."""
        if self._scanning is None:
            self._reports, self._seen = [], 0
            self._scanning = self.run_worker(self._scan, thread=True, exclusive=True, group="scan")
            self.call_after_refresh(self._draw)

    def _scan(self) -> None:
        worker, shown_s = get_current_worker(), time.monotonic()

        def progress(files: int) -> None:
            nonlocal shown_s
            if worker.is_cancelled:
                raise CancelledError
            self._seen += files
            if time.monotonic() - shown_s > _SHOW_S:
                shown_s = time.monotonic()
                self.app.call_from_thread(self._draw_title)

        try:
            for report in survey(all_places(os.environ, self._program.runs_dir.absolute()), progress):
                if worker.is_cancelled:
                    return
                self.app.call_from_thread(self._add, report)
        except CancelledError:
            return
        self.app.call_from_thread(self._end_scan)

    def _add(self, report: PlaceReport) -> None:
        self._reports.append(report)
        self._draw()

    def _end_scan(self) -> None:
        self._scanning = None
        self._draw()

    # ------------------------------------------------------------ small views

    @property
    def _program(self) -> TCompileApp:
        return cast("TCompileApp", self.app)

    @property
    def _list(self) -> CacheList:
        return self.query_one(CacheList)

    # ------------------------------------------------------------ commands

    def action_clear(self) -> None:
        row = self._list.chosen
        if row is None or row.report is None or not row.can_be_cleared or not self._is_complete:
            return
        kinds = frozenset({row.total.kind}) if row.total is not None else _kinds_of(row.report)
        choice = Choice(kinds=kinds, places=frozenset({row.report.place.path}))
        self._ask(f"Clear {_name_of(row)}", lambda: choice)

    def action_clear_all(self) -> None:
        self._ask("Clear every compile cache", Choice)

    def action_clear_old(self) -> None:
        self._ask("Clear what is old", Choice, Limit.AGE)

    def action_clear_down(self) -> None:
        self._ask("Clear the oldest, down to a size", Choice, Limit.SIZE)

    def action_clear_run(self) -> None:
        self._ask("Clear what this run left", self._choice_of_run)

    def _choice_of_run(self) -> Choice:
        info = self._about.read_info() if self._about is not None else None
        contents = [report.contents for report in self._reports]
        paths = entries_of_run(contents, info.supervisor) if info is not None else frozenset()
        return Choice(kinds=frozenset({CacheKind.KEPT}), paths=paths)

    def _ask(self, title: str, choice: Callable[[], Choice], limit: Limit = Limit.NONE) -> None:
        request = Request(title, tuple(self._reports), choice, limit, self._target)
        self.app.push_screen(ClearScreen(request, self._program.ascii_only), self._go_on)

    def _go_on(self, after: After | None) -> None:
        if after is After.RERUN:
            self.action_rerun()
        elif after is After.LOOK:
            self.action_look()

    def action_copy(self) -> None:
        row = self._list.chosen
        if row is not None and row.note is not None:
            self.app.copy_to_clipboard(row.note.line)
            self.app.notify("copied, if your terminal allows it (OSC 52)", title=row.note.line, markup=False)

    def action_rerun(self) -> None:
        self.app.pop_screen()
        self._program.show_setup(self._target)

    def action_back(self) -> None:
        self.app.pop_screen()


def _kinds_of(report: PlaceReport) -> frozenset[CacheKind]:
    """Run folders only where they are what was asked for."""
    return frozenset({CacheKind.RUNS}) if report.place.family is Family.RUNS else COMPILE_KINDS


def _name_of(row: CacheRow) -> str:
    if row.note is not None:
        return "inside a running process"
    if row.report is None:
        return ""
    place = one_line(str(row.report.place.path).encode("utf-8", "backslashreplace").decode())
    return f"{row.total.kind.label} in {place}" if row.total is not None else place


def _target_of(about: RunFolder | None) -> str | None:
    """The run's model, if Setup can open it from here."""
    info = about.read_info() if about is not None else None
    return str(info.spec.target) if info is not None and info.cwd == str(Path.cwd()) else None
