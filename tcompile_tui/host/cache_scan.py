"""What lies in a place, counted without following a link or leaving its file system."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tcompile_tui.host import machine
from tcompile_tui.host.cache_kinds import CacheKind, is_inside, kind_of
from tcompile_tui.host.cache_places import Place, problem_of
from tcompile_tui.host.roots import OWNER_FILE
from tcompile_tui.host.run_folder import ProcessId, summarise_run

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # needs no right to list what is passed through
_MOUNTED = "another file system is mounted there"
_DEEPEST = 64
_BLOCK_BYTES = 512
_REPORT_EVERY = 1000
_SOME_STRANGERS = 5

Progress = Callable[[int], None]
"""Told now and then how many files were seen since the last call; raises CancelledError to end the work."""


class CancelledError(Exception):
    """The person does not want it any more."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What is deleted as a whole or not at all. `path` is relative to its place, `modified_s` is when the newest file
    in it was written. `files` counts folders too: each takes an inode. `owner_pid` is that of a run that goes on, and
    that has the entry."""

    path: str
    kind: CacheKind
    bytes: int
    files: int
    modified_s: float
    device: int
    inode: int
    owner_pid: int | None = None

    @property
    def is_live(self) -> bool:
        return self.owner_pid is not None


@dataclass(frozen=True)
class Failure:
    path: str
    reason: str


@dataclass(frozen=True)
class Contents:
    """A place as it was found. `strangers` are some names that are no cache entries and stay where they are."""

    place: Place
    exists: bool
    problem: str | None = None
    device: int = 0
    inode: int = 0
    entries: tuple[Entry, ...] = ()
    strangers: tuple[str, ...] = ()
    stranger_count: int = 0
    failures: tuple[Failure, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.entries)

    @property
    def files(self) -> int:
        return sum(entry.files for entry in self.entries)


def scan(place: Place, progress: Progress = lambda files: None) -> Contents:
    """Everything in a place. What cannot be read is listed, never raised; raises what `progress` raises."""
    problem = problem_of(place)
    if problem is not None:
        return Contents(place, exists=True, problem=problem)
    try:
        with opened(place.path) as folder:
            status = os.fstat(folder)
            if status.st_uid != os.geteuid():
                return Contents(place, exists=True, problem="belongs to another user: left alone")
            walk = _Walk(place, status.st_dev, progress)
            walk.look(folder, "")
    except FileNotFoundError:
        return Contents(place, exists=False)
    except OSError as error:
        return Contents(place, exists=True, problem=f"cannot be read: {error.strerror}")
    return Contents(
        place, True, None, status.st_dev, status.st_ino, tuple(walk.entries), tuple(walk.strangers),
        walk.stranger_count, tuple(walk.failures),
    )  # fmt: skip


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor of a folder, reached from the root without following a link. Raises OSError."""
    with _closing(os.open("/", _FOLDER)) as root, opened_below(root, path.parts[1:]) as folder:
        yield folder


@contextmanager
def opened_below(folder: int, names: tuple[str, ...]) -> Iterator[int]:
    """As `opened`, from an open folder down. Raises OSError."""
    current = os.dup(folder)
    try:
        for number, name in enumerate(names, start=1):
            inner = os.open(name, _FOLDER if number == len(names) else _STEP, dir_fd=current)
            os.close(current)
            current = inner
        yield current
    finally:
        os.close(current)


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass
class _Sum:
    bytes: int = 0
    files: int = 0
    modified_s: float = 0.0

    def add(self, status: os.stat_result) -> None:
        self.bytes += status.st_blocks * _BLOCK_BYTES
        self.files += 1
        self.modified_s = max(self.modified_s, status.st_mtime)


