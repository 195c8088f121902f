"""The command line: every mistake is one line that says what to do, and --help stays quick."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tcompile_tui.cli import main
from tests.host.fake_run import start_fake_run

_NET = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x
"""


def _tcompile_tui(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tcompile_tui", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(_NET)
    (tmp_path / "two.py").write_text(_NET + _NET.replace("Net", "Other").removeprefix("import torch\n"))
    (tmp_path / "text.py").write_text("this is no Python\n")
    (tmp_path / "nb.ipynb").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.py"], ["missing.py"]),
        (["text.py"], ["text.py", "line 1"]),
        (["nb.ipynb"], ["notebook", "nbconvert"]),
        (["net.py:Nett"], ["Nett", "Net"]),
        (["two.py"], ["two.py:", "Net", "Other", "line"]),
        (["net.py", "--input", "x=float99[4]"], ["float99"]),
        (["net.py", "--input", "x=float32[4,-1]"], ["-1"]),
        (["net.py", "--device", "tpu"], ["tpu", "cpu"]),
        (["net.py", "--dtype", "int32"], ["int32"]),
        (["net.py", "--planned-steps", "5", "--planned-hours", "1"], ["not both"]),
        (["net.py", "--python", "/nowhere/python"], ["/nowhere/python"]),
        (["net.py", "--env", "NOVALUE"], ["NOVALUE", "NAME=VALUE"]),
    ],
)
def test_a_mistake_is_one_line_and_status_2(model_folder: Path, arguments: list[str], words: list[str]) -> None:
    result = _tcompile_tui("run", *arguments, cwd=model_folder)
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert all(word in line for word in words), line


def test_an_unknown_option_names_itself(model_folder: Path) -> None:
    result = _tcompile_tui("run", "net.py", "--mode", "fastest", cwd=model_folder)
    assert result.returncode == 2 and "fastest" in result.stderr and "Traceback" not in result.stderr


def test_a_run_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where a folder should be")
    status, _, err = start_fake_run(tmp_path, "", "--runs-dir", str(tmp_path / "file" / "runs")).finish()
    assert status == 6
    assert err.splitlines()[-1].startswith("error: cannot write the run") and "--runs-dir" in err


def test_runs_lists_and_prunes(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path)
    assert run.finish()[0] == 0
    listed = _tcompile_tui("runs", "--runs-dir", str(run.runs_dir), cwd=tmp_path)
    assert run.folder.name in listed.stdout and "ENABLE" in listed.stdout and "done" in listed.stdout
    kept = _tcompile_tui("runs", "--runs-dir", str(run.runs_dir), "--prune", cwd=tmp_path)
    assert "0 deleted" in kept.stdout
    pruned = _tcompile_tui("runs", "--runs-dir", str(run.runs_dir), "--prune", "--days", "0", cwd=tmp_path)
    assert "1 deleted" in pruned.stdout
    empty = _tcompile_tui("runs", "--runs-dir", str(run.runs_dir), cwd=tmp_path)
    assert "no runs in" in empty.stdout


def test_help_loads_neither_torch_nor_textual(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom click.testing import CliRunner\nfrom tcompile_tui.cli import main\n"
        "for words in (['--help'], ['run', '--help'], ['--version']):\n"
        "    assert CliRunner().invoke(main, words).exit_code == 0\n"
        "print([name for name in ('torch', 'numpy', 'textual', 'psutil', 'msgspec') if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_arguments_after_two_dashes_are_the_models(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "", "--name", "argv", "--", "--depth", "3")
    assert run.finish()[0] == 0
    assert run.folder.name.split("-")[2] == "argv"
    assert '"--depth"' in (run.folder / "run.json").read_text()
    assert os.access(run.folder, os.W_OK)


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if not command.hidden:
            yield " ".join((*path, name)), command
            if isinstance(command, click.Group):
                yield from _commands(command, (*path, name))


@pytest.mark.parametrize(("name", "command"), list(_commands(main)))
def test_every_command_and_option_says_what_it_is_for(name: str, command: click.Command) -> None:
    assert command.help
    shown = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    assert not [option.name for option in shown if not option.help]
    assert "..." not in command.get_short_help_str(60), "the list of commands cuts it off"
