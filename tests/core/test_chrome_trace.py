"""The Chrome trace: every stage once, nested as it was, closed even where its process was killed."""

from __future__ import annotations

import json

from tcompile_tui.core import events as ev
from tcompile_tui.core.chrome_trace import chrome_trace
from tcompile_tui.core.spec import Mode, Phase


def _span(begins: bool, name: str, t_s: float, thread: int = 0) -> ev.CompileSpan:
    stage = ev.CompileStage.INDUCTOR
    return ev.CompileSpan(begins=begins, stage=stage, stage_name=name, thread=thread, t_s=t_s, process=2)


def _trace(*events: ev.Event) -> list[dict[str, object]]:
    started = ev.PhaseStarted(phase=Phase.COLD, mode=Mode.DEFAULT, pid=7, limit_s=1.0, process=2)
    document = chrome_trace([started, *events])
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    entries: list[dict[str, object]] = document["traceEvents"]
    for entry in entries:  # what the format asks of each kind of entry
        assert isinstance(entry["name"], str) and isinstance(entry["pid"], int) and isinstance(entry["tid"], int)
        assert entry["ph"] in {"M", "X", "i"}
        if entry["ph"] != "M":
            assert isinstance(entry["ts"], float) and entry["ts"] >= 0
        if entry["ph"] == "X":
            assert isinstance(entry["dur"], float) and entry["dur"] >= 0
    return entries


def test_the_process_is_named_by_phase_and_mode() -> None:
    (entry,) = _trace()
    assert entry["args"] == {"name": "cold default"}


def test_nested_stages_keep_their_times() -> None:
    inner_spans = (_span(True, "inner", 2.0), _span(False, "inner", 3.0))
    outer, inner = _trace(_span(True, "outer", 1.0), *inner_spans, _span(False, "outer", 5.0))[1:]
    assert (outer["ts"], outer["dur"]) == (1e6, 4e6)
    assert (inner["ts"], inner["dur"]) == (2e6, 1e6)


def test_threads_are_apart_and_a_stray_end_is_ignored() -> None:
    entries = _trace(_span(True, "a", 1.0, thread=1), _span(False, "a", 2.0), _span(False, "a", 4.0, thread=1))[1:]
    assert [(entry["tid"], entry["dur"]) for entry in entries] == [(1, 3e6)]


def test_open_stages_of_a_killed_process_end_with_its_last_record() -> None:
    last = ev.CompilerWarning(logger="x", text="y", t_s=9.0, process=2)
    (entry,) = _trace(_span(True, "endless", 1.0), last)[1:]
    assert entry["dur"] == 8e6


def test_breaks_and_recompiles_are_marks() -> None:
    broken = ev.GraphBreak(compile_id="0/0", file="m.py", line=3, reason="print", t_s=1.0, process=2)
    again = ev.Recompiled(compile_id="0/1", failures=(ev.GuardFailure("x.size(0) == 4"),), t_s=2.0, process=2)
    names = [entry["name"] for entry in _trace(broken, again)[1:]]
    assert names == ["graph break m.py:3", "recompile"]
