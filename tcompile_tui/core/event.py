"""What every record of a run has. Standard library only: the worker imports this module."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar


@dataclass(frozen=True, kw_only=True)
class Event:
    """What every record has; `stamp` fills it in when the record is sent."""

    kind: ClassVar[str] = ""
    t_s: float = 0.0
    process: int = 0


AnyEvent = TypeVar("AnyEvent", bound=Event)


def stamp(event: AnyEvent, t_s: float, process: int) -> AnyEvent:
    """The same record, with its time and its sender."""
    return replace(event, t_s=t_s, process=process)
