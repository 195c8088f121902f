"""Reduce two outputs to the few numbers that `core/accuracy.py` judges. Judges nothing itself."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..core.events import ComparisonKind, LeafComparison, OutputsCompared
from .inputs import walk_leaves

_CHUNK_ELEMENTS = 1 << 24
_MAX_LEAVES = 50
_TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.complex64: 1e-4, torch.complex128: 1e-7}
_LOOSE_TOLERANCE = 1e-3  # low precision, and training (benchmarks/dynamo uses the same)


def snapshot_outputs(output: Any, model: torch.nn.Module, with_gradients: bool) -> dict[str, Any]:
    """Every leaf of the output, and every gradient, copied: the next step may overwrite them."""
    leaves: dict[str, Any] = {}
    for path, leaf in walk_leaves(output):
        leaves[f"output{path}"] = leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
    if with_gradients:
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                leaves[f"gradient of {name}"] = parameter.grad.detach().clone()
    return leaves


def compare_snapshots(
    comparison: ComparisonKind, reference: dict[str, Any], other: dict[str, Any], training: bool
) -> OutputsCompared:
    """Compare leaf by leaf; the worst `_MAX_LEAVES` are sent, the rest counted."""
    leaves = [_compare(path, reference.get(path), other.get(path), training) for path in {**reference, **other}]
    leaves.sort(key=_badness, reverse=True)
    return OutputsCompared(
        comparison=comparison,
        leaves=tuple(leaves[:_MAX_LEAVES]),
        leaves_left_out=max(0, len(leaves) - _MAX_LEAVES),
    )


def _badness(leaf: LeafComparison) -> tuple[bool, int, float]:
    relative = leaf.rms_difference / leaf.rms_reference if leaf.rms_reference else leaf.rms_difference
    return (not leaf.same_structure, leaf.new_nonfinite + leaf.unequal, relative)


def _compare(path: str, reference: Any, other: Any, training: bool) -> LeafComparison:
    if not isinstance(reference, torch.Tensor) or not isinstance(other, torch.Tensor):
        return _compare_plain(path, reference, other)
    dtype = str(reference.dtype).removeprefix("torch.")
    same_dtype = reference.dtype == other.dtype
    reference, other = _dense(reference), _dense(other)
    if not same_dtype or reference.shape != other.shape:
        return LeafComparison(path, f"{dtype} / {other.dtype}", reference.numel(), same_structure=False)
    if not (reference.is_floating_point() or reference.is_complex()):
        unequal = int((reference != other).sum())
        return LeafComparison(path, dtype, reference.numel(), same_structure=True, unequal=unequal)
    return _compare_floating(path, dtype, reference, other, training)


def _compare_plain(path: str, reference: Any, other: Any) -> LeafComparison:
    """Values by their own equality. An object without one (a cache that the model returns) says nothing by it."""
    same = type(reference) is type(other)
    equality: Any = type(reference).__eq__
    if same and equality is object.__eq__:
        return LeafComparison(path, type(reference).__name__, 1, same_structure=True)
    try:
        equal = bool(reference == other) or (reference != reference and other != other)
    except Exception:  # the user's own __eq__
        equal = same
    return LeafComparison(path, type(reference).__name__, 1, same_structure=same, unequal=int(same and not equal))


def _compare_floating(
    path: str, dtype: str, reference: torch.Tensor, other: torch.Tensor, training: bool
) -> LeafComparison:
    """In float64 and in chunks, so that a large output needs little memory."""
    tolerance = _TOLERANCE.get(reference.dtype, _LOOSE_TOLERANCE)
    if training:
        tolerance = max(tolerance, _LOOSE_TOLERANCE)
    flat_reference, flat_other = _as_real(reference).flatten(), _as_real(other).flatten()
    sum_reference = sum_difference = max_reference = max_difference = 0.0
    finite_count = violations = new_nonfinite = nan_in_both = 0
    for start in range(0, flat_reference.numel(), _CHUNK_ELEMENTS):
        a = flat_reference[start : start + _CHUNK_ELEMENTS].double()
        b = flat_other[start : start + _CHUNK_ELEMENTS].double()
        finite = a.isfinite() & b.isfinite()
        new_nonfinite += int((a.isfinite() & ~b.isfinite()).sum())
        nan_in_both += int((a.isnan() & b.isnan()).sum())
        violations += int((~torch.isclose(b, a, rtol=tolerance, atol=tolerance, equal_nan=True)).sum())
        a, difference = a[finite], (b - a)[finite].abs()
        if a.numel():
            finite_count += a.numel()
            sum_reference += float(a.square().sum())
            sum_difference += float(difference.square().sum())
            max_reference = max(max_reference, float(a.abs().max()))
            max_difference = max(max_difference, float(difference.max()))
    count = max(1, finite_count)
    return LeafComparison(
        path, dtype, reference.numel(), same_structure=True,
        rms_reference=math.sqrt(sum_reference / count), rms_difference=math.sqrt(sum_difference / count),
        max_abs_reference=max_reference, max_abs_difference=max_difference,
        allclose_violations=violations, new_nonfinite=new_nonfinite, nan_in_both=nan_in_both,
    )  # fmt: skip


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """The same values as a plain strided tensor."""
    if tensor.is_nested:
        return tensor.to_padded_tensor(0.0)
    if tensor.is_quantized:
        return tensor.dequantize()
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def _as_real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
