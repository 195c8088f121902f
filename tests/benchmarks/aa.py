"""Eager against eager: how often is a difference found where none is? `python -m tests.benchmarks.aa [--runs N]`.

Whole runs resampled from recordings of an H200, with early stopping of the pairs and of the processes (1 to 3 a
mode). `--runs` counts those of a row over all recordings; a recording's own row has a seventh of them, and a row
with four identical modes a quarter.
"""

from __future__ import annotations

import random
from collections import Counter
from statistics import fmean, median

from tcompile_tui.core.spec import Mode
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, decide
from tests.benchmarks.tables import arguments, print_table, share
from tests.benchmarks.whole_runs import eager_against_eager, measured_run
from tests.core.streams import RECORDINGS

_ENABLED = (Decision.ENABLE, Decision.ENABLE_WITH_CARE)


def row(
    name: str, rng: random.Random, recordings: tuple[str, ...], between_sd: float, modes: int, runs: int
) -> tuple[str, ...]:
    states = [
        measured_run(rng, eager_against_eager(recordings[run % len(recordings)], between_sd), tuple(Mode)[:modes])
        for run in range(runs)
    ]
    verdicts = [decide(state) for state in states]
    speedups = [[judged.result.speedup for judged in verdict.modes if judged.result.speedup] for verdict in verdicts]
    intervals = [process.interval for state in states for process in state.processes.values() if process.interval]
    decisions = Counter(verdict.decision for verdict in verdicts)
    return (
        name,
        f"{100 * between_sd:.1f} %",
        str(modes),
        str(runs),
        share(sum(not interval.lo <= 1 <= interval.hi for interval in intervals), len(intervals)),
        share(sum(any(speedup.lo > 1 for speedup in each) for each in speedups), runs),
        share(sum(any(speedup.hi < 1 for speedup in each) for each in speedups), runs),
        share(sum(decisions[decision] for decision in _ENABLED), runs),
        share(decisions[Decision.SKIP], runs),
        f"{100 * median(speedup.half_width for each in speedups for speedup in each):.2f} %",
        f"{fmean(_processes(state) for state in states) / modes:.1f}",
    )


def _processes(state: RunState) -> int:
    return sum(process.interval is not None for process in state.processes.values())


def main() -> None:
    runs, seed = arguments(__doc__, runs=700, seed=2026)
    rng = random.Random(seed)
    rows = [row(name, rng, (name,), 0.005, 1, runs // len(RECORDINGS)) for name in RECORDINGS]
    rows += [
        row("all in turn", rng, RECORDINGS, between_sd, modes, runs // modes)
        for modes in (1, 4)
        for between_sd in (0.0, 0.005, 0.01)
    ]
    heads = (
        "recording", "between-process sd", "modes", "runs", "pairs of one process find a difference",
        "a mode is called faster", "slower", "enabled", "skipped", "half-width p50", "processes a mode",
    )  # fmt: skip
    print_table(heads, rows)


if __name__ == "__main__":
    main()
