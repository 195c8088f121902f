"""What Setup reads from the disk: files to choose from, completions, facts of a target, last settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcompile_tui.core.spec import Mode
from tcompile_tui.ui import model_files, remembered
from tcompile_tui.ui.model_files import complete, list_entries, shown_path
from tcompile_tui.ui.setup_form import FormValues
from tcompile_tui.ui.target_facts import call_text, look_at, origin_text

SEVERAL = """
from torch import nn

class Encoder(nn.Module):
    def __init__(self, width: int = 8, *, depth=2): ...
    def forward(self, x): ...

class Decoder(nn.Module):
    def forward(self, x, y): ...

class Needy(nn.Module):
    def __init__(self, width): ...
    def forward(self, x): ...

def example_inputs(): ...
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("models/deep", ".hidden", "__pycache__", "venv", "huge", "notes", "empty", "x.egg-info"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "train.py").write_text(SEVERAL)
    (tmp_path / "README.md").touch()
    (tmp_path / "bad\x1bname.py").touch()
    (tmp_path / "models" / "net.py").write_text(SEVERAL)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "notes" / "a.txt").touch()
    for folder in (".hidden", "__pycache__", "venv", "huge", "x.egg-info"):
        (tmp_path / folder / "a.py").touch()
    return tmp_path


def names(folder: Path) -> list[str]:
    return [entry.path.name for entry in list_entries(folder)]


def test_only_folders_that_may_lead_to_a_model_and_python_files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "HUGE_FOLDER_ENTRIES", 50)
    for i in range(50):
        (project / "huge" / f"{i}.png").touch()
    assert names(project) == ["models", "train.py"]
    (project / "huge" / "0.png").unlink()
    assert names(project) == ["huge", "models", "train.py"]


def test_a_folder_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    assert list_entries(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("written", "completed"),
    [
        ("m", "models/"),
        ("models/", "models/deep/"),
        ("models/n", "models/net.py"),
        ("models.n", "models.net:"),
        ("models/net.py:", "models/net.py:Encoder"),
        ("models.net:D", "models.net:Decoder"),
        ("train.py:De", "train.py:Decoder"),
        ("tr", "train.py"),
        ("train.py:Nothing", None),
        ("zzz", None),
        ("", None),
        ("~nobody-of-this-name/", None),
        ("a\0b/", None),
    ],
)
def test_completion_by_one_step(project: Path, written: str, completed: str | None) -> None:
    assert complete(written, project) == completed


def test_paths_as_a_person_would_type_them(tmp_path: Path) -> None:
    assert shown_path(tmp_path / "a" / "b.py", tmp_path) == "a/b.py"
    assert shown_path(tmp_path / "-v.py", tmp_path) == "./-v.py"
    assert shown_path(Path("/x.py"), Path("/a/b/c/d")) == "/x.py"


def test_facts_of_a_file_with_several_models(project: Path) -> None:
    facts = look_at("train.py", project)
    assert facts.problem == "train.py has several models: choose one"
    assert (facts.chosen, facts.path) == (None, project / "train.py")
    assert facts.hooks.example_inputs
    assert [call_text(each) for each in facts.candidates] == [
        "Encoder(width: int = 8, *, depth=2)",
        "Decoder()",
        "Needy(width)",
    ]
    assert origin_text(facts.candidates[0], facts.bases) == "nn.Module, line 4"
    assert facts.target_for(facts.candidates[1]) == "train.py:Decoder"


def test_facts_of_one_model(project: Path) -> None:
    facts = look_at("models.net:Decoder", project)
    assert facts.problem is None
    assert facts.chosen is not None and facts.chosen.name == "Decoder"
    assert facts.path == project / "models" / "net.py"
    assert facts.target_for(facts.candidates[0]) == "models.net:Encoder"


def test_a_model_that_needs_arguments_is_chosen_for_the_form_to_ask_for_them(project: Path) -> None:
    facts = look_at("train.py:Needy", project)
    assert facts.problem is None and len(facts.candidates) == 3
    assert facts.chosen is not None and [each.name for each in facts.chosen.required]


def test_what_only_the_worker_can_see_is_no_problem(project: Path) -> None:
    library = look_at("timm:resnet50", project)
    assert library.problem is None and library.hooks.example_inputs, "it brings its inputs with it"
    assert library.target_for(library.candidates[0]) == "timm:resnet50"
    installed = look_at("torch.nn:LSTM", project)
    assert installed.problem is None and not installed.hooks.example_inputs
    assert origin_text(installed.candidates[0], {}) == "value"


@pytest.mark.parametrize("written", ["", "none.py", ".", "models", "models.no:Net", "a\0b.py", "~nobody-x/a.py"])
def test_what_is_no_model_is_a_problem_and_nothing_raises(project: Path, written: str) -> None:
    assert look_at(written, project).problem


# ---------------------------------------------------------------- last settings


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return remembered.settings_path()


def test_settings_come_back_for_their_file_only(state: Path) -> None:
    values = FormValues("net.py", (("x", "f32[2]"),), modes=(Mode.MAX_AUTOTUNE,), plan="3")
    remembered.remember(Path("/a/net.py"), values)
    remembered.remember(Path("/b/net.py"), FormValues("net.py"))
    assert remembered.recall(Path("/a/net.py")) == values
    assert remembered.recall(Path("/c/net.py")) is None


def test_the_oldest_are_dropped(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_MOST_FILES", 2)
    for name in ("a", "b", "a", "c"):
        remembered.remember(Path(name), FormValues(name))
    kept = [name for name in "abc" if remembered.recall(Path(name)) is not None]
    assert kept == ["a", "c"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"/a.py": {"modes": ["fast"]}}', b'{"/a.py": 3}'])
def test_state_that_cannot_be_read_is_as_good_as_none(state: Path, content: bytes) -> None:
    state.parent.mkdir(parents=True)
    state.write_bytes(content)
    assert remembered.recall(Path("/a.py")) is None
    remembered.remember(Path("/a.py"), FormValues("a.py"))
    assert remembered.recall(Path("/a.py")) == FormValues("a.py")


def test_a_state_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    remembered.remember(Path("/a.py"), FormValues("a.py"))
    assert remembered.recall(Path("/a.py")) is None
