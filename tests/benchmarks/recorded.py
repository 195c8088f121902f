"""The paired intervals of the series recorded on an H200: `python -m tests.benchmarks.recorded`.

One process each, so these are the pairs' own intervals; "in a run" adds what another process may differ by.
"""

from __future__ import annotations

from collections import Counter

from tcompile_tui.core.course import course_of
from tcompile_tui.core.pairs import SpeedupInterval, conclude, drifted, paired_interval
from tcompile_tui.core.spread import between_processes, mean_speedup
from tests.benchmarks.record import Figure, parser, publish, record, table
from tests.benchmarks.whole_runs import recorded_log_ratios
from tests.core.streams import RECORDINGS, recorded


def row(name: str) -> tuple[str, ...]:
    compared, same = (recorded_log_ratios(name, pairs) for pairs in ("ab_block_ns", "aa_block_ns"))
    interval, nothing = paired_interval(compared), paired_interval(same)
    assert interval is not None and nothing is not None
    in_a_run = mean_speedup([interval], between_processes([[interval]]))
    assert in_a_run is not None
    series = recorded(name)
    course = course_of(series["compiled_dev_ns"], [step for step, _ in series["compile_events"]])
    return (
        name.replace("_", ", "),
        _text(interval),
        conclude(interval).value,
        "yes" if drifted(compared) else "no",
        _text(in_a_run),
        _text(nothing),
        course.shape.value if course is not None else "n/a",
    )


def _text(interval: SpeedupInterval) -> str:
    return f"{interval.value:.3f} [{interval.lo:.3f}, {interval.hi:.3f}]"


def main() -> None:
    asked = parser(__doc__).parse_args()
    heads = ("recording", "eager / compiled", "conclusion", "drifted", "in a run", "eager / eager", "compiled steps")
    rows = [row(name) for name in RECORDINGS]
    told = ", ".join(f"{count} {word}" for word, count in Counter(cells[2] for cells in rows).items())
    found = [Figure(f"{len(rows)} series recorded on an H200, judged again", told)]
    publish(record("recorded", found, [table(heads, rows)]), asked.json)


if __name__ == "__main__":
    main()
