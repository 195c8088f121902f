"""Outputs reduced to the numbers that accuracy is judged by."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tcompile_tui.core.events import ComparisonKind, LeafComparison
from tcompile_tui.worker import compare
from tcompile_tui.worker.compare import compare_snapshots, snapshot_outputs

pytestmark = pytest.mark.xdist_group("torch")
NAN, INF = math.nan, math.inf


def _snapshot(output: Any) -> dict[str, Any]:
    return snapshot_outputs(output, torch.nn.Identity(), with_gradients=False)


def _leaves(reference: Any, other: Any, training: bool = False) -> dict[str, LeafComparison]:
    compared = compare_snapshots(ComparisonKind.COMPILED, _snapshot(reference), _snapshot(other), training)
    return {leaf.path: leaf for leaf in compared.leaves}


def _leaf(reference: Any, other: Any, training: bool = False) -> LeafComparison:
    (leaf,) = _leaves(reference, other, training).values()
    return leaf


def test_identical_outputs_have_no_difference() -> None:
    leaf = _leaf(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 4.0]))
    assert leaf == LeafComparison(
        "output", "float32", 2, same_structure=True, rms_reference=math.sqrt(12.5), max_abs_reference=4.0
    )


def test_a_difference_is_measured_over_all_elements() -> None:
    leaf = _leaf(torch.tensor([3.0, -4.0]), torch.tensor([3.0, -4.5]))
    assert leaf.rms_difference == pytest.approx(math.sqrt(0.125)) and leaf.max_abs_difference == 0.5
    assert leaf.allclose_violations == 1


def test_new_nan_and_inf_are_counted_apart_from_those_in_both() -> None:
    leaf = _leaf(torch.tensor([NAN, 1.0, 2.0, INF, 5.0]), torch.tensor([NAN, NAN, INF, INF, 5.0]))
    assert (leaf.new_nonfinite, leaf.nan_in_both) == (2, 1)
    assert leaf.max_abs_difference == 0 and leaf.rms_reference == 5, "over what is finite in both"


@pytest.mark.parametrize(
    ("reference", "other", "unequal"),
    [
        (torch.tensor([1, 2, 3]), torch.tensor([1, 5, 0]), 2),
        (torch.tensor([True, False]), torch.tensor([True, True]), 1),
        (torch.tensor([], dtype=torch.int64), torch.tensor([], dtype=torch.int64), 0),
        (3, 4, 1),
        ("same", "same", 0),
        (NAN, NAN, 0),
        (None, None, 0),
    ],
)
def test_whole_numbers_and_plain_values_are_equal_or_not(reference: Any, other: Any, unequal: int) -> None:
    leaf = _leaf(reference, other)
    assert leaf.unequal == unequal and leaf.same_structure


class _Opaque:
    """An object that knows no equality, such as a cache that a model returns."""


class _Unwilling:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [_Opaque, _Unwilling])
def test_objects_that_cannot_be_compared_are_not_called_unequal(kind: type) -> None:
    leaf = _leaf(kind(), kind())
    assert leaf.same_structure and leaf.unequal == 0
    assert not _leaf(kind(), 1).same_structure


@pytest.mark.parametrize(
    ("reference", "other"),
    [
        (torch.ones(2), torch.ones(3)),
        (torch.ones(2), torch.ones(2, dtype=torch.float16)),
        (torch.ones(2), 1.0),
        (torch.ones(2), None),
    ],
    ids=["shape", "dtype", "type", "none"],
)
def test_another_structure_is_seen(reference: Any, other: Any) -> None:
    assert not _leaf(reference, other).same_structure


def test_a_missing_output_is_another_structure() -> None:
    leaves = _leaves({"logits": torch.ones(1), "hidden": torch.ones(1)}, {"logits": torch.ones(1)})
    assert leaves["output['logits']"].same_structure and not leaves["output['hidden']"].same_structure


def test_complex_outputs_count_both_parts() -> None:
    leaf = _leaf(torch.tensor([3 + 4j]), torch.tensor([3 + 5j]).conj().conj())
    assert leaf.dtype == "complex64" and leaf.elements == 1
    assert leaf.rms_reference == pytest.approx(math.sqrt(12.5)) and leaf.max_abs_difference == 1


@pytest.mark.parametrize(
    "pack",
    [
        torch.Tensor.to_sparse,
        torch.Tensor.to_sparse_csr,
        lambda t: torch.nested.nested_tensor([t, t[:1]]),
        lambda t: torch.quantize_per_tensor(t, 0.5, 0, torch.qint8),
    ],
    ids=["sparse", "csr", "nested", "quantized"],
)
@pytest.mark.filterwarnings("ignore")
def test_tensors_of_other_layouts_are_compared_too(pack: Any) -> None:
    reference, other = torch.tensor([[0.0, 2.0], [3.0, 0.0]]), torch.tensor([[0.0, 2.0], [4.0, 0.0]])
    assert _leaf(pack(reference), pack(reference)).max_abs_difference == 0
    assert _leaf(pack(reference), pack(other)).max_abs_difference == 1


def test_chunks_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    reference, other = torch.randn(103), torch.randn(103)
    reference[50], other[102] = NAN, INF
    whole = _leaf(reference, other)
    monkeypatch.setattr(compare, "_CHUNK_ELEMENTS", 10)
    chunked = _leaf(reference, other)
    assert chunked.rms_difference == pytest.approx(whole.rms_difference, rel=1e-12)
    assert chunked.max_abs_difference == whole.max_abs_difference
    assert (chunked.new_nonfinite, chunked.allclose_violations) == (whole.new_nonfinite, whole.allclose_violations)
    assert whole.new_nonfinite == 1


def test_training_is_held_to_a_looser_tolerance() -> None:
    reference, other = torch.ones(4), torch.ones(4) * 1.0008
    assert _leaf(reference, other).allclose_violations == 4
    assert _leaf(reference, other, training=True).allclose_violations == 0


def test_a_snapshot_outlives_the_next_step_and_holds_gradients() -> None:
    model = torch.nn.Linear(2, 1)
    output = model(torch.ones(1, 2))
    output.sum().backward()
    kept = snapshot_outputs({"y": output}, model, with_gradients=True)
    with torch.no_grad():
        output.zero_()
        model.weight.grad.zero_()
    assert sorted(kept) == ["gradient of bias", "gradient of weight", "output['y']"]
    assert bool(kept["output['y']"].all()) and kept["gradient of weight"].tolist() == [[1, 1]]
    assert not kept["output['y']"].requires_grad


def test_the_worst_leaves_are_sent_and_the_others_counted() -> None:
    reference = [torch.ones(1) for _ in range(60)]
    other = [torch.ones(1) + i / 100 for i in range(60)]
    other[7] = torch.ones(2)
    compared = compare_snapshots(ComparisonKind.COMPILED, _snapshot(reference), _snapshot(other), training=False)
    assert [leaf.path for leaf in compared.leaves[:3]] == ["output[7]", "output[59]", "output[58]"]
    assert (len(compared.leaves), compared.leaves_left_out) == (50, 10)
