"""Finding the worker's Python, among real venvs with a torch that must not be imported."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tcompile_tui.host import interpreter
from tcompile_tui.host.interpreter import InterpreterError, find_interpreter, release_of

Environment = dict[str, str]


@dataclass(frozen=True)
class Venv:
    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def packages(self) -> Path:
        major, minor = sys.version_info[:2]
        return self.folder / "lib" / f"python{major}.{minor}" / "site-packages"


MakeVenv = Callable[..., Venv]


@pytest.fixture
def make_venv(tmp_path: Path) -> MakeVenv:
    """A venv with this version of torch. The package cannot be imported, so nothing here may try."""

    def make(name: str, torch: str | None = None, metadata_only: bool = False) -> Venv:
        made = Venv(tmp_path / name)
        venv.create(made.folder, with_pip=False, symlinks=True)
        if torch is not None:
            (made.packages / "torch").mkdir()
            (made.packages / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')")
            info = made.packages / "torch-9.9.9.dist-info"
            info.mkdir()
            metadata = torch if metadata_only else "9.9.9"
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {metadata}\n")
            if not metadata_only:
                text = f"__all__ = ['__version__', 'debug']\n__version__ = '{torch}'\ndebug = False\n"
                (made.packages / "torch" / "version.py").write_text(text)
        return made

    return make


@pytest.fixture
def bare(make_venv: MakeVenv, monkeypatch: pytest.MonkeyPatch) -> Venv:
    """Our own interpreter has no torch, as after `pipx install`."""
    own = make_venv("own")
    monkeypatch.setattr(sys, "executable", own.python)
    return own


def script(path: Path, body: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def why_not(asked: str | None, environment: Environment | None = None) -> str:
    with pytest.raises(InterpreterError) as caught:
        find_interpreter(asked, environment or {})
    message = str(caught.value)
    assert "\n" not in message
    return message


# ---------------------------------------------------------------- where it is looked for


def test_our_own_comes_first(make_venv: MakeVenv, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = make_venv("own", "2.8.0+cu128"), make_venv("other", "2.9.0")
    monkeypatch.setattr(sys, "executable", own.python)
    found = find_interpreter(None, {"VIRTUAL_ENV": str(other.folder)})
    assert (found.executable, found.torch_version) == (own.python, "2.8.0+cu128")
    assert found.why == "the Python that runs tcompile-tui"
    assert found.python_version == ".".join(map(str, sys.version_info[:3]))


def test_what_is_asked_for_comes_before_all(make_venv: MakeVenv, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = make_venv("own", "2.8.0"), make_venv("other", "2.9.0")
    monkeypatch.setattr(sys, "executable", own.python)
    found = find_interpreter(other.python, {})
    assert (found.executable, found.why) == (other.python, "--python")


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_then_the_active_environment(bare: Venv, make_venv: MakeVenv, variable: str) -> None:
    active = make_venv("active", "2.7.1")
    found = find_interpreter(None, {variable: str(active.folder), "PATH": f"{bare.folder}/bin"})
    assert (found.executable, found.why) == (active.python, f"${variable}")


def test_then_python_on_path(bare: Venv, make_venv: MakeVenv) -> None:
    one = make_venv("one", "2.7.1")
    found = find_interpreter(None, {"VIRTUAL_ENV": str(bare.folder), "PATH": f"/nowhere:{one.folder}/bin"})
    assert (found.executable, found.why) == (one.python, "python on PATH")


def test_a_shim_on_path_is_seen_through(bare: Venv, make_venv: MakeVenv, tmp_path: Path) -> None:
    one = make_venv("one", "2.7.1")
    script(tmp_path / "shims" / "python", f'exec "{one.python}" "$@"')
    assert find_interpreter(None, {"PATH": str(tmp_path / "shims")}).executable == one.python


def test_an_asked_for_wrapper_is_kept(make_venv: MakeVenv, tmp_path: Path) -> None:
    wrapper = script(tmp_path / "wrapper", f'exec "{make_venv("one", "2.7.1").python}" "$@"')
    assert find_interpreter(wrapper, {}).executable == wrapper


def test_a_too_old_torch_is_passed_over(bare: Venv, make_venv: MakeVenv) -> None:
    old, new = make_venv("old", "2.5.1"), make_venv("new", "2.6.0")
    found = find_interpreter(None, {"VIRTUAL_ENV": str(old.folder), "PATH": f"{new.folder}/bin"})
    assert found.executable == new.python


def test_nothing_found(bare: Venv) -> None:
    message = why_not(None, {"PATH": "/nowhere"})
    assert "pip install torch" in message and "--python /path/to/env/bin/python" in message


def test_only_a_too_old_torch_found(bare: Venv, make_venv: MakeVenv) -> None:
    old = make_venv("old", "2.5.1")
    message = why_not(None, {"VIRTUAL_ENV": str(old.folder)})
    assert f"torch 2.5.1 in {old.python} is too old: 2.6 or newer is needed" in message


# ---------------------------------------------------------------- how torch is found


def test_ngc_builds_count_by_release(make_venv: MakeVenv) -> None:
    ngc = make_venv("ngc", "2.6.0a0+ecf3bae40a.nv25.01")
    assert find_interpreter(ngc.python, {}).torch_version == "2.6.0a0+ecf3bae40a.nv25.01"


def test_the_metadata_serve_without_a_version_file(make_venv: MakeVenv) -> None:
    assert find_interpreter(make_venv("a", "2.7.0", metadata_only=True).python, {}).torch_version == "2.7.0"


def test_the_users_pythonpath_counts(make_venv: MakeVenv) -> None:
    empty, full = make_venv("empty"), make_venv("full", "2.7.0")
    assert find_interpreter(empty.python, {"PYTHONPATH": str(full.packages)}).executable == empty.python


def test_the_working_directory_does_not(make_venv: MakeVenv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    assert "has no torch" in why_not(make_venv("empty").python)


def test_a_folder_named_torch_is_no_torch(make_venv: MakeVenv) -> None:
    empty = make_venv("empty")
    (empty.packages / "torch").mkdir()
    assert "has no torch" in why_not(empty.python)


def test_noise_on_stdout_does_not_matter(make_venv: MakeVenv) -> None:
    noisy = make_venv("noisy", "2.7.0")
    (noisy.packages / "noise.pth").write_text("import sys; print('{welcome}')\n")
    assert find_interpreter(noisy.python, {}).torch_version == "2.7.0"


@pytest.mark.parametrize(
    ("version", "release"),
    [("2.6.0a0+df5bbc0", (2, 6)), ("2.13.0+cpu", (2, 13)), ("2.10", (2, 10)), ("3", (3, 0))],
)
def test_release_of(version: str, release: tuple[int, int]) -> None:
    assert release_of(version) == release


def test_release_of_something_else() -> None:
    with pytest.raises(ValueError, match="'main' is no version"):
        release_of("main")


# ---------------------------------------------------------------- what --python refuses


def test_no_such_file() -> None:
    assert why_not("/nowhere/python") == "--python /nowhere/python: there is no such file"
    assert why_not("pythonn", {"PATH": "/nowhere"}).endswith("no such file here or on PATH")


def test_a_name_is_looked_up_on_path(make_venv: MakeVenv) -> None:
    one = make_venv("one", "2.7.0")
    assert find_interpreter("python", {"PATH": f"{one.folder}/bin"}).executable == one.python


def test_not_executable(tmp_path: Path) -> None:
    plain = tmp_path / "python"
    plain.write_text("")
    assert why_not(str(plain)) == f"--python {plain} is not executable"


def test_a_folder(make_venv: MakeVenv) -> None:
    one = make_venv("one")
    assert why_not(str(one.folder)).endswith(f"did you mean {one.python}?")


def test_no_python(tmp_path: Path) -> None:
    message = why_not(script(tmp_path / "python", "echo hello; echo 'bad thing' >&2; exit 3"))
    assert "is no working Python (exit status 3: bad thing)" in message


def test_no_program_at_all(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    assert "cannot be run" in why_not(str(broken))


def test_an_old_python(make_venv: MakeVenv) -> None:
    old = make_venv("old", "2.7.0")
    pretend = "import sys; sys.version_info = (3, 9, 18, 'final', 0); sys.version = '3.9.18 (main)'"
    (old.packages / "old.pth").write_text(f"{pretend}\n")
    assert why_not(old.python) == f"Python 3.9.18 in {old.python} is too old: 3.10 or newer is needed"


def test_no_torch(make_venv: MakeVenv) -> None:
    empty = make_venv("empty")
    assert (
        why_not(empty.python) == f"{empty.python} has no torch: install it with `{empty.python} -m pip install torch`"
    )


def test_an_old_torch(make_venv: MakeVenv) -> None:
    old = make_venv("old", "2.5.1")
    assert why_not(old.python) == f"torch 2.5.1 in {old.python} is too old: 2.6 or newer is needed"


def test_one_that_hangs_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_PROBE_TIMEOUT_S", 0.3)
    hanging = script(tmp_path / "python", "sleep 61.125 & wait")
    started = time.monotonic()
    assert "did not answer within 0.3 s" in why_not(hanging, {"PATH": os.environ["PATH"]})
    assert time.monotonic() - started < 10
    assert subprocess.run(["pgrep", "-f", "^sleep 61.125"], capture_output=True).stdout == b""


# ---------------------------------------------------------------- activation


def test_a_venv_is_activated(make_venv: MakeVenv) -> None:
    one = make_venv("one", "2.7.0")
    found = find_interpreter(one.python, {"PATH": f"/usr/bin:{one.folder}/bin:/bin", "VIRTUAL_ENV": "/other"})
    assert found.environment_updates == {
        "VIRTUAL_ENV": str(one.folder),
        "PATH": f"{one.folder}/bin:/usr/bin:/bin",
    }


def test_an_active_venv_needs_nothing(make_venv: MakeVenv) -> None:
    one = make_venv("one", "2.7.0")
    environment = {"PATH": f"{one.folder}/bin:/usr/bin", "VIRTUAL_ENV": str(one.folder)}
    assert find_interpreter(one.python, environment).environment_updates == {}


def test_a_linked_python_keeps_its_venv(make_venv: MakeVenv) -> None:
    one = make_venv("one", "2.7.0")
    assert Path(one.python).is_symlink()
    found = find_interpreter(one.python, {})
    assert found.executable == one.python
    assert found.environment_updates["VIRTUAL_ENV"] == str(one.folder)


def pretend_prefix(made: Venv, prefix: Path) -> None:
    """As an interpreter without a venv would say."""
    text = f"import sys; sys.prefix = sys.base_prefix = {str(prefix)!r}\n"
    (made.packages / "prefix.pth").write_text(text)


def test_a_conda_environment_is_activated(make_venv: MakeVenv, tmp_path: Path) -> None:
    one, conda = make_venv("one", "2.7.0"), tmp_path / "conda"
    (conda / "conda-meta").mkdir(parents=True)
    pretend_prefix(one, conda)
    found = find_interpreter(one.python, {"PATH": "/usr/bin"})
    assert found.environment_updates == {"CONDA_PREFIX": str(conda), "PATH": f"{conda}/bin:/usr/bin"}


def test_a_system_python_needs_no_activation(make_venv: MakeVenv, tmp_path: Path) -> None:
    one = make_venv("one", "2.7.0")
    pretend_prefix(one, tmp_path)
    assert find_interpreter(one.python, {"PATH": "/usr/bin"}).environment_updates == {}
