"""Files to discover models in, and what came of them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tcompile_tui.core.discover import Resolved, resolve
from tcompile_tui.core.spec import SpecError, Target, parse_target

NET = "from torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"
FORWARD = "\n    def forward(self, x):\n        return x\n"


def write(folder: Path, source: str, name: str = "net.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(source))
    return path


def pick(folder: Path, source: str, name: str | None = None) -> Resolved:
    write(folder, source)
    return resolve(Target("net.py", None, name), folder)


def picked(folder: Path, source: str, name: str | None = None) -> str:
    return pick(folder, source, name).qualified_name


def refusal(folder: Path, target: Target | str) -> str:
    """The one line that the user gets."""
    with pytest.raises(SpecError) as caught:
        resolve(parse_target(target) if isinstance(target, str) else target, folder)
    message = str(caught.value)
    assert message and "\n" not in message
    return message


def refused(folder: Path, source: str, name: str | None = None) -> str:
    write(folder, source)
    return refusal(folder, Target("net.py", None, name))
