"""Records about the batches of a real run.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .event import Event
from .spec import Arm


@dataclass(frozen=True, kw_only=True)
class LoaderTimed(Event):
    """The user's loader with nothing else at work in its process: `batch_ns` is the time between two batches, the
    median of the means over stretches in which each of its `workers` gave one. It was gone through `epochs` times.
    `samples` is the size of a batch's leading dimension. None where it does not say."""

    kind: ClassVar[str] = "loader_timed"
    batches: int
    batch_ns: float
    epochs: int = 1
    workers: int | None = None
    samples: int | None = None


@dataclass(frozen=True, kw_only=True)
class BatchFitted(Event):
    """The largest batch of one arm, alone in its process: `largest` fits, `too_large` does not (None: no size was found
    that does not). `matched` is the batch of the run. `limit_bytes` is what the process may take of a GPU's memory, so
    that it leaves the others' alone; None where that is not held down."""

    kind: ClassVar[str] = "batch_fitted"
    arm: Arm
    matched: int
    largest: int
    too_large: int | None
    probes: int
    limit_bytes: int | None = None
