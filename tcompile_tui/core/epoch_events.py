"""Records about what an epoch has beside full batches.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .event import Event


@dataclass(frozen=True, kw_only=True)
class UsualEpochEnd(Event):
    """The end of an epoch that nobody asked for, as most training has it, begins or is over: twice a last batch of
    `last` samples (None: a batch cannot be cut) and `evaluations` of a full one, without gradients and in inference
    mode. What is compiled meanwhile is compiled for them."""

    kind: ClassVar[str] = "usual_epoch_end"
    begins: bool
    last: int | None
    evaluations: int


@dataclass(frozen=True, kw_only=True)
class UnlikeBatchFailed(Event):
    """A batch of the usual epoch's end did not get through; the run went on without it. `batch` says which."""

    kind: ClassVar[str] = "unlike_batch_failed"
    batch: str
    error_type: str
    message: str
    file: str | None = None
    line: int | None = None
