"""Where things are kept. Every place can be moved by an environment variable."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

RUNS_VARIABLE = "TCOMPILE_TUI_RUNS_DIR"


def default_runs_dir() -> Path:
    """The folder that holds the run folders: $TCOMPILE_TUI_RUNS_DIR, else the platform's data folder."""
    moved = os.environ.get(RUNS_VARIABLE)
    return Path(moved).expanduser() if moved else platformdirs.user_data_path("tcompile-tui") / "runs"
