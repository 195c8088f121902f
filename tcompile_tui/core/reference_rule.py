"""Is a compiled output further from the exact one than rounding explains? Eager's own error is the yardstick.

The first rule is that of benchmarks/dynamo (`torch/_dynamo/utils.py`, `same`), with its absolute part made relative
to the output's size. It misses small systematic errors in 16 bits, so there a regression on the reference and the
largest error are looked at too.
"""

from __future__ import annotations

import math

from tcompile_tui.core.events import ReferenceErrors

_MULTIPLIER = 2.0
_LOOSE_MULTIPLIER = 3.0
# Below these numbers of elements a root mean square is itself a draw: the ratio of two of them is above 3 by chance.
_SMALL = 1_000
_TINY = 16
_TOLERANCE_SHARE = 0.1
# Half the distance of neighbouring numbers, relative.
_ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
_SLOPE_ELEMENTS = 100
_SLOPE_ALLOWED = 1e-4
_SLOPE_FACTOR = 2.0
_SLOPE_DEVIATIONS = 6.0
_MAX_FACTOR = 4.0
_MAX_AMPLIFIED = 4.0
# Of the largest gradient, in float32.
_ZERO_ROUNDING = (1e-6, 1e-8)
_FLOAT32_ROUNDOFF = 2.0**-24
# Of the largest gradient: below that the reference's is zero but for its own rounding.
_ZERO_SHARE = 1e-9
_ZERO_FACTOR = 8.0


def fault_against_reference(
    errors: ReferenceErrors,
    elements: int,
    tolerance: float,
    low_precision: str | None,
    excused: float,
    usual_error: float,
    amplified: float | None = None,
) -> str | None:
    """What is wrong, in words; None if nothing is. `tolerance` is relative; `excused` is a root mean square that is
    allowed beside it; `usual_error` is eager's largest relative error over all outputs, which stands in for that of an
    output with too few elements to tell. `amplified`, for a gradient in full precision: how many times eager's error
    that of the outputs is, at least 1. An output's rounding flips a ReLU here and there, which moves gradients a
    thousand times as far; such errors are random, so a scale or a single wrong element is still told from them."""
    size, yardstick = errors.rms_reference, errors.eager_rms
    small, tiny, sloped = elements < _SMALL, elements < _TINY, elements >= _SLOPE_ELEMENTS
    allowed = _TOLERANCE_SHARE * tolerance * size + excused
    if not sloped and low_precision is not None:
        allowed += 2 * _ROUNDOFF[low_precision] * size
    if tiny:
        yardstick = max(yardstick, usual_error * size)
    multiplier = _LOOSE_MULTIPLIER if low_precision is not None or small else _MULTIPLIER
    if not errors.compiled_rms <= multiplier * yardstick + allowed:
        if amplified is not None:
            allowed += multiplier * min(_MAX_AMPLIFIED, amplified) * max(yardstick, usual_error * size)
            if errors.compiled_rms <= allowed:
                return _scale_fault(errors, None, excused) or _largest_fault(errors, allowed)
        return (
            f"its error against the reference is {errors.compiled_rms:.1e}, eager's {errors.eager_rms:.1e}"
            f" (root mean square; the output is {size:.1e})"
        )
    if low_precision is None or not sloped:
        return None
    return _scale_fault(errors, low_precision, excused) or _largest_fault(errors, allowed)


def rounding_of_zero(errors: ReferenceErrors, largest_gradient: float, low_precision: str | None) -> float:
    """A gradient that is zero is all rounding, and the order of the sums moves that by more than any multiplier: up
    to ten times eager's error, where that is small beside the largest gradient. In 16 bits `small` is more, but only
    of a gradient whose reference is zero."""
    most, least = _ZERO_ROUNDING
    if low_precision is not None and errors.rms_reference <= _ZERO_SHARE * largest_gradient:
        most *= _ROUNDOFF[low_precision] / _FLOAT32_ROUNDOFF
    noise = min(most * largest_gradient, _ZERO_FACTOR * errors.eager_rms)
    return max(noise, least * largest_gradient)


def _scale_fault(errors: ReferenceErrors, low_precision: str | None, excused: float) -> str | None:
    """The slope's tolerance: |s - 1| <= u + 1e-4 + 2 |s_eager - 1| + 6 standard errors of the less certain slope. u is
    the roundoff of a type of 16 bits: outputs that are nearly the same for every sample of a batch are rounded the same
    way, which looks like a scale of up to u and is none (0.5 u was seen of a ResNet's correct outputs on a GPU)."""
    if errors.compiled_slope is None or errors.eager_slope is None or errors.slope_error is None:
        return None
    slope_error = errors.slope_error * (max(1.0, errors.compiled_rms / errors.eager_rms) if errors.eager_rms else 1.0)
    allowed = _SLOPE_ALLOWED + _SLOPE_FACTOR * abs(errors.eager_slope - 1) + _SLOPE_DEVIATIONS * slope_error
    allowed += _ROUNDOFF[low_precision] if low_precision is not None else 0.0
    allowed += excused / errors.rms_reference if errors.rms_reference else math.inf
    if abs(errors.compiled_slope - 1) <= allowed:
        return None
    return f"it is scaled by {errors.compiled_slope:.4f} against the reference, eager by {errors.eager_slope:.4f}"


def _largest_fault(errors: ReferenceErrors, allowed: float) -> str | None:
    if errors.compiled_max <= _MAX_FACTOR * (errors.eager_max + allowed):
        return None
    return f"its largest error against the reference is {errors.compiled_max:.1e}, eager's {errors.eager_max:.1e}"
