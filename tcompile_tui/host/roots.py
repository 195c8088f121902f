"""Private folders for the compiler's caches: a cold start is cold, and the user's real caches stay untouched."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tcompile_tui.host.run_folder import ProcessId, write_atomically

HEADERS_VARIABLE = "TCOMPILE_TUI_HEADERS_DIR"
PRIVATE_VARIABLE = "TCOMPILE_TUI_PRIVATE_DIR"
OWNER_FILE = "owner.json"
_PROBE_BYTES = 1 << 16


@dataclass(frozen=True)
class PrivateRoot:
    """One cold start's folders: Inductor's cache, Triton's cache, and the temporary folder."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        """To be set before torch is imported, which remembers all three."""
        return {
            "TORCHINDUCTOR_CACHE_DIR": str(self.path / "i"),
            "TRITON_CACHE_DIR": str(self.path / "t"),
            "TMPDIR": str(self.path / "tmp"),
        }

    @property
    def damage(self) -> str | None:
        """What keeps a compiler from writing here; None if nothing does."""
        for folder in map(Path, self.environment.values()):
            if not folder.is_dir():
                return f"{folder} is gone"
            try:
                with tempfile.TemporaryFile(dir=folder) as file:
                    file.write(bytes(_PROBE_BYTES))
                    file.flush()
            except OSError as error:
                return f"{folder} cannot be written: {error.strerror}"
        return None

    def remove(self) -> None:
        """Best effort: a process that was killed may still hold a file open on a network file system."""
        shutil.rmtree(self.path, ignore_errors=True)


def base_folder() -> Path:
    """$TCOMPILE_TUI_PRIVATE_DIR, else in the system's temporary folder, not the user's: short (sockets live below it)
    and local."""
    if moved := os.environ.get(PRIVATE_VARIABLE):
        return Path(moved)
    for candidate in ("/tmp", "/var/tmp", tempfile.gettempdir()):
        if os.access(candidate, os.W_OK | os.X_OK):
            return Path(candidate) / f"tct-{os.getuid()}"
    raise OSError("no writable temporary folder: /tmp, /var/tmp and $TMPDIR are all read-only")


def create_root(share_headers: bool = True, interpreter: str = "") -> PrivateRoot:
    """A new root, mode 0700. With `share_headers` the C++ headers that torch precompiles once per machine (20 s,
    150 MB, CPU code only) come from a folder that all runs of `interpreter_key` share. Raises OSError."""
    base = base_folder()
    _make_private(base)
    root = PrivateRoot(base / secrets.token_hex(4))
    for folder in (root.path, root.path / "i", root.path / "t", root.path / "tmp"):
        folder.mkdir(mode=0o700)
    write_atomically(root.path / OWNER_FILE, msgspec.json.encode(ProcessId.own()))
    if share_headers:
        own = root.path / "tmp" / f"torchinductor_{_user_name()}"
        own.mkdir(mode=0o700)
        shared = headers_folder(interpreter)
        shared.mkdir(parents=True, exist_ok=True, mode=0o700)
        (own / "precompiled_headers").symlink_to(shared, target_is_directory=True)
    return root


def headers_folder(interpreter: str = "") -> Path:
    """Where the shared precompiled headers of an `interpreter_key` lie: $TCOMPILE_TUI_HEADERS_DIR for all of them."""
    moved = os.environ.get(HEADERS_VARIABLE)
    return Path(moved) if moved else base_folder() / "headers" / interpreter


def headers_exist(interpreter: str) -> bool:
    return any(headers_folder(interpreter).glob("*.gch"))


def interpreter_key(executable: str, torch_version: str | None) -> str:
    """8 hex digits for what headers are precompiled for: those of another torch or compiler serve no one else, and
    a cold start would pay for its own."""
    what = (executable, str(torch_version), os.environ.get("CXX", ""))
    return hashlib.sha256("\0".join(what).encode(errors="surrogateescape")).hexdigest()[:8]


def remove_leftovers() -> int:
    """Delete the roots of runs that died; returns how many."""
    removed = 0
    base = base_folder()
    for path in base.iterdir() if base.is_dir() else ():
        try:
            owner = msgspec.json.decode((path / OWNER_FILE).read_bytes(), type=ProcessId)
        except (OSError, msgspec.DecodeError):
            continue
        if not owner.is_alive and not owner.is_elsewhere:
            PrivateRoot(path).remove()
            removed += 1
    return removed


def _make_private(base: Path) -> None:
    """Another user may have made our folder first to look into it."""
    base.mkdir(mode=0o700, exist_ok=True)
    status = base.lstat()
    if status.st_uid != os.getuid() or base.is_symlink():
        raise OSError(f"{base} belongs to another user: remove it, or set TMPDIR")
    base.chmod(0o700)


def _user_name() -> str:
    """As torch writes it into the name of its folder."""
    try:
        name = getpass.getuser()
    except (KeyError, ModuleNotFoundError, OSError):
        name = f"uid_{os.getuid()}"
    return re.sub(r'[\\/:*?"<>|]', "_", name)
