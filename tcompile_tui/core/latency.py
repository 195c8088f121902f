"""How long one step takes when its result is waited for: what a person or a request behind it waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

# Below this many steps the 99th percentile is the slowest step, and says little.
_MIN_FOR_P99 = 100


@dataclass(frozen=True)
class Latency:
    """Milliseconds; `p99_ms` is None with fewer than 100 steps."""

    p50_ms: float
    p99_ms: float | None
    steps: int


def latency(steps_ns: Sequence[int]) -> Latency | None:
    """Nearest-rank percentiles (the smallest value that at least so many percent do not exceed); None without steps."""
    if not steps_ns:
        return None
    ordered = sorted(steps_ns)

    def at(percent: int) -> float:
        return ordered[ceil(percent * len(ordered) / 100) - 1] / 1e6

    return Latency(at(50), at(99) if len(ordered) >= _MIN_FOR_P99 else None, len(ordered))
