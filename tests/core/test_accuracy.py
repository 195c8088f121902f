"""Which differences between eager and compiled outputs are rounding, and which are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tcompile_tui.core.accuracy import Accuracy, Agreement, judge
from tcompile_tui.core.events import (
    ComparisonKind,
    LeafComparison,
    LeafSpread,
    OutputsCompared,
    RandomOutputsCompared,
    ReferenceErrors,
)
from tests.core.streams import leaf
from tests.core.test_randomness import spread


def judged(
    *leaves: LeafComparison,
    eager: LeafComparison | None = None,
    training: bool = False,
    low_precision: str | None = None,
    tf32: bool = False,
    random: RandomOutputsCompared | None = None,
) -> Accuracy:
    found = {
        ComparisonKind.COMPILED: OutputsCompared(
            comparison=ComparisonKind.COMPILED, leaves=leaves, low_precision=low_precision, tf32=tf32
        )
    }
    if eager is not None:
        found[ComparisonKind.EAGER_TWICE] = OutputsCompared(comparison=ComparisonKind.EAGER_TWICE, leaves=(eager,))
    return judge(found, random, training)


def differing(relative: float, **changes: Any) -> LeafComparison:
    """A leaf that is outside allclose somewhere."""
    return leaf(relative, allclose_violations=1, **changes)


@pytest.mark.parametrize(
    ("dtype", "relative", "agreement"),
    [
        ("float32", 0.0, Agreement.SAME),
        ("float32", 5e-5, Agreement.WITHIN_ROUNDING),
        ("float32", 1e-3, Agreement.UNCERTAIN),
        ("float32", 5e-2, Agreement.DIFFERENT),
        ("complex64", 5e-2, Agreement.DIFFERENT),
        ("float64", 5e-8, Agreement.WITHIN_ROUNDING),
        ("float64", 1e-6, Agreement.UNCERTAIN),
        ("float64", 1e-4, Agreement.DIFFERENT),
        ("bfloat16", 0.0, Agreement.SAME),
        ("bfloat16", 1e-3, Agreement.UNCERTAIN),  # without a reference nothing passes in 16 bits
        ("float16", 5e-2, Agreement.UNCERTAIN),
        ("bfloat16", 2e-1, Agreement.DIFFERENT),
    ],
)
def test_the_limits_depend_on_the_dtype(dtype: str, relative: float, agreement: Agreement) -> None:
    assert judged(differing(relative, dtype=dtype)).agreement is agreement


def test_the_difference_is_relative_to_the_outputs_size() -> None:
    large = differing(0.0, rms_reference=1e4, rms_difference=0.1)
    small = differing(0.0, rms_reference=1e-3, rms_difference=1e-3)
    assert judged(large).agreement is Agreement.WITHIN_ROUNDING
    assert judged(small).agreement is Agreement.DIFFERENT


def test_a_reference_of_zeros_divides_nothing() -> None:
    assert judged(differing(0.0, rms_reference=0.0, rms_difference=0.5)).agreement is Agreement.DIFFERENT
    assert judged(leaf(0.0, rms_reference=0.0)).agreement is Agreement.SAME


def test_elements_that_are_all_close_are_rounding() -> None:
    """Noise around zero, such as the gradient of a bias before a batch norm, differs by its own size."""
    tiny = leaf(0.0, rms_reference=1e-9, rms_difference=1e-9, allclose_violations=0)
    assert judged(tiny).agreement is Agreement.WITHIN_ROUNDING


def test_training_is_judged_more_loosely() -> None:
    step = differing(5e-4)
    assert judged(step).agreement is Agreement.UNCERTAIN
    assert judged(step, training=True).agreement is Agreement.WITHIN_ROUNDING
    assert judged(differing(5e-2), training=True).agreement is Agreement.DIFFERENT


@pytest.mark.parametrize("scale_error", [0.02, 0.5, 10.0])
def test_a_wrong_scale_is_no_rounding(scale_error: float) -> None:
    """Cosine similarity would be exactly 1."""
    assert judged(differing(scale_error)).agreement is Agreement.DIFFERENT


def test_new_nans_are_different_however_small_the_rest() -> None:
    found = judged(leaf(0.0, new_nonfinite=3), eager=leaf(0.0))
    assert found.agreement is Agreement.DIFFERENT
    assert "3 values are NaN or inf only when compiled" in found.detail


def test_nans_of_both_are_no_difference() -> None:
    assert judged(leaf(0.0, nan_in_both=10)).agreement is Agreement.SAME


def test_an_undefined_difference_is_not_called_rounding() -> None:
    assert judged(differing(float("nan"))).agreement is Agreement.DIFFERENT


def test_another_shape_is_different() -> None:
    found = judged(leaf(0.0, same_structure=False, dtype="float32 / float16"), eager=leaf(0.0))
    assert found.agreement is Agreement.DIFFERENT
    assert "another type or shape (float32 / float16)" in found.detail
    assert found.path == "output"


def test_whole_numbers_that_differ_are_reported_by_their_share() -> None:
    found = judged(leaf(0.0, dtype="int64", unequal=25))
    assert found.agreement is Agreement.UNCERTAIN
    assert "2.5 %" in found.detail


def test_values_that_only_eager_loses_are_told() -> None:
    found = judged(leaf(0.0, lost_nonfinite=2))
    assert found.agreement is Agreement.UNCERTAIN and "2 values are NaN or inf in eager only" in found.detail


def test_what_calculates_in_16_bits_is_judged_so_whatever_its_outputs_type() -> None:
    assert judged(leaf(1e-5)).agreement is Agreement.WITHIN_ROUNDING
    assert judged(leaf(1e-5), low_precision="bfloat16").agreement is Agreement.UNCERTAIN


# ---------------------------------------------------------------- gradients


def _gradient(name: str, rms: float, relative: float, **changes: Any) -> LeafComparison:
    return leaf(0.0, path=f"gradient of {name}", rms_reference=rms, rms_difference=rms * relative, **changes)


def test_a_small_gradient_is_judged_by_its_own_size() -> None:
    """1e-5 beside 1 is far above rounding in float32: an absolute tolerance would let it be anything."""
    large = _gradient("head", 1.0, 1e-6)
    wrong, right = (_gradient("stem", 1e-4, relative, allclose_violations=9) for relative in (0.5, 1e-5))
    assert (judged(large, wrong).agreement, judged(large, wrong).path) == (Agreement.DIFFERENT, "gradient of stem")
    assert judged(large, right).agreement is Agreement.WITHIN_ROUNDING


def test_a_gradient_that_is_all_rounding_may_differ_by_its_size() -> None:
    """That of a bias before a batch norm is zero but for the rounding of the others."""
    noise = _gradient("bias", 5e-8, 1.0, allclose_violations=9)
    assert judged(_gradient("weight", 1.0, 1e-6), noise).agreement is Agreement.WITHIN_ROUNDING
    assert judged(_gradient("weight", 1e-3, 1e-6), noise).agreement is not Agreement.WITHIN_ROUNDING


def test_float32_through_tf32_has_the_rounding_of_ten_bits() -> None:
    """A ResNet's correct gradients differed by 0.12 on an H200, where convolutions use TF32 by torch's default."""
    bias = _gradient("bias", 1.0, 0.12, allclose_violations=9, tolerance=1e-3)
    found = judged(bias, tf32=True, training=True)
    assert found.agreement is Agreement.UNCERTAIN and "TF32" in found.detail
    assert judged(bias, training=True).agreement is Agreement.DIFFERENT
    assert judged(_gradient("bias", 1.0, 0.9, allclose_violations=9), tf32=True).agreement is Agreement.DIFFERENT
    assert judged(_gradient("bias", 1.0, 1e-5, allclose_violations=9), tf32=True).agreement is Agreement.WITHIN_ROUNDING
    assert judged(differing(0.2), tf32=True).agreement is Agreement.DIFFERENT
    double = _gradient("bias", 1.0, 0.12, allclose_violations=9, dtype="float64")
    assert judged(double, tf32=True).agreement is Agreement.DIFFERENT, "TF32 is for float32 alone"


def test_an_output_has_no_share_in_the_rounding_of_gradients() -> None:
    output = differing(0.0, rms_reference=5e-8, rms_difference=5e-8)
    assert judged(_gradient("weight", 1.0, 1e-6), output).agreement is Agreement.DIFFERENT


# ---------------------------------------------------------------- against a reference


def _errors(eager: float, compiled: float, elements: int = 10_000, **changes: Any) -> ReferenceErrors:
    plain = ReferenceErrors(
        elements=elements, rms_reference=1.0, eager_rms=eager, compiled_rms=compiled, eager_max=5 * eager,
        compiled_max=5 * compiled, eager_slope=1.0, compiled_slope=1.0, slope_error=eager / elements**0.5,
    )  # fmt: skip
    return replace(plain, **changes)


def _referenced(
    eager: float, compiled: float, dtype: str = "float32", elements: int = 10_000, **changes: Any
) -> LeafComparison:
    tolerance = 1e-4 if dtype == "float32" else 1e-3
    errors = _errors(eager, compiled, elements, **changes)
    return differing(max(eager, compiled), dtype=dtype, elements=elements, tolerance=tolerance, errors=errors)


@pytest.mark.parametrize(
    ("dtype", "elements", "factor", "agreement"),
    [
        ("float32", 10_000, 1.9, Agreement.WITHIN_ROUNDING),
        ("float32", 10_000, 2.1, Agreement.DIFFERENT),
        ("float32", 900, 2.9, Agreement.WITHIN_ROUNDING),
        ("float32", 900, 3.1, Agreement.DIFFERENT),
        ("bfloat16", 10_000, 2.9, Agreement.WITHIN_ROUNDING),
        ("bfloat16", 10_000, 3.1, Agreement.DIFFERENT),
    ],
)
def test_compiled_may_be_as_far_from_the_reference_as_eager_and_a_little_more(
    dtype: str, elements: int, factor: float, agreement: Agreement
) -> None:
    found = judged(_referenced(5e-3, factor * 5e-3, dtype, elements))
    assert found.agreement is agreement
    assert "5.0e-03" in found.detail, "eager's error is told"


def test_a_reference_lets_16_bits_pass() -> None:
    assert judged(leaf(4e-3, dtype="bfloat16")).agreement is Agreement.UNCERTAIN
    assert judged(_referenced(4e-3, 2e-3, "bfloat16")).agreement is Agreement.WITHIN_ROUNDING


def test_a_tenth_of_the_tolerance_is_allowed_beside_an_eager_error_of_none() -> None:
    assert judged(_referenced(0.0, 9e-6)).agreement is Agreement.WITHIN_ROUNDING
    assert judged(_referenced(0.0, 1.1e-5)).agreement is Agreement.DIFFERENT


def test_what_is_close_and_yet_further_than_eager_is_uncertain_in_float32() -> None:
    close = replace(_referenced(1e-7, 5e-5), allclose_violations=0)
    assert judged(close).agreement is Agreement.UNCERTAIN


@pytest.mark.parametrize(
    ("dtype", "slopes", "fault"),
    [
        ("bfloat16", (1.0, 1.01), "scaled by 1.0100"),
        ("bfloat16", (1.0, 1.0003), ""),  # within six standard errors
        ("bfloat16", (1.006, 1.01), ""),  # eager is no better
        ("bfloat16", (1.0, 0.99), "scaled by 0.9900"),
        ("bfloat16", (0.9999, 0.9982), ""),  # a ResNet's correct outputs on an H200
        ("float16", (1.0, 0.9998), ""),
        ("float16", (1.0, 1.001), "scaled by 1.0010"),
    ],
)
def test_a_scale_error_is_found_from_the_roundoff_of_16_bits_on(
    dtype: str, slopes: tuple[float, float], fault: str
) -> None:
    error = {"bfloat16": 4e-3, "float16": 5e-4}[dtype]
    own = _referenced(error, 1.2 * error, dtype, eager_slope=slopes[0], compiled_slope=slopes[1])
    found = judged(own)
    assert found.agreement is (Agreement.DIFFERENT if fault else Agreement.WITHIN_ROUNDING)
    assert fault in found.detail


def test_one_wrong_element_is_found_among_many_rounded_ones() -> None:
    found = judged(_referenced(4e-3, 5e-3, "float16", compiled_max=0.5))
    assert found.agreement is Agreement.DIFFERENT and "largest error" in found.detail
    assert judged(_referenced(4e-3, 5e-3, "float16", compiled_max=0.07)).agreement is Agreement.WITHIN_ROUNDING


def test_a_few_elements_are_no_yardstick() -> None:
    """Eager's error of a single number may be none by luck; that of the other outputs stands in for it."""
    lucky = _referenced(1e-6, 8e-3, "bfloat16", elements=1)
    assert judged(lucky).agreement is Agreement.DIFFERENT
    others = replace(_referenced(4e-3, 4e-3, "bfloat16"), path="output[1]")
    assert judged(lucky, others).agreement is Agreement.WITHIN_ROUNDING
    assert judged(replace(lucky, errors=_errors(1e-6, 0.3, 1)), others).agreement is Agreement.DIFFERENT


