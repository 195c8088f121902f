"""Time the user's loader: how long the next batch takes when nothing else is at work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean, median
from time import perf_counter_ns
from typing import Any

from ..core.batch_events import LoaderTimed
from .bench import Bench
from .failures import StageError
from .inputs import walk_tensors
from .loading import load_file
from .own_code import load_function

_WARMUP_NS = 1_000_000_000
_TIMED_NS = 4_000_000_000
_MIN_BATCHES = 4
_STRETCHES = 10
_PREFETCHED = 2  # batches that each worker of a DataLoader has ready, where it does not say


def time_loader(bench: Bench) -> None:
    """Send a LoaderTimed. Raises StageError where there is nothing to time, and whatever the user's code raises."""
    data = bench.job.spec.data
    assert data is not None and data.loader is not None
    name = f"{data.loader.name}()"
    bench.stage.name = f"the loader of {name}"
    loader = load_function(data.loader, load_file)()
    try:
        batches = _Batches(iter(loader), loader)
    except TypeError as error:
        raise StageError(f"{name} returned a {type(loader).__name__}, which is no iterable of batches") from error
    workers = _count(loader, "num_workers")
    ready = (workers or 0) * (_count(loader, "prefetch_factor") or _PREFETCHED)
    _take(bench, batches, _WARMUP_NS, 1 + ready)  # what was fetched before the clock ran came for free
    arrived_ns = _take(bench, batches, _TIMED_NS, max(_MIN_BATCHES, 2 * (workers or 0)))
    batch_ns = time_between(arrived_ns, workers or 1)
    if batch_ns is None:
        raise StageError(f"{name} gave {batches.given} batches in all: too few to time it")
    bench.channel.send(
        LoaderTimed(
            batches=len(arrived_ns) - 1,
            batch_ns=batch_ns,
            epochs=batches.epochs,
            workers=workers,
            samples=batches.samples,
        )
    )


def time_between(arrived_ns: Sequence[int], together: int) -> float | None:
    """From when batches arrived: the median of the means over stretches of at least `together` of them, since the
    batches of several workers come at once; None for fewer than two arrivals."""
    steps = [after - before for before, after in pairwise(arrived_ns)]
    if not steps:
        return None
    size = max(together, -(-len(steps) // _STRETCHES))
    whole = len(steps) // size * size
    means = [fmean(steps[start : start + size]) for start in range(0, whole, size)]
    return float(median(means)) if means else fmean(steps)


class _Batches:
    """Goes through the loader again and again, as a run of many epochs does."""

    def __init__(self, batches: Iterator[Any], loader: Any) -> None:
        self._batches, self._loader = batches, loader
        self.given = 0
        self.epochs = 1
        self.samples: int | None = None

    def take(self) -> bool:
        """Fetch one; False where there is no other, as a generator can be gone through only once."""
        for again in (False, True):
            if again:
                self._batches = iter(self._loader)
            try:
                batch = next(self._batches)
            except StopIteration:
                continue
            self.epochs += again
            self.given += 1
            if self.given == 1:
                self.samples = _samples(batch)
            return True
        return False


def _take(bench: Bench, batches: _Batches, for_ns: int, at_least: int) -> list[int]:
    """When each batch arrived, from the moment of asking for the first one on."""
    arrived_ns = [perf_counter_ns()]
    while len(arrived_ns) <= at_least or arrived_ns[-1] - arrived_ns[0] < for_ns:
        if bench.channel.should_finish(bench.loop) or not batches.take():
            break
        arrived_ns.append(perf_counter_ns())
    return arrived_ns


def _samples(batch: Any) -> int | None:
    sizes = [tensor.shape[0] for _, tensor in walk_tensors(batch) if tensor.dim()]
    return int(sizes[0]) if sizes else None


def _count(loader: Any, name: str) -> int | None:
    found = getattr(loader, name, None)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None
