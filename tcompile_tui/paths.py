"""Where things are kept. Every place can be moved by an environment variable."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from tcompile_tui.config import Config, load_config

RUNS_VARIABLE = "TCOMPILE_TUI_RUNS_DIR"


def default_runs_dir(config: Config | None = None) -> Path:
    """The folder that holds the run folders: $TCOMPILE_TUI_RUNS_DIR, else `runs_dir` of config.toml, else the
    platform's data folder."""
    moved = os.environ.get(RUNS_VARIABLE)
    if moved:
        return Path(moved).expanduser()
    return (config or load_config()).runs_dir or platformdirs.user_data_path("tcompile-tui") / "runs"
