"""From a target to a module, as `python file.py` would import it."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tcompile_tui.core.spec import Job, Phase, RunSpec, Task, parse_target
from tcompile_tui.worker.failures import StageError, describe_failure
from tcompile_tui.worker.loading import UserFile, build_model, import_user_file

pytestmark = pytest.mark.xdist_group("torch")

_NET = "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


@pytest.fixture(autouse=True)
def _undo_imports() -> Iterator[None]:
    path, argv, modules = sys.path[:], sys.argv[:], set(sys.modules)
    yield
    sys.path[:], sys.argv[:] = path, argv
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def _job(path: Path, name: str = "Net", *argv: str, module: str | None = None, root: Path | None = None) -> Job:
    return Job(
        phase=Phase.EAGER, mode=None, spec=RunSpec(parse_target("net.py")), process=1, run_start_ns=0,
        source_path=str(path), source_module=module, qualified_name=name, import_root=str(root or path.parent),
        argv=argv, cache_root="", warmup_budget_s=1, pair_budget_s=1, max_pairs=1,
    )  # fmt: skip


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# ---------------------------------------------------------------- importing


def test_a_file_finds_its_neighbours_and_its_arguments(tmp_path: Path) -> None:
    _write(tmp_path / "neighbour_of_net.py", "WIDTH = 3\n")
    path = _write(tmp_path / "net.py", f"import sys\nimport neighbour_of_net\nARGV = sys.argv\n{_NET}")
    user = import_user_file(_job(path, "Net", "--width", "3"))
    assert user.module.neighbour_of_net.WIDTH == 3
    assert [str(path), "--width", "3"] == user.module.ARGV


@pytest.mark.parametrize("name", ["types.py", "queue.py", "my-model.py", "1.py"])
def test_a_file_may_be_called_anything(tmp_path: Path, name: str) -> None:
    path = _write(tmp_path / name, _NET)
    first = import_user_file(_job(path)).module
    assert sys.modules["types"] is types, "a file called types.py must not stand in for the standard library's"
    assert sys.modules[first.__name__] is first, "classes must be found by their module for pickling"
    del sys.modules[first.__name__]
    assert import_user_file(_job(path)).module.__name__ == first.__name__, "caches may hold the name"


def test_a_package_is_imported_by_its_name(tmp_path: Path) -> None:
    _write(tmp_path / "mynet" / "layers.py", _NET)
    path = _write(tmp_path / "mynet" / "__init__.py", "from .layers import Net\n")
    user = import_user_file(_job(path, module="mynet", root=tmp_path))
    assert user.entry.__module__ == "mynet.layers"


def test_a_script_with_a_parser_is_told_apart_and_gets_advice(tmp_path: Path) -> None:
    text = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', required=True)\np.parse_args()\n"
    path = _write(tmp_path / "train.py", text + _NET)
    with pytest.raises(StageError) as caught:
        import_user_file(_job(path))
    assert re.search(r"parses arguments when it is imported \(line 4\).*after `--`", str(caught.value))
    assert (caught.value.fault, caught.value.file, caught.value.line) == ("input", str(path), 4)
    assert import_user_file(_job(path, "Net", "--data", "d")).entry.__name__ == "Net"


def test_an_exit_at_import_is_not_called_parsing(tmp_path: Path) -> None:
    path = _write(tmp_path / "train.py", "import sys\n\nsys.exit('no GPU')\n")
    with pytest.raises(StageError, match=r"calls sys.exit when it is imported \(line 3\)"):
        import_user_file(_job(path))


def test_a_module_that_is_missing_is_said_with_where_it_was_looked_for(tmp_path: Path) -> None:
    path = _write(tmp_path / "net.py", f"import no_such_dependency.part\n{_NET}")
    with pytest.raises(StageError) as caught:
        import_user_file(_job(path))
    told = str(caught.value)
    assert "needs the module 'no_such_dependency'" in told and str(tmp_path) in told and sys.executable in told
    record = describe_failure(caught.value, "import", compiled=False, inputs_given=False)
    assert (record.file, record.line, record.fault) == (str(path), 1, "input")
    installed = replace(_job(path, module="no.such"), source_path=None)
    with pytest.raises(StageError, match=r"there is no module no\.such in .*: install no there"):
        import_user_file(installed)


def test_a_name_that_is_not_there_is_said(tmp_path: Path) -> None:
    path = _write(tmp_path / "net.py", _NET)
    with pytest.raises(StageError, match="has no 'Nett'"):
        import_user_file(_job(path, "Nett"))


def test_hooks_decide_task_and_mode_of_the_model() -> None:
    module = types.ModuleType("net")
    user = UserFile(module, None)
    assert user.task(None) is Task.INFER and not user.training_mode(Task.INFER) and user.hook("loss") is None
    vars(module).update(TRAIN=True, EVAL=False, loss="no function")
    assert user.task(None) is Task.TRAIN and user.task(Task.INFER) is Task.INFER
    assert user.training_mode(Task.INFER) and user.hook("loss") is None


@pytest.mark.parametrize(
    ("loss", "taken"),
    [
        (lambda output: output, True),
        (lambda output, weight=2: output, True),
        (lambda output, target: output, False),
        (torch.nn.Identity(), True),
        (torch.nn.MSELoss(), False),
        ("no function", False),
    ],
)
def test_a_loss_that_needs_a_target_is_not_the_hook(loss: object, taken: bool) -> None:
    module = types.ModuleType("net")
    vars(module)["loss"] = loss
    assert (UserFile(module, None).loss is loss) is taken


# ---------------------------------------------------------------- building


class _Needy(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, in_dim, hidden: int, *, act: str, bias=True, **more) -> None:  # type: ignore[no-untyped-def]
        super().__init__()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            _Needy,
            "Entry(in_dim, hidden: int, act: str) needs values: give --arg in_dim=VALUE and so on, or add `def",
        ),
        (lambda: "text", "Entry() returned a str, not an nn.Module"),
        (lambda: None, "returned a NoneType"),
        (7, "'Entry' is a int, not an nn.Module class or a factory"),
    ],
    ids=["required parameters", "returns text", "returns nothing", "a number"],
)
def test_what_is_no_model_is_refused_in_words(tmp_path: Path, entry: object, words: str) -> None:
    with pytest.raises(StageError) as caught:
        build_model(UserFile(types.ModuleType("net"), entry), _job(tmp_path, "Entry"))
    assert words in str(caught.value) and caught.value.fault == "input"


def test_a_model_is_initialised_alike_every_time(tmp_path: Path) -> None:
    user = UserFile(types.ModuleType("net"), lambda: torch.nn.Linear(4, 4))
    first, second = build_model(user, _job(tmp_path)), build_model(user, _job(tmp_path))
    assert first is not second
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    built = torch.nn.Linear(1, 1)
    assert build_model(UserFile(types.ModuleType("net"), built), _job(tmp_path)) is built
