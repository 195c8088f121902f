"""The worker as one zip file that any Python >= 3.10 can run, with nothing installed beside it.

The modules travel under a name of their own, so that they can shadow nothing of the user's and nothing of theirs
can stand in for them.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
WORKER_PACKAGE = "_tcompile_worker"
_CORE_MODULES = (
    "__init__.py", "spec_error.py", "input_spec.py", "argument_spec.py", "step_spec.py", "shape_spec.py",
    "compile_options.py", "data_spec.py", "spec.py", "event.py", "compiler_events.py", "output_events.py",
    "shape_events.py", "decode_events.py", "batch_events.py", "epoch_events.py", "fit_batch.py", "inspection.py",
    "events.py", "wire.py",
)  # fmt: skip
_ENTRY = f"from {WORKER_PACKAGE}.worker.__main__ import main\nmain()\n"


def build_worker_archive(path: Path) -> Path:
    """Write the archive to `path` and return it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", _ENTRY)
        archive.writestr(f"{WORKER_PACKAGE}/__init__.py", "")
        for name in _CORE_MODULES:
            archive.write(_PACKAGE / "core" / name, f"{WORKER_PACKAGE}/core/{name}")
        for module in sorted((_PACKAGE / "worker").glob("*.py")):
            archive.write(module, f"{WORKER_PACKAGE}/worker/{module.name}")
    return path
