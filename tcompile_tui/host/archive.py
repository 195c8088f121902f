"""The worker as one zip file that any Python >= 3.10 can run, with nothing installed beside it.

The modules travel under a name of their own, so that they can shadow nothing of the user's and nothing of theirs
can stand in for them.
"""

from __future__ import annotations

import zipfile
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

WORKER_PACKAGE = "_tcompile_worker"
_CORE_MODULES = ("__init__.py", "spec.py", "events.py", "wire.py")
_ENTRY = f"from {WORKER_PACKAGE}.worker.__main__ import main\nmain()\n"


def build_worker_archive(path: Path) -> Path:
    """Write the archive to `path` and return it."""
    package = files("tcompile_tui")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", _ENTRY)
        archive.writestr(f"{WORKER_PACKAGE}/__init__.py", "")
        for name in _CORE_MODULES:
            _add(archive, package / "core" / name, f"{WORKER_PACKAGE}/core/{name}")
        for module in (package / "worker").iterdir():
            if module.name.endswith(".py"):
                _add(archive, module, f"{WORKER_PACKAGE}/worker/{module.name}")
    return path


def _add(archive: zipfile.ZipFile, source: Traversable, name: str) -> None:
    archive.writestr(name, source.read_bytes())
