"""Where compile caches lie: for this process, or for another one by its environment. torch is not imported."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tcompile_tui.host import machine
from tcompile_tui.host.cache_kinds import Family, is_inside, kind_of
from tcompile_tui.host.roots import HEADERS_VARIABLE, base_folder

INDUCTOR_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
TRITON_VARIABLE = "TRITON_CACHE_DIR"
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_NETWORK = frozenset({"nfs", "nfs3", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "fuse.sshfs", "ceph", "9p"})


class PlaceError(Exception):
    """A place that was asked for cannot be looked at; the message is one line."""


@dataclass(frozen=True)
class Place:
    """A folder that holds caches, or would. Links above it are resolved; it is never one itself to be followed."""

    path: Path
    family: Family
    why: str


@dataclass(frozen=True)
class FileSystem:
    """`kind` is for example 'ext4'; None where it cannot be told."""

    kind: str | None
    free_bytes: int | None
    free_inodes: int | None

    @property
    def is_memory(self) -> bool:
        """What lies there takes up RAM, and a reboot or the end of a container loses it."""
        return self.kind in _IN_MEMORY

    @property
    def is_network(self) -> bool:
        return self.kind in _NETWORK


def places_of(environment: Mapping[str, str]) -> list[Place]:
    """Where torch and Triton keep their caches under `environment`, those that are often quoted included."""
    home = Path(environment.get("HOME") or Path.home())
    cache_home = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    default = temporary_folder(environment) / f"torchinductor_{user_name(environment)}"
    found = []
    if moved := environment.get(INDUCTOR_VARIABLE):
        found.append((Path(moved), Family.INDUCTOR, f"${INDUCTOR_VARIABLE}"))
        found.append((default, Family.INDUCTOR, "torch's default; C++ headers lie here whatever is set"))
    else:
        found.append((default, Family.INDUCTOR, "torch's default, in the temporary folder"))
    if moved := environment.get(TRITON_VARIABLE):
        found.append((Path(moved), Family.TRITON, f"${TRITON_VARIABLE}"))
    triton_home = Path(environment.get("TRITON_HOME") or home)
    found.append((triton_home / ".triton" / "cache", Family.TRITON, "Triton without Inductor"))
    kernels = environment.get("PYTORCH_KERNEL_CACHE_PATH")
    found.append((Path(kernels) if kernels else cache_home / "torch" / "kernels", Family.KERNELS, "eager's jiterator"))
    found.append((home / ".torch_inductor_cache", Family.INDUCTOR, "often quoted, but torch never puts it there"))
    return _distinct(_place(path, family, why) for path, family, why in found)


def own_places(runs_dir: Path | None = None) -> list[Place]:
    """Where this program keeps the caches of its runs, and the run folders if `runs_dir` is given."""
    found = []
    with contextlib.suppress(OSError):
        found.append(_place(base_folder(), Family.PRIVATE, "private caches of this program's runs"))
    if moved := os.environ.get(HEADERS_VARIABLE):
        found.append(_place(Path(moved), Family.HEADERS, f"${HEADERS_VARIABLE}"))
    if runs_dir is not None:
        found.append(_place(runs_dir, Family.RUNS, "records of this program's runs"))
    return found


def all_places(
    environment: Mapping[str, str], runs_dir: Path | None = None, extra: Iterable[Path] = (), pids: Iterable[int] = ()
) -> list[Place]:
    """Every place, each once: of `environment`, of the processes `pids`, the folders `extra`, and our own.
    Raises PlaceError for a process or folder that cannot be looked at."""
    found = list(places_of(environment))
    for pid in pids:
        of_process = places_of(process_environment(pid))
        found += [Place(place.path, place.family, f"{place.why} (process {pid})") for place in of_process]
    found += [recognise(folder) for folder in extra]
    return _distinct([*found, *own_places(runs_dir)])


def recognise(folder: Path) -> Place:
    """The place that `folder` is, by what lies in it. Raises PlaceError."""
    place = _place(folder, Family.INDUCTOR, "asked for")
    problem = problem_of(place)
    if problem is not None or not place.path.is_dir():
        raise PlaceError(f"{folder}: {problem or 'there is no such folder'}")
    try:
        names = [child.name for child in place.path.iterdir()]
    except OSError as error:
        raise PlaceError(f"{folder}: {error.strerror}") from None
    telling = {"fxgraph", "aotautograd", "precompiled_headers", "triton"}
    if telling.intersection(names) or any(_holds_code(place.path / name) for name in names):
        return place
    for family in (Family.TRITON, Family.KERNELS, Family.HEADERS):
        if any(kind_of(family, name) is not None for name in names):
            return Place(place.path, family, place.why)
    raise PlaceError(f"{folder}: nothing in it looks like a compile cache, so nothing in it would be deleted")


def problem_of(place: Place) -> str | None:
    """Why nothing in a place can be cleared; None for one that can be, or that is not there."""
    try:
        status = place.path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be looked at: {error.strerror}"
    if stat.S_ISLNK(status.st_mode):
        return f"is a symlink to {place.path.readlink()}: name that folder with --dir to clear it"
    if not stat.S_ISDIR(status.st_mode):
        return "is no folder"
    return None if status.st_uid == os.geteuid() else f"belongs to {_owner_name(status.st_uid)}: left alone"


def file_system(path: Path) -> FileSystem:
    """Of the folder, or of the one that would hold it."""
    existing = next((folder for folder in (path, *path.parents) if folder.is_dir()), path)
    try:
        facts = os.statvfs(existing)
    except OSError:
        return FileSystem(machine.filesystem_type(existing), None, None)
    # Some file systems (btrfs) count no inodes and say 0 of 0.
    inodes = facts.f_favail if facts.f_files else None
    return FileSystem(machine.filesystem_type(existing), facts.f_bavail * facts.f_frsize, inodes)


def process_environment(pid: int) -> dict[str, str]:
    """The environment that a process was started with. Raises PlaceError."""
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except FileNotFoundError:
        raise PlaceError(f"there is no process {pid}") from None
    except OSError as error:
        raise PlaceError(f"the environment of process {pid} cannot be read: {error.strerror}") from None
    return parse_environment(content)


def parse_environment(content: bytes) -> dict[str, str]:
    """As /proc has it: assignments that end with a zero byte."""
    pairs = (os.fsdecode(line).partition("=") for line in content.split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}


def temporary_folder(environment: Mapping[str, str]) -> Path:
    """What tempfile.gettempdir() says under `environment`."""
    asked = [environment[name] for name in ("TMPDIR", "TEMP", "TMP") if environment.get(name)]
    for folder in (*asked, "/tmp", "/var/tmp", "/usr/tmp"):
        if os.access(folder, os.W_OK | os.X_OK) and Path(folder).is_dir():
            return Path(folder)
    return Path("/tmp")


def user_name(environment: Mapping[str, str]) -> str:
    """As torch writes it into the name of its folder."""
    asked = (environment[name] for name in ("LOGNAME", "USER", "LNAME", "USERNAME") if environment.get(name))
    return re.sub(r'[\\/:*?"<>|]', "_", next(asked, None) or _owner_name(os.getuid(), "uid_{}"))


def _owner_name(uid: int, otherwise: str = "user {}") -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return otherwise.format(uid)


def _place(path: Path, family: Family, why: str) -> Place:
    """Resolved but for its last part."""
    absolute = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 (resolve() would follow the last part)
    return Place(absolute.parent.resolve() / absolute.name, family, why)


def _holds_code(folder: Path) -> bool:
    """Whether this is one of the two-letter folders of generated code."""
    if len(folder.name) != 2 or folder.is_symlink() or not folder.is_dir():
        return False
    try:
        return any(kind_of(Family.INDUCTOR, f"{folder.name}/{child.name}") is not None for child in folder.iterdir())
    except OSError:
        return False


def _distinct(places: Iterable[Place]) -> list[Place]:
    """Each folder once, and none whose entries another place has already."""
    found: dict[Path, Place] = {}
    for place in places:
        found.setdefault(place.path, place)
    return [place for place in found.values() if not any(_has(other, place) for other in found.values())]


def _has(outer: Place, inner: Place) -> bool:
    return outer.path in inner.path.parents and is_inside(outer.family, str(inner.path.relative_to(outer.path)))
