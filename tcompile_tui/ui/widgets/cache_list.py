"""The places where caches lie, each with what it holds, and the lines for a running process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textual import events
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tcompile_tui.core.units import count, duration, plural, size
from tcompile_tui.host.cache_kinds import IN_MEMORY, CacheKind, MemoryNote
from tcompile_tui.host.caches import KindTotal, PlaceReport
from tcompile_tui.ui.widgets.literal import one_line

_DIM = "$foreground-muted"
_SIZE_WIDTH, _FILES_WIDTH, _AGE_WIDTH = 10, 9, 10
_ROOM_FOR_ALL = 60
_LEAST_NAME_WIDTH, _LEAST_PATH = 12, 8
_LABEL_WIDTH = 14


@dataclass(frozen=True)
class CacheRow:
    """A place, one kind of what it holds, or a line for a running process."""

    report: PlaceReport | None = None
    total: KindTotal | None = None
    note: MemoryNote | None = None

    @property
    def key(self) -> tuple[Path | None, CacheKind | None, str]:
        return (
            self.report.place.path if self.report is not None else None,
            self.total.kind if self.total is not None else None,
            self.note.line if self.note is not None else "",
        )

    @property
    def can_be_cleared(self) -> bool:
        return self.report is not None and (self.total is not None or bool(self.report.kinds))


def rows_of(reports: Sequence[PlaceReport]) -> list[CacheRow]:
    """What is there comes before what is not."""
    rows = []
    for report in sorted(reports, key=lambda report: not report.contents.exists):
        rows.append(CacheRow(report))
        rows += (CacheRow(report, total) for total in report.kinds)
    return [*rows, *(CacheRow(note=note) for note in IN_MEMORY)]


def shown_path(path: Path, width: int, ascii_only: bool) -> str:
    """With ~ for the home folder; of one that is too long the beginning and the end."""
    home = Path.home()
    text = f"~/{path.relative_to(home)}" if path != home and path.is_relative_to(home) else str(path)
    plain = one_line(text.encode("utf-8", "backslashreplace").decode(), ascii_only)
    if len(plain) <= width:
        return plain
    head = max(1, (width - 2) // 3)
    return f"{plain[:head]}..{plain[len(plain) - max(1, width - 2 - head) :]}"


def row_line(row: CacheRow, width: int, now_s: float, ascii_only: bool) -> Content:
    """One line: the name on the left, figures in columns on the right."""
    figures_width = _figures_width(width)
    name_width = max(_LEAST_NAME_WIDTH, width - figures_width)
    if row.note is not None:
        line = Content.assemble(("in memory".ljust(_LABEL_WIDTH), _DIM), one_line(row.note.line, ascii_only))
        return line if line.cell_length <= width else line.truncate(width - 2) + ".."
    report = row.report
    if report is None:
        return Content()
    if row.total is not None:
        name = f"  {row.total.kind.label}"[:name_width].ljust(name_width)
        return Content(name + _figures(width, row.total.bytes, row.total.files, now_s - row.total.newest_s))
    tag = _tag(report)
    label = report.place.family.label.ljust(_LABEL_WIDTH)
    room = name_width - len(label) - (len(tag) + 2 if tag else 0)
    path = shown_path(report.place.path, room, ascii_only) if room >= _LEAST_PATH else ""
    if not report.contents.exists or report.contents.problem is not None:
        what = "not there" if not report.contents.exists else "not cleared from here"
        return Content.assemble((label, _DIM), (path.ljust(max(0, room)) + what.rjust(figures_width), _DIM))
    newest_s = report.newest_s
    figures = _figures(width, report.bytes, report.files, now_s - newest_s if newest_s is not None else None)
    parts = Content.assemble((label, "bold"), path, (f"  {tag}" if tag else "", "bold $warning"))
    return Content.assemble(parts, " " * max(0, name_width - parts.cell_length), (figures, "bold"))


def column_titles(width: int) -> str:
    """Above the rows."""
    name = "what and where".ljust(max(_LEAST_NAME_WIDTH, width - _figures_width(width)))
    more = "files".rjust(_FILES_WIDTH) + "newest".rjust(_AGE_WIDTH)
    return name + "size".rjust(_SIZE_WIDTH) + (more if width >= _ROOM_FOR_ALL else "")


def describe(row: CacheRow, now_s: float, ascii_only: bool) -> Content:
    """What a person wants to know before clearing it."""
    if row.note is not None:
        return Content.assemble(one_line(row.note.effect), "\n", ("y copies the line; on disk nothing changes.", _DIM))
    if row.total is not None:
        kind = row.total.kind
        entries = "1 entry" if row.total.entries == 1 else f"{row.total.entries:,} entries"
        ages = f"{entries}; the oldest was written {duration(max(1.0, now_s - row.total.oldest_s))} ago"
        return Content.assemble(kind.meaning, "\n", f"Cleared: {kind.afterwards}", "\n", (ages, _DIM))
    return _describe_place(row.report, ascii_only) if row.report is not None else Content()


def _describe_place(report: PlaceReport, ascii_only: bool) -> Content:
    contents, facts = report.contents, report.file_system
    lines = [one_line(report.place.why, ascii_only)]
    if contents.problem is not None:
        lines.append(one_line(contents.problem, ascii_only))
        return Content("\n".join(lines))
    where = facts.kind or "unknown file system"
    if facts.is_memory:
        where += ", that is RAM: it takes memory, and a reboot loses it"
    elif facts.is_network:
        where += ", slow for many small files"
    inodes = f" and {count(facts.free_inodes)} inodes" if facts.free_inodes is not None else ""
    lines.append(f"{where}; {size(facts.free_bytes)}{inodes} free")
    lines += (one_line(f"in use: {u.pid} {u.command}, {u.use.meaning}", ascii_only) for u in report.users[:2])
    if len(report.users) > 2:
        lines.append(f"and by {plural(len(report.users) - 2, 'other process')}")
    if contents.stranger_count:
        lines.append(f"{plural(contents.stranger_count, 'name')} in it that no cache writes: left alone")
    if contents.failures:
        failure = contents.failures[0]
        lines.append(one_line(f"{plural(len(contents.failures), 'place')} not read: {failure.path}: {failure.reason}"))
    return Content("\n".join(lines))


def _tag(report: PlaceReport) -> str:
    words = []
    if report.users:
        words.append("in use")
    if report.file_system.is_memory and report.contents.exists:
        words.append("RAM")
    if report.file_system.is_network and report.contents.exists:
        words.append("network")
    return ", ".join(words)


def _figures_width(width: int) -> int:
    """Of the columns on the right: on a narrow screen only the size."""
    return _SIZE_WIDTH + (_FILES_WIDTH + _AGE_WIDTH if width >= _ROOM_FOR_ALL else 0)


def _figures(width: int, bytes_: int, files: int, age_s: float | None) -> str:
    age = ago(age_s) if age_s is not None else ""
    more = count(files).rjust(_FILES_WIDTH) + age.rjust(_AGE_WIDTH)
    return size(bytes_).rjust(_SIZE_WIDTH) + (more if width >= _ROOM_FOR_ALL else "")


def ago(seconds: float) -> str:
    """An age in its largest unit: `just now`, `12 min`, `3 h`, `33 days`."""
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86_400:,.0f} days"


class CacheList(OptionList):
    """The rows; `show` keeps a cursor that was moved where it is."""

    DEFAULT_CSS = """
    CacheList { height: 1fr; border: none; padding: 0 1; background: transparent; scrollbar-size-vertical: 1; }
    CacheList:focus { border: none; background-tint: $foreground 0%; }
    CacheList:focus > .option-list--option-highlighted {
        background: $primary 40%; color: $foreground; text-style: bold;
    }
    """

    def __init__(self, ascii_only: bool = False) -> None:
        super().__init__(markup=False)
        self._ascii_only = ascii_only
        self._rows: list[CacheRow] = []
        self._now_s = 0.0

    @property
    def chosen(self) -> CacheRow | None:
        return self._rows[self.highlighted] if self.highlighted is not None and self._rows else None

    @property
    def line_width(self) -> int:
        return max(1, self.scrollable_content_region.width)

    def show(self, rows: Sequence[CacheRow], now_s: float) -> None:
        chosen = self.chosen if self.highlighted else None
        self._rows, self._now_s = list(rows), now_s
        keys = [row.key for row in self._rows]
        index = keys.index(chosen.key) if chosen is not None and chosen.key in keys else 0
        self._fill(index)

    def on_resize(self, event: events.Resize) -> None:
        self._fill(self.highlighted or 0)

    def _fill(self, index: int) -> None:
        lines = [row_line(row, self.line_width, self._now_s, self._ascii_only) for row in self._rows]
        self.set_options(Option(line) for line in lines)
        self.highlighted = min(index, len(lines) - 1) if lines else None
