"""Which differences between eager and compiled outputs are rounding, and which are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tcompile_tui.core.accuracy import Accuracy, Agreement, judge
from tcompile_tui.core.events import ComparisonKind, LeafComparison, OutputsCompared
from tests.core.streams import leaf


def compared(*leaves: LeafComparison) -> OutputsCompared:
    return OutputsCompared(comparison=ComparisonKind.COMPILED, leaves=leaves)


def judged(*leaves: LeafComparison, eager: LeafComparison | None = None, training: bool = False) -> Accuracy:
    return judge(compared(eager) if eager is not None else None, compared(*leaves), training)


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
        ("bfloat16", 1e-2, Agreement.WITHIN_ROUNDING),
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


# ---------------------------------------------------------------- what eager does by itself


def test_a_model_that_is_random_in_eager_cannot_be_judged() -> None:
    assert judged(differing(0.5), eager=differing(0.4)).agreement is Agreement.RANDOM
    random_numbers = leaf(0.0, dtype="int64", unequal=9)
    assert judged(random_numbers, eager=random_numbers).agreement is Agreement.RANDOM


def test_a_shape_that_varies_in_eager_too_is_random() -> None:
    varying = leaf(0.0, same_structure=False)
    assert judged(varying, eager=varying).agreement is Agreement.RANDOM


def test_randomness_does_not_excuse_another_shape_or_new_nans() -> None:
    noisy = differing(0.4)
    assert judged(leaf(0.0, same_structure=False), eager=noisy).agreement is Agreement.DIFFERENT
    assert judged(differing(0.4, new_nonfinite=1), eager=noisy).agreement is Agreement.DIFFERENT


def test_eagers_own_small_change_excuses_as_much_and_no_more() -> None:
    """Atomics sum in any order: 4 times eager's own change is still its noise."""
    eager = differing(4e-4)
    assert judged(differing(1.5e-3), eager=eager).agreement is Agreement.WITHIN_ROUNDING
    assert judged(differing(1.7e-3), eager=eager).agreement is Agreement.UNCERTAIN


# ---------------------------------------------------------------- several outputs


def test_the_worst_output_is_told_with_its_place() -> None:
    good, bad = leaf(1e-7), replace(differing(0.3), path="gradient of head.weight")
    for leaves in ((good, bad), (bad, good)):
        found = judged(*leaves, eager=leaf(0.0))
        assert (found.agreement, found.path) == (Agreement.DIFFERENT, "gradient of head.weight")
        assert "3.0e-01" in found.detail


def test_nothing_to_compare_is_not_checked() -> None:
    assert judge(None, None, training=False).agreement is Agreement.NOT_CHECKED
    assert judged().agreement is Agreement.NOT_CHECKED
