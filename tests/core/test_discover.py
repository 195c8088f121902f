"""Model discovery: which class or factory of a file is picked, and what the user is told otherwise."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tcompile_tui.core.candidates import Parameter
from tcompile_tui.core.discover import (
    CandidateKind,
    FileHooks,
    Resolved,
    find_batch_file,
    find_candidates,
    find_hooks,
    resolve,
)
from tcompile_tui.core.spec import SpecError, Target, parse_target

NET = "from torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"
FORWARD = "\n    def forward(self, x):\n        return x\n"


def write(folder: Path, source: str, name: str = "net.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(source))
    return path


def pick(folder: Path, source: str, name: str | None = None) -> Resolved:
    write(folder, source)
    return resolve(Target("net.py", None, name), folder)


def picked(folder: Path, source: str, name: str | None = None) -> str:
    return pick(folder, source, name).qualified_name


def refusal(folder: Path, target: Target | str) -> str:
    """The one line that the user gets."""
    with pytest.raises(SpecError) as caught:
        resolve(parse_target(target) if isinstance(target, str) else target, folder)
    message = str(caught.value)
    assert message and "\n" not in message
    return message


def refused(folder: Path, source: str, name: str | None = None) -> str:
    write(folder, source)
    return refusal(folder, Target("net.py", None, name))


# ---------------------------------------------------------------- what is a module


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("import torch", "torch.nn.Module"),
        ("import torch.nn", "torch.nn.Module"),
        ("import torch as t", "t.nn.Module"),
        ("import torch.nn as nn", "nn.Module"),
        ("from torch import nn as tnn", "tnn.Module"),
        ("from torch.nn import Module", "Module"),
        ("from torch.nn import Module as M", "M"),
        ("from torch.nn import *", "Module"),
        ("from torch.nn.modules.module import Module", "Module"),
        ("from torch import nn\nBase = nn.Module", "Base"),
        ("from torch import nn\nfrom typing import Generic, TypeVar\nT = TypeVar('T')", "nn.Module, Generic[T]"),
        ("import lightning.pytorch as pl", "pl.LightningModule"),
        ("from pytorch_lightning import LightningModule", "LightningModule"),
        ("from transformers import PreTrainedModel", "PreTrainedModel"),
        ("from .base import Backbone", "Backbone"),
        ("import base", "base.Backbone"),
        ("from base import *", "Backbone"),
    ],
)
def test_every_way_to_name_the_base_makes_a_model(tmp_path: Path, imports: str, base: str) -> None:
    result = pick(tmp_path, f"{imports}\nclass Net({base}):{FORWARD}")
    assert result.candidate.kind is CandidateKind.CLASS
    assert result.candidate.name == result.qualified_name == "Net"


@pytest.mark.parametrize(
    "base", ["nn.Sequential", "nn.Linear", "nn.modules.conv.Conv2d", "BertModel", "ResNet", "Parent"]
)
def test_a_base_that_brings_its_own_forward_needs_none_in_the_file(tmp_path: Path, base: str) -> None:
    source = f"""
        from torch import nn
        from transformers import BertModel
        from torchvision.models.resnet import ResNet
        class Parent(nn.Module):
            def forward(self, x): return x
        class Child({base}):
            def __init__(self): super().__init__()
    """
    names = {candidate.name: candidate.note for candidate in find_candidates(write(tmp_path, source))}
    assert names["Child"] is None


@pytest.mark.parametrize(
    "base",
    ["object", "Function", "Dataset", "torch.autograd.Function", "ABC", "Enum", "Exception", "nn.Parameter"],
)
def test_other_classes_with_a_forward_are_no_models(tmp_path: Path, base: str) -> None:
    source = f"""
        import torch
        from abc import ABC
        from enum import Enum
        from torch import nn
        from torch.autograd import Function
        from torch.utils.data import Dataset
        class Helper({base}):
            def forward(self, x): return x
    """
    assert find_candidates(write(tmp_path, source)) == []


def test_a_forward_may_be_assigned_and_a_class_may_stand_inside_a_try(tmp_path: Path) -> None:
    source = """
        from torch import nn
        try:
            class Net(nn.Module):
                def _run(self, x): return x
                forward = _run
        except ImportError:
            pass
    """
    assert picked(tmp_path, source) == "Net"


def test_a_class_that_replaces_a_failed_import_keeps_its_heirs(tmp_path: Path) -> None:
    source = """
        from torch import nn
        try:
            from fast import Base
        except ImportError:
            class Base(nn.Module):
                def forward(self, x): return x
        class Net(Base):
            pass
    """
    assert picked(tmp_path, source) == "Net"


# ---------------------------------------------------------------- which one is picked


def test_make_model_wins_over_classes(tmp_path: Path) -> None:
    result = pick(
        tmp_path, NET + "class Other(Net): pass\nclass Third(nn.Sequential): pass\ndef make_model(): return 0\n"
    )
    assert (result.qualified_name, result.candidate.kind) == ("make_model", CandidateKind.FACTORY)


def test_make_model_may_be_imported(tmp_path: Path) -> None:
    assert picked(tmp_path, "from torchvision.models import resnet18 as make_model\n") == "make_model"


def test_make_model_with_required_parameters_is_refused(tmp_path: Path) -> None:
    message = refused(tmp_path, NET + "def make_model(depth: int): return Net()\n")
    assert message == "make_model(depth: int) needs values: give --arg depth=VALUE, or give its parameters defaults"


MANY = """
    from torch import nn
    class Base(nn.Module):
        def encode(self, x): raise NotImplementedError
    class MyLoss(nn.Module):
        def forward(self, pred, target): return (pred - target).abs().mean()
    class Block(Base):
        def forward(self, x): return x.relu()
    class RealNet(Base):
        def __init__(self):
            super().__init__()
            self.block = Block()
        def forward(self, x): return self.block(x)
