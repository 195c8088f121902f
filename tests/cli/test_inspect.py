"""`tcompile-tui inspect` as a person or a script sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tcompile_tui.cli import main
from tcompile_tui.core.inspect_json import (
    CandidateDocument,
    InputsDocument,
    InspectDocument,
    decode_inspection,
)
from tcompile_tui.core.inspection import Check, InputSource, InspectedInput
from tcompile_tui.host import inspection
from tcompile_tui.host.inspection import Inspected, InspectRequest
from tcompile_tui.host.interpreter import InterpreterError

NET = CandidateDocument("Net\x1b[31m", 3, "class", "width=2", (), None)
FOUND = InputsDocument(InputSource.PROPOSED, Check.META, (InspectedInput("x", "float32[8,3]", "from Linear(3, 4)"),))


def ran(monkeypatch: pytest.MonkeyPatch, answer: InspectDocument | Exception, *arguments: str) -> Result:
    def answers(request: InspectRequest, stop: Any) -> Inspected:
        if isinstance(answer, Exception):
            raise answer
        return Inspected(answer)

    monkeypatch.setattr(inspection, "inspect_target", answers)
    return CliRunner().invoke(main, ["inspect", *arguments])


def test_a_proposal_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    result = ran(monkeypatch, InspectDocument("net.py", candidates=(NET,), inputs=FOUND), "net.py")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "  tcompile-tui run net.py --input 'x=float32[8,3]'" in result.stdout.splitlines()


def test_json_has_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    document = InspectDocument("net.py", candidates=(NET,), inputs=FOUND, problem="told")
    result = ran(monkeypatch, document, "net.py", "--json")
    assert decode_inspection(result.stdout_bytes) == document


@pytest.mark.parametrize(
    ("answer", "arguments", "status", "words"),
    [
        (InspectDocument("net.py", candidates=(NET,), problem="it hangs"), [], 2, "it hangs"),
        (InterpreterError("no Python with torch"), [], 4, "no Python with torch"),
        (InterpreterError("no such file"), ["--python", "/nowhere"], 2, "no such file"),
        (OSError("disk full"), [], 6, "disk full"),
    ],
)
def test_without_inputs_the_status_and_one_line_tell(
    monkeypatch: pytest.MonkeyPatch, answer: Any, arguments: list[str], status: int, words: str
) -> None:
    result = ran(monkeypatch, answer, "net.py", *arguments)
    assert result.exit_code == status
    assert [line for line in result.stderr.splitlines() if line.startswith("error: ")] == [
        f"error: {result.stderr.strip()[7:]}"
    ]
    assert words in result.stderr


def test_bad_targets_and_assignments_are_refused(tmp_path: Path) -> None:
    for arguments in (["a b"], ["net.py", "--env", "x"]):
        result = CliRunner().invoke(main, ["inspect", *arguments])
        assert result.exit_code == 2 and result.stderr.startswith("error: ")
