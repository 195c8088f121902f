"""Earlier runs: look at one again, replay it, delete it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import DataTable, Footer, Static
from textual.worker import get_current_worker

from tcompile_tui.core.compare_runs import Comparison, compare_runs
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import MISSING, plural, ratio
from tcompile_tui.host.event_log import read_events
from tcompile_tui.host.recorded import read_compared_run
from tcompile_tui.host.run_folder import RunFolder, RunStatus, RunSummary, list_runs, summarise_run
from tcompile_tui.ui.commands import Command, CommandScreen
from tcompile_tui.ui.screens.comparison import ComparisonScreen
from tcompile_tui.ui.screens.confirm import ConfirmScreen
from tcompile_tui.ui.widgets.cache_list import shown_path
from tcompile_tui.ui.widgets.literal import literal, one_line

if TYPE_CHECKING:
    from tcompile_tui.ui.app import TCompileApp

_LOOK_S = 2.0
_WIDE, _TINY = 110, 60
_WIDE_COLUMNS = ("  ", "date", "model", "modes", "decision", "speedup", "torch", "device")
_NARROW_COLUMNS = ("  ", "date", "model", "decision", "speedup", "device")
_TINY_COLUMNS = ("  ", "model", "decision", "speedup")
_MODEL_WIDTHS = {_WIDE_COLUMNS: 22, _NARROW_COLUMNS: 17, _TINY_COLUMNS: 12}
_OF_A_RUN = frozenset({"open", "replay", "delete", "newest", "oldest", "mark", "compare"})
_ENDED = (RunStatus.DONE, RunStatus.DIED)
_MARKS = {RunStatus.RUNNING: "*", RunStatus.DIED: "x", RunStatus.ELSEWHERE: "@", RunStatus.DONE: " "}
_STATUS_TEXTS = {
    RunStatus.RUNNING: "running",
    RunStatus.DIED: "died before its end",
    RunStatus.ELSEWHERE: "of another host, no verdict yet",
    RunStatus.DONE: "",
}


@dataclass(frozen=True)
class RunRow:
    """A run with the one figure that only verdict.json has."""

    run: RunSummary
    speedup: float | None

    @property
    def decision(self) -> str:
        return self.run.decision or self.run.status.value

    @property
    def modes(self) -> str:
        return ", ".join(mode.value for mode in self.run.info.spec.modes)


def read_rows(runs_dir: Path) -> list[RunRow]:
    """All runs, newest first. Reads two small files a run."""
    return [RunRow(run, _best_speedup(run.folder.read_verdict())) for run in list_runs(runs_dir)]


def _best_speedup(verdict: dict[str, Any] | None) -> float | None:
    """What verdict.json says of the best mode; None for whatever does not look like that."""
    found: Any = verdict
    for key in ("per_mode", (verdict or {}).get("best_mode"), "speedup", "value"):
        found = found.get(key) if isinstance(found, dict) and isinstance(key, str) else None
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None


class RunsScreen(CommandScreen[None]):
    """The runs in the program's folder."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("enter", "open", "Open", "The verdict of the run; a running one is followed", priority=True),
        Command("p", "replay", "Replay", "Watch the run again from its start"),
        Command("space", "mark", "Mark", "Mark the run, to compare it with another", priority=True),
        Command("c", "compare", "Compare", "Compare the two marked runs, or the marked one with this one"),
        Command("d", "delete", "Delete", "Delete the run folder, after a question; never of a run that goes on"),
        Command("x", "caches", "Caches", "The compile caches, the chosen run's among them, and clearing them"),
        Command("escape,q", "back", "Back", "Back to where you came from"),
        Command("home", "newest", "Newest", "To the newest run", show=False, priority=True),
        Command("end", "oldest", "Oldest", "To the oldest run", show=False, priority=True),
    )
    HELP = """\
Every run keeps its records in a folder of its own; the verdict is made from them again when you open it.
*  the run goes on; opening it follows it
x  the run died before its end; opening it shows what its records tell
@  the run is of another host that shares this folder
+  the run is marked: mark two with space, then c compares the later with the earlier"""
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]]] = [(0, "-narrow"), (_WIDE, "-wide")]  # type: ignore[misc]
    DEFAULT_CSS = """
    RunsScreen > .title { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
    RunsScreen DataTable { height: 1fr; background: transparent; scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1; }
    RunsScreen #none { height: 1fr; padding: 1 2; display: none; }
    RunsScreen.-empty #none { display: block; }
    RunsScreen.-empty DataTable, RunsScreen.-empty #detail { display: none; }
    RunsScreen #detail { height: 7; max-height: 40%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[RunRow] = []
        self._marked: set[str] = set()
        self._opening = False

    # ------------------------------------------------------------ what is shown

    def compose(self) -> ComposeResult:
        yield Static(classes="title")
        yield DataTable(cursor_type="row", zebra_stripes=False)
        yield Static(Content("No run yet. Measure a model first: its run folder is kept here."), id="none")
        with Vertical(id="detail", classes="panel"):
            yield Static(id="detail-text")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.reload()
        self.set_interval(_LOOK_S, self._look_again)

    def on_resize(self) -> None:
        self._fill()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a run there is none to open."""
        return bool(self._rows) or action not in _OF_A_RUN

    def reload(self) -> None:
        """Read the list again, elsewhere: the folder may be on a slow disk."""
        self.run_worker(self._read, thread=True, exclusive=True, group="list")

    def _look_again(self) -> None:
        if any(row.run.status is RunStatus.RUNNING for row in self._rows):
            self.reload()

    def _read(self) -> None:
        worker = get_current_worker()
        try:
            rows = read_rows(self._program.runs_dir)
        except OSError as error:
            self.app.call_from_thread(self._say, f"cannot read {self._program.runs_dir}: {error.strerror or error}")
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show, rows)

    def _show(self, rows: list[RunRow]) -> None:
        if rows == self._rows and self._rows:
            return
        self._rows = rows
        self.set_class(not rows, "-empty")
        self.refresh_bindings()
        running = sum(row.run.status is RunStatus.RUNNING for row in rows)
        note = plural(len(rows), "run") + (f", {running} running" if running else "")
        where = shown_path(self._program.runs_dir, max(1, self.size.width), self._program.ascii_only)
        title = Content.assemble(("Runs  ", "bold"), note, (f"  {where}", "$foreground-muted"))
        self.query_one(".title", Static).update(title)
        self._fill()

    def _fill(self) -> None:
        """Rebuild the table; the cursor stays on its run."""
        if not self._rows:
            return
        table = self._table
        chosen = self._chosen
        table.clear(columns=True)
        columns = self._columns
        cells = [self._cells(row, columns) for row in self._rows]
        for column, name in enumerate(columns):
            # A column that finds its width by itself is drawn too narrow at first.
            table.add_column(name, width=max(len(name), *(row[column].cell_len for row in cells)))
        for row_cells in cells:
            table.add_row(*row_cells)
        index = next((i for i, row in enumerate(self._rows) if chosen and row.run.name == chosen.run.name), 0)
        table.move_cursor(row=index, animate=False)
        self._describe()

    @property
    def _columns(self) -> tuple[str, ...]:
        """Those that there is room for."""
        width = self.size.width
        return _WIDE_COLUMNS if width >= _WIDE else _NARROW_COLUMNS if width >= _TINY else _TINY_COLUMNS

    def _cells(self, row: RunRow, columns: tuple[str, ...]) -> list[Text]:
        info = row.run.info
        texts = {
            "  ": _MARKS[row.run.status] + ("+" if row.run.name in self._marked else " "),
            "date": _when(info.started_at),
            "model": _cut(info.spec.target.label, _MODEL_WIDTHS[columns]),
            "modes": _cut(row.modes, 24),
            "decision": _cut(row.decision, 19),
            "speedup": ratio(row.speedup).rjust(7),
            "torch": _cut(info.torch_version.partition("+")[0], 8),
            "device": _cut(info.device_name.removeprefix("NVIDIA "), 12),
        }
        return [Text(literal(texts[name], self._program.ascii_only), no_wrap=True) for name in columns]

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._describe()

    def _describe(self) -> None:
        row = self._chosen
        if row is None:
            return
        run = row.run
        panel = self.query_one("#detail", Vertical)
        panel.border_title = Content(one_line(run.name))
        status = _STATUS_TEXTS[run.status]
        text = one_line(run.headline or status or "no verdict", self._program.ascii_only)
        facts = f"{row.modes}; torch {run.info.torch_version}; {run.info.device_name} on {run.info.supervisor.host}"
        lines = Content.assemble(text, "\n", (one_line(facts), "$foreground-muted"))
        self.query_one("#detail-text", Static).update(lines)

    # ------------------------------------------------------------ small views

    @property
    def _program(self) -> TCompileApp:
        return cast("TCompileApp", self.app)

    @property
    def _table(self) -> DataTable[Text]:
        return cast("DataTable[Text]", self.query_one(DataTable))

    @property
    def _chosen(self) -> RunRow | None:
        index = self._table.cursor_row
        return self._rows[index] if 0 <= index < len(self._rows) else None

    def _say(self, text: str) -> None:
        self.app.notify(text, severity="error", markup=False)

    # ------------------------------------------------------------ commands

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self.action_open()

    def action_open(self) -> None:
        row = self._chosen
        if row is None or self._opening:
            return
        if row.run.status is RunStatus.RUNNING:
            self._program.follow(row.run.folder.path)
            return
        self._opening = True
        folder = row.run.folder
        self.run_worker(lambda: self._read_run(folder), thread=True, exclusive=True, group="open")

    def _read_run(self, folder: RunFolder) -> None:
        """A long run has tens of megabytes of records: seconds."""
        state = RunState()
        worker = get_current_worker()
        try:
            for event in read_events(folder.events):
                state.apply(event)
                if worker.is_cancelled:
                    return
        except OSError as error:
            self.app.call_from_thread(self._not_opened, f"cannot read {folder.events}: {error.strerror or error}")
            return
        self.app.call_from_thread(self._opened, folder, state)

    def _opened(self, folder: RunFolder, state: RunState) -> None:
        self._opening = False
        if self.is_current:
            self._program.show_verdict(folder, state)

    def _not_opened(self, text: str) -> None:
        self._opening = False
        self._say(text)

    def action_replay(self) -> None:
        row = self._chosen
        if row is None:
            return
        if not row.run.folder.events.is_file():
            self._say(f"{row.run.name} has no records to replay")
        else:
            self._program.replay(row.run.folder.path)

    def action_mark(self) -> None:
        row = self._chosen
        if row is not None:
            self._marked ^= {row.run.name}
            self._fill()

    def action_compare(self) -> None:
        """The later run against the earlier one, whatever was marked first."""
        chosen = {row.run.name for row in self._rows} & self._marked
        if len(chosen) == 1 and self._chosen is not None:
            chosen = chosen | {self._chosen.run.name}
        if len(chosen) != 2:
            self._say(f"{plural(len(chosen), 'run')} marked: mark two with space, then press c")
            return
        if self._opening:
            return
        self._opening = True
        folders = [row.run.folder for row in reversed(self._rows) if row.run.name in chosen]
        self.run_worker(lambda: self._read_two(*folders), thread=True, exclusive=True, group="open")

    def _read_two(self, earlier: RunFolder, later: RunFolder) -> None:
        try:
            comparison = compare_runs(read_compared_run(earlier.path), read_compared_run(later.path))
        except OSError as error:
            self.app.call_from_thread(self._not_opened, f"cannot read {error.filename}: {error.strerror}")
            return
        self.app.call_from_thread(self._compared, comparison)

    def _compared(self, comparison: Comparison) -> None:
        self._opening = False
        if self.is_current:
            self.app.push_screen(ComparisonScreen(comparison))

    def action_delete(self) -> None:
        row = self._chosen
        if row is None:
            return
        if row.run.status not in _ENDED:
            goes_on = "goes on" if row.run.status is RunStatus.RUNNING else "is of another host, and may go on"
            self._say(f"{row.run.name} {goes_on}: it is not deleted")
            return
        question = f"Delete {one_line(row.run.name)} and everything in it?"
        self.app.push_screen(ConfirmScreen(question, "delete it"), lambda yes: self._delete(row.run) if yes else None)

    def _delete(self, run: RunSummary) -> None:
        now = summarise_run(run.folder.path)
        if now is not None and now.status not in _ENDED:
            self._say(f"{run.name} goes on: it is not deleted")
            return
        try:
            shutil.rmtree(run.folder.path)
        except OSError as error:
            self._say(f"cannot delete {run.folder.path}: {error.strerror or error}")
        self.reload()

    def action_newest(self) -> None:
        self._table.move_cursor(row=0, animate=False)

    def action_oldest(self) -> None:
        self._table.move_cursor(row=len(self._rows) - 1, animate=False)

    def action_caches(self) -> None:
        row = self._chosen
        self._program.show_caches(row.run.folder if row is not None else None)

    def action_back(self) -> None:
        self.app.pop_screen()


def _when(started_at: str) -> str:
    """`2026-12-02 18:58`, as it was on the clock of the run."""
    try:
        return f"{datetime.fromisoformat(started_at):%Y-%m-%d %H:%M}"
    except ValueError:
        return MISSING


def _cut(text: str, width: int) -> str:
    plain = one_line(text)
    return plain if len(plain) <= width else plain[: width - 2] + ".."
