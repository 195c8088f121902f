"""How fast the batches of the real run come: a figure, or a function whose loader is timed.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from .spec_error import SpecError
from .step_spec import FileFunction, parse_function


@dataclass(frozen=True)
class DataSpec:
    """One of both is set: `batch_ms`, the time between two batches, or `loader`, a function that returns an iterable
    of batches."""

    batch_ms: float | None = None
    loader: FileFunction | None = None

    def under(self, folder: str) -> DataSpec:
        """The same with the file named absolutely; `folder` is where a relative one is."""
        if self.loader is None:
            return self
        return replace(self, loader=FileFunction(str(PurePath(folder) / self.loader.path), self.loader.name))

    @property
    def words(self) -> list[str]:
        """The option that a person would type."""
        if self.batch_ms is not None:
            return ["--data-ms", str(float(self.batch_ms)).removesuffix(".0")]
        return ["--loader", str(self.loader)] if self.loader is not None else []


def read_data(batch_ms: str | None, loader: str | None) -> DataSpec | None:
    """From what `--data-ms` and `--loader` say; None where neither is given. Raises SpecError."""
    if batch_ms is None and loader is None:
        return None
    if batch_ms is not None and loader is not None:
        raise SpecError("give --data-ms or --loader, not both: the loader is timed to know the milliseconds")
    if loader is not None:
        return DataSpec(loader=parse_function(loader, "--loader"))
    try:
        milliseconds = float(batch_ms or "")
    except ValueError:
        milliseconds = math.nan
    if not 0.0 < milliseconds < math.inf:
        raise SpecError(f"--data-ms '{batch_ms}' is no time: write the milliseconds between two batches, such as 12.5")
    return DataSpec(batch_ms=milliseconds)


def data_from_json(body: Mapping[str, Any] | None) -> DataSpec | None:
    """Build it from its JSON object, which msgspec wrote. Raises KeyError or TypeError."""
    if body is None:
        return None
    loader = body["loader"]
    return DataSpec(body["batch_ms"], FileFunction(**loader) if loader is not None else None)
