"""Are the compiled outputs right? Judged from the numbers that the worker reduced each output to."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tcompile_tui.core.events import ComparisonKind, LeafComparison, OutputsCompared, RandomOutputsCompared
from tcompile_tui.core.randomness import find_difference
from tcompile_tui.core.reference_rule import fault_against_reference, rounding_of_zero


class Agreement(str, enum.Enum):
    """From best to worst."""

    SAME = "same"
    WITHIN_ROUNDING = "within rounding"
    NOT_CHECKED = "not checked"
    RANDOM = "random, with the same distribution"
    UNCERTAIN = "larger than rounding usually is"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Accuracy:
    """The worst agreement over all outputs (and loss and gradients), with the place and the reason."""

    agreement: Agreement
    detail: str = ""
    path: str | None = None


# Root mean square of the difference over that of the reference: (rounding, too much for any order of summation).
# The rounding limits are benchmarks/dynamo's tolerances; without a reference in higher precision what lies between
# the two cannot be told from an unlucky order, and is said to be uncertain. Cosine similarity is no rule: it passes
# a scale error of any size.
_LIMITS = {
    "float64": (1e-7, 1e-5),
    "complex128": (1e-7, 1e-5),
    "float32": (1e-4, 1e-2),
    "complex64": (1e-4, 1e-2),
}
_LOW_PRECISION_LIMITS = (1e-3, 1e-1)
# Of gradients: sums over a batch cancel, and rounding flips a ReLU here and there. 0.6 was seen of a correct one in 16
# bits, 0.012 in float32; random numbers are at 1.4.
_LOW_PRECISION_GRADIENT_LIMIT = 0.75
_GRADIENT_LIMIT = 0.1
LOW_PRECISION = ("bfloat16", "float16")
_TRAINING_FACTOR = 10.0
# Eager's own change from run to run (atomics) excuses this much of a difference.
_EAGER_CHANGE_FACTOR = 4.0
# What is left of a gradient that is zero, such as that of a bias before a batch norm, is rounding of the others:
# shares of the largest gradient, by what is calculated in.
_NOISE = {"float64": 1e-16, "float32": 1e-7, "bfloat16": 1e-2, "float16": 1e-3}
_UNCERTAIN_NOISE_FACTOR = 100.0

_ORDER = list(Agreement)


def judge(
    comparisons: Mapping[ComparisonKind, OutputsCompared],
    random: RandomOutputsCompared | None = None,
    training: bool = False,
) -> Accuracy:
    """Judge every output of one process, in its first step and after the warm-up, and return the worst."""
    first, steady = comparisons.get(ComparisonKind.COMPILED), comparisons.get(ComparisonKind.STEADY)
    eager = comparisons.get(ComparisonKind.EAGER_TWICE)
    found = [_judge_comparison(each, eager, random, training) for each in (first, steady) if each is not None]
    if not found:
        return Accuracy(Agreement.NOT_CHECKED)
    worst = max(found, key=_rank)
    if len(found) == 2 and _rank(worst) > _rank(found[0]) and worst.agreement is not Agreement.WITHIN_ROUNDING:
        return replace(worst, detail=f"not in the first step, but after the warm-up: {worst.detail}")
    return worst


def _rank(accuracy: Accuracy) -> int:
    return _ORDER.index(accuracy.agreement)


def relative_difference(leaf: LeafComparison) -> float:
    """Of the root mean squares; the difference itself where the reference is zero."""
    return leaf.rms_difference / leaf.rms_reference if leaf.rms_reference else leaf.rms_difference


@dataclass(frozen=True)
class _Context:
    """What the judgement of one output needs to know of the others and of the run."""

    low_precision: str | None
    tf32: bool
    training: bool
    eager: Mapping[str, LeafComparison]
    random: RandomOutputsCompared | None
    largest_gradient: float
    usual_error: float
    output_error: float
    reference_fits: bool

    def limits(self, leaf: LeafComparison) -> tuple[float, float]:
        usual, limit = _LOW_PRECISION_LIMITS if self.is_low(leaf) else _LIMITS.get(leaf.dtype, _LOW_PRECISION_LIMITS)
        if self.is_tf32(leaf):
            limit = _LOW_PRECISION_LIMITS[1]
        if leaf.tolerance is not None:
            return leaf.tolerance, limit
        return (usual * _TRAINING_FACTOR if self.training else usual), limit

    def is_low(self, leaf: LeafComparison) -> bool:
        return self.low_precision is not None or leaf.dtype in LOW_PRECISION

    def is_tf32(self, leaf: LeafComparison) -> bool:
        return self.tf32 and leaf.dtype in ("float32", "complex64")

    def noise(self, leaf: LeafComparison) -> float:
        """What a gradient may differ by, however small it is. None of it for an output, which stands alone."""
        if not _is_gradient(leaf):
            return 0.0
        return _NOISE.get(self.low_precision or leaf.dtype, _NOISE["float32"]) * self.largest_gradient


def _judge_comparison(
    compared: OutputsCompared, eager_twice: OutputsCompared | None, random: RandomOutputsCompared | None, training: bool
) -> Accuracy:
    context = _context(compared, eager_twice, random, training)
    judged = [(leaf, _judge_leaf(leaf, context)) for leaf in compared.leaves]
    # Of equal ones that with the largest difference.
    worst = max(judged, key=lambda each: (_rank(each[1]), relative_difference(each[0])), default=None)
    return worst[1] if worst is not None else Accuracy(Agreement.NOT_CHECKED)


def _context(
    compared: OutputsCompared, eager_twice: OutputsCompared | None, random: RandomOutputsCompared | None, training: bool
) -> _Context:
    eager = {leaf.path: leaf for leaf in eager_twice.leaves} if eager_twice is not None else {}
    context = _Context(
        compared.low_precision, compared.tf32, training, eager, random, 0.0, 0.0, 1.0, reference_fits=True
    )
    errors = [
        (leaf, leaf.errors.eager_rms / leaf.errors.rms_reference)
        for leaf in compared.leaves
        if leaf.errors is not None and leaf.errors.rms_reference > 0
    ]
    return replace(
        context,
        largest_gradient=max((leaf.rms_reference for leaf in compared.leaves if _is_gradient(leaf)), default=0.0),
        # Beyond that a gradient is noise around zero, and says nothing of the usual error.
        usual_error=max((error for leaf, error in errors if error <= context.limits(leaf)[1]), default=0.0),
        output_error=_output_error(compared),
        # A twin that was built with other weights, or that took another turn, is no yardstick.
        reference_fits=all(error <= context.limits(leaf)[1] for leaf, error in errors if not _is_gradient(leaf)),
    )


def _output_error(compared: OutputsCompared) -> float:
    """How many times eager's error the compiled outputs' is, where it is larger."""
    found = [leaf.errors for leaf in compared.leaves if leaf.errors is not None and not _is_gradient(leaf)]
    return max([1.0, *(errors.compiled_rms / errors.eager_rms for errors in found if errors.eager_rms)])


def _is_gradient(leaf: LeafComparison) -> bool:
    return leaf.path.startswith("gradient of ")


# ---------------------------------------------------------------- one output


def _judge_leaf(leaf: LeafComparison, context: _Context) -> Accuracy:
    eager = context.eager.get(leaf.path)
    if not leaf.same_structure and (eager is None or eager.same_structure):
        return Accuracy(Agreement.DIFFERENT, f"another type or shape ({leaf.dtype})", leaf.path)
    if leaf.new_nonfinite:
        text = f"{leaf.new_nonfinite} values are NaN or inf only when compiled"
        return Accuracy(Agreement.DIFFERENT, text, leaf.path)
    eager_change = relative_difference(eager) if eager is not None else 0.0
    limit = context.limits(leaf)[1]
    if eager is not None and (eager.unequal or eager_change > limit or not eager.same_structure):
        return _judge_random(leaf, context)
    if leaf.lost_nonfinite:
        text = f"{leaf.lost_nonfinite} values are NaN or inf in eager only"
        return Accuracy(Agreement.UNCERTAIN, text, leaf.path)
    if leaf.unequal:
        share = leaf.unequal / max(1, leaf.elements)
        return Accuracy(Agreement.UNCERTAIN, f"{100 * share:.2g} % of whole numbers or plain values differ", leaf.path)
    if leaf.rms_difference == 0.0:
        return Accuracy(Agreement.SAME, "", leaf.path)
    excused = _EAGER_CHANGE_FACTOR * (eager.rms_difference if eager is not None else 0.0)
    if leaf.errors is not None and context.reference_fits:
        return _judge_by_reference(leaf, context, excused)
    return _judge_alone(leaf, context, excused)


def _judge_random(leaf: LeafComparison, context: _Context) -> Accuracy:
    """Elements of two draws cannot be compared, their distributions can."""
    random = context.random
    spread = next((each for each in random.leaves if each.path == leaf.path), None) if random is not None else None
    if random is not None and spread is not None:
        difference = find_difference(spread, random.runs, context.is_low(leaf))
        if difference is not None:
            return Accuracy(Agreement.DIFFERENT, f"random in eager too, but {difference}", leaf.path)
    elif random is None or not random.leaves_left_out:
        text = "eager itself gives another result with other random numbers; the distributions were not compared"
        return Accuracy(Agreement.UNCERTAIN, text, leaf.path)
    return Accuracy(Agreement.RANDOM, "eager itself gives another result with other random numbers", leaf.path)


def _judge_by_reference(leaf: LeafComparison, context: _Context, excused: float) -> Accuracy:
    """The compiled output may be about as far from the exact one as eager's is, and no further."""
    assert leaf.errors is not None
    tolerance, _ = context.limits(leaf)
    low = (context.low_precision or leaf.dtype) if context.is_low(leaf) else None
    noise = rounding_of_zero(leaf.errors, context.largest_gradient, low) if _is_gradient(leaf) else 0.0
    excused += noise if leaf.dtype != "float64" else 0.0
    amplified = context.output_error if _is_gradient(leaf) and low is None else None
    fault = fault_against_reference(leaf.errors, leaf.elements, tolerance, low, excused, context.usual_error, amplified)
    if fault is None:
        text = (
            f"relative difference {relative_difference(leaf):.1e}; error against the reference"
            f" {leaf.errors.compiled_rms:.1e}, eager's {leaf.errors.eager_rms:.1e}"
        )
        return Accuracy(Agreement.WITHIN_ROUNDING, text, leaf.path)
    if low is None and leaf.allclose_violations == 0:
        # Within the tolerance that is usual, and yet further from the reference than eager.
        return Accuracy(Agreement.UNCERTAIN, fault, leaf.path)
    return Accuracy(Agreement.DIFFERENT, fault, leaf.path)


