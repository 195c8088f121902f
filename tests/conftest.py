"""Shared by all tests: private places for run folders and settings, so that no test touches the user's."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# How long one example takes says how busy the machine is.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


@pytest.fixture(autouse=True)
def _private_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and settings go to temporary folders. Precompiled headers stay shared: they cost 20 s a time."""
    monkeypatch.setenv("TCOMPILE_TUI_RUNS_DIR", str(tmp_path_factory.mktemp("runs")))
    monkeypatch.setenv("TCOMPILE_TUI_CONFIG", str(tmp_path_factory.mktemp("config") / "config.toml"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def sample_models() -> Path:
    return Path(__file__).parent.parent / "sample_models"
