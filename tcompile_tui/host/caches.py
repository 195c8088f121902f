"""The compile caches of this machine: where they are, what they hold, who uses them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tcompile_tui.core.literal import escaped
from tcompile_tui.host.cache_kinds import IN_MEMORY, CacheKind, Family
from tcompile_tui.host.cache_places import FileSystem, Place, file_system
from tcompile_tui.host.cache_scan import Contents, Entry, Progress, opened, owner_of, scan
from tcompile_tui.host.cache_users import CacheUser, Use, users_of
from tcompile_tui.host.run_folder import ProcessId

_SCHEMA_VERSION = 1


@dataclass(frozen=True)
class KindTotal:
    """Of all entries of one kind in one place. Times are when the oldest and the newest entry were written."""

    kind: CacheKind
    entries: int
    bytes: int
    files: int
    oldest_s: float
    newest_s: float


@dataclass(frozen=True)
class PlaceReport:
    """One place, what is in it, on which file system, and in use by whom."""

    contents: Contents
    file_system: FileSystem
    users: tuple[CacheUser, ...]

    @property
    def place(self) -> Place:
        return self.contents.place

    @cached_property
    def kinds(self) -> tuple[KindTotal, ...]:
        """In the order of CacheKind; only kinds that are there."""
        found: dict[CacheKind, KindTotal] = {}
        for entry in self.contents.entries:
            old = found.get(entry.kind)
            found[entry.kind] = KindTotal(
                entry.kind,
                (old.entries if old else 0) + 1,
                (old.bytes if old else 0) + entry.bytes,
                (old.files if old else 0) + entry.files,
                min(old.oldest_s, entry.modified_s) if old else entry.modified_s,
                max(old.newest_s, entry.modified_s) if old else entry.modified_s,
            )
        return tuple(found[kind] for kind in CacheKind if kind in found)

    @cached_property
    def bytes(self) -> int:
        return sum(total.bytes for total in self.kinds)

    @cached_property
    def files(self) -> int:
        return sum(total.files for total in self.kinds)

    @property
    def newest_s(self) -> float | None:
        return max((total.newest_s for total in self.kinds), default=None)

    def users_of(self, entries: Iterable[Entry]) -> tuple[CacheUser, ...]:
        """The processes that would notice if these entries went. What runs left has no user, and what a living run
        compiles into is no choice."""
        if self.place.family not in (Family.PRIVATE, Family.RUNS):
            return self.users
        if not any(entry.kind is CacheKind.HEADERS for entry in entries):
            return ()
        owners = sorted({entry.owner_pid for entry in self.contents.entries if entry.owner_pid is not None})
        known = {user.pid for user in self.users}
        runs = (CacheUser(pid, "a run of this program", Use.CONFIGURED) for pid in owners if pid not in known)
        return (*self.users, *runs)

    @property
    def is_cache(self) -> bool:
        """Recorded runs are shown with the caches, but are none."""
        return self.place.family is not Family.RUNS


def survey(places: Sequence[Place], progress: Progress = lambda files: None) -> Iterator[PlaceReport]:
    """A report for each place, one after the other; may take seconds. Raises what `progress` raises."""
    users = users_of(places)
    for place in places:
        contents = scan(place, progress)
        report = PlaceReport(contents, file_system(place.path), tuple(users.get(place.path, ())))
        _ = report.kinds  # added up here: of a million entries that takes longer than a screen may stall
        yield report


def entries_of_run(found: Iterable[Contents], supervisor: ProcessId) -> frozenset[Path]:
    """The private caches that the run of this supervisor left, as paths of entries."""
    paths = set()
    for contents in found:
        kept = [entry for entry in contents.entries if entry.kind is CacheKind.KEPT]
        if kept:
            with opened(contents.place.path) as folder:
                paths |= {contents.place.path / e.path for e in kept if owner_of(folder, e.path) == supervisor}
    return frozenset(paths)


def caches_document(reports: Iterable[PlaceReport]) -> dict[str, Any]:
    """As `tcompile-tui caches --json` prints it; times are seconds since the epoch."""
    return {
        "schema_version": _SCHEMA_VERSION,
        "places": [_place_document(report) for report in reports],
        "in_memory": [{"line": note.line, "effect": note.effect} for note in IN_MEMORY],
    }


def printable(path: str | os.PathLike[str]) -> str:
    """A path on one line that any terminal shows and no terminal obeys."""
    return escaped(os.fspath(path))


def _encodable(path: str | os.PathLike[str]) -> str:
    """A path as UTF-8 that any encoder takes; bytes that are none are shown as escapes."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()


def _place_document(report: PlaceReport) -> dict[str, Any]:
    contents, facts = report.contents, report.file_system
    return {
        "path": _encodable(report.place.path),
        "family": report.place.family.value,
        "why": report.place.why,
        "exists": contents.exists,
        "problem": None if contents.problem is None else _encodable(contents.problem),
        "file_system": facts.kind,
        "in_memory": facts.is_memory,
        "network": facts.is_network,
        "free_bytes": facts.free_bytes,
        "free_inodes": facts.free_inodes,
        "bytes": report.bytes,
        "inodes": report.files,
        "kinds": {
            total.kind.value: {
                "entries": total.entries,
                "bytes": total.bytes,
                "inodes": total.files,
                "oldest_s": total.oldest_s,
                "newest_s": total.newest_s,
            }
            for total in report.kinds
        },
        "used_by": [
            {"pid": user.pid, "command": _encodable(user.command), "use": user.use.value} for user in report.users
        ],
        "not_entries": contents.stranger_count,
        "unread": [{"path": _encodable(f.path), "reason": f.reason} for f in contents.failures],
    }
