"""Targets that are no file of Python: what the user is told of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcompile_tui.core.discover import resolve
from tcompile_tui.core.spec import Target, parse_target

from .discovering import NET, picked, refusal, refused, write


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    message = refused(tmp_path, NET + "def broken(:\n    pass\n")
    assert message.startswith("net.py line 6 is not Python 3.")
    assert message.endswith("correct 'def broken(:'")


@pytest.mark.parametrize("line", ["%matplotlib inline", "!pip install -q einops", "%%time", "!echo don't"])
def test_notebook_lines_are_named(tmp_path: Path, line: str) -> None:
    message = refused(tmp_path, f"# In[1]:\n{line}\n{NET}")
    assert message == f"net.py line 2 is notebook syntax, not Python: remove '{line}'"


def test_what_nbconvert_makes_of_a_magic_is_named(tmp_path: Path) -> None:
    magic = "get_ipython().run_line_magic('matplotlib', 'inline')\n"
    assert refused(tmp_path, magic + NET).startswith("net.py line 1 is left from a notebook: remove")
    assert picked(tmp_path, "from IPython import get_ipython\n" + magic + NET) == "Net"
    assert picked(tmp_path, "from IPython import *\n" + magic + NET) == "Net"


@pytest.mark.parametrize("name", ["book.ipynb", "book.py"])
def test_a_notebook_by_any_name_is_told_how_to_export(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"nbformat": 4, "cells": [], "metadata": {}}')
    message = refusal(tmp_path, Target(name, None, None))
    assert message == f"{name} is a notebook: export it first (jupyter nbconvert --to script {name})"


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\x00\xff\xfe",
        b"\x00\x01\x02",
        NET.encode("utf-16"),
        b"# caf\xe9\n",
        b"\n\n\nx = 'caf\xe9'\n",
        b"# coding: no-such-code\n",
    ],
)
def test_what_is_no_utf8_text_is_said_to_be(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "net.py").write_bytes(content)
    assert refusal(tmp_path, "net.py") == "net.py is not UTF-8 text: is it Python? If so, save it as UTF-8"


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf" + NET.encode(), b"# coding: latin-1\n# caf\xe9\n" + NET.encode()])
def test_a_declared_encoding_is_honoured(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "net.py").write_bytes(content)
    assert resolve(parse_target("net.py"), tmp_path).qualified_name == "Net"


def test_deep_nesting_is_refused_in_one_line(tmp_path: Path) -> None:
    assert "net.py" in refused(tmp_path, "x = " + "(" * 5000 + ")" * 5000)


def test_an_empty_file(tmp_path: Path) -> None:
    assert refused(tmp_path, " \n") == "net.py is empty: add `def make_model():` to it"


def test_a_missing_file_gets_near_names(tmp_path: Path) -> None:
    write(tmp_path, NET, "network.py")
    assert refusal(tmp_path, "netwrk.py") == "there is no file netwrk.py: did you mean network.py?"
    assert refusal(tmp_path, "zzz.py") == f"there is no file zzz.py: looked in {tmp_path}"


def test_a_folder_lists_its_files(tmp_path: Path) -> None:
    write(tmp_path, NET, "models/net.py")
    assert refusal(tmp_path, "./models") == "./models is a folder: name a Python file in it (net.py)"


@pytest.mark.parametrize("name", ["net.txt", "net.pt"])
def test_a_file_that_does_not_end_in_py(tmp_path: Path, name: str) -> None:
    write(tmp_path, NET, name)
    assert refusal(tmp_path, f"./{name}") == f"./{name} is not a Python file: name one that ends in .py"


def test_a_path_that_cannot_be_one(tmp_path: Path) -> None:
    assert refusal(tmp_path, Target("a\0b.py", None, None)).endswith("check the path")
    assert refusal(tmp_path, Target("a" * 5000 + ".py", None, None)).endswith("check the path")
