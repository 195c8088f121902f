"""Bad input of each kind is one clear line in the form: while it is written, or after the run that it ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from tcompile_tui.core.spec import Phase
from tcompile_tui.core.verdict import Decision, ExitCode, verdict_of
from tcompile_tui.ui.screens.setup import SetupScreen
from tests.core.streams import replay
from tests.ui.screen_app import ScreenApp, screen_text
from tests.ui.test_setup import opened, project, ready, reasons, title, until  # noqa: F401 (a fixture)
from tests.ui.verdict_cases import CASES, app_for, failing, text_of

# As the worker says it: what came to nothing, its fault, and the exit code.
_CODE = "--inputs batch.pt holds objects beside tensors, whose code would run when they are loaded: save a tuple"
FAILURES = {
    "dtype": ("Input type (long int) and bias type (float) should be the same", "model", ExitCode.EAGER_FAILS),
    "channels": ("expected input[2, 5, 16, 16] to have 3 channels, but got 5 instead", "model", ExitCode.EAGER_FAILS),
    "index": ("index out of range in self", "model", ExitCode.EAGER_FAILS),
    "argument": ("the inputs do not fit forward(ids, scale): missing 'scale'", "input", ExitCode.BAD_INPUT),
    "unpicklable": ("cannot load --inputs batch.pt (torch.save did not write it)", "input", ExitCode.BAD_INPUT),
    "code": (_CODE, "input", ExitCode.BAD_INPUT),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_what_ended_the_run_is_one_line(kind: str) -> None:
    message, fault, exit_code = FAILURES[kind]
    verdict = verdict_of(replay(failing(Phase.EAGER, fault, message=f"{message}\nand more")))
    assert (verdict.decision, verdict.exit_code) == (Decision.FAILED, exit_code)
    assert message in verdict.headline and "\n" not in verdict.headline


@pytest.mark.parametrize("kind", ["channels", "code"])
async def test_it_goes_back_to_the_form(kind: str, tmp_path: Path) -> None:
    message, fault, _ = FAILURES[kind]
    app = app_for(replay(failing(Phase.EAGER, fault, message=message)), tmp_path)
    await text_of(app, "r")
    assert message in app.complaint


@pytest.mark.parametrize("decision", [Decision.SKIP, Decision.CANNOT_COMPILE])
async def test_what_no_input_can_mend_is_not_held_against_the_form(decision: Decision, tmp_path: Path) -> None:
    app = app_for(CASES[decision](), tmp_path)
    await text_of(app, "r")
    assert app.led_to and app.complaint == ""


async def test_the_line_stands_in_the_form_until_something_is_changed(project: Path) -> None:  # noqa: F811
    line = FAILURES["channels"][0]
    app = ScreenApp(lambda: SetupScreen("sample_models/mlp.py", line))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await ready(pilot)
        await until(pilot, lambda: reasons(screen))
        assert reasons(screen) == {"target": f"! {line}"} and "correct what is marked" in title(app)
        await pilot.pause()
        assert "! expected input[2, 5, 16, 16]" in screen_text(app)
        screen.query_one("InputRows Input", Input).value = "float32[4,512]"
        await until(pilot, lambda: not reasons(screen))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("flot32[2,3,8,8]", "unknown dtype 'flot32'"),
        ("int64[2,3]<9,1>", "range"),
        ("float32[2,3", "write it as float32[8,3,224,224]"),
    ],
)
@pytest.mark.usefixtures("project")
async def test_an_input_that_cannot_be_is_said_while_it_is_written(written: str, said: str) -> None:
    async with opened("sample_models/convnet.py") as (_, pilot):
        screen = await ready(pilot)
        await until(pilot, lambda: screen.query("InputRows Input"))
        screen.query_one("InputRows Input", Input).value = written
        await until(pilot, lambda: reasons(screen))
        assert said in reasons(screen)["input images"]