def test_a_gradient_of_zero_is_measured_by_eagers_own_rounding() -> None:
    large = replace(_referenced(1e-6, 1e-6), path="gradient of weight")
    for compiled, agreement in ((9e-8, Agreement.WITHIN_ROUNDING), (9e-7, Agreement.DIFFERENT)):
        zero = _referenced(1e-8, compiled, rms_reference=1e-17, eager_max=1e-7, compiled_max=1e-6)
        zero = replace(zero, path="gradient of bias", rms_reference=1e-8, rms_difference=compiled)
        assert judged(large, zero).agreement is agreement


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, ""),
        ({"compiled_rms": 2e-1}, "its error"),
        ({"compiled_slope": 1.01}, "scaled by 1.0100"),
        ({"compiled_max": 1.0}, "largest error"),
    ],
)
def test_gradients_may_be_further_off_where_the_outputs_rounding_is(changes: dict[str, Any], fault: str) -> None:
    """As in a ResNet-18 of float32: some ReLUs flip, by chance more of them in one of the arms."""
    gradient = replace(_referenced(3e-3, 1e-2, **changes), path="gradient of weight")
    other = replace(_referenced(4e-3, 4e-3), path="gradient of bias")
    output = replace(_referenced(1.2e-6, 2.7e-6), allclose_violations=0)
    found = judged(output, other, gradient, training=True)
    assert (found.agreement is Agreement.DIFFERENT, fault in found.detail) == (bool(fault), True)
    assert found.path == "gradient of weight"


