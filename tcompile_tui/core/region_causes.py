"""What compiling a repeated block alone changes against compiling the whole model in the same mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import duration, ratio

_MANY_BLOCKS = 4
_LONG_START_S = 60.0


def _against_the_whole(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """Both were compared with eager in this run: the ratio of their steps is that of the speedups."""
    measured = {result.mode.value: result for result in results if result.status is ModeStatus.MEASURED}
    for result in measured.values():
        options = result.mode.options
        whole = measured.get(replace(options, regions=None, block=None).label)
        if options.regions is None or whole is None or result.blocks is None:
            continue
        if result.cold_start is None or whole.cold_start is None or not result.speedup or not whole.speedup:
            continue
        one, other = whole.speedup, result.speedup
        slower = f"{ratio(one.value / other.value)} ({ratio(one.lo / other.hi)} to {ratio(one.hi / other.lo)})"
        start, whole_start = result.cold_start.total_s, whole.cold_start.total_s
        where = f" in {result.blocks.container}" if result.blocks.container else ""
        yield Finding(
            "regions-compared",
            Severity.NOTE,
            f"{result.mode.value}: a cold start takes {duration(start)}, of the whole model {duration(whole_start)};"
            f" a step takes {slower} the time of {whole.mode.value}'s",
            evidence=f"{result.blocks.count:,} blocks of class {result.blocks.block}{where}",
            mode=result.mode,
        )


def _blocks_repeat(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """A long compile of a model that is mostly one block, again and again, and no arm that compiles it once."""
    model = next((p.model for p in state.processes.values() if p.model is not None), None)
    blocks = model.repeated if model is not None else None
    if blocks is None or blocks.count < _MANY_BLOCKS or any(result.mode.options.regions for result in results):
        return
    slow = [r for r in results if r.cold_start is not None and r.cold_start.total_s > _LONG_START_S]
    if slow and slow[0].cold_start is not None:
        where = f" in {blocks.container}" if blocks.container else ""
        yield Finding(
            "blocks-repeat",
            Severity.ADVICE,
            f"{slow[0].mode.value}: a cold start takes {duration(slow[0].cold_start.total_s)}, and most of the model is"
            f" {blocks.count:,} blocks of one class",
            evidence=f"{blocks.block}{where}",
            advice="measure again with --arm regional: one block is compiled for all, which starts sooner",
        )


RULES: tuple[Rule, ...] = (_against_the_whole, _blocks_repeat)
