"""Proposed inputs in the Setup form, with an inspector that is not really started."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tcompile_tui.core.inspect_json import InputsDocument, InspectDocument, encode_inspection
from tcompile_tui.core.inspection import Check, InputSource, InspectedInput
from tcompile_tui.ui import inspecting
from tcompile_tui.ui.inspecting import InspectError, RowProposal, answer_for
from tcompile_tui.ui.screens.setup import SetupScreen
from tcompile_tui.ui.setup_form import InputRow
from tcompile_tui.ui.widgets import setup_choices
from tests.ui.screen_app import screen_text
from tests.ui.test_setup import FakeLaunch, SetupApp, command, launched, opened, project, ready, reasons, until

__all__ = ["launched", "project"]  # fixtures

IDS = InspectedInput("ids", "int64[8,64]<0,999>", "from Embedding(999, 16)")
MASK = InspectedInput("mask", "bool[8,64]", "from its name")


def document(*arguments: InspectedInput, problem: str | None = None, **changes: Any) -> InspectDocument:
    inputs = InputsDocument(changes.pop("source", InputSource.PROPOSED), Check.META, arguments)
    return InspectDocument("several.py:Encoder", inputs=inputs, problem=problem)


class FakeInspector:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Path]] = []
        self.answer: asyncio.Future[InspectDocument] | None = None
        self.cancelled = 0

    async def __call__(self, target: str, cwd: Path, arguments: Sequence[str] = ()) -> InspectDocument:
        self.calls.append((target, cwd))
        self.arguments = arguments
        self.answer = asyncio.get_running_loop().create_future()
        try:
            return await self.answer
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


@pytest.fixture
def inspector(monkeypatch: pytest.MonkeyPatch) -> FakeInspector:
    fake = FakeInspector()
    monkeypatch.setattr(inspecting, "inspect", fake)
    return fake


async def asked(pilot: Pilot[None], inspector: FakeInspector) -> asyncio.Future[InspectDocument]:
    """`i` was pressed, and the inspector is at work."""
    before = len(inspector.calls)
    await pilot.press("i")
    await until(pilot, lambda: len(inspector.calls) > before)
    assert inspector.answer is not None
    return inspector.answer


def lines(screen: SetupScreen) -> dict[str, Input]:
    rows = screen.query_one("InputRows")
    return dict(zip(("ids", "mask"), rows.query(Input), strict=True))


async def test_a_proposal_is_shown_as_such_and_enter_takes_all_of_it(
    inspector: FakeInspector, launched: FakeLaunch, project: Path
) -> None:
    async with opened("several.py:Encoder") as (app, pilot):
        screen = await ready(pilot)
        answer = await asked(pilot, inspector)
        assert inspector.calls == [("several.py:Encoder", project)]
        await until(pilot, lambda: "trying the model ... (i stops it)" in screen_text(app))
        answer.set_result(document(IDS, MASK))
        await until(pilot, lambda: "proposed, tried on meta: enter takes it" in screen_text(app))
        await until(pilot, lambda: "proposed: int64[8,64]<0,999>" in screen_text(app))
        assert "from Embedding(999, 16): enter takes it" in screen_text(app)
        assert command(app) == "tcompile-tui run several.py:Encoder", "nothing is taken silently"
        await pilot.press("enter")
        await until(pilot, lambda: "as proposed" in screen_text(app))
        assert command(app).endswith("--input 'ids=int64[8,64]<0,999>' --input 'mask=bool[8,64]'")
        await pilot.press("r")
        await until(pilot, lambda: launched.calls)
        assert launched.arguments == ["several.py:Encoder", "--input", f"{IDS}", "--input", f"{MASK}"]
        assert reasons(screen) == {}


async def test_r_does_not_run_with_a_proposal_that_was_not_taken(
    inspector: FakeInspector, launched: FakeLaunch
) -> None:
    async with opened("several.py:Encoder") as (_, pilot):
        screen = await ready(pilot)
        (await asked(pilot, inspector)).set_result(document(IDS))
        await until(pilot, lambda: screen.focused is lines(screen)["ids"])
        await pilot.press("escape", "r")
        await until(pilot, lambda: reasons(screen))
        assert reasons(screen) == {"input ids": "! only proposed so far: enter takes it"}
        assert launched.calls == []
        await pilot.press("enter", "r")
        await until(pilot, lambda: launched.calls)


async def test_what_is_written_stays(inspector: FakeInspector) -> None:
    async with opened("several.py:Encoder") as (app, pilot):
        screen = await ready(pilot)
        lines(screen)["ids"].value = "int64[2,5]"
        (await asked(pilot, inspector)).set_result(document(IDS, MASK))
        await until(pilot, lambda: screen.focused is lines(screen)["mask"])
        await pilot.press("enter")
        await until(pilot, lambda: lines(screen)["mask"].value == "bool[8,64]")
        assert lines(screen)["ids"].value == "int64[2,5]"
        (await asked(pilot, inspector)).set_result(document(IDS, MASK))
        await until(pilot, lambda: "all inputs are written" in screen_text(app))


async def test_someone_who_writes_is_not_moved_away(inspector: FakeInspector) -> None:
    async with opened("several.py:Encoder") as (app, pilot):
        screen = await ready(pilot)
        answer = await asked(pilot, inspector)
        plan = screen.query_one("#plan-line", Input)
        plan.focus()
        await pilot.press("4")
        answer.set_result(document(IDS))
        await until(pilot, lambda: "proposed: int64" in screen_text(app))
        assert screen.focused is plan and plan.value == "4"


async def test_i_waits_for_the_file_and_again_stops(inspector: FakeInspector) -> None:
    async with opened("several.py:Encoder") as (app, pilot):
        await pilot.press("i")  # before the form is there
        await until(pilot, lambda: inspector.calls)
        await until(pilot, lambda: "trying the model" in screen_text(app))
        await pilot.press("i")
        await until(pilot, lambda: inspector.cancelled == 1)
        await until(pilot, lambda: "as forward takes them" in screen_text(app))
        assert len(inspector.calls) == 1


@pytest.mark.parametrize("how", ["another target", "another screen"])
async def test_it_ends_when_it_is_left(inspector: FakeInspector, how: str) -> None:
    async with opened("several.py:Encoder") as (app, pilot):
        screen = await ready(pilot)
        await asked(pilot, inspector)
        if how == "another target":
            await pilot.press("slash", "x")
        else:
            app.switch_screen(SetupScreen(None))
        await until(pilot, lambda: inspector.cancelled == 1)
        if how == "another target":
            await until(pilot, lambda: "trying the model" not in screen_text(app))
            assert app.screen is screen


async def test_a_failure_is_one_line_in_the_form_and_literal(inspector: FakeInspector) -> None:
    async with opened("several.py:Encoder", size=(120, 36)) as (app, pilot):
        await ready(pilot)
        (await asked(pilot, inspector)).set_exception(InspectError("no [bold]torch[/] here"))
        await until(pilot, lambda: "! no [bold]torch[/] here" in screen_text(app))
        (await asked(pilot, inspector)).set_result(document(problem="found none that fits"))
        await until(pilot, lambda: "! found none that fits" in screen_text(app))


async def test_without_a_model_it_says_what_is_missing(inspector: FakeInspector) -> None:
    async with opened() as (_, pilot):
        screen = await ready(pilot)
        await pilot.press("i")
        await until(pilot, lambda: reasons(screen))
        assert "choose a file" in reasons(screen)["target"] and inspector.calls == []


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
def test_picture(
    inspector: FakeInspector, size: tuple[int, int], snap_compare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup_choices, "device_options", lambda: setup_choices.DEVICES)
    app = SetupApp(Path("runs"), target="several.py:Encoder", ascii_only=False)

    async def propose(pilot: Pilot[None]) -> None:
        await ready(pilot)
        (await asked(pilot, inspector)).set_result(document(IDS, MASK))
        await until(pilot, lambda: "proposed: int64" in screen_text(app))
        line = app.focused
        assert isinstance(line, Input)
        line.cursor_blink = False
        await pilot.pause(0.2)

    assert snap_compare(app, terminal_size=size, run_before=propose)


# ---------------------------------------------------------------- answers


ROWS = (InputRow("ids", "", True), InputRow("mask", "", False))


def test_a_row_without_name_takes_all_inputs() -> None:
    answer = answer_for(document(IDS, MASK), (InputRow("", "", True),), {})
    assert answer.proposals == {
        "": RowProposal("ids=int64[8,64]<0,999> mask=bool[8,64]", "from Embedding(999, 16); from its name")
    }


def test_inputs_of_the_file_are_no_proposal() -> None:
    answer = answer_for(document(IDS, source=InputSource.FILE), ROWS, {})
    assert answer.proposals == {} and not answer.failed
    assert answer.summary == "from example_inputs(): ids=int64[8,64]<0,999>; tried on meta"


def test_inputs_of_the_file_that_fail_are_a_failure() -> None:
    answer = answer_for(document(IDS, source=InputSource.FILE, problem="a forward with them fails"), ROWS, {})
    assert (answer.summary, answer.failed) == ("a forward with them fails", True)


# ---------------------------------------------------------------- the process that answers


def _stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Instead of this program."""
    script = tmp_path / "python"
    script.write_text(f"#!{sys.executable}\n{code}\n")
    script.chmod(0o755)
    monkeypatch.setattr(inspecting.sys, "executable", str(script))


async def test_the_answer_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = document(IDS)
    (tmp_path / "answer.json").write_bytes(encode_inspection(expected))
    arguments = ["-m", "tcompile_tui", "inspect", "--json", "a.py"]
    code = f"import sys\nassert sys.argv[1:] == {arguments}\nprint(open('answer.json').read())"
    _stands_in(tmp_path, monkeypatch, code)
    assert await inspecting.inspect("a.py", tmp_path) == expected


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit('warning: x\\nerror: no torch')", "no torch"),
        ("print('{}')", "gave no answer"),
        ("", "gave no answer"),
    ],
)
async def test_no_answer_is_an_error_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    _stands_in(tmp_path, monkeypatch, code)
    with pytest.raises(InspectError, match=words):
        await inspecting.inspect("a.py", tmp_path)


async def test_the_process_ends_with_its_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stands_in(tmp_path, monkeypatch, "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)")
    task = asyncio.create_task(inspecting.inspect("a.py", tmp_path))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    pid = (tmp_path / "pid").read_text()
    for _ in range(200):
        state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False).stdout
        if state.strip() in ("", "Z"):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it is still there")
