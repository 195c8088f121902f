"""Help is made of the screen's own commands and its text."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tcompile_tui.ui.commands import Command, CommandScreen, commands_of
from tcompile_tui.ui.screens.help import HelpScreen
from tests.ui.screen_app import ScreenApp, screen_text


class Example(CommandScreen[None]):
    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("x,slash", "nothing", "Ex", "Does [b]nothing[/b]"),
        Command("z", "hidden", "Zed", "Cannot be done now"),
    )
    HELP = "What this screen shows.\nterm   what the term means"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "hidden"


async def test_it_lists_keys_and_explains_terms() -> None:
    app = ScreenApp(Example)
    async with app.run_test() as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        text = screen_text(app)
    assert "What this screen shows." in text
    assert "x /" in text and "Does [b]nothing[/b]" in text
    assert "term  what the term means" in text
    assert "Keys and numbers of this screen" in text  # a command of the application
    assert "Cannot be done now" not in text


@pytest.mark.parametrize("key", ["escape", "q", "question_mark"])
async def test_it_closes(key: str) -> None:
    app = ScreenApp(Example)
    async with app.run_test() as pilot:
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press(key)
        assert isinstance(app.screen, Example)


@pytest.mark.parametrize("size", [(40, 12), (1, 1)])
async def test_it_is_drawn_at_any_size(size: tuple[int, int]) -> None:
    app = ScreenApp(Example)
    async with app.run_test(size=size) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)


async def test_a_key_of_the_screen_hides_the_application_s_command_on_it() -> None:
    class Asks(CommandScreen[None]):
        SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
            Command("q,ctrl+q", "ask", "Quit", "Leave, after a question"),
        )

    for screen, quits in ((Example, ["app.quit"]), (Asks, ["ask"])):
        app = ScreenApp(screen)
        async with app.run_test() as pilot:
            await pilot.pause()
            assert [each.action for each in commands_of(app.screen, app) if each.label == "Quit"] == quits
