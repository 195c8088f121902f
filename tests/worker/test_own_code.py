"""Steps with the user's own functions in them: how these are found, and what a real process does with them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.accuracy import Agreement, judge
from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.core.step_spec import FileFunction, StepSpec
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.loading import load_file
from tcompile_tui.worker.own_code import load_own_code

from .driver import run_phase

pytestmark = pytest.mark.xdist_group("torch")

_NET = """import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(4, 2)

    def forward(self, x):
        assert x.is_contiguous(memory_format=torch.channels_last) == {channels_last}
        return self.fc(self.conv(x).relu().mean((2, 3)))

def example_inputs():
    assert torch.get_float32_matmul_precision() == "{precision}"
    return torch.randn(2, 3, 8, 8)
"""
_OWN = """import torch

def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

optimizers = {}

def train_step(model, batch):
    optimizer = optimizers.setdefault(model, make_optimizer(model))
    optimizer.zero_grad()
    loss = model(batch).square().sum()
    loss.backward()
    optimizer.step()
    return loss.detach()

number = 3
"""


@pytest.fixture(autouse=True)
def own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a file brings is gone after the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def _never(path: str) -> ModuleType:
    raise AssertionError(f"{path} was loaded again")


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _loss(path: Path, load_file: Any = load_file, name: str = "loss") -> Any:
    return load_own_code(StepSpec(loss=FileFunction(str(path), name)), load_file).loss


def test_a_function_comes_from_the_module_that_is_there_already(tmp_path: Path) -> None:
    """Another one would have classes of its own."""
    path = _written(tmp_path / "already_there.py", "def loss(output):\n    return output\n")
    module = load_file(str(path))
    assert _loss(path, _never) is module.loss


def test_a_file_in_a_package_may_import_relatively(tmp_path: Path) -> None:
    _written(tmp_path / "tct_losses" / "__init__.py", "")
    _written(tmp_path / "tct_losses" / "parts.py", "factor = 3\n")
    path = _written(
        tmp_path / "tct_losses" / "all.py", "from .parts import factor\n\ndef loss(x):\n    return factor * x\n"
    )
    assert _loss(path, _never)(2) == 6


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    _written(tmp_path / "tct_neighbour.py", "factor = 5\n")
    path = _written(
        tmp_path / "tct_own.py", "from tct_neighbour import factor\n\ndef loss(x):\n    return factor * x\n"
    )
    assert _loss(path)(2) == 10


@pytest.mark.parametrize(("name", "why"), [("nothing", "has no 'nothing'"), ("number", "has a 'number' that cannot")])
def test_what_is_no_function_of_the_file_is_named(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(StageError, match=why):
        _loss(_written(tmp_path / "tct_named.py", _OWN), name=name)


def test_settings_hold_whatever_the_file_itself_sets(tmp_path: Path) -> None:
    text = _NET.format(channels_last=True, precision="high") + "\ntorch.set_float32_matmul_precision('highest')\n"
    step = StepSpec(channels_last=True, tf32=True)
    run = run_phase(_written(tmp_path / "net.py", text), tmp_path, step=step)
    assert run.process.done, run.process.failure


def test_a_step_of_ones_own_is_measured_and_its_weights_are_put_back(tmp_path: Path) -> None:
    """Its optimizer moves them, and yet the compiled step after the warm-up gives what the first eager one gave."""
    model = _written(tmp_path / "net.py", _NET.format(channels_last=False, precision="highest"))
    own = _written(tmp_path / "own.py", _OWN)
    step = StepSpec(own=FileFunction(str(own), "train_step"))
    run = run_phase(model, tmp_path, Phase.WARM, Mode.DEFAULT, step=step)
    assert run.process.done, run.process.failure
    assert run.process.model is not None and run.process.model.training, "a step of one's own trains"
    assert run.process.model.optimizer == "in train_step()"
    paths = {leaf.path for leaf in run.process.comparisons[ev.ComparisonKind.STEADY].leaves}
    assert "output" in paths and {"gradient of conv.weight", "gradient of fc.bias"} <= paths
    judged = judge(run.process.comparisons, run.process.random_outputs, training=True)
    assert judged.agreement in (Agreement.SAME, Agreement.WITHIN_ROUNDING), judged
    assert run.process.pairs and run.process.arms[Arm.COMPILED].warmup_steps > 3


def test_an_optimizer_is_compiled_with_its_model(tmp_path: Path) -> None:
    model = _written(tmp_path / "net.py", _NET.format(channels_last=False, precision="highest") + "\nTRAIN = True\n")
    own = _written(tmp_path / "own.py", _OWN)
    step = StepSpec(optimizer=FileFunction(str(own), "make_optimizer"), compile_optimizer=True, grad_clip=1.0)
    run = run_phase(model, tmp_path, Phase.COLD, Mode.DEFAULT, step=step)
    assert run.process.done, run.process.failure
    functions = {frame.function for frame in run.all_of(ev.FrameStarted)}
    assert "forward" in functions and any("step" in (name or "") for name in functions)
    assert not run.all_of(ev.GraphBreak), "torch's own in optimizer.step is nobody's to mend"
    assert run.process.model is not None
    assert run.process.model.optimizer == "make_optimizer lr 0, compiled with the model, gradients clipped to 1"
