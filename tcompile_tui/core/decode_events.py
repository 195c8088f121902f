"""Records of decoding token by token.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .event import Event
from .spec import Arm


@dataclass(frozen=True, kw_only=True)
class PrefillsTimed(Event):
    """The part of an arm's generations before their first token: `step_ns` are the times of some, beside the other
    arm's. A generation goes on with `new_tokens` steps of one token for each of its `sequences`."""

    kind: ClassVar[str] = "prefills_timed"
    arm: Arm
    sequences: int
    prompt_tokens: int
    new_tokens: int
    step_ns: tuple[int, ...]
