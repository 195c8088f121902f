"""Which theme the application starts with. Best effort: what cannot be read or written is as if nothing was chosen."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import platformdirs

from tcompile_tui.config import Config

_VARIABLE = "TEXTUAL_THEME"


def memory_path() -> Path:
    return platformdirs.user_state_path("tcompile-tui") / "theme"


def starting_theme(config: Config) -> str | None:
    """$TEXTUAL_THEME is Textual's own business (None). Else what was chosen in the application last, unless
    config.toml has changed its mind since; else what config.toml says."""
    if os.environ.get(_VARIABLE):
        return None
    with suppress(OSError, UnicodeDecodeError, ValueError):
        chosen, configured = memory_path().read_text("utf-8").split("\n")[:2]
        if configured == (config.theme or "") and chosen:
            return chosen
    return config.theme


def remember_theme(chosen: str, config: Config) -> None:
    """With what config.toml says now, so that a later change there counts."""
    with suppress(OSError, UnicodeError):
        memory_path().parent.mkdir(parents=True, exist_ok=True)
        memory_path().write_text(f"{chosen}\n{config.theme or ''}\n", "utf-8")
