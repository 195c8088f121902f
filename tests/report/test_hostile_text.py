"""Whatever a model, a file name or a recorded run holds, what is printed of it does nothing to the terminal."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from tcompile_tui.cli import main
from tcompile_tui.core import events as ev
from tcompile_tui.core.literal import escaped, literal, one_line
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import decide
from tcompile_tui.report.progress import ProgressLine
from tcompile_tui.report.text import verdict_text
from tests.core.streams import replay
from tests.hostile import HOSTILE, PAYLOADS, found_in, poisoned
from tests.ui.recorded import TWO_BREAKS, write_run
from tests.ui.replaying import recorded_events
from tests.ui.verdict_cases import failing


@given(st.text())
def test_no_text_comes_through_with_a_control_character(text: str) -> None:
    for safe in (literal(text), one_line(text), escaped(text), literal(text, ascii_only=True)):
        assert not found_in(safe)
        safe.encode("utf-8")
    assert "\n" not in one_line(text) + escaped(text)
    assert literal(text, ascii_only=True).isascii()


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S"), max_codepoint=0x2FF)))
def test_plain_text_comes_through_as_it_is(text: str) -> None:
    assert literal(text) == escaped(text) == text


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_sequence_goes_as_a_whole_and_leaves_what_is_around_it(name: str) -> None:
    shown = literal(f"before{PAYLOADS[name]}after")
    assert shown.startswith("before") and shown.endswith("after") and not found_in(shown)
    assert "owned" not in shown or name == "eight bits", "the argument of a sequence is none of the text"
    assert "cm0g" not in shown


def _hostile_run(path: Path) -> Path:
    return write_run(path, map(poisoned, recorded_events(TWO_BREAKS)), command=HOSTILE, device_name=HOSTILE).path


def test_the_commands_print_a_hostile_run_harmlessly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCOMPILE_TUI_RUNS_DIR", str(tmp_path))
    name = HOSTILE.replace("\0", "").replace("/", "")
    first, second = _hostile_run(tmp_path / name), _hostile_run(tmp_path / "b")
    for command in (["decide", str(first)], ["compare", str(first), str(second)], ["runs"], ["decide", HOSTILE]):
        done = CliRunner().invoke(main, command)
        assert done.output and not found_in(done.output), command
        assert "[bold red]" in done.output, "literally"


def test_the_error_of_a_hostile_model_is_one_harmless_line() -> None:
    state = replay(failing(Phase.EAGER, "model", message=f"{HOSTILE}\nsecond line", file=f"{HOSTILE}.py"))
    assert not found_in(verdict_text(state, decide(state)))


def test_the_progress_line_shows_hostile_names_harmlessly() -> None:
    state, stream = RunState(), io.StringIO()
    state.apply(ev.PhaseStarted(process=1, phase=Phase.COLD, mode=Mode.DEFAULT, pid=1, limit_s=1))
    state.apply(ev.FrameStarted(process=1, compile_id="0/0", function=HOSTILE, file=HOSTILE, line=1))
    span = ev.CompileSpan(begins=True, stage=ev.CompileStage.KERNELS, stage_name=HOSTILE, compile_id="0/0")
    state.apply(ev.stamp(span, 1.0, 1))
    state.apply(ev.Notice(level=ev.Level.WARNING, code="x", text=HOSTILE))
    ProgressLine(stream).update(state)
    assert "[bold red]" in stream.getvalue() and not found_in(stream.getvalue())


def test_hostile_names_in_a_cache_are_listed_with_escapes(tmp_path: Path) -> None:
    cache = tmp_path / "torchinductor_me"
    (cache / "fxgraph").mkdir(parents=True)
    (cache / os.fsdecode(b"\x1b]52;c;x\x07\n\xff")).touch()
    command = ["caches", "--dir", str(cache), "--runs-dir", str(tmp_path / "runs")]
    shown = CliRunner().invoke(main, command).output
    assert not found_in(shown) and "\\x1b]52;c;x\\x07\\n" in shown
    names = json.loads(CliRunner().invoke(main, [*command, "--json"]).output)
    assert names, "for programs the names are what they are"