@dataclass
class _Walk:
    place: Place
    device: int
    progress: Progress
    entries: list[Entry] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    stranger_count: int = 0
    failures: list[Failure] = field(default_factory=list)
    _seen: int = 0

    def __post_init__(self) -> None:
        self._mounts = frozenset(machine.mount_points_below(self.place.path))

    def _is_mount(self, path: str) -> bool:
        """A part of the same file system that is mounted here again has the same device number."""
        return bool(self._mounts) and self.place.path / path in self._mounts

    def look(self, folder: int, prefix: str) -> None:
        """Entries in the open `folder`, whose path is `prefix`; goes into folders that hold entries."""
        with os.scandir(folder) as children:
            for child in children:
                path = prefix + child.name
                try:
                    self._look_at(folder, child, path)
                except OSError as error:
                    self._failed(path, error)

    def _look_at(self, folder: int, child: os.DirEntry[str], path: str) -> None:
        status = child.stat(follow_symlinks=False)
        self._count()
        is_folder = stat.S_ISDIR(status.st_mode)
        family = self.place.family
        kind = kind_of(family, path)
        if stat.S_ISLNK(status.st_mode):
            self._stranger(path)
        elif is_folder and (status.st_dev != self.device or self._is_mount(path)):
            self.failures.append(Failure(path, _MOUNTED))
        elif kind is not None:
            self._add(folder, child.name, path, kind, status)
        elif is_folder and is_inside(family, path):
            with opened_below(folder, (child.name,)) as inner:
                self.look(inner, path + "/")
        else:
            self._stranger(path)

    def _add(self, folder: int, name: str, path: str, kind: CacheKind, status: os.stat_result) -> None:
        owner = None
        if kind in (CacheKind.KEPT, CacheKind.RUNS):
            owner = self._owner(folder, name, kind) if stat.S_ISDIR(status.st_mode) else None
            if owner is None:
                self._stranger(path)
                return
        total = _Sum()
        total.add(status)
        if stat.S_ISDIR(status.st_mode):
            total.modified_s = 0.0  # what counts is when something was written, not when something was deleted
            self._add_up(folder, name, path, total, 0)
        modified_s = total.modified_s or status.st_mtime
        owner_pid = owner.pid if owner is not None and (owner.is_alive or owner.is_elsewhere) else None
        self.entries.append(
            Entry(path, kind, total.bytes, total.files, modified_s, status.st_dev, status.st_ino, owner_pid)
        )

    def _owner(self, folder: int, name: str, kind: CacheKind) -> ProcessId | None:
        """The process that a run's folder belongs to; None for what only looks like one by its name."""
        if kind is CacheKind.KEPT:
            return owner_of(folder, name)
        run = summarise_run(self.place.path / name)
        return run.info.supervisor if run is not None else None

    def _add_up(self, folder: int, name: str, path: str, total: _Sum, depth: int) -> None:
        with opened_below(folder, (name,)) as inner, os.scandir(inner) as children:
            for child in children:
                try:
                    status = child.stat(follow_symlinks=False)
                    self._count()
                    is_folder = stat.S_ISDIR(status.st_mode)
                    if is_folder and (status.st_dev != self.device or self._is_mount(f"{path}/{child.name}")):
                        self.failures.append(Failure(f"{path}/{child.name}", _MOUNTED))
                        continue
                    total.add(status)
                    if is_folder and depth < _DEEPEST:
                        self._add_up(inner, child.name, f"{path}/{child.name}", total, depth + 1)
                except OSError as error:
                    self._failed(f"{path}/{child.name}", error)

    def _failed(self, path: str, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # a process at work deletes its temporary files
            self.failures.append(Failure(path, error.strerror or str(error)))

    def _stranger(self, path: str) -> None:
        self.stranger_count += 1
        if len(self.strangers) < _SOME_STRANGERS:
            self.strangers.append(path)

    def _count(self) -> None:
        self._seen += 1
        if self._seen == _REPORT_EVERY:
            self.progress(self._seen)
            self._seen = 0


def owner_of(folder: int, name: str) -> ProcessId | None:
    """The run that a private root belongs to; None for a folder that is none."""
    try:
        with opened_below(folder, (name,)) as inner:
            file = os.open(OWNER_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=inner)
            with open(file, "rb") as content:
                return msgspec.json.decode(content.read(65_536), type=ProcessId)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
