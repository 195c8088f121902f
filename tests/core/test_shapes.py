"""What a replayed sequence of shapes makes of the verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.codec import decode_event
from tcompile_tui.core.replay import Replay
from tcompile_tui.core.shape_results import shape_results
from tcompile_tui.core.shape_spec import ShapeHandling, ShapeSequence
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, Verdict, decide
from tcompile_tui.report.document import report_json, report_schema
from tcompile_tui.report.html import html_page
from tcompile_tui.report.markdown import markdown_text
from tcompile_tui.report.text import verdict_text
from tests.report.reported import reported

from .shape_streams import AUTOMATIC, DYNAMIC, EAGER_STEP_MS, PADDED, SEQUENCE, STATIC, shapes_run
from .streams import Compiled, both, eager_process, replay


def _ids(verdict: Verdict) -> list[str]:
    return [finding.id for finding in verdict.findings]


def test_the_sequence_decides_and_its_best_setting_is_what_to_paste() -> None:
    verdict = decide(shapes_run([replace(AUTOMATIC, speedup=1.3), DYNAMIC, STATIC, PADDED]))
    assert verdict.decision is Decision.ENABLE_WITH_CARE and verdict.exit_code == 0
    assert verdict.headline.startswith("default with dynamic=True runs at 1.45x (")
    assert "24 batches of 5 shapes (T 7 to 100)" in verdict.headline
    assert verdict.paste_line == "model.compile(dynamic=True)"
    assert "shapes-best" in _ids(verdict)


def test_a_row_has_what_compiling_cost_and_the_planned_run_in_all() -> None:
    results = shape_results(shapes_run(steps=100_000))
    assert results is not None
    row = results.row(ShapeHandling.AUTOMATIC)
    assert row is not None and row.compile_s is not None and row.total_s is not None and row.step_ms is not None
    assert row.graphs == 2 and row.recompiles == 1 and row.compiled_batches == 2 and not row.limit_hit
    assert row.compile_s == pytest.approx(20.0, abs=0.01) and row.compile_s_each == pytest.approx(10.0, abs=0.01)
    assert row.step_ms == pytest.approx(EAGER_STEP_MS / 1.5, rel=0.01)
    assert row.total_s == pytest.approx(22.0 + 100_000 * row.step_ms / 1e3), "with the import of the compiler"
    assert results.eager_total_s == pytest.approx(400.0)


def test_a_recompile_limit_is_a_finding_and_never_the_best_where_another_settles() -> None:
    verdict = decide(shapes_run([AUTOMATIC, DYNAMIC, replace(STATIC, speedup=3.0), PADDED]))
    assert verdict.shapes is not None and verdict.shapes.best is ShapeHandling.AUTOMATIC
    hit = next(finding for finding in verdict.findings if finding.id == "shapes-recompile-limit")
    assert hit.title.startswith("dynamic=False: the recompile limit") and hit.evidence == "expected 7, actual 9"
    only = decide(shapes_run([replace(STATIC, handling=ShapeHandling.AUTOMATIC, speedup=3.0)]))
    assert only.decision is Decision.TEST_CAREFULLY and "recompile limit" in only.headline


def test_where_no_setting_pays_off_eager_is_the_answer() -> None:
    slow = decide(shapes_run([replace(AUTOMATIC, speedup=0.9), replace(DYNAMIC, speedup=0.8)]))
    assert slow.decision is Decision.SKIP and slow.paste_line is None
    assert "no setting of dynamic beats eager" in slow.headline
    short = decide(shapes_run(steps=1_000))
    assert short.decision is Decision.SKIP, "1,000 steps of 4 ms do not pay for 10 s of compiling"


def test_shapes_that_compile_each_time_they_come_are_no_answer() -> None:
    late = replace(AUTOMATIC, late=(1, 3), pairs=12)
    verdict = decide(shapes_run([late]))
    assert verdict.decision is Decision.TEST_CAREFULLY and "shapes-compile-again" in _ids(verdict)
    results = shape_results(shapes_run([late]))
    assert results is not None and results.rows[0].late_compiles == 2


def test_a_gain_that_cannot_be_told_from_none_is_none() -> None:
    verdict = decide(shapes_run([replace(AUTOMATIC, speedup=1.001)], steps=10**9))
    assert verdict.decision is Decision.TEST_CAREFULLY and "cannot be told from none" in verdict.headline
    few = decide(shapes_run([replace(AUTOMATIC, pairs=4)]))
    assert few.decision is Decision.TEST_CAREFULLY and "too little was compared" in few.headline


def test_padding_is_offered_with_its_condition_and_never_pasted() -> None:
    verdict = decide(shapes_run([AUTOMATIC, DYNAMIC, STATIC, replace(PADDED, speedup=2.5)]))
    assert verdict.paste_line == "model.compile()"
    padding = next(finding for finding in verdict.findings if finding.id == "shapes-padding")
    assert padding.title.startswith("padding T to 9, 30, 64 or 100 would save") and "mask" in padding.advice
    assert "shapes-padding" not in _ids(decide(shapes_run()))


def test_a_setting_that_fails_is_named_and_the_others_count() -> None:
    failing = DYNAMIC.process()[:3]
    state = shapes_run([AUTOMATIC])
    failure = ev.WorkerFailed(stage="steps", error_type="ValueError", message="no symbol", fault="compiler")
    for event in [*failing, failure]:
        state.apply(ev.stamp(event, 9.0, 9))
    verdict = decide(state)
    assert verdict.decision is Decision.ENABLE_WITH_CARE
    failed = [finding for finding in verdict.findings if finding.id == "shapes-setting-failed"]
    assert any(each.title.startswith("dynamic=True") and "no symbol" in each.evidence for each in failed)


def test_a_sequence_that_was_not_replayed_is_said_so() -> None:
    verdict = decide(shapes_run([]))
    assert verdict.shapes is None and verdict.decision is Decision.ENABLE and "shapes-not-replayed" in _ids(verdict)
    assert not [each for each in _ids(decide(replay(eager_process(), *both(Compiled())))) if "shapes" in each]


def test_wrong_outputs_come_before_any_speed() -> None:
    from .streams import leaf

    state = shapes_run()
    wrong = replay(eager_process(), *both(Compiled(output=leaf(0.3))), *[s.process() for s in (AUTOMATIC, DYNAMIC)])
    assert state.run is not None
    wrong.run = state.run
    verdict = decide(wrong)
    assert verdict.decision is Decision.TEST_CAREFULLY and "outputs differ" in verdict.headline


# ---------------------------------------------------------------- records


def test_records_come_back_as_they_were_sent() -> None:
    event = ev.ReplayStarted(handling=ShapeHandling.PADDED, sequence=SEQUENCE)
    assert decode_event(ev.encode_event(event)) == event


@pytest.mark.parametrize(
    "sequence",
    [ShapeSequence(("B",), ((1,),), ()), ShapeSequence(("B",), ((1, 2),), (0,)), ShapeSequence((), (), (3,))],
)
def test_a_forged_sequence_is_no_replay(sequence: ShapeSequence) -> None:
    state = shapes_run([])
    state.apply(ev.stamp(AUTOMATIC.process()[0], 9.0, 9))
    state.apply(ev.stamp(ev.ReplayStarted(handling=ShapeHandling.STATIC, sequence=sequence), 9.0, 9))
    assert state.processes[9].replay is None
    assert state.run is not None
    state.run = replace(state.run, spec=replace(state.run.spec, shapes=sequence))
    assert decide(state).shapes is None


def test_a_ratio_weighs_every_batch_by_its_time() -> None:
    replayed = Replay(ev.ReplayStarted(handling=ShapeHandling.DYNAMIC, sequence=SEQUENCE))
    replayed.pairs = [(100, 50), (1_000, 1_000)] * 5
    assert replayed.ratio is not None and replayed.ratio.value == pytest.approx(1_100 / 1_050)
    assert replayed.ratio.lo is not None and replayed.ratio.lo < 1_100 / 1_050


# ---------------------------------------------------------------- reports


@pytest.fixture
def state() -> RunState:
    return shapes_run([AUTOMATIC, DYNAMIC, STATIC])


def test_the_text_has_the_table_in_eighty_columns(state: RunState) -> None:
    text = verdict_text(state, decide(state))
    assert max(map(len, text.splitlines())) <= 79
    rows = {line.split()[0]: line for line in text.splitlines() if line.startswith("  dynamic=") or "padded  " in line}
    assert {"dynamic=None*", "dynamic=True", "dynamic=False", "padded"} <= set(rows)
    assert "4 (limit)" in rows["dynamic=False"] and rows["padded"].split()[-1] == "n/a"
    assert "a promise of correctness" in " ".join(text.split())


def test_every_format_has_the_table(state: RunState) -> None:
    run = reported(state)
    document = json.loads(report_json(run))
    jsonschema.Draft202012Validator(json.loads(report_schema())).validate(document)
    shapes = document["verdict"]["shapes"]
    assert shapes["best"] == "automatic" and shapes["settings"]["static"]["recompile_limit_hit"]
    assert shapes["settings"]["padded"]["step_ms"] is None and shapes["padded_to"] == {"T": [9, 30, 64, 100]}
    assert "| dynamic=True | 1 | 0 | 12.0 s |" in markdown_text(run)
    assert "<th>dynamic=None*</th>" in html_page(run)
