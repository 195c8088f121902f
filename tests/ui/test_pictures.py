"""Pictures of the screens. Those of Run, Verdict, Caches and the proposed inputs stand beside these screens' tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ui.scenes import SCENES, Scene


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_picture(
    scene: Scene, size: tuple[int, int], tmp_path: Path, snap_compare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = scene.make(tmp_path, monkeypatch)
    assert snap_compare(app, terminal_size=size, run_before=lambda pilot: scene.lead(app, pilot))
