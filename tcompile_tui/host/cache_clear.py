"""Delete entries of a cache: those that were listed, and nothing else.

Every step goes through descriptors of folders that were reached without following a link. A folder is renamed aside
before it is emptied, so that a process sees an entry whole or not at all. What is not the very file that was listed,
or has another file system mounted in it, is left and reported.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tcompile_tui.host import machine
from tcompile_tui.host.cache_kinds import ASIDE_PREFIX, COMPILE_KINDS, CacheKind, Family
from tcompile_tui.host.cache_scan import Contents, Entry, Failure, opened, opened_below

_LEFT = "changed since it was listed: left as it is"
_MOUNTED = "another file system is mounted there: left as it is"
_ENTRIES_A_LOOK = 50


# ---------------------------------------------------------------- what goes


@dataclass(frozen=True)
class Choice:
    """Which entries go; every condition that is set has to hold. `down_to_bytes` keeps the newest entries that fit.
    `paths` are of entries, `places` of folders. Entries of runs that go on are never chosen."""

    kinds: frozenset[CacheKind] = COMPILE_KINDS
    places: frozenset[Path] | None = None
    paths: frozenset[Path] | None = None
    older_than_s: float | None = None
    down_to_bytes: int | None = None


@dataclass(frozen=True)
class Chosen:
    """The entries of one place that go."""

    contents: Contents
    entries: tuple[Entry, ...]

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.entries)

    @property
    def files(self) -> int:
        return sum(entry.files for entry in self.entries)


def choose(found: Sequence[Contents], choice: Choice, now_s: float) -> list[Chosen]:
    """By place, entries in the order of their paths; places of which nothing goes are left out."""
    meant = [
        (contents, entry) for contents in found for entry in contents.entries if _is_meant(contents, entry, choice)
    ]
    if choice.down_to_bytes is not None:
        meant = _surplus(meant, choice.down_to_bytes)
    if choice.older_than_s is not None:
        meant = [pair for pair in meant if pair[1].modified_s < now_s - choice.older_than_s]
    going: dict[Path, list[Entry]] = {}
    for contents, entry in meant:
        going.setdefault(contents.place.path, []).append(entry)
    places = {contents.place.path: contents for contents in found}
    return [
        Chosen(places[path], tuple(sorted(entries, key=lambda entry: entry.path))) for path, entries in going.items()
    ]


def _is_meant(contents: Contents, entry: Entry, choice: Choice) -> bool:
    return (
        not entry.is_live
        and entry.kind in choice.kinds
        and (choice.places is None or contents.place.path in choice.places)
        and (choice.paths is None or contents.place.path / entry.path in choice.paths)
    )


def _surplus(entries: list[tuple[Contents, Entry]], most_bytes: int) -> list[tuple[Contents, Entry]]:
    """All but the newest that fit into `most_bytes`."""
    newest_first = sorted(entries, key=lambda pair: pair[1].modified_s, reverse=True)
    kept_bytes = 0
    for number, (_, entry) in enumerate(newest_first):
        kept_bytes += entry.bytes
        if kept_bytes > most_bytes:
            return newest_first[number:]
    return []


# ---------------------------------------------------------------- what became of it


@dataclass
class Cleared:
    """What was deleted, and what was not and why. `stopped` if there was more to do."""

    bytes: int = 0
    files: int = 0
    entries: int = 0
    failures: list[Failure] = field(default_factory=list)
    stopped: bool = False

    def add(self, entry: Entry) -> None:
        self.bytes += entry.bytes
        self.files += entry.files
        self.entries += 1


def clear(
    chosen: Sequence[Chosen],
    in_use: Collection[Path] = (),
    progress: Callable[[Cleared], bool] = lambda cleared: True,
) -> Cleared:
    """Delete what was chosen. Never raises for a file system that refuses. Places `in_use` keep their empty folders:
    a process may be about to write there. `progress` is called now and then and ends the work with False."""
    cleared = Cleared()
    for part in chosen:
        _clear_place(part, cleared, part.contents.place.path not in in_use, progress)
        if cleared.stopped:
            break
    return cleared


def _clear_place(part: Chosen, cleared: Cleared, tidy: bool, progress: Callable[[Cleared], bool]) -> None:
    place = part.contents.place.path
    try:
        with opened(place) as folder:
            status = os.fstat(folder)
            if (status.st_dev, status.st_ino) != (part.contents.device, part.contents.inode):
                cleared.failures.append(Failure(str(place), _LEFT))
                return
            eraser = _Eraser(folder, place, status.st_dev)
            for index, entry in enumerate(part.entries):
                if index % _ENTRIES_A_LOOK == 0 and not progress(cleared):
                    cleared.stopped = True
                    break
                failures = eraser.erase(entry)
                cleared.failures += failures
                if not failures:
                    cleared.add(entry)
            eraser.close()
            # Other roots link to the folder of headers that runs share.
            if tidy and part.contents.place.family is Family.INDUCTOR:
                _remove_empty_folders(folder, part.entries)
    except OSError as error:
        cleared.failures.append(Failure(str(place), _reason(error)))


class _Eraser:
    """Deletes entries below the open folder `root`, which is `place`."""

    def __init__(self, root: int, place: Path, device: int) -> None:
        self._root = root
        self._place = place
        self._device = device
        label = f"{ASIDE_PREFIX}{secrets.token_hex(4)}"
        self._aside = (f"{label}-{number}" for number in itertools.count())
        self._mounts = machine.mount_points_below(place)
        self._parent: tuple[str, ...] | None = None
        self._parent_folder = -1
        self._stack = ExitStack()

    def close(self) -> None:
        self._stack.close()

    def erase(self, entry: Entry) -> list[Failure]:
        """What stayed; nothing if all of the entry is gone."""
        path = self._place / entry.path
        if any(mount == path or path in mount.parents or mount in path.parents for mount in self._mounts):
            return [Failure(str(path), _MOUNTED)]
        *parents, name = entry.path.split("/")
        try:
            folder = self._open_parent(tuple(parents))
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if (status.st_dev, status.st_ino) != (entry.device, entry.inode):
                return [Failure(str(path), _LEFT)]
            if not stat.S_ISDIR(status.st_mode):
                os.unlink(name, dir_fd=folder)
                return []
            aside = next(self._aside)
            os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=self._root)
        except FileNotFoundError:
            return []  # somebody else was quicker
        except OSError as error:
            return [Failure(str(path), _reason(error))]
        return self._erase_folder(aside, str(path))

    def _open_parent(self, names: tuple[str, ...]) -> int:
        """Neighbours share their folder."""
        if names != self._parent:
            self._stack.close()
            self._parent = None
            self._parent_folder = self._stack.enter_context(opened_below(self._root, names))
            self._parent = names
        return self._parent_folder

    def _erase_folder(self, aside: str, shown: str) -> list[Failure]:
        """Folders found in it are put aside beside it: whatever the depth, one folder is open at a time."""
        failures: list[Failure] = []
        waiting = [(aside, shown)]
        while waiting:
            name, path = waiting.pop()
            try:
                with opened_below(self._root, (name,)) as folder:
                    stay: list[Failure] = []
                    waiting += self._empty(folder, path, stay)
                failures += (Failure(f.path, f"{f.reason}; now in {self._place / name}") for f in stay)
                if not stay:
                    os.rmdir(name, dir_fd=self._root)
            except FileNotFoundError:
                continue
            except OSError as error:
                failures.append(Failure(path, f"{_reason(error)}; now {self._place / name}"))
        return failures

    def _empty(self, folder: int, path: str, failures: list[Failure]) -> Iterator[tuple[str, str]]:
        """Delete the files in the open `folder`; yields the folders that were in it, with their new names."""
        with os.scandir(folder) as children:
            names = [child.name for child in children]
        for name in names:
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode):
                    os.unlink(name, dir_fd=folder)
                elif status.st_dev != self._device:
                    failures.append(Failure(f"{path}/{name}", _MOUNTED))
                else:
                    aside = next(self._aside)
                    os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=self._root)
                    yield aside, f"{path}/{name}"
            except FileNotFoundError:
                continue
            except OSError as error:
                failures.append(Failure(f"{path}/{name}", _reason(error)))


def _remove_empty_folders(root: int, entries: Iterable[Entry]) -> None:
    """The folders in which the entries lay, where nothing is left in them."""
    folders = {entry.path.rpartition("/")[0] for entry in entries} - {""}
    folders |= {folder.rpartition("/")[0] for folder in folders} - {""}
    for path in sorted(folders, key=len, reverse=True):
        *parents, name = path.split("/")
        with contextlib.suppress(OSError), opened_below(root, tuple(parents)) as folder:
            os.rmdir(name, dir_fd=folder)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
