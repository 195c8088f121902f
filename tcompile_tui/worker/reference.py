"""The same outputs in higher precision, kept in a file: the yardstick for the errors of eager and compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..core.events import ReferenceErrors
from .tensors import flat, stride_for

# Of all leaves together; in float64 128 MiB on disk.
_KEPT_ELEMENTS = 1 << 24
_MIN_KEPT_ELEMENTS = 1 << 10


@dataclass(frozen=True)
class Sample:
    """Every `stride`-th of a leaf's values, as float64 on the CPU."""

    stride: int
    values: torch.Tensor


@dataclass(frozen=True)
class Reference:
    """One step's outputs (and gradients) in `dtype`, by path."""

    dtype: str
    samples: Mapping[str, Sample]

    @classmethod
    def of(cls, dtype: str, leaves: Mapping[str, Any]) -> Reference:
        """From a snapshot. Only what has a rounding error is kept: floating tensors."""
        floating = {path: flat(leaf) for path, leaf in leaves.items() if _has_rounding(leaf)}
        share = max(_MIN_KEPT_ELEMENTS, _KEPT_ELEMENTS // max(1, len(floating)))
        samples = {}
        for path, values in floating.items():
            stride = stride_for(values.numel(), share)
            samples[path] = Sample(stride, values[::stride].to("cpu", torch.float64))
        return cls(dtype, samples)

    @classmethod
    def load(cls, path: Path) -> Reference:
        """Raises OSError, or RuntimeError and the like for a file that was cut off."""
        kept = torch.load(path, weights_only=True)
        samples = {name: Sample(int(stride), values) for name, (stride, values) in kept["samples"].items()}
        return cls(str(kept["dtype"]), samples)

    def save(self, path: Path) -> None:
        """Tensors and plain values only, so that loading it runs no code. Raises OSError."""
        samples = {name: (sample.stride, sample.values) for name, sample in self.samples.items()}
        torch.save({"dtype": self.dtype, "samples": samples}, path)

    def errors_of(self, path: str, eager: torch.Tensor, compiled: torch.Tensor) -> ReferenceErrors | None:
        """Of one leaf of both arms, as flat rows of values. None if the reference has no such leaf."""
        sample = self.samples.get(path)
        if sample is None or len(range(0, eager.numel(), sample.stride)) != sample.values.numel():
            return None
        exact = sample.values.to(eager.device)
        eager, compiled = eager[:: sample.stride].double(), compiled[:: sample.stride].double()
        finite = exact.isfinite() & eager.isfinite() & compiled.isfinite()
        exact, eager, compiled = exact[finite], eager[finite], compiled[finite]
        return _errors(exact, eager, compiled) if exact.numel() else None


def _has_rounding(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())


def _errors(exact: torch.Tensor, eager: torch.Tensor, compiled: torch.Tensor) -> ReferenceErrors:
    eager_error, compiled_error = eager - exact, compiled - exact
    eager_rms = _rms(eager_error)
    centred = exact - exact.mean()
    spread = float(centred.square().sum())
    eager_slope = compiled_slope = slope_error = None
    if spread > 0.0:
        # Regression of each arm on the reference; as 1 + the slope of its error, which rounds less.
        eager_slope = 1.0 + float((eager_error * centred).sum()) / spread
        compiled_slope = 1.0 + float((compiled_error * centred).sum()) / spread
        slope_error = eager_rms / spread**0.5
    return ReferenceErrors(
        elements=exact.numel(), rms_reference=_rms(exact), eager_rms=eager_rms, compiled_rms=_rms(compiled_error),
        eager_max=float(eager_error.abs().max()), compiled_max=float(compiled_error.abs().max()),
        eager_slope=eager_slope, compiled_slope=compiled_slope, slope_error=slope_error,
    )  # fmt: skip


def _rms(values: torch.Tensor) -> float:
    return float(values.square().mean().sqrt())
