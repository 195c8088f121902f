"""Themes: from config.toml or the palette, remembered, and never in the way of a start."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from tcompile_tui.config import Config, load_config
from tcompile_tui.ui.app import TCompileApp
from tcompile_tui.ui.themes import memory_path, remember_theme, starting_theme
from tests.ui.screen_app import screen_text


def app_with(config: Config, tmp_path: Path) -> TCompileApp:
    return TCompileApp(tmp_path / "runs", config=config)


async def theme_of(config: Config, tmp_path: Path) -> str:
    app = app_with(config, tmp_path)
    async with app.run_test() as pilot:
        await pilot.pause()
        return app.theme


async def test_config_names_the_theme(tmp_path: Path) -> None:
    assert await theme_of(Config(tmp_path, theme="ansi-dark"), tmp_path) == "ansi-dark"
    assert await theme_of(Config(tmp_path), tmp_path) == "textual-dark"
    assert not memory_path().exists() or starting_theme(Config(tmp_path)) is None, "a start alone is no choice"


async def test_a_choice_in_the_palette_is_remembered_until_config_changes_its_mind(tmp_path: Path) -> None:
    config = Config(tmp_path, theme="nord")
    app = app_with(config, tmp_path)
    async with app.run_test() as pilot:
        await pilot.press("ctrl+t")
        await pilot.press(*"gruvbox")
        await pilot.pause(0.3)
        await pilot.press("down", "enter")
        await pilot.pause(0.1)
        assert app.theme == "gruvbox"
    assert await theme_of(config, tmp_path) == "gruvbox"
    assert await theme_of(Config(tmp_path, theme="dracula"), tmp_path) == "dracula"


def test_the_environment_stands_above_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    remember_theme("gruvbox", Config(tmp_path))
    assert starting_theme(Config(tmp_path)) == "gruvbox"
    monkeypatch.setenv("TEXTUAL_THEME", "nord")
    assert starting_theme(Config(tmp_path, theme="dracula")) is None


@pytest.mark.parametrize("content", [b"", b"gruvbox", b"\xff\xff\n\n", b"no such theme\n\n"])
async def test_a_damaged_memory_is_no_obstacle(content: bytes, tmp_path: Path) -> None:
    memory_path().parent.mkdir(parents=True, exist_ok=True)
    memory_path().write_bytes(content)
    assert await theme_of(Config(tmp_path), tmp_path) == "textual-dark"


async def test_what_is_wrong_in_config_is_told_and_the_app_opens(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("theme = 'pink'\nspeed = 3\n")
    app = app_with(load_config(path), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause(0.1)
        told = "\n".join(note.message for note in app._notifications)
        assert "line 1: theme: 'pink' is none of" in told and "line 2: speed: unknown key" in told
        assert "Does torch.compile pay off?" in screen_text(app)


async def test_q_quits_setup_and_is_a_letter_in_a_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = app_with(Config(tmp_path), tmp_path)
    async with app.run_test() as pilot:
        for _ in range(200):
            if app.screen.query("#target-line"):
                break
            await pilot.pause(0.02)
        await pilot.pause(0.1)
        await pilot.press("slash", "q")
        assert app.screen.query_one("#target-line", Input).value == "q" and app.is_running
        await pilot.press("escape", "q")
        await pilot.pause()
    assert app.return_code == 0
