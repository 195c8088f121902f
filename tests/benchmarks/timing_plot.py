"""Cost of one frame of the timing plot at a million steps: `python -m tests.benchmarks.timing_plot`.

A frame is `show` with 50 new steps per arm, then every line of the widget; Textual's own share is not counted.
`first` is the frame after the scale of the steps changed, when nothing is kept from earlier frames.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time

from textual.app import App, ComposeResult

from tcompile_tui.core.state import ArmSteps
from tcompile_tui.ui.widgets.timing_plot import TimingPlot
from tests.benchmarks.record import Figure, Record, parser, publish, record, table

STEPS, NEW_STEPS, FRAMES = 1_000_000, 50, 200
SIZE = (120, 30)


class PlotApp(App[None]):
    def compose(self) -> ComposeResult:
        yield TimingPlot()


def grown(level_ns: float, seed: int) -> ArmSteps:
    rng = random.Random(seed)
    arm = ArmSteps(recent_step_ns=level_ns)
    arm.series.extend(int(level_ns * rng.lognormvariate(0, 0.05)) for _ in range(STEPS))
    arm.compiled_at.extend(range(0, STEPS, 50_000))
    return arm


def frame_ms(plot: TimingPlot, eager: ArmSteps, compiled: ArmSteps) -> float:
    eager.series.extend([5_000_000] * NEW_STEPS)
    compiled.series.extend([3_000_000] * NEW_STEPS)
    begin = time.process_time_ns()
    plot.show(eager, compiled)
    for line in range(plot.size.height):
        plot.render_line(line)
    return (time.process_time_ns() - begin) / 1e6


async def measure() -> Record:
    eager, compiled = grown(5e6, 1), grown(3e6, 2)
    app = PlotApp()
    async with app.run_test(size=SIZE) as pilot:
        plot = app.query_one(TimingPlot)
        await pilot.pause()
        gc.collect()
        gc.freeze()  # a full collection costs the whole app 10 ms and more, whichever widget meets it
        cells, slowest_ms = [], 0.0
        for window in (None, 200, 5_000, 500_000):
            for log_scale in (False, True):
                plot.window, plot.log_scale = window, log_scale
                first, *times = [frame_ms(plot, eager, compiled) for _ in range(FRAMES)]
                typical_ms = statistics.median(times)
                slowest_ms = max(slowest_ms, typical_ms)
                times_ms = [f"{ms:.2f} ms" for ms in (first, typical_ms, max(times))]
                cells.append((f"{window or 'whole'}", "log" if log_scale else "linear", *times_ms))
        begin = time.process_time_ns()
        for _ in range(1_000):
            plot.show(eager, compiled)
        idle_us = (time.process_time_ns() - begin) / 1e6
    figures = [
        Figure(f"timing plot at {STEPS:,} steps an arm: CPU a frame, slowest window", f"{slowest_ms:.2f} ms"),
        Figure("timing plot: CPU of a look without anything new", f"{idle_us:.2f} us"),
    ]
    return record("timing_plot", figures, [table(("window", "scale", "first", "median", "worst"), cells)])


def main() -> None:
    asked = parser(__doc__).parse_args()
    publish(asyncio.run(measure()), asked.json)


if __name__ == "__main__":
    main()
