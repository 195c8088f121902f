"""`tcompile-tui report`: formats, files and mistakes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tcompile_tui.cli import main
from tcompile_tui.cli_gate import FAIL_ON
from tcompile_tui.cli_recorded import FORMATS
from tcompile_tui.core.gate import FailOn
from tcompile_tui.report.formats import ReportFormat
from tests.ui.recorded import CONVNET, POINTWISE, recorded_run


def report(*words: str) -> Result:
    return CliRunner().invoke(main, ["report", *words])


def test_the_options_name_what_there_is() -> None:
    assert tuple(format.value for format in ReportFormat) == FORMATS
    assert tuple(what.value for what in FailOn) == FAIL_ON


@pytest.mark.parametrize(
    ("format", "begins"),
    [
        ("text", "ENABLE\n"),
        ("markdown", "### torch.compile: ENABLE"),
        ("json", '{\n  "schema_version": 1,'),
        ("csv", "process,phase,mode,arm,step,step_ns,"),
        ("prometheus", "# HELP tcompile_run_info"),
    ],
)
def test_every_format_goes_to_stdout_or_into_a_file(format: str, begins: str, tmp_path: Path) -> None:
    path = str(recorded_run(POINTWISE, tmp_path).path)
    shown = report(path, "--format", format)
    assert shown.exit_code == 0 and shown.stdout.startswith(begins)
    file = tmp_path / "report"
    written = report(path, "--format", format, "-o", str(file))
    assert written.exit_code == 0 and written.stdout == "" and file.read_text() == shown.stdout


def test_html_is_a_file_like_any_other(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "report.html"
    result = report(str(recorded_run(CONVNET, tmp_path).path), "--format", "html", "-o", str(file))
    assert result.exit_code == 0 and file.read_text().startswith("<!DOCTYPE html>")


def test_the_schema_needs_no_run() -> None:
    assert json.loads(report("--schema").stdout)["title"] == "tcompile-tui report"


def test_mistakes_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(recorded_run(POINTWISE, tmp_path).path)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for words, status, told in (
        ([], 2, "which run?"),
        (["nothing"], 2, "nothing is no run folder"),
        ([path, "--format", "html"], 2, "pip install 'tcompile-tui[report]'"),
        ([path, "--format", "script"], 2, "sample_models/pointwise_chain.py"),
        ([path, "-o", str(tmp_path / "gone" / "file")], 6, "cannot write"),
    ):
        result = report(*words)
        assert result.exit_code == status and told in result.stderr and result.stderr.count("\n") == 1, result.output
