"""Model discovery: which class or factory of a file is picked, and what the user is told otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tcompile_tui.core.candidates import Parameter
from tcompile_tui.core.discover import (
    CandidateKind,
    FileHooks,
    find_batch_file,
    find_candidates,
    find_hooks,
    resolve,
)
from tcompile_tui.core.spec import SpecError, Target, parse_target

from .discovering import FORWARD, NET, pick, picked, refusal, refused, write

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


def test_the_file_of_a_batch_is_looked_for_before_anything_starts(tmp_path: Path) -> None:
    file = write(tmp_path, "", "data.py")
    assert find_batch_file("data.py:make_batch", tmp_path) == find_batch_file("data.py", tmp_path) == file
    for place in ("no.py:make_batch", "no.pt", "."):
        with pytest.raises(SpecError, match=rf"there is no file {place.partition(':')[0]} for --inputs"):
            find_batch_file(place, tmp_path)


def test_nothing_is_imported_or_run(tmp_path: Path) -> None:
    source = NET + "open('ran', 'w')\nraise SystemExit(2)\n"
    write(tmp_path, source, "never_imported/__init__.py")
    assert resolve(parse_target("never_imported:Net"), tmp_path).qualified_name == "Net"
    assert "never_imported" not in sys.modules
    assert not (tmp_path / "ran").exists()


def test_an_odd_escape_in_the_users_file_does_not_warn(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    assert picked(tmp_path, NET + "pattern = '\\d'\n") == "Net"
    assert not recwarn.list
