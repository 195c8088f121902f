"""How often the 95 % interval holds the speedup of the average process: `python -m tests.benchmarks.coverage`.

Synthetic pairs with early stopping, a known spread between processes, and a fixed number of processes; "as needed"
starts a second and third one as a run does, where they could change the decision. `--runs` counts those of a row.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import median

from tcompile_tui.core.pairs import LOOKS
from tcompile_tui.core.results import mode_result
from tcompile_tui.core.spec import Mode
from tcompile_tui.core.spread import MeanSpeedup, between_processes, mean_speedup
from tests.benchmarks.record import Figure, parser, publish, record, table
from tests.benchmarks.tables import share, statistical
from tests.benchmarks.whole_runs import NOISES, Pairs, measured_run, stopped, synthetic

_BETWEEN_SDS = (0.005, 0.01)
_SPEEDUP = 1.05
_BAR = 0.95
_SPEEDUPS_AS_NEEDED = (1.0, 1.03, 1.05, 1.3)


def with_processes(rng: random.Random, pairs: Pairs, processes: int) -> MeanSpeedup:
    intervals = [stopped(pairs(rng, LOOKS[-1]))[1] for _ in range(processes)]
    found = mean_speedup(intervals, between_processes([intervals]))
    assert found is not None
    return found


def as_needed(rng: random.Random, pairs: Pairs) -> MeanSpeedup:
    found = mode_result(measured_run(rng, pairs), Mode.DEFAULT).speedup
    assert found is not None
    return found


@dataclass(frozen=True)
class Row:
    held: int
    runs: int
    cells: tuple[str, ...]


def row(noise: str, between_sd: float, speedup: float, processes: str, found: list[MeanSpeedup]) -> Row:
    held = sum(each.lo <= speedup <= each.hi for each in found)
    half = f"{100 * median(each.half_width for each in found):.2f} %"
    cells = (
        noise,
        f"{100 * between_sd:.1f} %",
        f"{speedup:.2f}",
        processes,
        str(len(found)),
        share(held, len(found)),
        half,
    )
    return Row(held, len(found), cells)


def figures(rows: list[Row]) -> list[Figure]:
    """The worst row of many is below the true share by chance alone: it may be two standard errors below."""
    held, runs = sum(row.held for row in rows), sum(row.runs for row in rows)
    worst = min(rows, key=lambda row: row.held / row.runs)
    share_of_worst = worst.held / worst.runs
    error = math.sqrt(_BAR * (1 - _BAR) / worst.runs)
    return [
        Figure("95 % interval holds the average process: all runs", share(held, runs), ">= 95 %", held >= _BAR * runs),
        Figure(
            f"95 % interval holds the average process: worst of {len(rows)} rows",
            f"{share(worst.held, worst.runs)} (standard error {100 * error:.1f} %)",
            ">= 95 % within 2 standard errors",
            share_of_worst >= _BAR - 2 * error,
        ),
    ]


def main() -> None:
    asked = statistical(parser(__doc__), runs=1_000)
    runs, rng = asked.runs, random.Random(asked.seed)
    rows = []
    for noise in NOISES:
        for between_sd in _BETWEEN_SDS:
            pairs = synthetic(_SPEEDUP, noise, between_sd)
            for count in (1, 3, 5):
                found = [with_processes(rng, pairs, count) for _ in range(runs)]
                rows.append(row(noise, between_sd, _SPEEDUP, str(count), found))
    for speedup in _SPEEDUPS_AS_NEEDED:
        for between_sd in _BETWEEN_SDS:
            pairs = synthetic(speedup, "boosting GPU", between_sd)
            found = [as_needed(rng, pairs) for _ in range(runs // 2)]
            rows.append(row("boosting GPU", between_sd, speedup, "as needed", found))
    heads = ("noise", "between-process sd", "speedup", "processes", "runs", "coverage", "half-width p50")
    publish(record("coverage", figures(rows), [table(heads, [row.cells for row in rows])]), asked.json)


if __name__ == "__main__":
    main()
