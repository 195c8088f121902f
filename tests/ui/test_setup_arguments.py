"""Constructor arguments in the Setup form: their field, by keys, with a run that is not really started."""

from __future__ import annotations

from pathlib import Path

from textual.widgets import Input

from tests.ui.test_setup import FakeLaunch, command, launched, opened, project, ready, reasons, until

__all__ = ["launched", "project"]  # fixtures

NEEDY = """
from torch import nn

class Net(nn.Module):
    def __init__(self, width: int, act: str = "relu"): ...
    def forward(self, x): ...

def example_inputs(): ...
"""


async def test_constructor_arguments_have_a_field_where_there_are_any(launched: FakeLaunch, tmp_path: Path) -> None:
    (tmp_path / "needy.py").write_text(NEEDY)
    async with opened(str(tmp_path / "needy.py")) as (app, pilot):
        screen = await ready(pilot)
        line = screen.query_one("#arguments-line", Input)
        await until(pilot, lambda: line.parent is not None and screen.query_one("#arguments").display)
        await pilot.press("r")
        await until(pilot, lambda: "arguments" in reasons(screen))
        assert reasons(screen) == {"arguments": "! needed: width: int; write width=VALUE"} and screen.focused is line
        await pilot.press(*"width=8", "enter")
        await until(pilot, lambda: command(app).endswith("needy.py --arg width=8"))
        assert not reasons(screen)
        await pilot.press("r")
        await until(pilot, lambda: launched.calls)
        assert launched.arguments == [str(tmp_path / "needy.py"), "--arg", "width=8"]
