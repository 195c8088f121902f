"""How the outputs of both arms compare: the records that `core/accuracy.py` judges (see `core/events.py`).

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from .event import Event


@dataclass(frozen=True)
class ReferenceErrors:
    """Eager and compiled against the same output in higher precision, over a fixed sample of its elements.

    `*_rms` and `*_max` are of the differences from the reference; `*_slope` is that of the regression on the
    reference (1 where nothing is scaled), `slope_error` the standard error of eager's. The slopes are None where the
    reference is constant.
    """

    elements: int
    rms_reference: float
    eager_rms: float
    compiled_rms: float
    eager_max: float
    compiled_max: float
    eager_slope: float | None = None
    compiled_slope: float | None = None
    slope_error: float | None = None


@dataclass(frozen=True)
class LeafComparison:
    """One output tensor (or gradient), reduced to what the tolerance rules need. All over finite pairs.

    `rms_*` are root mean squares; `max_abs_difference` is over all elements that are finite in both.
    `allclose_violations` counts elements that differ by more than `tolerance` times their own size and
    `rms_reference` together. `new_nonfinite` counts elements that are NaN or inf and are not the same in the
    reference, `lost_nonfinite` those that are so in the reference only. `unequal` counts differing elements of
    integer, boolean and plain Python leaves.
    """

    path: str
    dtype: str
    elements: int
    same_structure: bool
    rms_reference: float = 0.0
    rms_difference: float = 0.0
    max_abs_reference: float = 0.0
    max_abs_difference: float = 0.0
    allclose_violations: int = 0
    new_nonfinite: int = 0
    lost_nonfinite: int = 0
    nan_in_both: int = 0
    unequal: int = 0
    tolerance: float | None = None
    errors: ReferenceErrors | None = None


class ComparisonKind(str, enum.Enum):
    EAGER_TWICE = "eager-twice"  # same inputs and state, other RNG seed: tells randomness from error
    COMPILED = "compiled"  # eager and the first compiled step
    STEADY = "steady"  # eager and a compiled step after the warm-up: a recorded cudagraph is replayed only then


@dataclass(frozen=True, kw_only=True)
class OutputsCompared(Event):
    """Outputs (and for training, loss and gradients) of two runs on the same inputs and state. `low_precision` is
    the 16-bit type that parts of the model work in, `tf32` whether float32 goes through TF32 (10 bits of fraction) in
    convolutions or matrix products, `reference_dtype` the type of the reference that `errors` are against."""

    kind: ClassVar[str] = "outputs_compared"
    comparison: ComparisonKind
    leaves: tuple[LeafComparison, ...]
    leaves_left_out: int = 0
    low_precision: str | None = None
    reference_dtype: str | None = None
    tf32: bool = False


@dataclass(frozen=True)
class RunStatistic:
    """One figure of an output (its mean, its share of zeros), for each of several runs of both arms."""

    name: str
    eager: tuple[float, ...]
    compiled: tuple[float, ...]


@dataclass(frozen=True)
class LeafSpread:
    """An output that is random, over several runs of both arms with other random numbers.

    `products` is the matrix of mean products of the runs' outputs, each less the mean over all runs: row by row from
    the diagonal on, eager's runs first. `rms` is that of the outputs themselves.
    """

    path: str
    dtype: str
    elements: int
    rms: float
    products: tuple[float, ...]
    statistics: tuple[RunStatistic, ...]


@dataclass(frozen=True, kw_only=True)
class RandomOutputsCompared(Event):
    """Outputs that eager itself draws anew each time, as distributions: `runs` of each arm on the same inputs."""

    kind: ClassVar[str] = "random_outputs_compared"
    runs: int
    leaves: tuple[LeafSpread, ...]
    leaves_left_out: int = 0
    low_precision: str | None = None
