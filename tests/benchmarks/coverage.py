"""How often the 95 % interval holds the speedup of the average process: `python -m tests.benchmarks.coverage`.

Synthetic pairs with early stopping, a known spread between processes, and a fixed number of processes; "as needed"
starts a second and third one as a run does, where they could change the decision. `--runs` counts those of a row.
"""

from __future__ import annotations

import random
from statistics import median

from tcompile_tui.core.pairs import LOOKS
from tcompile_tui.core.results import mode_result
from tcompile_tui.core.spec import Mode
from tcompile_tui.core.spread import MeanSpeedup, between_processes, mean_speedup
from tests.benchmarks.tables import arguments, print_table, share
from tests.benchmarks.whole_runs import NOISES, Pairs, measured_run, stopped, synthetic

_BETWEEN_SDS = (0.005, 0.01)
_SPEEDUP = 1.05
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


def row(noise: str, between_sd: float, speedup: float, processes: str, found: list[MeanSpeedup]) -> tuple[str, ...]:
    held = sum(each.lo <= speedup <= each.hi for each in found)
    half = f"{100 * median(each.half_width for each in found):.2f} %"
    return (
        noise,
        f"{100 * between_sd:.1f} %",
        f"{speedup:.2f}",
        processes,
        str(len(found)),
        share(held, len(found)),
        half,
    )


def main() -> None:
    runs, seed = arguments(__doc__, runs=1_000, seed=2026)
    rng = random.Random(seed)
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
    print_table(("noise", "between-process sd", "speedup", "processes", "runs", "coverage", "half-width p50"), rows)


if __name__ == "__main__":
    main()
