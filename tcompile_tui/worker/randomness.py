"""Outputs that eager itself draws anew each time, such as those of dropout: several runs of both arms, reduced to
what tells whether they come from one distribution. Judges nothing itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch

from ..core.events import LeafSpread, OutputsCompared, RandomOutputsCompared, RunStatistic
from .compare import relative_difference
from .tensors import flat, stride_for

# Fewer could not tell a difference from chance beyond doubt; see `core/randomness.py`.
RUNS = 8
_FIRST_SEED = 1_000
# Below this, what changes in eager is the order of its sums.
_ROUNDING = 1e-3
# Of all leaves together, for each of the runs.
_KEPT_ELEMENTS = 1 << 21
_MIN_KEPT_ELEMENTS = 1 << 8
_MAX_LEAVES = 100
_DIGITS = 7

# One run of an arm: from a seed to a snapshot of its outputs.
Run: TypeAlias = Callable[[int], dict[str, Any]]


def is_random(eager_twice: OutputsCompared) -> bool:
    """Does eager give another result with other random numbers?"""
    return any(
        leaf.unequal or not leaf.same_structure or relative_difference(leaf) > _ROUNDING for leaf in eager_twice.leaves
    )


def compare_distributions(eager: Run, compiled: Run, low_precision: str | None) -> RandomOutputsCompared:
    """Run both arms RUNS times, each with other random numbers every time."""
    runs: list[Mapping[str, torch.Tensor]] = []
    for number in range(2 * RUNS):
        # In turn, so that a state that is not restored moves both alike.
        arm = eager if number % 2 == 0 else compiled
        runs.append(_sampled(arm(_FIRST_SEED + number)))
    runs = runs[0::2] + runs[1::2]
    paths = [path for path in runs[0] if all(path in run and _same(run[path], runs[0][path]) for run in runs)]
    every = max(1, math.ceil(len(paths) / _MAX_LEAVES))
    leaves = [_spread(path, [run[path] for run in runs]) for path in paths[::every]]
    return RandomOutputsCompared(
        runs=RUNS, leaves=tuple(leaves), leaves_left_out=len(paths) - len(leaves), low_precision=low_precision
    )


def _sampled(snapshot: dict[str, Any]) -> dict[str, torch.Tensor]:
    tensors = {path: flat(leaf) for path, leaf in snapshot.items() if isinstance(leaf, torch.Tensor)}
    share = max(_MIN_KEPT_ELEMENTS, _KEPT_ELEMENTS // max(1, len(tensors)))
    return {path: values[:: stride_for(values.numel(), share)].float() for path, values in tensors.items()}


def _same(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(tensor.shape == other.shape) and tensor.numel() > 0


def _spread(path: str, runs: list[torch.Tensor]) -> LeafSpread:
    """What is not finite in any run is left out of all: it is counted elsewhere."""
    stacked = torch.stack(runs).double()
    stacked = stacked[:, stacked.isfinite().all(dim=0)]
    elements = stacked.shape[1]
    if elements == 0:
        return LeafSpread(path, "", 0, 0.0, (), ())
    centred = stacked - stacked.mean(dim=0)
    products = centred @ centred.T / elements
    upper = torch.triu_indices(len(runs), len(runs), device=products.device)
    return LeafSpread(
        path,
        str(runs[0].dtype).removeprefix("torch."),
        elements,
        rms=float(stacked.square().mean().sqrt()),
        products=_short(products[upper[0], upper[1]]),
        statistics=tuple(_statistic(name, values) for name, values in _statistics(stacked).items()),
    )


def _statistics(runs: torch.Tensor) -> dict[str, torch.Tensor]:
    """One figure for each run; `runs` is (run, element)."""
    size = runs.abs()
    nearly_largest = max(1, round(0.95 * size.shape[1]))
    return {
        "mean": runs.mean(dim=1),
        "root mean square": runs.square().mean(dim=1).sqrt(),
        "share of zeros": (runs == 0).double().mean(dim=1),
        "95th percentile": size.kthvalue(nearly_largest, dim=1).values,
    }


def _statistic(name: str, values: torch.Tensor) -> RunStatistic:
    return RunStatistic(name, eager=_short(values[:RUNS]), compiled=_short(values[RUNS:]))


def _short(values: torch.Tensor) -> tuple[float, ...]:
    """Without digits that mean nothing: they would be most of the record."""
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values.tolist())
