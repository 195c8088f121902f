"""The search for the largest batch that fits. Standard library only: the worker imports this module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FIT_NEEDS_GPU = "--fit-batch needs a GPU: on a CPU, who runs out of memory is ended by the system"
MOST_DOUBLINGS = 16
# What is found is within a sixteenth of the largest.
_FINENESS = 16


@dataclass(frozen=True)
class LargestBatch:
    """`largest` fits and `too_large` does not; None where the search ended before one did not."""

    largest: int
    too_large: int | None
    probes: int


def find_largest(
    start: int, fits: Callable[[int], bool], go_on: Callable[[], bool] = lambda: True
) -> LargestBatch | None:
    """Double from `start` until a batch does not fit, then bisect to the nearest multiple of a power of two that is at
    most a sixteenth of it. None where `start` does not fit. `go_on` is asked before each further probe."""
    if not fits(start):
        return None
    largest, too_large, probes = start, None, 1
    while too_large is None and probes <= MOST_DOUBLINGS and go_on():
        probes += 1
        if fits(2 * largest):
            largest *= 2
        else:
            too_large = 2 * largest
    grain = max(1, 1 << (largest // _FINENESS).bit_length() >> 1)
    while too_large is not None and (middle := _between(largest, too_large, grain)) is not None and go_on():
        probes += 1
        if fits(middle):
            largest = middle
        else:
            too_large = middle
    return LargestBatch(largest, too_large, probes)


def smaller_sizes(largest: int, start: int) -> tuple[int, ...]:
    """`largest`, and what to fall back on if a fixed size needs a little more than the search saw."""
    steps = (largest - part * max(1, largest // _FINENESS) for part in range(4))
    return tuple(dict.fromkeys(max(start, size) for size in steps))


def _between(low: int, high: int, grain: int) -> int | None:
    """The multiple of `grain` nearest to the middle from below, or above where there is none; None without one."""
    middle = (low + high) // 2 // grain * grain
    middle = middle if middle > low else middle + grain
    return middle if low < middle < high else None
