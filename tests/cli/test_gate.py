"""The gate on recorded runs: status, stderr, JSON and JUnit."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from click.testing import CliRunner, Result

from tcompile_tui.cli import main
from tests.ui.recorded import CONVNET, POINTWISE, TWO_BREAKS, recorded_run


def decide(path: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["decide", str(path), *words])


@pytest.mark.parametrize(
    ("words", "refused", "held"),
    [
        (["--fail-on", "graph-breaks"], TWO_BREAKS, POINTWISE),
        (["--fail-on", "recompiles"], TWO_BREAKS, POINTWISE),
        (["--fail-on", "slower"], TWO_BREAKS, POINTWISE),
        (["--fail-on", "cudagraph-skips"], POINTWISE, CONVNET),
        (["--min-speedup", "1.6"], CONVNET, POINTWISE),
        (["--max-cold-start", "12"], CONVNET, POINTWISE),
    ],
)
def test_status_and_reasons(words: list[str], refused: str, held: str, tmp_path: Path) -> None:
    failed = decide(recorded_run(refused, tmp_path).path, *words)
    name = words[-1] if words[0] == "--fail-on" else words[0].removeprefix("--")
    assert failed.exit_code == 10 and f"gate: {name}: " in failed.stderr
    passed = decide(recorded_run(held, tmp_path).path, *words)
    assert passed.exit_code == 0 and passed.stderr == f"gate: passed (measured, {name})\n"


def test_a_baseline_of_another_model_cannot_be_compared(tmp_path: Path) -> None:
    convnet, pointwise = (recorded_run(name, tmp_path).path for name in (CONVNET, POINTWISE))
    assert decide(convnet, "--baseline", str(convnet)).exit_code == 0
    failed = decide(pointwise, "--baseline", str(convnet))
    assert failed.exit_code == 10 and "model: sample_models/convnet.py" in failed.stderr
    assert "is no run folder" in decide(convnet, "--baseline", "nothing").stderr


def test_json_names_the_conditions(tmp_path: Path) -> None:
    path = recorded_run(TWO_BREAKS, tmp_path).path
    document = json.loads(decide(path, "--json", "--fail-on", "recompiles", "--max-cold-start", "60").stdout)
    assert document["exit_code"] == 10 and document["gate"]["passed"] is False
    names = [(check["name"], check["passed"]) for check in document["gate"]["checks"]]
    assert names == [("measured", False), ("recompiles", False), ("max-cold-start", False)]
    assert json.loads(decide(path, "--json").stdout)["gate"] is None


def test_junit_has_a_case_for_every_condition(tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    path = recorded_run(CONVNET, tmp_path).path
    result = decide(path, "--fail-on", "slower", "--max-cold-start", "5", "--junit", str(file))
    assert result.exit_code == 10
    suite = Xml.parse(file).getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "0")
    assert [case.get("name") for case in suite] == ["decision", "measured", "slower", "max-cold-start"]
    (failure,) = suite.iter("failure")
    assert "a cold start takes 15.8 s" in (failure.get("message") or "") and "reduce-overhead" in (failure.text or "")


def test_a_run_that_is_cut_short_is_an_error_and_its_conditions_are_skipped(tmp_path: Path) -> None:
    folder = recorded_run(POINTWISE, tmp_path)
    lines = folder.events.read_text().splitlines(keepends=True)
    folder.events.write_text("".join(lines[:6]))
    file = tmp_path / "gate.xml"
    result = decide(folder.path, "--fail-on", "slower", "--junit", str(file))
    suite = Xml.parse(file).getroot()[0]
    assert result.exit_code == 5 and (suite.get("errors"), suite.get("skipped"), suite.get("failures")) == (
        "1",
        "2",
        "0",
    )


def test_junit_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path = recorded_run(POINTWISE, tmp_path).path
    result = decide(path, "--junit", str(tmp_path / "gone" / "gate.xml"))
    assert result.exit_code == 0 and "error: cannot write" in result.stderr


def test_compare_s_gate_refuses_what_cannot_be_compared(tmp_path: Path) -> None:
    paths = [str(recorded_run(name, tmp_path).path) for name in (CONVNET, POINTWISE)]
    result = CliRunner().invoke(main, ["compare", *paths, "--gate"])
    assert result.exit_code == 10 and f"gate: {POINTWISE}: {CONVNET} cannot be compared with" in result.stderr
    assert CliRunner().invoke(main, ["compare", *paths]).exit_code == 0
