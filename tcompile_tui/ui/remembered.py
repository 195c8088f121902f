"""The last settings for each file, kept between starts. Best effort: without them the defaults stand."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import msgspec
import platformdirs

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
        _write(settings_path(), msgspec.json.format(msgspec.json.encode(newest)))


def _read() -> dict[str, msgspec.Raw]:
    try:
        return _decoder.decode(settings_path().read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return {}


def _write(path: Path, text: bytes) -> None:
    """Whole or not at all, so that a second start that reads meanwhile sees one of the two."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".setup-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        os.replace(name, path)  # noqa: PTH105
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