"""


def test_bases_blocks_and_losses_are_not_picked(tmp_path: Path) -> None:
    assert picked(tmp_path, MANY) == "RealNet"
    notes = {candidate.name: candidate.note for candidate in find_candidates(tmp_path / "net.py")}
    assert notes == {
        "Base": "is the base of Block",
        "MyLoss": "looks like a loss",
        "Block": "is used by RealNet",
        "RealNet": None,
    }


def test_a_block_may_be_asked_for(tmp_path: Path) -> None:
    assert picked(tmp_path, MANY, "Block") == "Block"


def test_asking_for_a_type_is_not_using_it(tmp_path: Path) -> None:
    source = NET + "class Block(nn.Module):\n    def forward(self, x):\n        return isinstance(x, Net)\n"
    assert "has several models" in refused(tmp_path, source)


def test_a_class_that_reads_its_own_name_is_not_used_by_another(tmp_path: Path) -> None:
    assert picked(tmp_path, NET + "    def __init__(self):\n        super(Net, self).__init__()\n") == "Net"


def test_a_trainer_that_builds_the_net_does_not_hide_it(tmp_path: Path) -> None:
    trainer = "class Trainer:\n    def __init__(self):\n        self.net = Net()\n"
    without_forward = "class Lit(pl.LightningModule):\n    def __init__(self):\n        self.net = Net()\n"
    assert picked(tmp_path, "import lightning as pl\n" + NET + trainer + without_forward) == "Net"


def test_several_models_are_listed_with_lines_and_how_to_ask(tmp_path: Path) -> None:
    message = refused(tmp_path, NET + "class Other(nn.Sequential): pass\n")
    assert message == "net.py has several models, Net (line 3), Other (line 6): ask for one: net.py:Net"


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    classes = "".join(f"class Net{i}(nn.Sequential): pass\n" for i in range(40))
    message = refused(tmp_path, "from torch import nn\n" + classes)
    assert "and 34 more" in message
    assert len(message) < 250


def test_private_names_are_never_offered_but_may_be_asked_for(tmp_path: Path) -> None:
    source = "from torch import nn\nclass _Net(nn.Sequential): pass\ndef _build() -> nn.Module: return _Net()\n"
    assert refused(tmp_path, source) == (
        "net.py defines no nn.Module class and no function that returns one: add `def make_model():` to the file"
    )
    assert picked(tmp_path, source, "_Net") == "_Net"


def test_a_class_without_forward_is_refused_with_the_reason(tmp_path: Path) -> None:
    message = refused(tmp_path, "from torch import nn\nclass Net(nn.Module):\n    pass\n")
    assert message == "nothing in net.py is plainly the model, Net (line 2) has no forward: ask for one: net.py:Net"


def test_code_behind_main_is_not_seen(tmp_path: Path) -> None:
    assert picked(tmp_path, NET + "if __name__ == '__main__':\n    class Other(nn.Sequential): pass\n") == "Net"


def test_a_compiled_rebinding_is_still_the_class(tmp_path: Path) -> None:
    result = pick(tmp_path, NET + "Net = torch.compile(Net)\n")
    assert (result.candidate.kind, result.candidate.line) == (CandidateKind.CLASS, 3)


# ---------------------------------------------------------------- constructor arguments


def test_required_constructor_arguments_are_named(tmp_path: Path) -> None:
    source = """
        from torch import nn
        class NeedsArgs(nn.Module):
            def __init__(self, in_dim, hidden: int, *, act: str, bias: bool = True): pass
            def forward(self, x): return x
    """
    expected = (
        "NeedsArgs(in_dim, hidden: int, *, act: str) needs values: give --arg in_dim=VALUE and so on, "
        "or add `def make_model():` to the file"
    )
    assert refused(tmp_path, source) == expected
    assert refused(tmp_path, source, "NeedsArgs") == expected
    with pytest.raises(SpecError, match=r"^NeedsArgs\(\*, act: str\) needs values: give --arg act=VALUE, or"):
        resolve(parse_target("net.py"), tmp_path, given={"in_dim", "hidden"})
    assert resolve(parse_target("net.py"), tmp_path, given={"in_dim", "hidden", "act"}).qualified_name == "NeedsArgs"


def test_the_one_that_takes_what_is_given_is_meant(tmp_path: Path) -> None:
    write(tmp_path, NET + "class Sized(nn.Sequential):\n    def __init__(self, width): pass\n")
    assert resolve(parse_target("net.py"), tmp_path).qualified_name == "Net"
    assert resolve(parse_target("net.py"), tmp_path, given={"width"}).qualified_name == "Sized"


def test_an_inherited_constructor_counts(tmp_path: Path) -> None:
    base = "from torch import nn\nclass Base(nn.Module):\n    def __init__(self, d): pass\n"
    message = refused(tmp_path, base + f"class Net(Base):{FORWARD}")
    assert message.startswith("Net(d) needs values")


def test_defaults_and_variadic_parameters_need_no_values(tmp_path: Path) -> None:
    source = NET + "    def __init__(self, d=3, *layers, act='relu', **options): pass\n"
    result = pick(tmp_path, source)
    assert result.candidate.parameters == (
        Parameter("d", default="3"),
        Parameter("act", default="'relu'", keyword_only=True),
    )


def test_a_class_without_required_arguments_wins_over_one_with(tmp_path: Path) -> None:
    assert picked(tmp_path, NET + "class Other(nn.Sequential):\n    def __init__(self, d): pass\n") == "Net"


def test_the_constructor_after_overloads_counts(tmp_path: Path) -> None:
    overload = "    @overload\n    def __init__(self, d: int) -> None: ...\n"
    assert picked(tmp_path, NET + overload + "    def __init__(self, d=None): pass\n") == "Net"


def test_a_class_that_needs_values_is_named_before_functions_that_do(tmp_path: Path) -> None:
    source = NET + "    def __init__(self, d): pass\ndef freeze(net: nn.Module) -> nn.Module: return net\n"
    assert refused(tmp_path, source).startswith("Net(d) needs values")


def test_several_that_need_values_are_listed(tmp_path: Path) -> None:
    pair = "".join(f"class {n}(nn.Sequential):\n    def __init__(self, d): pass\n" for n in ("A", "B"))
    message = refused(tmp_path, "from torch import nn\n" + pair)
    assert message == "A (line 2), B (line 4) in net.py need values: add `def make_model():` to the file"


def test_a_model_that_the_file_has_built_is_pointed_out_and_may_be_asked_for(tmp_path: Path) -> None:
    source = """
        from torch import nn
        class Net(nn.Sequential):
            def __init__(self, d): pass
        model = Net(3).eval()
        model.steps = 0
    """
    message = refused(tmp_path, source)
    assert message.startswith("Net(d) needs values: give --arg d=VALUE, or ask for one: net.py:model (line 5), or add")
    assert pick(tmp_path, source, "model").candidate.kind is CandidateKind.VALUE


# ---------------------------------------------------------------- factories

BLOCK = "import torch\nimport torchvision\nfrom torch import nn\nclass _Block(nn.Module):\n" + FORWARD


@pytest.mark.parametrize(
    "function",
    [
        "def start(depth: int = 3) -> nn.Module:\n    return make(depth)",
        "def start() -> 'nn.Module':\n    return make()",
        "def start() -> _Block:\n    return make()",
        "def start():\n    return _Block()",
        "def start():\n    return _Block().eval()",
        "def start():\n    return _Block.from_file('x')",
        "def start():\n    return nn.Sequential(_Block(), _Block())",
        "def start():\n    net = _Block()\n    net.eval()\n    return net.to('cpu')",
        "def start():\n    return _below(3)\ndef _below(n):\n    net = _Block()\n    return net",
        "def start():\n    return torchvision.models.resnet18()",
    ],
)
def test_a_function_that_returns_a_module_is_a_factory(tmp_path: Path, function: str) -> None:
    result = pick(tmp_path, f"{BLOCK}\n{function}\n")
    assert (result.qualified_name, result.candidate.kind) == ("start", CandidateKind.FACTORY)


@pytest.mark.parametrize(
    "function",
    [
        "def start(): return _Block().state_dict()",
        "def start(): return _Block()(torch.ones(1))",
        "def start() -> int: return size()",
        "def start(): return nn.Parameter(torch.ones(1))",
        "def start():\n    def inner(): return _Block()\n    return inner",
        "def start():\n    net = _Block()\n    net(1)",
        "def start(): return torchvision.models.ResNet18_Weights()",
        "def example_inputs(): return _Block()",
        "def make_model_card(): return 'card'",
        "def make_net() -> str: return 'net'",
        "def make_net(): print('net')",
    ],
)
def test_other_functions_are_no_factories(tmp_path: Path, function: str) -> None:
    assert find_candidates(write(tmp_path, f"{BLOCK}\n{function}\n")) == []


def test_an_unannotated_function_called_build_model_is_believed(tmp_path: Path) -> None:
    assert picked(tmp_path, "import zoo\ndef build_model(): return zoo.load('x')\n") == "build_model"


def test_a_factory_counts_only_if_no_class_qualifies(tmp_path: Path) -> None:
    factory = "def build() -> nn.Module: return Net()\n"
    assert picked(tmp_path, NET + factory) == "Net"
    assert picked(tmp_path, NET + "    def __init__(self, d): pass\n" + factory) == "build"


def test_a_factory_that_another_one_calls_is_not_picked(tmp_path: Path) -> None:
    source = BLOCK + "def stem(): return _Block()\ndef build(): return nn.Sequential(stem())\n"
    assert picked(tmp_path, source) == "build"


def test_the_forward_of_what_a_factory_makes_is_known(tmp_path: Path) -> None:
    result = pick(tmp_path, BLOCK + "def build(): return _Block()\n")
    assert result.candidate.forward == (Parameter("x"),)


def test_a_factory_with_required_arguments_is_refused(tmp_path: Path) -> None:
    message = refused(tmp_path, BLOCK + "def build(depth): return _Block()\n")
    assert message == "build(depth) needs values: give --arg depth=VALUE, or add `def make_model():` to the file"


# ---------------------------------------------------------------- names


def test_an_unknown_name_gets_near_ones(tmp_path: Path) -> None:
    assert "did you mean RealNet (line 9)?" in refused(tmp_path, MANY, "REAL_NET")
    assert refused(tmp_path, MANY, "realnet") == "net.py has no 'realnet': did you mean RealNet (line 9)?"


def test_an_unknown_name_like_no_other_gets_the_candidates(tmp_path: Path) -> None:
    assert refused(tmp_path, NET, "Zebra") == "net.py has no 'Zebra': it has Net (line 3)"


@pytest.mark.parametrize("binding", ["from zoo import Found", "from zoo import *", "Found, other = zoo.both()"])
def test_a_name_that_only_the_import_can_tell_is_let_through(tmp_path: Path, binding: str) -> None:
    result = pick(tmp_path, f"{binding}\n", "Found")
    assert (result.qualified_name, result.candidate.kind) == ("Found", CandidateKind.VALUE)


def test_a_dotted_name_is_kept_whole(tmp_path: Path) -> None:
    assert picked(tmp_path, NET, "Net.Inner") == "Net.Inner"


# ---------------------------------------------------------------- hooks


def test_hooks_present_in_the_file(tmp_path: Path) -> None:
    source = """
        from helpers import more_inputs
        def example_inputs(): return ()
        loss = lambda out: out.sum()
        TRAIN = True
        EVAL: bool = False
    """
    assert find_hooks(write(tmp_path, source)) == FileHooks(
        example_inputs=True, loss=True, more_inputs=True, train=True, eval=False
    )


def test_no_hooks_and_values_that_are_none(tmp_path: Path) -> None:
    assert find_hooks(write(tmp_path, NET + "TRAIN = decide()\nloss = 0.0\n")) == FileHooks()


# ---------------------------------------------------------------- files that are no Python


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


# ---------------------------------------------------------------- packages


def test_a_plain_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    path = write(tmp_path, NET, "sub/net.py")
    result = resolve(parse_target("sub/net.py"), tmp_path)
    assert (result.path, result.module, result.import_root) == (str(path), None, str(path.parent))


def test_a_file_in_a_package_is_imported_from_above_the_top_package(tmp_path: Path) -> None:
    for name in ("src/top/__init__.py", "src/top/inner/__init__.py"):
        write(tmp_path, "", name)
    path = write(tmp_path, NET, "src/top/inner/net.py")
    result = resolve(Target(str(path), None, None), Path("/"))
    assert (result.module, result.import_root) == ("top.inner.net", str(tmp_path / "src"))


def test_the_package_itself_may_be_the_target(tmp_path: Path) -> None:
    write(tmp_path, "from .net import Net\n", "top/__init__.py")
    write(tmp_path, NET, "top/net.py")
    by_path = resolve(parse_target("top/__init__.py:Net"), tmp_path)
    by_module = resolve(parse_target("top:Net"), tmp_path)
    assert by_path == by_module
    assert (by_path.module, by_path.import_root) == ("top", str(tmp_path))


def test_folders_that_no_import_can_name_are_no_packages(tmp_path: Path) -> None:
    write(tmp_path, "", "my-repo/__init__.py")
    result = resolve(Target(str(write(tmp_path, NET, "my-repo/net.py")), None, None), tmp_path)
    assert (result.module, result.import_root) == (None, str(tmp_path / "my-repo"))


def test_a_file_that_no_import_can_name_is_loaded_by_its_path(tmp_path: Path) -> None:
    write(tmp_path, "", "top/__init__.py")
    path = write(tmp_path, NET, "top/net-v2.py")
    result = resolve(parse_target("top/net-v2.py"), tmp_path)
    assert (result.module, result.import_root) == (None, str(path.parent))


def test_a_home_folder_may_be_written_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write(tmp_path, NET)
    assert resolve(parse_target("~/net.py"), Path("/")).path == str(path)


def test_a_module_is_looked_for_in_cwd_then_in_pythonpath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    path = write(elsewhere, NET, "space/net.py")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'none'}:{elsewhere}")
    result = resolve(parse_target("space.net:Net"), tmp_path)
    assert (result.path, result.module, result.import_root) == (str(path), "space.net", str(elsewhere))
    nearer = write(tmp_path, NET, "space/net.py")
    assert resolve(parse_target("space.net:Net"), tmp_path).path == str(nearer)


def test_a_module_that_is_one_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    write(tmp_path, NET)
    assert resolve(parse_target("net:Net"), tmp_path).module is None


def test_a_module_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    write(tmp_path, NET, "mine/net.py")
    assert refusal(tmp_path, "mine.nte:Net").startswith(f"there is no module mine.nte in {tmp_path}: name its file")


def test_an_installed_module_is_left_to_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    found = resolve(parse_target("torch.nn:LSTM"), tmp_path)
    assert (found.path, found.module, found.qualified_name) == (None, "torch.nn", "LSTM")


def test_an_architecture_is_left_to_the_worker(tmp_path: Path) -> None:
    write(tmp_path, NET, "timm/__init__.py")
    found = resolve(parse_target("timm:resnet50"), tmp_path)
    assert (found.path, found.module, found.qualified_name) == (None, None, "resnet50")
    assert refusal(tmp_path, "transformers:./no.json").startswith("there is no file ./no.json: looked in")


def test_nothing_is_imported_or_run(tmp_path: Path) -> None:
    source = NET + "open('ran', 'w')\nraise SystemExit(2)\n"
    write(tmp_path, source, "never_imported/__init__.py")
    assert resolve(parse_target("never_imported:Net"), tmp_path).qualified_name == "Net"
    assert "never_imported" not in sys.modules
    assert not (tmp_path / "ran").exists()


def test_an_odd_escape_in_the_users_file_does_not_warn(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    assert picked(tmp_path, NET + "pattern = '\\d'\n") == "Net"
    assert not recwarn.list


def test_the_file_of_a_batch_is_looked_for_before_anything_starts(tmp_path: Path) -> None:
    file = write(tmp_path, "", "data.py")
    assert find_batch_file("data.py:make_batch", tmp_path) == find_batch_file("data.py", tmp_path) == file
    for place in ("no.py:make_batch", "no.pt", "."):
        with pytest.raises(SpecError, match=rf"there is no file {place.partition(':')[0]} for --inputs"):
            find_batch_file(place, tmp_path)
