"""A run that is measured now, as CSV that only grows: every step, and every sample of the GPU and the host."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from tcompile_tui.core.spec import Arm
from tcompile_tui.core.state import RunState
from tcompile_tui.report.series import COLUMNS, step_rows

_GPU_COLUMNS = {
    "gpu_utilisation_percent": "utilisation_percent",
    "gpu_memory_used_bytes": "memory_used_bytes",
    "gpu_sm_clock_mhz": "sm_clock_mhz",
    "gpu_power_w": "power_w",
    "gpu_temperature_c": "temperature_c",
}
_HOST_COLUMNS = {
    "cpu_percent": "cpu_percent",
    "memory_used_bytes": "memory_used_bytes",
    "worker_cpu_percent": "worker_cpu_percent",
    "worker_rss_bytes": "worker_rss_bytes",
}
LIVE_COLUMNS = ("t_s", "record", *COLUMNS, *_GPU_COLUMNS, *_HOST_COLUMNS)


class LiveSeries:
    """Remembers what it has given. `record` is step, gpu or host; a column that is not of that record, or that the
    driver does not give, is empty. `t_s` counts from the start of the run: of a step it is when its block was known."""

    def __init__(self) -> None:
        self._steps_given: dict[tuple[int, Arm], int] = {}
        self._samples_given = {"gpu": -1.0, "host": -1.0}

    @staticmethod
    def head() -> str:
        return _csv([LIVE_COLUMNS])

    def more(self, state: RunState) -> str:
        """The rows since the last call."""
        samples = [
            *self._samples("gpu", state.gpu, len(COLUMNS), _GPU_COLUMNS),
            *self._samples("host", state.host, len(COLUMNS) + len(_GPU_COLUMNS), _HOST_COLUMNS),
        ]
        return _csv([*self._steps(state), *samples])

    def _steps(self, state: RunState) -> Iterator[tuple[Any, ...]]:
        for process in state.processes.values():
            for arm, steps in process.arms.items():
                given = self._steps_given.get((process.process, arm), 0)
                if given < len(steps.series):
                    self._steps_given[process.process, arm] = len(steps.series)
                    for row in step_rows(process, arm, given):
                        yield _padded((f"{state.now_s:.3f}", "step", *row))

    def _samples(
        self, record: str, samples: Iterable[Any], indent: int, columns: dict[str, str]
    ) -> Iterator[tuple[Any, ...]]:
        last_s = self._samples_given[record]
        for sample in (sample for sample in samples if sample.t_s > last_s):
            self._samples_given[record] = sample.t_s
            values = (getattr(sample, name) for name in columns.values())
            known = ("" if value is None else value for value in values)
            yield _padded((f"{sample.t_s:.3f}", record, *("",) * indent, *known))


def _padded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row, *("",) * (len(LIVE_COLUMNS) - len(row)))


def _csv(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
