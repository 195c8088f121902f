"""Shared by all tests: private places for run folders, so that no test touches the user's."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _private_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs go to a temporary folder. Precompiled headers stay shared: they cost 20 s a time."""
    monkeypatch.setenv("TCOMPILE_TUI_RUNS_DIR", str(tmp_path_factory.mktemp("runs")))


@pytest.fixture
def sample_models() -> Path:
    return Path(__file__).parent.parent / "sample_models"
