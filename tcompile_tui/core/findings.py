"""What a person should know beside the figures: a cause, with its evidence and its next step."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Mode
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import ratio


class Severity(str, enum.Enum):
    """How much a finding matters, worst first. A BLOCKER keeps the decision from being ENABLE."""

    BLOCKER = "blocker"
    WARNING = "warning"
    ADVICE = "advice"
    NOTE = "note"


MEMORY_DOWN = "memory-down"


@dataclass(frozen=True)
class Finding:
    """One cause. `id` is stable and names the kind; `file` and `line` are the user's own code.
    `mode` is set where only that mode's decision is touched."""

    id: str
    severity: Severity
    title: str
    evidence: str = ""
    advice: str = ""
    file: str | None = None
    line: int | None = None
    link: str | None = None
    mode: Mode | None = None


Rule: TypeAlias = Callable[[RunState, Sequence[ModeResult]], Iterator[Finding]]


def speedup_text(result: ModeResult) -> str:
    """`1.71x (1.69x to 1.73x)`."""
    if result.speedup is None:
        return ratio(None)
    if result.speedup.lo == result.speedup.hi:  # both arms wait for the same data
        return ratio(result.speedup.value)
    return f"{ratio(result.speedup.value)} ({ratio(result.speedup.lo)} to {ratio(result.speedup.hi)})"