def test_without_a_reference_a_gradient_of_one_per_cent_more_is_uncertain_and_random_numbers_are_wrong() -> None:
    for relative, agreement in ((1.2e-2, Agreement.UNCERTAIN), (1.4, Agreement.DIFFERENT)):
        assert judged(_gradient("weight", 1.0, relative, allclose_violations=1)).agreement is agreement
    assert judged(differing(1.2e-2)).agreement is Agreement.DIFFERENT


@pytest.mark.parametrize(
    ("reference", "compiled", "agreement"),
    [
        (2.2e-19, 2.4e-6, Agreement.WITHIN_ROUNDING),  # of a sample model's correct gradient on an H200
        (2.2e-19, 2.4e-5, Agreement.DIFFERENT),
        (1e-7, 2.4e-6, Agreement.DIFFERENT),  # small, and yet not zero
    ],
)
def test_in_16_bits_a_gradient_of_zero_may_be_more_of_the_largest(
    reference: float, compiled: float, agreement: Agreement
) -> None:
    large = replace(_referenced(4e-4, 4e-4, rms_reference=0.1), path="gradient of weight", rms_reference=0.1)
    zero = _referenced(5e-7, compiled, rms_reference=reference, eager_max=2.5e-6, compiled_max=5 * compiled)
    zero = replace(zero, path="gradient of bias", rms_reference=1e-6, rms_difference=compiled)
    assert judged(large, zero, low_precision="bfloat16").agreement is agreement


