"""Memory that a step gets from the system and gives back: why one process of a program is slower than another.

glibc returns freed memory at the end of a step, or keeps it, by the addresses that the process happened to get. Each
page that comes back costs a fault, and a memory-bound step may take three times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.pairs import meets_stop_rule
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Arm, Phase
from tcompile_tui.core.spread import PRIOR_BETWEEN_SD
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import count

# Fewer pages than these are no part of a step that can be seen (2 MB, a tenth of a millisecond).
_MANY = 500.0
_DIFFERENT = 2.0
_WIDE_SPREAD = 2 * PRIOR_BETWEEN_SD
_KEEP = "MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_MMAP_THRESHOLD_=4000000000"


def _page_faults(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """Only where the interval is wide, or processes differ: faults that all share are a part of what is measured."""
    if state.run is None or state.run.device != "cpu":
        return
    for result in results:
        speedup = result.speedup
        if speedup is None or (meets_stop_rule(speedup) and speedup.between_sd <= _WIDE_SPREAD):
            continue
        processes = [p for p in state.processes.values() if p.mode is result.mode or p.phase is Phase.EAGER]
        by_arm = {arm: _faults(processes, arm) for arm in Arm}
        if max((max(faults) for faults in by_arm.values() if faults), default=0.0) < _MANY:
            continue
        yield Finding(
            "page-faults",
            Severity.ADVICE,
            f"{result.mode.value}: steps get their memory from the system and give it back, which takes some processes"
            " longer than others: a reason for the wide interval",
            evidence=", ".join(f"{arm.value} {_range_text(faults)}" for arm, faults in by_arm.items() if faults)
            + " page faults a step",
            advice=f"let the allocator keep it, here (--env) and in your run: {_KEEP}, or preload jemalloc or tcmalloc",
            mode=result.mode,
        )


def _faults(processes: Sequence[ProcessState], arm: Arm) -> list[float]:
    """Of each process that ran the arm, a step."""
    found = [process.arms[arm].page_faults for process in processes if arm in process.arms]
    return [faults for faults in found if faults is not None]


def _range_text(faults: Sequence[float]) -> str:
    low, high = min(faults), max(faults)
    return f"{count(round(low))} to {count(round(high))}" if high > _DIFFERENT * low else count(round(high))


RULES: tuple[Rule, ...] = (_page_faults,)
