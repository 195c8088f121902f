"""config.toml: what it sets, and that what is wrong in it is named and harms nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.config import CONFIG_VARIABLE, KEYS, Config, config_path, load_config
from tcompile_tui.core.spec import Mode, Preset
from tcompile_tui.paths import RUNS_VARIABLE, default_runs_dir


def read(text: str, folder: Path) -> Config:
    path = folder / "config.toml"
    path.write_text(text)
    return load_config(path)


def test_every_key_is_read(tmp_path: Path) -> None:
    config = read(
        """
        theme = "nord"
        ascii = true
        runs_dir = "~/runs"
        python = "/opt/env/bin/python"
        modes = ["max-autotune", "default"]
        preset = "quick"
        device = "cuda:1"
        planned_hours = 6
        """,
        tmp_path,
    )
    assert config.problems == ()
    assert (config.theme, config.ascii, config.python) == ("nord", True, "/opt/env/bin/python")
    assert config.runs_dir == Path("~/runs").expanduser()
    assert config.modes == (Mode.DEFAULT, Mode.MAX_AUTOTUNE), "cheapest first"
    assert (config.preset, config.device, config.planned_hours) == (Preset.QUICK, "cuda:1", 6.0)


def test_without_a_file_nothing_is_set(tmp_path: Path) -> None:
    config = load_config(tmp_path / "none.toml")
    assert config.problems == () and all(getattr(config, key) is None for key in KEYS)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("thme = 'nord'", ["thme", "unknown key", "theme"]),
        ("preset = 'fast'", ["preset", "'fast'", "quick"]),
        ("modes = ['default', 'turbo']", ["modes", "'turbo'", "reduce-overhead"]),
        ("modes = []", ["modes", "list of modes"]),
        ("modes = [['default']]", ["modes"]),
        ("device = 'tpu'", ["device", "'tpu'"]),
        ("planned_hours = 0", ["planned_hours", "0", "above 0"]),
        ("planned_hours = nan", ["planned_hours", "nan"]),
        ("planned_steps = 1.5", ["planned_steps", "whole number"]),
        ("planned_steps = true", ["planned_steps", "True"]),
        ("runs_dir = 'runs'", ["runs_dir", "whole path"]),
        ("ascii = 'yes'", ["ascii", "true nor false"]),
        ("theme = 3", ["theme", "3", "quotes"]),
        ("[theme]\nname = 'nord'", ["theme", "quotes"]),
        ("[colours]\nx = 1", ["colours", "unknown key"]),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_the_rest_counts(line: str, parts: list[str], tmp_path: Path) -> None:
    config = read(f"python = 'python3'\n\n{line}\n", tmp_path)
    (problem,) = config.problems
    assert problem.startswith(f"{tmp_path / 'config.toml'}, line 3: ") and "\n" not in problem
    assert all(part in problem for part in parts), problem
    assert config.python == "python3"
    assert all(getattr(config, key) is None for key in KEYS if key != "python")


def test_both_plans_are_refused_together(tmp_path: Path) -> None:
    config = read("planned_steps = 5\nplanned_hours = 2", tmp_path)
    assert "line 2" in config.problems[0] and "not both" in config.problems[0]
    assert config.planned_steps is None and config.planned_hours is None


@pytest.mark.parametrize(("content", "part"), [(b"theme = \n", "line 1"), (b"\xff\xfe", "UTF-8")])
def test_a_file_that_is_no_toml_is_one_problem(content: bytes, part: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(content)
    (problem,) = load_config(tmp_path / "config.toml").problems
    assert str(tmp_path / "config.toml") in problem and part in problem


@given(st.text())
def test_no_text_raises(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        assert isinstance(load_config(path), Config)


def test_the_places_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text(f"runs_dir = '{tmp_path / 'kept'}'")
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "mine.toml"))
    assert config_path() == tmp_path / "mine.toml"
    monkeypatch.delenv(RUNS_VARIABLE)
    assert default_runs_dir() == tmp_path / "kept"
    monkeypatch.setenv(RUNS_VARIABLE, str(tmp_path / "elsewhere"))
    assert default_runs_dir() == tmp_path / "elsewhere"
