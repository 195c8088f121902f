"""Which block of a model repeats, and what is compiled then. Nothing is called, so nothing compiles."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from tcompile_tui.core.compile_options import CompiledBlocks, parse_arm
from tcompile_tui.worker.compare import snapshot_outputs
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.regions import compile_as, find_blocks, repeated_block

pytestmark = pytest.mark.xdist_group("torch")


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.linear = Inner(), Inner(), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.linear(self.second(self.first(x)))


class Net(nn.Module):
    def __init__(self, extra: nn.Module | None = None) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.layers = nn.ModuleList([Block() for _ in range(3)])
        self.extra = extra

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        return x


class Wrapping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict({name: nn.TransformerEncoderLayer(4, 1, 4) for name in "ab"})


def is_compiled(module: nn.Module) -> bool:
    return module._compiled_call_impl is not None


def test_the_block_that_covers_most_of_the_model_is_taken() -> None:
    assert find_blocks(Net(), None) == ["layers.0", "layers.1", "layers.2"]
    assert len(find_blocks(Net(), "Inner")) == 6


def test_only_blocks_that_are_most_of_the_model_are_proposed() -> None:
    assert repeated_block(Net()) == CompiledBlocks("Block", 3, "layers")
    assert repeated_block(Net(extra=nn.Linear(64, 64))) is None
    assert repeated_block(nn.Linear(2, 2)) is None


def test_a_block_within_one_of_its_class_is_a_part_of_it() -> None:
    net = Net()
    net.layers[0].add_module("same", Block())
    assert find_blocks(net, "Block") == ["layers.0", "layers.1", "layers.2"]


@pytest.mark.parametrize(
    ("name", "reason"), [("Nothing", "no block of class Nothing repeats.*; these do: Block, Inner"), (None, "repeats")]
)
def test_a_model_without_such_a_block_is_told(name: str | None, reason: str) -> None:
    with pytest.raises(StageError, match=reason):
        find_blocks(Net() if name else nn.Sequential(nn.Linear(2, 2), Block().linear), name)


def test_regional_compiles_the_blocks_and_not_the_model() -> None:
    net = Net()
    called, wrapped, blocks = compile_as(net, parse_arm("regional"))
    assert called is net and not wrapped and blocks == CompiledBlocks("Block", 3, "layers")
    assert [path for path, module in net.named_modules() if is_compiled(module)] == ["layers.0", "layers.1", "layers.2"]


def test_blocks_beside_others_have_no_container() -> None:
    _, _, blocks = compile_as(Net(extra=Block()), parse_arm("regional"))
    assert blocks == CompiledBlocks("Block", 4, None)


def test_blocks_of_torch_s_own_classes_are_replaced() -> None:
    net = Wrapping()
    next(iter(net.parameters())).grad = torch.ones(12, 4)
    before = snapshot_outputs(None, net, with_gradients=True)
    _, wrapped, blocks = compile_as(net, parse_arm("regional"))
    assert wrapped and blocks == CompiledBlocks("TransformerEncoderLayer", 2, "blocks")
    assert [type(block).__name__ for block in net.blocks.values()] == ["OptimizedModule"] * 2
    assert list(before) == list(snapshot_outputs(None, net, with_gradients=True)) and len(before) == 1


@pytest.mark.skipif(not hasattr(torch.compiler, "nested_compile_region"), reason="torch before 2.8")
def test_nested_marks_the_blocks_of_this_model_alone() -> None:
    net = Net()
    other, x = copy.deepcopy(net), torch.randn(2, 4)
    called, wrapped, blocks = compile_as(net, parse_arm("nested"))
    assert is_compiled(called) and not wrapped and blocks == CompiledBlocks("Block", 3, "layers")
    assert type(other.layers[0]) is Block and type(net.layers[0]).forward is not Block.forward
    net._compiled_call_impl = None
    assert torch.equal(net(x), other(x))


def test_an_option_that_this_torch_lacks_is_named() -> None:
    with pytest.raises(StageError, match="has no option 'no_such'"):
        compile_as(Net(), parse_arm("no_such=1"))
    compile_as(Net(), parse_arm("max-autotune,coordinate_descent_tuning=true"))
