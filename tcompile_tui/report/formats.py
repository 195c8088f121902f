"""The formats of a report, one function for all."""

from __future__ import annotations

import enum
from pathlib import Path

from tcompile_tui.core.reported_run import ReportedRun


class ReportFormat(str, enum.Enum):
    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    SCRIPT = "script"
    CSV = "csv"
    PROMETHEUS = "prometheus"

    @property
    def file_name(self) -> str:
        """Under which it is saved in the run folder."""
        return _FILE_NAMES[self]


_FILE_NAMES = {
    ReportFormat.TEXT: "report.txt",
    ReportFormat.MARKDOWN: "report.md",
    ReportFormat.HTML: "report.html",
    ReportFormat.JSON: "report.json",
    ReportFormat.SCRIPT: "reproduce.py",
    ReportFormat.CSV: "steps.csv",
    ReportFormat.PROMETHEUS: "metrics.prom",
}


class MissingLibraryError(Exception):
    """A library that only one format needs is not installed; the message says how to get it."""


def render(run: ReportedRun, format: ReportFormat, folder: Path | None = None) -> str:
    """`folder` is named in the text. Each format's code is imported when it is asked for: plotting is heavy.

    Raises SpecError where a script cannot be written, MissingLibraryError for html.
    """
    if format is ReportFormat.TEXT:
        from tcompile_tui.report.text import verdict_text

        return verdict_text(run.state, run.verdict, folder)
    if format is ReportFormat.MARKDOWN:
        from tcompile_tui.report.markdown import markdown_text

        return markdown_text(run)
    if format is ReportFormat.HTML:
        from tcompile_tui.report.html import html_page

        return html_page(run)
    if format is ReportFormat.JSON:
        from tcompile_tui.report.document import report_json

        return report_json(run)
    if format is ReportFormat.SCRIPT:
        from tcompile_tui.report.script import script_text

        return script_text(run)
    if format is ReportFormat.CSV:
        from tcompile_tui.report.series import series_csv

        return series_csv(run.state)
    from tcompile_tui.report.prometheus import prometheus_text

    return prometheus_text(run)
