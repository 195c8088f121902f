"""What importing the package loads, seen from a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys

_WALK = """
import importlib, json, pkgutil, sys

roots, left_out = json.loads(sys.argv[1])
before = set(sys.modules)
for root in roots:
    package = importlib.import_module(root)
    found = pkgutil.walk_packages(getattr(package, "__path__", ()), f"{root}.")
    for name in sorted(module.name for module in found):
        if not name.endswith(".__main__") and not name.startswith(tuple(left_out)):
            importlib.import_module(name)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def modules_loaded_by(*roots: str, left_out: tuple[str, ...] = ()) -> set[str]:
    """The modules that importing `roots` with everything below them adds to an interpreter."""
    words = [sys.executable, "-c", _WALK, json.dumps([roots, left_out])]
    walked = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert walked.returncode == 0, walked.stderr
    return set(json.loads(walked.stdout))


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_only_the_worker_loads_torch_and_only_the_figures_plot() -> None:
    loaded = modules_loaded_by("tcompile_tui", left_out=("tcompile_tui.worker.", "tcompile_tui.report.figures"))
    assert {"tcompile_tui.core.spec", "tcompile_tui.host.guard", "tcompile_tui.report.html"} <= loaded
    assert not packages(loaded) & {"torch", "numpy", "matplotlib", "jinja2"}


def test_measuring_loads_no_screens() -> None:
    loaded = modules_loaded_by("tcompile_tui.core", "tcompile_tui.host")
    assert {"tcompile_tui.core.state", "tcompile_tui.host.workers"} <= loaded
    assert "textual" not in packages(loaded)
    assert not {name for name in loaded if name.startswith("tcompile_tui.ui")}


def test_what_the_worker_shares_needs_the_standard_library_only() -> None:
    loaded = modules_loaded_by("tcompile_tui.core.spec", "tcompile_tui.core.events", "tcompile_tui.core.wire")
    assert packages(loaded) - sys.stdlib_module_names == {"tcompile_tui"}
