"""Are the compiled outputs right? Judged from the numbers that the worker reduced each output to."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tcompile_tui.core.events import LeafComparison, OutputsCompared


class Agreement(str, enum.Enum):
    """From best to worst."""

    SAME = "same"
    WITHIN_ROUNDING = "within rounding"
    NOT_CHECKED = "not checked"
    RANDOM = "random in eager too"
    UNCERTAIN = "larger than rounding usually is"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Accuracy:
    """The worst agreement over all outputs (and gradients), with the place and the reason."""

    agreement: Agreement
    detail: str = ""
    path: str | None = None


# Root mean square of the difference over that of the reference: (rounding, too much for any order of summation).
# The rounding limits are benchmarks/dynamo's tolerances; without a float64 reference what lies between the two
# cannot be told from an unlucky order, and is said to be uncertain. Cosine similarity is no rule: it passes a
# scale error of any size.
_LIMITS = {
    "float64": (1e-7, 1e-5),
    "complex128": (1e-7, 1e-5),
    "float32": (1e-4, 1e-2),
    "complex64": (1e-4, 1e-2),
}
_LOW_PRECISION_LIMITS = (2e-2, 1e-1)
_TRAINING_FACTOR = 10.0
# Eager's own change from run to run (atomics) excuses this much of a difference.
_EAGER_CHANGE_FACTOR = 4.0

_ORDER = list(Agreement)


def judge(eager_twice: OutputsCompared | None, compiled: OutputsCompared | None, training: bool) -> Accuracy:
    """Judge every output and return the worst."""
    if compiled is None:
        return Accuracy(Agreement.NOT_CHECKED)
    eager = {leaf.path: leaf for leaf in eager_twice.leaves} if eager_twice is not None else {}
    judged = [_judge_leaf(leaf, eager.get(leaf.path), training) for leaf in compiled.leaves]
    return max(judged, key=lambda accuracy: _ORDER.index(accuracy.agreement), default=Accuracy(Agreement.NOT_CHECKED))


def _judge_leaf(leaf: LeafComparison, eager: LeafComparison | None, training: bool) -> Accuracy:
    if not leaf.same_structure and (eager is None or eager.same_structure):
        return Accuracy(Agreement.DIFFERENT, f"another type or shape ({leaf.dtype})", leaf.path)
    if leaf.new_nonfinite:
        return Accuracy(
            Agreement.DIFFERENT, f"{leaf.new_nonfinite} values are NaN or inf only when compiled", leaf.path
        )
    rounding, limit = _LIMITS.get(leaf.dtype, _LOW_PRECISION_LIMITS)
    if training:
        rounding *= _TRAINING_FACTOR
    eager_change = _relative(eager) if eager is not None else 0.0
    if eager is not None and (eager.unequal or eager_change > limit or not eager.same_structure):
        return Accuracy(Agreement.RANDOM, "eager itself gives another result with other random numbers", leaf.path)
    if leaf.unequal:
        share = leaf.unequal / max(1, leaf.elements)
        return Accuracy(Agreement.UNCERTAIN, f"{100 * share:.2g} % of whole numbers or plain values differ", leaf.path)
    change = _relative(leaf)
    if change == 0.0:
        return Accuracy(Agreement.SAME, "", leaf.path)
    text = f"relative difference {change:.1e} (root mean square, {leaf.dtype})"
    if leaf.allclose_violations == 0 or change <= max(rounding, _EAGER_CHANGE_FACTOR * eager_change):
        return Accuracy(Agreement.WITHIN_ROUNDING, text, leaf.path)
    return Accuracy(Agreement.UNCERTAIN if change <= limit else Agreement.DIFFERENT, text, leaf.path)


def _relative(leaf: LeafComparison) -> float:
    if leaf.rms_reference == 0.0:
        return leaf.rms_difference
    return leaf.rms_difference / leaf.rms_reference
