"""What was looked at before a run, and what it means."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Level(str, enum.Enum):
    """What a check means for torch.compile here."""

    FINE = "fine"
    NOTE = "note"
    WARNING = "warning"
    BLOCKER = "blocker"


@dataclass(frozen=True)
class Check:
    """`fix` is one line, for what is not fine."""

    name: str
    level: Level
    text: str
    fix: str | None = None
