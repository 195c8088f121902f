"""`config.toml`: a person's defaults. What is wrong in it is named by file and line, and the rest counts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

if TYPE_CHECKING:
    from tcompile_tui.core.spec import Mode, Preset

CONFIG_VARIABLE = "TCOMPILE_TUI_CONFIG"


@dataclass(frozen=True)
class Config:
    """None where the file does not say. `modes`, `preset`, `device` and the plan are what the form begins with: a typed
    `tcompile-tui run` measures what its command line says, on every machine alike."""

    path: Path
    theme: str | None = None
    ascii: bool | None = None
    runs_dir: Path | None = None
    python: str | None = None
    modes: tuple[Mode, ...] | None = None
    preset: Preset | None = None
    device: str | None = None
    planned_hours: float | None = None
    planned_steps: int | None = None
    problems: tuple[str, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)

    def complaint(self, key: str, reason: str) -> str:
        """One line that names file, line and key."""
        line = f", line {self.lines[key]}" if key in self.lines else ""
        return f"{self.path}{line}: {key}: {reason}"


def config_path() -> Path:
    """$TCOMPILE_TUI_CONFIG, else `config.toml` in the platform's configuration folder."""
    moved = os.environ.get(CONFIG_VARIABLE)
    return Path(moved).expanduser() if moved else platformdirs.user_config_path("tcompile-tui") / "config.toml"


def load_config(path: Path | None = None) -> Config:
    """Never raises: what cannot be used is in `problems`, one line each, and counts as not written."""
    path = path or config_path()
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return Config(path)
    except UnicodeDecodeError:
        return Config(path, problems=(f"{path}: this is not UTF-8 text",))
    except OSError as error:
        return Config(path, problems=(f"{path}: cannot be read: {error.strerror}",))
    return _read(text, path)


def _read(text: str, path: Path) -> Config:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Config(path, problems=(f"{path}: {error}",))
    blank = Config(path, lines=_lines_of(table, text))
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, written in table.items():
        reader = _READERS.get(key)
        try:
            if reader is None:
                raise ValueError(f"unknown key; known are {', '.join(_READERS)}")
            values[key] = reader(written)
        except ValueError as error:
            problems.append(blank.complaint(key, str(error)))
    if "planned_hours" in values and "planned_steps" in values:
        del values["planned_hours"], values["planned_steps"]
        problems.append(blank.complaint("planned_hours", "write planned_hours or planned_steps, not both"))
    return Config(path, problems=tuple(problems), lines=blank.lines, **values)


def _lines_of(table: Mapping[str, object], text: str) -> dict[str, int]:
    """The line of each top-level key, from 1; one that is written in an unusual way has none."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"""\s*\[{0,2}\s*["']?([\w-]+)["']?\s*[=.\]]""", line)
        if match and match[1] in table:
            found.setdefault(match[1], number)
    return found


# ---------------------------------------------------------------- one reader a key; each raises ValueError


def _text(written: object) -> str:
    if not isinstance(written, str) or not written.strip():
        raise ValueError(f"{written!r} is not a text: write it in quotes")
    return written.strip()


def _flag(written: object) -> bool:
    if not isinstance(written, bool):
        raise ValueError(f"{written!r} is neither true nor false")
    return written


def _folder(written: object) -> Path:
    path = Path(_text(written)).expanduser()
    if not path.is_absolute():
        raise ValueError(f"'{path}' is not a whole path: begin it with / or ~")
    return path


def _modes(written: object) -> tuple[Mode, ...]:
    from tcompile_tui.core.spec import Mode, order_modes

    names = [written] if isinstance(written, str) else written
    if not isinstance(names, list) or not names:
        raise ValueError(f'{written!r} is not a list of modes: write ["default", "reduce-overhead"]')
    return order_modes([Mode(_one_of(name, [mode.value for mode in Mode])) for name in names])


def _preset(written: object) -> Preset:
    from tcompile_tui.core.spec import Preset

    return Preset(_one_of(written, [preset.value for preset in Preset]))


def _one_of(written: object, known: list[str]) -> str:
    if not isinstance(written, str) or written not in known:
        raise ValueError(f"{written!r} is none of {', '.join(known)}")
    return written


def _device(written: object) -> str:
    from tcompile_tui.core.spec import parse_device

    return parse_device(_text(written))


def _hours(written: object) -> float:
    if isinstance(written, bool) or not isinstance(written, (int, float)) or not 0 < written < float("inf"):
        raise ValueError(f"{written!r} is not a number of hours above 0")
    return float(written)


def _steps(written: object) -> int:
    if isinstance(written, bool) or not isinstance(written, int) or not 1 <= written < 10**18:
        raise ValueError(f"{written!r} is not a whole number of steps, 1 or more")
    return written


_READERS: dict[str, Callable[[object], object]] = {
    "theme": _text,
    "ascii": _flag,
    "runs_dir": _folder,
    "python": _text,
    "modes": _modes,
    "preset": _preset,
    "device": _device,
    "planned_hours": _hours,
    "planned_steps": _steps,
}
KEYS = tuple(_READERS)
