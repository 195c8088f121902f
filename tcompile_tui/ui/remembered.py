"""The last settings for each file, kept between starts. Best effort: without them the defaults stand."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import platformdirs

from tcompile_tui.host.run_folder import write_atomically
from tcompile_tui.ui.setup_form import FormValues

_MOST_FILES = 100
_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def settings_path() -> Path:
    return platformdirs.user_state_path("tcompile-tui") / "setup.json"


def recall(file: Path) -> FormValues | None:
    """What was run last for `file`; None if nothing, or nothing that can be read."""
    try:
        return msgspec.json.decode(_read()[str(file)], type=FormValues)
    except (KeyError, msgspec.MsgspecError):
        return None


def remember(file: Path, values: FormValues) -> None:
    """Put `values` last, drop the oldest. Does nothing where the state cannot be written."""
    kept = _read()
    kept.pop(str(file), None)
    kept[str(file)] = msgspec.Raw(msgspec.json.encode(values))
    newest = dict(list(kept.items())[-_MOST_FILES:])
    with contextlib.suppress(OSError, UnicodeError):
        settings_path().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(settings_path(), msgspec.json.encode(newest))


def _read() -> dict[str, msgspec.Raw]:
    try:
        return _decoder.decode(settings_path().read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return {}
