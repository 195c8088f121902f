"""Outputs reduced to the numbers that accuracy is judged by."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from tcompile_tui.core.events import ComparisonKind, LeafComparison
from tcompile_tui.worker import compare
from tcompile_tui.worker.compare import Arithmetic, compare_snapshots, snapshot_outputs
from tcompile_tui.worker.reference import Reference
from tcompile_tui.worker.stepping import Trained

pytestmark = pytest.mark.xdist_group("torch")
EXACT = Arithmetic()
NAN, INF = math.nan, math.inf


def _snapshot(output: Any) -> dict[str, Any]:
    return snapshot_outputs(output, torch.nn.Identity(), with_gradients=False)


def _leaves(reference: Any, other: Any, arithmetic: Arithmetic = EXACT, exact: Any = None) -> dict[str, LeafComparison]:
    kept = Reference.of("float64", _snapshot(exact)) if exact is not None else None
    compared = compare_snapshots(ComparisonKind.COMPILED, _snapshot(reference), _snapshot(other), arithmetic, kept)
    return {leaf.path: leaf for leaf in compared.leaves}


def _leaf(reference: Any, other: Any, arithmetic: Arithmetic = EXACT, exact: Any = None) -> LeafComparison:
    (leaf,) = _leaves(reference, other, arithmetic, exact).values()
    return leaf


def test_identical_outputs_have_no_difference() -> None:
    leaf = _leaf(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 4.0]))
    assert leaf == LeafComparison(
        "output", "float32", 2, same_structure=True, rms_reference=math.sqrt(12.5), max_abs_reference=4.0,
        tolerance=1e-4,
    )  # fmt: skip


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
    ],
)
def test_whole_numbers_and_plain_values_are_equal_or_not(reference: Any, other: Any, unequal: int) -> None:
    leaf = _leaf(reference, other)
    assert leaf.unequal == unequal and leaf.same_structure


def test_an_output_that_is_nothing_says_nothing() -> None:
    """Two of them are no agreement; one beside a value is a difference."""
    assert _leaves(None, None, EXACT, None) == {}
    assert not _leaf(None, torch.ones(2)).same_structure


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


@pytest.mark.parametrize(
    ("dtype", "arithmetic", "tolerance"),
    [
        (torch.float64, Arithmetic(), 1e-7),
        (torch.float32, Arithmetic(), 1e-4),
        (torch.float16, Arithmetic(), 1e-3),
        (torch.float32, Arithmetic(loose=True), 1e-3),
        (torch.float64, Arithmetic(loose=True), 1e-7),
        (torch.float32, Arithmetic(low_precision="bfloat16"), 1e-3),
    ],
)
def test_the_tolerance_follows_what_the_model_calculates_in(
    dtype: torch.dtype, arithmetic: Arithmetic, tolerance: float
) -> None:
    assert _leaf(torch.ones(4, dtype=dtype), torch.ones(4, dtype=dtype), arithmetic).tolerance == tolerance


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_closeness_is_relative_to_the_outputs_size(size: float) -> None:
    reference = torch.tensor([1.0, -1.0, 0.0]) * size
    near, far = reference + 1.5e-4 * size, reference + 2.5e-4 * size
    assert _leaf(reference, near).allclose_violations == 1, "the one that is zero has no size of its own"
    assert _leaf(reference, far).allclose_violations == 3


def test_what_only_eager_loses_is_counted_too() -> None:
    leaf = _leaf(torch.tensor([NAN, INF, 1.0]), torch.tensor([2.0, INF, 1.0]))
    assert (leaf.lost_nonfinite, leaf.new_nonfinite) == (1, 0)
    assert _leaf(torch.tensor([INF, 1.0]), torch.tensor([-INF, 1.0])).new_nonfinite == 1


# ---------------------------------------------------------------- against a reference


def test_both_arms_are_measured_against_the_reference() -> None:
    exact = torch.linspace(-1, 1, 5, dtype=torch.float64)
    eager, compiled = (exact + 0.25).float(), (exact * 1.5).float()
    errors = _leaf(eager, compiled, exact=exact).errors
    assert errors is not None and errors.elements == 5
    assert (errors.eager_rms, errors.eager_max) == (0.25, 0.25)
    assert errors.rms_reference == pytest.approx(math.sqrt(0.5))
    assert errors.compiled_rms == pytest.approx(0.5 * math.sqrt(0.5)) and errors.compiled_max == 0.5
    assert errors.eager_slope == pytest.approx(1.0), "what is only moved is not scaled"
    assert errors.compiled_slope == pytest.approx(1.5)
    assert errors.slope_error == pytest.approx(0.25 / math.sqrt(2.5))


def test_only_what_is_finite_everywhere_is_measured_against_the_reference() -> None:
    errors = _leaf(torch.tensor([1.0, NAN, 3.0]), torch.tensor([1.0, 2.0, INF]), exact=torch.ones(3)).errors
    assert errors is not None and errors.elements == 1 and errors.eager_slope is None, "constant"


def test_an_output_that_the_reference_lacks_or_has_otherwise_is_compared_without() -> None:
    assert _leaf(torch.ones(3), torch.ones(3), exact=torch.ones(4)).errors is None
    assert _leaf(torch.ones(3), torch.ones(3), exact=[torch.ones(3)]) is not None


def test_a_reference_survives_its_file_and_samples_large_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcompile_tui.worker.reference._KEPT_ELEMENTS", 100)
    monkeypatch.setattr("tcompile_tui.worker.reference._MIN_KEPT_ELEMENTS", 10)
    exact = torch.randn(64, 64, dtype=torch.float64)
    kept = {"output": exact, "loss": torch.tensor(2.0), "count": 3, "ids": torch.arange(9)}
    Reference.of("float64", kept).save(tmp_path / "reference.pt")
    loaded = Reference.load(tmp_path / "reference.pt")
    assert loaded.dtype == "float64" and set(loaded.samples) == {"output", "loss"}
    sample = loaded.samples["output"]
    assert 40 <= sample.values.numel() <= 51
    columns = {index % 64 for index in range(0, 64 * 64, sample.stride)}
    assert len(columns) > 40, "a stride that divides the width would see one column"
    errors = loaded.errors_of("output", exact.flatten().float(), exact.flatten())
    assert errors is not None and errors.elements == sample.values.numel() and errors.compiled_rms == 0


def test_a_cut_off_reference_is_an_error_that_the_worker_can_catch(tmp_path: Path) -> None:
    path = tmp_path / "reference.pt"
    Reference.of("float64", {"output": torch.ones(9)}).save(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(Exception, match=r"."):
        Reference.load(path)


# ---------------------------------------------------------------- what is compared


def test_a_snapshot_outlives_the_next_step_and_holds_gradients() -> None:
    model = torch.nn.Linear(2, 1)
    output = model(torch.ones(1, 2))
    output.sum().backward()
    loss = output.mean()
    kept = snapshot_outputs(Trained({"y": output}, loss), model, with_gradients=True)
    with torch.no_grad():
        output.zero_()
        model.weight.grad.zero_()
    assert sorted(kept) == ["gradient of bias", "gradient of weight", "loss", "output['y']"]
    assert bool(kept["output['y']"].all()) and kept["gradient of weight"].tolist() == [[1, 1]]
    assert not kept["output['y']"].requires_grad


def test_the_worst_leaves_are_sent_and_the_others_counted() -> None:
    reference = [torch.ones(1) for _ in range(210)]
    other = [torch.ones(1) + i / 100 for i in range(210)]
    other[7] = torch.ones(2)
    compared = compare_snapshots(ComparisonKind.COMPILED, _snapshot(reference), _snapshot(other), Arithmetic())
    assert [leaf.path for leaf in compared.leaves[:3]] == ["output[7]", "output[209]", "output[208]"]
    assert (len(compared.leaves), compared.leaves_left_out) == (200, 10)