def test_a_reference_that_eager_itself_does_not_resemble_is_no_yardstick() -> None:
    """It was built with other weights, say: whatever is compared with it would pass."""
    found = judged(_referenced(0.9, 0.9, rms_reference=1.0))
    assert found.agreement is Agreement.DIFFERENT
    fine = replace(leaf(1e-6), errors=_errors(0.9, 0.9))
    assert judged(fine).agreement is Agreement.WITHIN_ROUNDING


def test_an_undefined_error_is_not_called_rounding() -> None:
    assert judged(_referenced(1e-6, float("nan"))).agreement is Agreement.DIFFERENT


# ---------------------------------------------------------------- what eager does by itself


def _random(*leaves: LeafSpread, left_out: int = 0) -> RandomOutputsCompared:
    return RandomOutputsCompared(runs=8, leaves=leaves, leaves_left_out=left_out)


def test_a_random_output_is_judged_by_its_distribution() -> None:
    noisy = differing(0.5)
    alike, other = _random(spread(shift=0.0)), _random(spread(shift=3.0))
    assert judged(noisy, eager=differing(0.4), random=alike).agreement is Agreement.RANDOM
    found = judged(noisy, eager=differing(0.4), random=other)
    assert found.agreement is Agreement.DIFFERENT and "random in eager too, but" in found.detail


