"""The comparison as text and as JSON, on runs recorded on an H200."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tcompile_tui.cli import main
from tests.ui.recorded import CONVNET, POINTWISE, TRANSFORMER, recorded_run


def compare(*words: str, status: int = 0) -> str:
    result = CliRunner().invoke(main, ["compare", *words])
    assert result.exit_code == status, result.output
    return result.output


def test_the_table_fits_a_terminal_and_has_every_mode(tmp_path: Path) -> None:
    paths = [str(recorded_run(name, tmp_path).path) for name in (CONVNET, TRANSFORMER)]
    text = compare(*paths)
    assert max(map(len, text.splitlines())) <= 79
    assert "convnet.py" in text and "transformer" in text and "do not measure the same thing" in text
    assert "reduce-overhead\n" in text and "cold start" in text


def test_a_run_against_itself_is_no_regression_and_a_gate_lets_it_pass(tmp_path: Path) -> None:
    path = str(recorded_run(CONVNET, tmp_path).path)
    assert "no change beyond the intervals" in compare(path, path, "--gate")


def test_json_has_one_comparison_for_each_run_after_the_first(tmp_path: Path) -> None:
    paths = [str(recorded_run(name, tmp_path).path) for name in (CONVNET, TRANSFORMER, POINTWISE)]
    first, second = json.loads(compare(*paths, "--json"))
    assert first["before"] == second["before"] == CONVNET and second["after"] == POINTWISE
    assert first["same_question"] is False and first["regression"] is False
    assert second["differences"]["device"][0] == "NVIDIA H200"
    assert second["per_mode"]["reduce-overhead"]["speedups"][1] is None


def test_one_run_alone_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    path = str(recorded_run(CONVNET, tmp_path).path)
    assert "two runs or more" in compare(path, status=2)
    assert "is no run folder" in compare(path, "nothing-like-it", status=2)
