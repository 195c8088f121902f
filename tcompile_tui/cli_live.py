"""`run --metrics-textfile` and `run --csv`: what is measured, in files that others follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from tcompile_tui.cli_shared import fail

if TYPE_CHECKING:
    from tcompile_tui.core.state import RunState
    from tcompile_tui.host.supervisor import Finished

_EVERY_S = 1.0


def live_options(function: Any) -> Any:
    options = [
        click.option("--metrics-textfile", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.prom", help="Write what is measured as Prometheus metrics, anew each second, for node_exporter's textfile collector; at the end the verdict's."),
        click.option("--csv", "csv_path", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write every step's time and every sample of GPU and host as CSV, about once a second; units are in the column names."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


class LiveFiles:
    """A file that cannot be written any more is given up and told at the end: measuring goes on."""

    def __init__(self, metrics: Path | None, series: Path | None) -> None:
        """Leaves with status 2 where one cannot be written from the start."""
        from tcompile_tui.host.run_folder import write_atomically
        from tcompile_tui.report.live_series import LiveSeries

        self._problems: list[str] = []
        self._metrics, self._series, self._rows = metrics, series, LiveSeries()
        self._next_s = 0.0
        try:
            if metrics is not None:
                write_atomically(metrics, b"")
            if series is not None:
                series.write_text(self._rows.head())
        except OSError as error:
            fail(f"cannot write {error.filename}: {error.strerror}; give another place", 2)

    def update(self, state: RunState) -> None:
        """Call as often as you like."""
        now_s = monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + _EVERY_S
        self._write(state, metrics=self._live_metrics)

    def finish(self, finished: Finished, silent: bool) -> None:
        """The last rows; the metrics become those of the verdict."""
        from tcompile_tui.host.recorded import reported_run
        from tcompile_tui.report.prometheus import prometheus_text

        run = reported_run(finished.folder, finished.state, finished.verdict)
        self._write(finished.state, metrics=lambda state: prometheus_text(run))
        if not silent:
            for problem in self._problems:
                click.echo(f"warning: {problem}", err=True)

    @staticmethod
    def _live_metrics(state: RunState) -> str:
        from tcompile_tui.report.live_metrics import live_metrics_text

        return live_metrics_text(state)

    def _write(self, state: RunState, metrics: Callable[[RunState], str]) -> None:
        from tcompile_tui.host.run_folder import write_atomically

        if self._metrics is not None:
            try:
                write_atomically(self._metrics, metrics(state).encode("utf-8", "backslashreplace"))
            except OSError as error:
                self._problems.append(f"{self._metrics} is not written any more: {error.strerror}")
                self._metrics = None
        if self._series is not None:
            try:
                with self._series.open("a", encoding="utf-8") as file:
                    file.write(self._rows.more(state))
            except OSError as error:
                self._problems.append(f"{self._series} is not written any more: {error.strerror}")
                self._series = None