def test_a_random_output_whose_distribution_was_not_compared_is_uncertain() -> None:
    for random in (None, _random(replace(spread(shift=0.0), path="output[1]"))):
        assert judged(differing(0.5), eager=differing(0.4), random=random).agreement is Agreement.UNCERTAIN
    random_numbers = leaf(0.0, dtype="int64", unequal=9)
    assert judged(random_numbers, eager=random_numbers).agreement is Agreement.UNCERTAIN


def test_of_very_many_random_outputs_a_sample_speaks_for_the_others() -> None:
    sample = _random(replace(spread(shift=0.0), path="gradient of a"), left_out=2)
    assert judged(differing(0.5), eager=differing(0.4), random=sample).agreement is Agreement.RANDOM


def test_a_shape_that_varies_in_eager_too_is_not_called_wrong() -> None:
    varying = leaf(0.0, same_structure=False)
    assert judged(varying, eager=varying).agreement is Agreement.UNCERTAIN


def test_randomness_does_not_excuse_another_shape_or_new_nans() -> None:
    noisy, alike = differing(0.4), _random(spread(shift=0.0))
    assert judged(leaf(0.0, same_structure=False), eager=noisy, random=alike).agreement is Agreement.DIFFERENT
    assert judged(differing(0.4, new_nonfinite=1), eager=noisy, random=alike).agreement is Agreement.DIFFERENT


def test_eagers_own_small_change_excuses_as_much_and_no_more() -> None:
    """Atomics sum in any order: 4 times eager's own change is still its noise."""
    eager = differing(4e-4)
    assert judged(differing(1.5e-3), eager=eager).agreement is Agreement.WITHIN_ROUNDING
    assert judged(differing(1.7e-3), eager=eager).agreement is Agreement.UNCERTAIN
    assert judged(_referenced(1e-6, 1.5e-3), eager=eager).agreement is Agreement.WITHIN_ROUNDING
    assert judged(_referenced(1e-6, 1.7e-3), eager=eager).agreement is Agreement.DIFFERENT


# ---------------------------------------------------------------- several outputs


def test_the_worst_output_is_told_with_its_place() -> None:
    good, bad = leaf(1e-7), replace(differing(0.3), path="gradient of head.weight")
    for leaves in ((good, bad), (bad, good)):
        found = judged(*leaves, eager=leaf(0.0))
        assert (found.agreement, found.path) == (Agreement.DIFFERENT, "gradient of head.weight")
        assert "3.0e-01" in found.detail


def test_of_equally_good_outputs_the_largest_difference_is_told() -> None:
    found = judged(leaf(1e-7), replace(leaf(1e-6), path="output[1]"), leaf(1e-8))
    assert (found.agreement, found.path) == (Agreement.WITHIN_ROUNDING, "output[1]")


def test_a_fault_that_shows_only_after_the_warm_up_is_told_as_one() -> None:
    """A recorded cudagraph is replayed only then."""
    first, later = (
        OutputsCompared(comparison=kind, leaves=(leaf(difference, allclose_violations=1),))
        for kind, difference in ((ComparisonKind.COMPILED, 1e-6), (ComparisonKind.STEADY, 0.7))
    )
    found = judge({each.comparison: each for each in (first, later)})
    assert found.agreement is Agreement.DIFFERENT and found.detail.startswith("not in the first step, but after")
    assert judge({ComparisonKind.COMPILED: first}).agreement is Agreement.WITHIN_ROUNDING


def test_nothing_to_compare_is_not_checked() -> None:
    assert judge({}).agreement is Agreement.NOT_CHECKED
    assert judged().agreement is Agreement.NOT_CHECKED
