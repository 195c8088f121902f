"""Which living processes use a cache folder. Only this user's own can be seen."""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tcompile_tui.host.cache_places import Place, parse_environment, places_of

_MAX_COMMAND_CHARS = 200
_IS_COMPILER = re.compile(r"/libtorch_\w+\.so|/triton/_C/")


class Use(str, enum.Enum):
    OPEN = "open"
    CONFIGURED = "configured"

    @property
    def meaning(self) -> str:
        return "has files of it open" if self is Use.OPEN else "has torch loaded and compiles into it"


@dataclass(frozen=True)
class CacheUser:
    pid: int
    command: str
    use: Use


@dataclass(frozen=True)
class _Seen:
    """What one process says: the files it has open or mapped, and the folders that its torch would use."""

    pid: int
    command: str
    files: frozenset[str]
    folders: frozenset[Path]

    def use_of(self, folder: Path) -> Use | None:
        prefix = f"{folder}/"
        if any(file.startswith(prefix) for file in self.files):
            return Use.OPEN
        return Use.CONFIGURED if folder in self.folders else None


def users_of(places: Sequence[Place]) -> dict[Path, list[CacheUser]]:
    """By folder, for those that are used; takes milliseconds a process. This process is left out."""
    found: dict[Path, list[CacheUser]] = {}
    for seen in _processes():
        for place in places:
            use = seen.use_of(place.path)
            if use is not None:
                found.setdefault(place.path, []).append(CacheUser(seen.pid, seen.command, use))
    return found


def _processes() -> Iterable[_Seen]:
    own = os.getpid()
    for process in psutil.process_iter():
        if process.pid != own and (seen := _look_at(process)) is not None:
            yield seen


def _look_at(process: psutil.Process) -> _Seen | None:
    """None for a process that cannot be read, or has neither torch nor Triton nor files of a cache."""
    folder = Path(f"/proc/{process.pid}")
    try:
        maps = (folder / "maps").read_bytes()
        descriptors = list((folder / "fd").iterdir())
    except OSError:  # another user's, or it has ended
        return None
    mapped = {os.fsdecode(line.split(maxsplit=5)[5]) for line in maps.splitlines() if line.count(b" /")}
    files = mapped.union(filter(None, map(_target, descriptors)))
    has_torch = any(_IS_COMPILER.search(file) for file in mapped)
    return _Seen(process.pid, _command(process), frozenset(files), _folders(folder) if has_torch else frozenset())


def _folders(process: Path) -> frozenset[Path]:
    try:
        environment = parse_environment((process / "environ").read_bytes())
    except OSError:
        return frozenset()
    return frozenset(place.path for place in places_of(environment))


def _target(link: Path) -> str | None:
    try:
        return str(link.readlink())
    except OSError:
        return None


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:_MAX_COMMAND_CHARS] or process.name()
    except psutil.Error:
        return "n/a"
