"""What a process says that replays a sequence of shapes (see `core/events.py`); its steps are blocks of role REPLAY.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .event import Event
from .shape_spec import ShapeHandling, ShapeSequence


@dataclass(frozen=True, kw_only=True)
class ReplayStarted(Event):
    """The compiled arm's batches: the sequence of the run, or the one that it was padded to. A first block of each arm
    runs all of them in order, and pairs of blocks go on from there, round and round."""

    kind: ClassVar[str] = "replay_started"
    handling: ShapeHandling
    sequence: ShapeSequence
