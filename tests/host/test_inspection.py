"""Inspecting a file in a real worker process, whatever the file does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tcompile_tui.core.inspect_json import InspectDocument, decode_inspection, encode_inspection
from tcompile_tui.core.inspection import Check, InputSource
from tcompile_tui.core.spec import parse_arguments, parse_target
from tcompile_tui.host import inspection
from tcompile_tui.host.inspection import Inspected, InspectRequest, inspect_target
from tcompile_tui.host.stopping import Stop, StopRequest
from tcompile_tui.report.inspection import inspection_text

NET = """
import torch
from torch import nn

print("{'kind': 'inputs_inspected'}")

class Net(nn.Module):
    def __init__(self, width: int = 16):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3)

    def forward(self, x: torch.Tensor, flag: bool = False):
        return self.stem(x)
"""


def inspected(folder: Path, code: str, stop: StopRequest | None = None, limit_s: float = 100.0) -> Inspected:
    (folder / "net.py").write_text(code)
    return inspect_target(InspectRequest(parse_target("net.py"), folder, limit_s=limit_s), stop or StopRequest())


def test_a_model_is_built_and_tried_in_a_worker(tmp_path: Path) -> None:
    found = inspected(tmp_path, NET)
    document = found.document
    assert document.problem is None and document.chosen == "Net"
    assert document.model is not None and document.model.parameters == 3 * 16 * 9 + 16
    assert document.inputs is not None
    assert (document.inputs.source, document.inputs.check) == (InputSource.PROPOSED, Check.CPU)
    assert [str(each) for each in document.proposed] == ["x=float32[8,3,224,224]"]
    assert "inputs_inspected" in found.output_tail
    assert decode_inspection(encode_inspection(document)) == document
    text = inspection_text(document)
    assert "x=float32[8,3,224,224]  from Conv2d(3, 16)" in text
    assert "tcompile-tui run net.py --input 'x=float32[8,3,224,224]'" in text
    assert "flag: bool = False" in text and "448, 1.75 KiB of float32" in text


def test_constructor_arguments_are_given_as_for_a_run(tmp_path: Path) -> None:
    code = NET.replace("width: int = 16", "width: int")
    assert "needs values for width: int" in inspection_text(inspected(tmp_path, code).document)
    arguments = parse_arguments(["width=16"])
    found = inspect_target(
        InspectRequest(parse_target("net.py"), tmp_path, arguments=arguments, limit_s=100.0), StopRequest()
    )
    assert found.document.problem is None and found.document.model is not None
    text = inspection_text(found.document)
    assert "needs values" not in text and "tcompile-tui run net.py --arg width=16 --input" in text


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import not_there\n", ["the module 'not_there'", "net.py:1"]),
        ("import os\nos.kill(os.getpid(), 11)\n", ["importing the file", "SIGSEGV"]),
        (NET.replace("super().__init__()", "raise ValueError('no [b]')"), ["ValueError: no [b]", "net.py:9"]),
    ],
    ids=["import", "crash", "build"],
)
def test_what_goes_wrong_is_one_line(tmp_path: Path, code: str, words: list[str]) -> None:
    problem = inspected(tmp_path, code + (NET if "Net" not in code else "")).document.problem
    assert problem is not None and "\n" not in problem
    assert all(word in problem for word in words), problem


def test_a_file_that_hangs_is_ended_at_the_limit(tmp_path: Path) -> None:
    document = inspected(tmp_path, NET + "\nimport time; time.sleep(1000)\n", limit_s=1).document
    assert document.problem is not None and document.problem.startswith("importing ")
    assert document.problem.endswith("not finished in 1 s, the time for an inspection (--limit)")
    assert document.chosen == "Net" and document.model is None


def test_it_stops_on_request(tmp_path: Path) -> None:
    stop = StopRequest()
    stop.raise_to(Stop.ABANDON)
    problem = inspected(tmp_path, NET, stop).document.problem
    assert problem is not None and problem.endswith("stopped on request")


def test_it_stops_when_whoever_asked_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parents = iter([os.getppid()])
    monkeypatch.setattr(inspection.os, "getppid", lambda: next(parents, 1))
    problem = inspected(tmp_path, "import time; time.sleep(1000)\n" + NET).document.problem
    assert problem is not None and problem.endswith("stopped on request")


def test_a_target_that_names_no_model_still_shows_what_there_is(tmp_path: Path) -> None:
    document = inspected(tmp_path, NET.replace("width: int = 16", "width: int, depth=2")).document
    assert document.problem is not None and "width: int" in document.problem
    (candidate,) = document.candidates
    assert (candidate.name, candidate.missing) == ("Net", ("width: int",))
    assert "needs values for width: int" in inspection_text(document)


def test_a_file_that_is_not_there_is_the_problem(tmp_path: Path) -> None:
    document = inspect_target(InspectRequest(parse_target("gone.py"), tmp_path), StopRequest()).document
    assert document == InspectDocument(target="gone.py", problem=document.problem)
    assert document.problem is not None and "gone.py" in document.problem
