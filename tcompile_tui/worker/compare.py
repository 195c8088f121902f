"""Reduce two outputs to the few numbers that `core/accuracy.py` judges. Judges nothing itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from ..core.events import ComparisonKind, LeafComparison, OutputsCompared
from .inputs import walk_leaves
from .reference import Reference
from .stepping import Trained
from .tensors import dense, flat

_CHUNK_ELEMENTS = 1 << 24
_MAX_LEAVES = 200
_TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.complex64: 1e-4, torch.complex128: 1e-7}
_DOUBLE = (torch.float64, torch.complex128)
_LOOSE_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Arithmetic:
    """What rounding is to be expected beside that of an output's own type. The tolerances are those of
    benchmarks/dynamo: 1e-4 in float32, 1e-3 in 16 bits, under TF32, and in training on CUDA."""

    low_precision: str | None = None
    loose: bool = False
    tf32: bool = False

    def tolerance(self, dtype: torch.dtype) -> float:
        if self.low_precision is not None or (self.loose and dtype not in _DOUBLE):
            return _LOOSE_TOLERANCE
        return _TOLERANCE.get(dtype, _LOOSE_TOLERANCE)


def snapshot_outputs(result: Any, model: torch.nn.Module, with_gradients: bool) -> dict[str, Any]:
    """Every leaf of what a step returned, and every gradient, copied: the next step may overwrite them."""
    leaves: dict[str, Any] = {}
    output = result.output if isinstance(result, Trained) else result
    for path, leaf in walk_leaves(output):
        if leaf is None:
            continue  # says nothing; where the other arm has a value, that one lacks its partner
        leaves[f"output{path}"] = leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
    if isinstance(result, Trained):
        leaves["loss"] = result.loss.detach().clone()
    if with_gradients:
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                # torch's wrapper around a block puts itself into the name.
                leaves[f"gradient of {name.replace('_orig_mod.', '')}"] = parameter.grad.detach().clone()
    return leaves


def compare_snapshots(
    comparison: ComparisonKind,
    eager: dict[str, Any],
    other: dict[str, Any],
    arithmetic: Arithmetic,
    reference: Reference | None = None,
) -> OutputsCompared:
    """Compare leaf by leaf, both with the reference too; the worst `_MAX_LEAVES` are sent, the rest counted."""
    leaves = [_compare(path, eager.get(path), other.get(path), arithmetic, reference) for path in {**eager, **other}]
    leaves.sort(key=_badness, reverse=True)
    return OutputsCompared(
        comparison=comparison,
        leaves=tuple(leaves[:_MAX_LEAVES]),
        leaves_left_out=max(0, len(leaves) - _MAX_LEAVES),
        low_precision=arithmetic.low_precision,
        reference_dtype=reference.dtype if reference is not None else None,
        tf32=arithmetic.tf32,
    )


def relative_difference(leaf: LeafComparison) -> float:
    """Of the root mean squares; the difference itself where the reference is zero."""
    return leaf.rms_difference / leaf.rms_reference if leaf.rms_reference else leaf.rms_difference


def _badness(leaf: LeafComparison) -> tuple[bool, int, float]:
    counted = leaf.new_nonfinite + leaf.lost_nonfinite + leaf.unequal
    if leaf.errors is None or not math.isfinite(leaf.errors.compiled_rms):
        return (not leaf.same_structure, counted, relative_difference(leaf) / (leaf.tolerance or 1.0))
    errors = leaf.errors
    usual = errors.eager_rms + (leaf.tolerance or 0.0) * errors.rms_reference
    return (not leaf.same_structure, counted, errors.compiled_rms / usual if usual else errors.compiled_rms)


def _compare(path: str, eager: Any, other: Any, arithmetic: Arithmetic, reference: Reference | None) -> LeafComparison:
    if not isinstance(eager, torch.Tensor) or not isinstance(other, torch.Tensor):
        return _compare_plain(path, eager, other)
    dtype = str(eager.dtype).removeprefix("torch.")
    same_dtype = eager.dtype == other.dtype
    eager, other = dense(eager), dense(other)
    if not same_dtype or eager.shape != other.shape:
        return LeafComparison(path, f"{dtype} / {other.dtype}", eager.numel(), same_structure=False)
    if not (eager.is_floating_point() or eager.is_complex()):
        unequal = int((eager != other).sum())
        return LeafComparison(path, dtype, eager.numel(), same_structure=True, unequal=unequal)
    return _compare_floating(path, dtype, eager, other, arithmetic, reference)


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
    path: str,
    dtype: str,
    eager: torch.Tensor,
    other: torch.Tensor,
    arithmetic: Arithmetic,
    reference: Reference | None,
) -> LeafComparison:
    """In float64 and in chunks, so that a large output needs little memory."""
    tolerance = arithmetic.tolerance(eager.dtype)
    a, b = flat(eager), flat(other)
    chunks = [slice(start, start + _CHUNK_ELEMENTS) for start in range(0, a.numel(), _CHUNK_ELEMENTS)]
    sums = [_sums(a[chunk].double(), b[chunk].double()) for chunk in chunks]
    finite = max(1, sum(each.finite for each in sums))
    rms_reference = math.sqrt(sum(each.squares for each in sums) / finite)
    violations = sum(_violations(a[chunk].double(), b[chunk].double(), tolerance, rms_reference) for chunk in chunks)
    return LeafComparison(
        path, dtype, eager.numel(), same_structure=True, rms_reference=rms_reference,
        rms_difference=math.sqrt(sum(each.square_differences for each in sums) / finite),
        max_abs_reference=max((each.largest for each in sums), default=0.0),
        max_abs_difference=max((each.largest_difference for each in sums), default=0.0),
        allclose_violations=violations,
        new_nonfinite=sum(each.new_nonfinite for each in sums),
        lost_nonfinite=sum(each.lost_nonfinite for each in sums),
        nan_in_both=sum(each.nan_in_both for each in sums),
        tolerance=tolerance,
        errors=reference.errors_of(path, a, b) if reference is not None else None,
    )  # fmt: skip


@dataclass(frozen=True)
class _Sums:
    finite: int
    squares: float
    square_differences: float
    largest: float
    largest_difference: float
    new_nonfinite: int
    lost_nonfinite: int
    nan_in_both: int


def _sums(a: torch.Tensor, b: torch.Tensor) -> _Sums:
    finite_a, finite_b = a.isfinite(), b.isfinite()
    both = finite_a & finite_b
    nan_in_both = a.isnan() & b.isnan()
    counts = torch.stack(
        [both.sum(), (~finite_b & ~a.isnan() & (a != b)).sum(), (~finite_a & finite_b).sum(), nan_in_both.sum()]
    ).tolist()
    a, difference = a[both], (b - a)[both].abs()
    return _Sums(
        finite=counts[0],
        squares=float(a.square().sum()),
        square_differences=float(difference.square().sum()),
        largest=float(a.abs().max()) if counts[0] else 0.0,
        largest_difference=float(difference.max()) if counts[0] else 0.0,
        new_nonfinite=counts[1],
        lost_nonfinite=counts[2],
        nan_in_both=counts[3],
    )


def _violations(a: torch.Tensor, b: torch.Tensor, tolerance: float, rms: float) -> int:
    """The absolute part is relative to the output's own size: a fixed one would let small gradients be anything."""
    return int((~torch.isclose(b, a, rtol=tolerance, atol=tolerance * rms, equal_nan=True)).sum())