def _judge_alone(leaf: LeafComparison, context: _Context, excused: float) -> Accuracy:
    """Eager is all that there is to compare with. In 16 bits its own rounding hides errors of some per cent, so
    nothing passes."""
    rounding, limit = context.limits(leaf)
    change, noise = relative_difference(leaf), context.noise(leaf)
    kind = f"{leaf.dtype} with TF32" if context.is_tf32(leaf) else leaf.dtype
    text = f"relative difference {change:.1e} (root mean square, {kind})"
    if _is_gradient(leaf) and (context.is_low(leaf) or context.is_tf32(leaf)):
        limit = _LOW_PRECISION_GRADIENT_LIMIT
    if context.is_low(leaf):
        near_noise = leaf.rms_difference <= noise
        text += f"; without a reference, {context.low_precision or leaf.dtype} rounding cannot be told from an error"
        return Accuracy(Agreement.UNCERTAIN if change <= limit or near_noise else Agreement.DIFFERENT, text, leaf.path)
    limit = max(limit, _GRADIENT_LIMIT) if _is_gradient(leaf) and leaf.dtype != "float64" else limit
    near_noise = leaf.rms_difference <= _UNCERTAIN_NOISE_FACTOR * noise
    if leaf.allclose_violations == 0 or change <= rounding or leaf.rms_difference <= max(noise, excused):
        return Accuracy(Agreement.WITHIN_ROUNDING, text, leaf.path)
    return Accuracy(Agreement.UNCERTAIN if change <= limit or near_noise else Agreement.DIFFERENT, text, leaf.path)
