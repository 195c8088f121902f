"""What people take away: each format on recorded runs, on runs that ended early, and with hostile text."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tcompile_tui.core import events as ev
from tcompile_tui.core.data_spec import DataSpec
from tcompile_tui.core.spec import Arm, Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.step_spec import FileFunction
from tcompile_tui.core.verdict import Decision
from tcompile_tui.report.document import report_json, report_schema
from tcompile_tui.report.markdown import code, markdown_text, prose
from tcompile_tui.report.prometheus import prometheus_text
from tcompile_tui.report.series import series_csv
from tests.core.streams import Compiled, both, done, eager_process, replay, started
from tests.core.test_fit_batch import fitted_run
from tests.report.reported import HOSTILE, hostile, recorded, reported
from tests.ui.recorded import CONVNET, POINTWISE, TRANSFORMER, TWO_BREAKS
from tests.ui.verdict_cases import CASES

# ---------------------------------------------------------------- json


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    document = json.loads(report_schema())
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


@pytest.mark.parametrize("name", [CONVNET, TRANSFORMER, POINTWISE, TWO_BREAKS])
def test_the_document_of_a_recorded_run_is_as_its_schema_says(
    name: str, schema: jsonschema.Draft202012Validator, tmp_path: Path
) -> None:
    document = json.loads(report_json(recorded(name, tmp_path)))
    schema.validate(document)
    assert document["run"] == name and document["environment"]["device"] == document["verdict"]["device"]


@pytest.mark.parametrize("decision", list(CASES))
def test_so_is_that_of_every_decision(decision: Decision, schema: jsonschema.Draft202012Validator) -> None:
    document = json.loads(report_json(reported(CASES[decision]())))
    schema.validate(document)
    assert document["verdict"]["decision"] == decision.value


def test_so_is_that_of_a_run_whose_loader_was_timed(schema: jsonschema.Draft202012Validator) -> None:
    timed = ev.LoaderTimed(batches=100, batch_ns=20e6, workers=4, samples=8)
    loader = [started(Phase.LOADER), timed, *done(Phase.LOADER)]
    data = DataSpec(loader=FileFunction("data.py", "loader"))
    run = reported(replay(eager_process(), loader, *both(Compiled(speedup=1.8)), data=data))
    schema.validate(json.loads(report_json(run)))
    assert "| data a step | 20.0 ms |" in markdown_text(run) and "| end to end | 1.000x |" in markdown_text(run)


def test_so_is_that_of_a_run_that_found_the_largest_batches(schema: jsonschema.Draft202012Validator) -> None:
    run = reported(fitted_run(speedup=1.001))
    schema.validate(json.loads(report_json(run)))
    assert "| largest batch | 96 (9,591 samples/s) |" in markdown_text(run)


def test_the_schema_refuses_what_it_does_not_name(schema: jsonschema.Draft202012Validator) -> None:
    document = json.loads(report_json(reported(CASES[Decision.ENABLE]())))
    document["verdict"]["per_mode"]["default"]["more"] = 1
    assert not schema.is_valid(document)


# ---------------------------------------------------------------- markdown


def test_markdown_has_the_answer_first_and_the_rest_folded(tmp_path: Path) -> None:
    text = markdown_text(recorded(CONVNET, tmp_path))
    assert text.startswith("### torch.compile: ENABLE for `sample_models/convnet.py`\n")
    assert '```python\nmodel.compile(mode="reduce-overhead")\n```' in text
    assert "| speedup | 1.50x | 3.69x |\n| &nbsp;&nbsp;95 % | 1.47x to 1.54x | 3.60x to 3.78x |" in text
    assert text.index("| speedup |") < text.index("<details>")
    assert text.count("<details>") == text.count("</details>") >= 3
    assert "| device | `NVIDIA H200` |" in text and "| forward: Inductor | 3.17 s | 2.69 s |" in text


def test_findings_have_place_and_advice_and_notes_are_folded(tmp_path: Path) -> None:
    text = markdown_text(recorded(TWO_BREAKS, tmp_path))
    assert "- **advice** `tests/data/models/two_breaks.py:16`: graph break: Failed to trace builtin operator" in text
    assert '<br>`print("after the first layer")`' in text
    assert text.index("**note**") > text.index("<summary>Notes</summary>") > text.index("**advice**")


def inline_tokens(text: str) -> list[Token]:
    blocks = MarkdownIt("commonmark").enable("table").parse(text)
    assert all(block.content.startswith(("<details>", "</details>")) for block in blocks if block.type == "html_block")
    return [token for block in blocks for token in block.children or ()]


def test_markdown_takes_nothing_for_markup() -> None:
    run = hostile()
    text = markdown_text(run)
    tokens = inline_tokens(text)
    assert {token.content for token in tokens if token.type == "html_inline"} == {"<br>", "<!-- -->"}
    assert {token.type for token in tokens} <= {"text", "code_inline", "html_inline", "strong_open", "strong_close",
                                                "softbreak", "text_special"}  # fmt: skip
    plain = HOSTILE.replace("\x1b", "")
    spans = {token.content for token in tokens if token.type == "code_inline"}
    assert {f"{plain}.py", f"/x/{plain}.py:7", plain, f"{plain}, 1 parameters"} <= spans
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a_b", "`a_b`"), ("`a`", "`` `a` ``"), ("a``b", "```a``b```"), ("a|b", "`a|b`"), ("two\nlines", "`two lines`")],
)
def test_code_spans_hold_anything(text: str, expected: str) -> None:
    assert code(text) == expected


def test_prose_is_readable_where_it_needs_no_escape() -> None:
    assert prose("ran at 1.5x (1.4x to 1.6x); fine: 10 %") == "ran at 1.5x (1.4x to 1.6x); fine: 10 %"
    assert prose("a *b* <c>") == r"a \*b\* \<c\>"


# ---------------------------------------------------------------- series and metrics


def test_csv_has_a_row_for_every_step(tmp_path: Path) -> None:
    run = recorded(POINTWISE, tmp_path)
    rows = list(csv.DictReader(series_csv(run.state).splitlines()))
    assert len(rows) == sum(len(arm.series) for p in run.state.processes.values() for arm in p.arms.values())
    eager = [row for row in rows if row["phase"] == "eager"]
    arm = next(iter(run.state.processes.values())).arms[Arm.EAGER]
    assert [int(row["step"]) for row in eager] == list(range(len(arm.series)))
    assert [int(row["step_ns"]) for row in eager[1:]] == list(arm.series.slice(1))
    assert sum(row["warm_up"] == "1" for row in eager) == arm.warmup_steps
    assert any(row["compiler_active"] == "1" for row in rows if row["phase"] == "cold")


_SAMPLE = re.compile(r'[a-z_]+\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\} -?[0-9.e+-]+')


@pytest.mark.parametrize("make", [hostile, lambda: reported(RunState())])
def test_metrics_are_in_the_text_format(make: Callable[[], object]) -> None:
    lines = prometheus_text(make()).splitlines()  # type: ignore[arg-type]
    samples = [line for line in lines if not line.startswith("# ")]
    assert all(_SAMPLE.fullmatch(line) for line in samples), lines
    assert samples[0].startswith("tcompile_run_info{")


def test_metrics_have_every_mode_and_base_units(tmp_path: Path) -> None:
    text = prometheus_text(recorded(CONVNET, tmp_path))
    labels = 'target="sample_models/convnet.py",mode="reduce-overhead"'
    assert f"tcompile_compiled_step_seconds{{{labels}}} 0.00036" in text
    assert f"tcompile_graph_breaks{{{labels}}} 0.0" in text
    assert text.count("# TYPE tcompile_speedup_ratio gauge\n") == 1 and "n/a" not in text and "None" not in text


def test_hostile_is_hostile() -> None:
    assert HOSTILE in hostile().target and any(f.id == "graph-break" for f in hostile().verdict.findings)
