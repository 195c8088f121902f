"""One run at a time on a device: a second one is told of the first, since each would spoil the other's figures."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from pathlib import Path

from tcompile_tui.host.roots import base_folder


class DeviceClaim:
    """Held from construction to `close`, or to the end of this process. `holder` is what the run that has the device
    said of itself, None if the device is this run's. Runs of one user on one host see each other."""

    def __init__(self, device: str, about: str) -> None:
        self.holder: str | None = None
        self._fd: int | None = None
        base = base_folder()
        self._path = path = base.with_name(f"{base.name}-{re.sub(r'[^A-Za-z0-9-]', '_', device)}.lock")
        with contextlib.suppress(OSError):  # without the file there is only no warning
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            self._take(self._fd, path, about)

    def _take(self, fd: int, path: Path, about: str) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.holder = path.read_text(errors="replace").strip() or "which has just begun"
            return
        os.ftruncate(fd, 0)
        os.write(fd, about.encode(errors="backslashreplace"))

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is None:
            return
        if self.holder is None:
            self._path.unlink(missing_ok=True)
        os.close(fd)
