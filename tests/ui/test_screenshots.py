"""The README's pictures: each scene can still be drawn, and each picture that is linked is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from screenshots.make_screenshots import CHECKOUT, SCENES, Scene
from tests.ui.screen_app import screen_text

SHOWS = {
    "setup": ("ResNet18()", "[x] reduce-overhead", "tcompile-tui run convnet.py", "--planned-hours 6"),
    "run": ("warm reduce-overhead", "eager and compiled", "pairs", "H200"),
    "verdict": ("it pays off here", 'model.compile(mode="reduce-overhead")', "4 findings"),
    "finding": ("graph break:", "two_breaks.py:18  in forward", "> 18", "what to do"),
    "run-80x24": ("cold reduce-overhead", "code generation"),
    "verdict-80x24": ("it pays off here", "paid back after"),
}


@pytest.mark.parametrize("scene", SCENES, ids=[scene.name for scene in SCENES])
async def test_a_scene_shows_what_the_readme_says(scene: Scene, tmp_path: Path) -> None:
    async with scene.show(scene.size, tmp_path) as app:
        text = screen_text(app)
        assert app.size == scene.size
    for part in SHOWS[scene.name]:
        assert part in text, text


def test_each_linked_picture_is_one_of_the_scenes_and_is_there() -> None:
    readme = CHECKOUT / "README.md"
    links = re.findall(r"\]\((screenshots/[^)]+)\)", readme.read_text(encoding="utf-8"))
    assert len(links) == len(SCENES)
    for link in links:
        assert (CHECKOUT / link).is_file(), link
        assert Path(link).stem in SHOWS
