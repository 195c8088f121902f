"""Which files and folders may hold a model, and how a started target goes on. Standard library only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic

_LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})
_ENVIRONMENT_MARKS = frozenset({"pyvenv.cfg", "conda-meta"})
HUGE_FOLDER_ENTRIES = 2_000
# On a slow disk the folders that are left are shown without a look inside.
_LOOK_INSIDE_S = 0.5


@dataclass(frozen=True)
class Entry:
    """One line of the tree: a Python file, or a folder that may lead to one."""

    path: Path
    is_folder: bool


def list_entries(folder: Path, look_inside: bool = True) -> list[Entry]:
    """Folders first, then Python files, by name. Left out: hidden and huge folders, environments, and, with
    `look_inside`, folders that hold neither Python nor folders. Nothing if the folder cannot be read."""
    until = monotonic() + _LOOK_INSIDE_S
    found: list[Entry] = []
    for item in _scan(folder):
        is_folder = _is_folder(item)
        if not item.name.isprintable() or (not is_folder and not item.name.endswith(".py")):
            continue
        if is_folder and (_is_left_out(item.name) or (look_inside and not _is_worth_showing(Path(item.path), until))):
            continue
        found.append(Entry(Path(item.path), is_folder))
    return sorted(found, key=lambda entry: (not entry.is_folder, entry.path.name.lower()))


def shown_path(path: Path, cwd: Path) -> str:
    """The path as a person would type it in `cwd`."""
    text = os.path.relpath(path, cwd)
    if text.startswith("../../.."):
        text = str(path)
    return f"./{text}" if text.startswith("-") else text


def written_path(text: str, cwd: Path) -> Path:
    """Where it leads; `~` of somebody unknown is a name like any other."""
    return cwd / os.path.expanduser(text)  # noqa: PTH111


def complete(text: str, cwd: Path) -> str | None:
    """The text, completed by one step: a folder, a Python file, or a model in the file before the colon."""
    if not text or text.endswith(("/..", "..")):
        return None
    where, colon, started = text.rpartition(":")
    if colon:
        return next((f"{where}:{name}" for name in _model_names(where, cwd) if name.startswith(started)), None)
    if "/" in text or "." not in text:
        return _complete_path(text, "/", cwd)
    return _complete_path(text, "/", cwd) or _complete_path(text, ".", cwd)


def _complete_path(text: str, separator: str, cwd: Path) -> str | None:
    parent, between, started = text.rpartition(separator)
    folder = parent.replace(".", "/") if separator == "." else parent + between
    for entry in list_entries(written_path(folder, cwd), look_inside=False):
        if entry.path.name.startswith(started):
            end = separator if entry.is_folder else ""
            name = entry.path.stem + ":" if separator == "." and not entry.is_folder else entry.path.name
            return f"{parent}{between}{name}{end}"
    return None


def _model_names(where: str, cwd: Path) -> list[str]:
    from tcompile_tui.core.discover import find_candidates
    from tcompile_tui.core.spec import SpecError

    file = where if where.endswith(".py") else where.replace(".", "/") + ".py"
    try:
        return [candidate.name for candidate in find_candidates(written_path(file, cwd))]
    except SpecError:
        return []


def _scan(folder: Path, most: int | None = None) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as items:
            return list(islice(items, most))
    except (OSError, ValueError):
        return []


def _is_folder(item: os.DirEntry[str]) -> bool:
    try:
        return item.is_dir()
    except OSError:
        return False


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in _LEFT_OUT or name.endswith(".egg-info")


def _is_worth_showing(folder: Path, until: float) -> bool:
    if monotonic() > until:
        return True
    items = _scan(folder, HUGE_FOLDER_ENTRIES + 1)
    if len(items) > HUGE_FOLDER_ENTRIES or any(item.name in _ENVIRONMENT_MARKS for item in items):
        return False
    return any(item.name.endswith(".py") or (_is_folder(item) and not _is_left_out(item.name)) for item in items)
