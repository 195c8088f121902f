"""What a clearing would delete, exactly; enter deletes it, and then it says what became of it."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from tcompile_tui.core.units import plural, size
from tcompile_tui.host.cache_clear import Choice, Chosen, Cleared, choose, clear
from tcompile_tui.host.cache_scan import Failure
from tcompile_tui.host.caches import PlaceReport
from tcompile_tui.ui.commands import Command, CommandScreen
from tcompile_tui.ui.widgets.literal import one_line
from tcompile_tui.ui.widgets.path_lines import PathLines, Section

_DAY_S = 86_400.0
_AGES_DAYS = (1, 3, 7, 14, 30, 60, 90, 180)
_SIZES_MIB = (0, 64, 256, 512, 1024, 2048, 5 * 1024, 10 * 1024, 20 * 1024, 50 * 1024)
_SHOW_S = 0.1
_SIZE_WIDTH = 10


class Limit(enum.Enum):
    """What left and right change."""

    NONE = "none"
    AGE = "age"
    SIZE = "size"

    @property
    def values(self) -> tuple[int, ...]:
        return {Limit.NONE: (0,), Limit.AGE: _AGES_DAYS, Limit.SIZE: _SIZES_MIB}[self]

    def proposed(self, total_bytes: int) -> int:
        """The index to begin with: a month, or the largest size of which something goes."""
        if self is Limit.AGE:
            return _AGES_DAYS.index(30)
        return max((i for i, mib in enumerate(self.values) if mib << 20 < total_bytes), default=0)

    def words(self, value: int) -> str:
        return f"written more than {plural(value, 'day')} ago" if self is Limit.AGE else f"down to {size(value << 20)}"

    def choice(self, choice: Choice, value: int) -> Choice:
        if self is Limit.AGE:
            return replace(choice, older_than_s=value * _DAY_S)
        return replace(choice, down_to_bytes=value << 20) if self is Limit.SIZE else choice


class Stage(enum.Enum):
    CHOOSING = "choosing"
    ASKING = "asking"
    CLEARING = "clearing"
    DONE = "done"


class After(enum.Enum):
    """What the person wants next."""

    NOTHING = "nothing"  # nothing was deleted
    LOOK = "look"
    RERUN = "rerun"


@dataclass(frozen=True)
class Request:
    """What to clear of `reports`: `choice` is asked for in a thread, as it may read the disk. `target` is the model
    that can be run again afterwards."""

    title: str
    reports: Sequence[PlaceReport]
    choice: Callable[[], Choice]
    limit: Limit = Limit.NONE
    target: str | None = None


class ClearScreen(ModalScreen[After], CommandScreen[After]):
    """Shows what goes for `request`, deletes it on enter, and tells what became of it."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("enter", "delete", "Delete", "Delete everything that is listed", priority=True),
        Command("enter", "close", "Close", "Back to the list", priority=True),
        Command("left", "less", "Less", "A lower limit", priority=True),
        Command("right", "more", "More", "A higher limit", priority=True),
        Command("r", "rerun", "Rerun cold", "To Setup with this model; each run starts with empty caches"),
        Command("escape,q", "leave", "Back", "Back; what is being deleted stops after the entry at hand"),
    )
    HELP = """\
Listed is every entry that goes: a file, or a folder with all that is in it. Nothing else is touched.
A folder is renamed aside first, so that a process finds an entry whole or not at all.
What changed since it was listed stays; what cannot be deleted is listed afterwards."""
    DEFAULT_CSS = """
    ClearScreen { align: center middle; }
    ClearScreen > Vertical { width: 100%; height: 1fr; background: $surface; }
    ClearScreen Static { height: auto; }
    ClearScreen #warning { color: $warning; text-style: bold; }
    ClearScreen PathLines { margin-top: 1; background: $surface; }
    """

    def __init__(self, request: Request, ascii_only: bool = False) -> None:
        super().__init__()
        self._request = request
        self._ascii_only = ascii_only
        self._stage = Stage.CHOOSING
        self._step = request.limit.proposed(sum(report.bytes for report in request.reports if report.is_cache))
        self._chosen: list[Chosen] = []
        self._cleared: Cleared | None = None
        self._stop = Event()

    # ------------------------------------------------------------ Textual

    def compose(self) -> ComposeResult:
        with Vertical(classes="panel") as panel:
            panel.border_title = Content(one_line(self._request.title, self._ascii_only))
            yield Static(id="summary")
            yield Static(id="warning")
            yield PathLines()
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one(PathLines).focus()
        self._choose()

    def on_unmount(self) -> None:
        self._stop.set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "delete":
            return self._stage is Stage.ASKING and bool(self._chosen)
        if action == "close":
            return self._stage is Stage.DONE or (self._stage is Stage.ASKING and not self._chosen)
        if action in ("less", "more"):
            return self._request.limit is not Limit.NONE and self._stage in (Stage.CHOOSING, Stage.ASKING)
        if action == "rerun":
            return self._stage is Stage.DONE and self._request.target is not None
        return True

    # ------------------------------------------------------------ choosing

    def _choose(self) -> None:
        self._enter(Stage.CHOOSING)
        value = self._request.limit.values[self._step]
        self.run_worker(lambda: self._look_up(value), thread=True, exclusive=True, group="choose")

    def _look_up(self, value: int) -> None:
        choice = self._request.limit.choice(self._request.choice(), value)
        chosen = choose([report.contents for report in self._request.reports], choice, time.time())
        longest = max((len(entry.path) for part in chosen for entry in part.entries), default=0)
        self.app.call_from_thread(self._ask, value, chosen, longest)

    def _ask(self, value: int, chosen: list[Chosen], longest: int) -> None:
        if value != self._request.limit.values[self._step] or self._stage is not Stage.CHOOSING:
            return
        self._chosen = chosen
        self.query_one(PathLines).show([self._section(part) for part in chosen], _SIZE_WIDTH + longest)
        self._enter(Stage.ASKING)

    def _section(self, part: Chosen) -> Section:
        def line(row: int) -> str:
            entry = part.entries[row]
            return f"{size(entry.bytes):>{_SIZE_WIDTH - 2}}  {self._literal(entry.path)}"

        return Section(self._literal(str(part.contents.place.path)), len(part.entries), line)

    def _literal(self, path: str) -> str:
        return one_line(path.encode("utf-8", "backslashreplace").decode(), self._ascii_only)

    # ------------------------------------------------------------ deleting

    def _work(self) -> None:
        shown_s = 0.0

        def progress(cleared: Cleared) -> bool:
            nonlocal shown_s
            if time.monotonic() - shown_s > _SHOW_S and not self._stop.is_set():
                shown_s = time.monotonic()
                self.app.call_from_thread(self._show_progress, cleared)
            return not self._stop.is_set()

        used = {report.place.path for report in self._request.reports if report.users}
        cleared = clear(self._chosen, used, progress)
        if self.is_attached:
            self.app.call_from_thread(self._end, cleared)

    def _show_progress(self, cleared: Cleared) -> None:
        if self._stage is Stage.CLEARING:
            total = sum(len(part.entries) for part in self._chosen)
            self._say(f"deleting: {cleared.entries:,} of {total:,} entries, {size(cleared.bytes)} so far")

    def _end(self, cleared: Cleared) -> None:
        self._cleared = cleared
        failures = cleared.failures
        section = Section("not deleted", len(failures), lambda row: self._failure_line(failures[row]))
        longest = max((len(self._failure_line(failure)) for failure in failures), default=0)
        self.query_one(PathLines).show([section] if failures else [], longest)
        self._enter(Stage.DONE)

    def _failure_line(self, failure: Failure) -> str:
        return f"  {self._literal(failure.reason)}: {self._literal(failure.path)}"

    # ------------------------------------------------------------ words

    def _enter(self, stage: Stage) -> None:
        self._stage = stage
        self._say(self._summary())
        warning = self.query_one("#warning", Static)
        warning.update(Content(self._warning()))
        warning.display = bool(self._warning())
        self.refresh_bindings()

    def _say(self, text: str) -> None:
        limit, value = self._request.limit, self._request.limit.values[self._step]
        if limit is not Limit.NONE and self._stage in (Stage.CHOOSING, Stage.ASKING):
            line = Content.assemble(("< ", "bold $accent"), (limit.words(value), "bold"), (" >", "bold $accent"))
            self.query_one("#summary", Static).update(Content.assemble(line, "   ", text))
        else:
            self.query_one("#summary", Static).update(Content(text))

    def _summary(self) -> str:
        if self._stage is Stage.CHOOSING:
            return "looking ..."
        if self._stage is Stage.CLEARING:
            return "deleting ..."
        if self._cleared is not None:
            return self._result(self._cleared)
        if not self._chosen:
            return "There is nothing to delete."
        bytes_, files = sum(part.bytes for part in self._chosen), sum(part.files for part in self._chosen)
        return f"{size(bytes_)} in {plural(files, 'file')}: enter deletes this."

    def _result(self, cleared: Cleared) -> str:
        text = f"Deleted {size(cleared.bytes)} in {plural(cleared.files, 'file')}."
        if cleared.stopped:
            text += " Stopped; the rest is as it was."
        if cleared.failures:
            text += f" {plural(len(cleared.failures), 'path')} could not be deleted."
        elif not cleared.stopped and self._request.target is not None:
            text += " r runs the model again, cold."
        return text

    def _warning(self) -> str:
        if self._stage is not Stage.ASKING:
            return ""
        reports = {report.place.path: report for report in self._request.reports}
        users = [
            user for part in self._chosen for user in reports[part.contents.place.path].users_of(part.entries)
        ]  # fmt: skip
        if not users:
            return ""
        names = ", ".join(str(pid) for pid in sorted({user.pid for user in users})[:5])
        return f"! In use by process {names}: it may fail, or compile again."

    # ------------------------------------------------------------ keys

    def action_delete(self) -> None:
        self._enter(Stage.CLEARING)
        self.run_worker(self._work, thread=True, group="clear")

    def action_close(self) -> None:
        self.action_leave()

    def action_less(self) -> None:
        self._move(-1)

    def action_more(self) -> None:
        self._move(1)

    def _move(self, by: int) -> None:
        step = min(len(self._request.limit.values) - 1, max(0, self._step + by))
        if step != self._step:
            self._step = step
            self._choose()

    def action_rerun(self) -> None:
        self.dismiss(After.RERUN)

    def action_leave(self) -> None:
        if self._stage is Stage.CLEARING:
            self._stop.set()
        else:
            self.dismiss(After.LOOK if self._stage is Stage.DONE else After.NOTHING)
