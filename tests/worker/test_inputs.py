"""Input batches: made from specs or by the file, whatever they are wrapped in."""

from __future__ import annotations

import collections
import dataclasses
from collections import UserDict, defaultdict
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch

from tcompile_tui.core.spec import RunSpec, TensorSpec, parse_dims, parse_inputs, parse_target, parse_tensor
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.inputs import (
    ROTATED_BATCHES,
    clone_batch,
    describe_inputs,
    make_batches,
    make_further_batches,
    map_tensors,
    random_tensor,
    walk_leaves,
    walk_tensors,
)
from tcompile_tui.worker.loading import UserFile

pytestmark = pytest.mark.xdist_group("torch")
CPU = torch.device("cpu")


class Pair(NamedTuple):
    first: torch.Tensor
    second: Any


class Named(Pair):
    """A named tuple whose constructor does more than take its fields, as PackedSequence's does."""

    def __new__(cls, only: torch.Tensor) -> Named:
        return super().__new__(cls, only, None)


@dataclasses.dataclass(frozen=True)
class Frozen:
    ids: torch.Tensor
    label: str
    derived: torch.Tensor = dataclasses.field(init=False)
    factor: dataclasses.InitVar[int] = 2

    def __post_init__(self, factor: int) -> None:
        object.__setattr__(self, "derived", self.ids * factor)


class Keyed(UserDict):  # type: ignore[type-arg]
    """A mapping that is no dict, with attributes of its own, as a tokenizer returns it."""

    origin = ""


class Net(torch.nn.Module):  # type: ignore[misc]
    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return ids if mask is None else ids * mask


def _user(**names: Any) -> UserFile:
    module = ModuleType("net")
    vars(module).update(names)
    return UserFile(module, Net)


def _spec(*inputs: str, dtype: str | None = None, dims: tuple[str, ...] = (), place: str | None = None) -> RunSpec:
    target = parse_target("net.py")
    return RunSpec(target, parse_inputs(inputs), dtype=dtype, dims=parse_dims(dims), inputs_from=place)


# ---------------------------------------------------------------- random tensors


@pytest.mark.parametrize(
    ("text", "dtype", "low", "high"),
    [
        ("int64[2000]<5,8>", torch.int64, 5, 7),
        ("uint8[5000]<0,256>", torch.uint8, 0, 255),
        ("int8[5000]<-128,128>", torch.int8, -128, 127),
        ("int32[100]", torch.int32, 0, 1),
        ("bool[100]", torch.bool, 0, 1),
    ],
)
def test_integers_cover_their_range_and_nothing_else(text: str, dtype: torch.dtype, low: int, high: int) -> None:
    torch.manual_seed(0)
    tensor = random_tensor(parse_tensor(text))
    assert tensor.dtype is dtype
    assert (int(tensor.min()), int(tensor.max())) == (low, high)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_floats_are_normal_and_finite(dtype: str) -> None:
    torch.manual_seed(0)
    tensor = random_tensor(TensorSpec(dtype, (50, 40)))
    assert tensor.dtype is getattr(torch, dtype) and tensor.shape == (50, 40)
    assert bool(tensor.isfinite().all())
    assert float(tensor.abs().float().square().mean()) == pytest.approx(1, abs=0.15)


def test_scalars_and_empty_tensors_have_their_shape() -> None:
    assert random_tensor(TensorSpec("float32", ())).shape == ()
    assert random_tensor(TensorSpec("int64", (0, 3), low=0, high=9)).shape == (0, 3)


@pytest.mark.parametrize(
    ("text", "strides"),
    [
        ("f32[2,3,4,5]@channels_last", (60, 1, 15, 3)),
        ("f16[1,2,3,4,5]@channels_last_3d", (120, 1, 40, 10, 2)),
        ("f64[2,3]@strides[1,2]", (1, 2)),
        ("f32[4,3]@strides[0,1]", (0, 1)),
        ("i64[3]<0,9>@strides[7]", (7,)),
    ],
)
def test_tensors_lie_in_memory_as_asked(text: str, strides: tuple[int, ...]) -> None:
    assert random_tensor(parse_tensor(text)).stride() == strides


def test_a_layout_survives_the_asked_dtype() -> None:
    batch = make_batches(_user(), Net(), _spec("f32[2,3]@strides[1,2]@grad", dtype="float64"), CPU)[0]
    (tensor,) = batch.args
    assert (tensor.dtype, tensor.stride(), tensor.requires_grad) == (torch.float64, (1, 2), True)


def test_tensors_of_the_file_are_moved_whatever_they_are() -> None:
    made = {"ids": torch.ones(3).expand(2, 3), "mask": torch.ones(4).as_strided((3, 2), (1, 1))}
    batch = make_batches(_user(example_inputs=lambda: made), Net(), _spec(dtype="float64"), CPU)[0]
    assert batch.kwargs["ids"].stride() == (0, 1)
    assert batch.kwargs["mask"].dtype is torch.float64 and batch.kwargs["mask"].shape == (3, 2)
    sparse = make_batches(_user(example_inputs=lambda: torch.eye(3).to_sparse()), Net(), _spec(dtype="float64"), CPU)
    assert sparse[0].args[0].is_sparse


def test_values_follow_their_distribution() -> None:
    uniform = random_tensor(parse_tensor("f32[4000]@uniform"))
    assert float(uniform.min()) >= 0 and 0.9 < float(uniform.max()) < 1
    assert not random_tensor(parse_tensor("complex64[9]@zeros")).any()
    assert random_tensor(parse_tensor("f32[1]@grad")).requires_grad
    assert not random_tensor(parse_tensor("f32[1]")).requires_grad


# ---------------------------------------------------------------- batches


def test_inputs_may_be_any_values_and_share_sizes() -> None:
    class Loose(torch.nn.Module):  # type: ignore[misc]
        def forward(self, pair: Any, **named: Any) -> None: ...

    given = ("(f32[B,2], none)", "edges=[i64[2,E]<0,B>, 'a']", "options={scale: 0.5, mask: bool[B]}")
    batch = make_batches(_user(), Loose(), _spec(*given, dims=("B=5", "E=900")), CPU)[0]
    (pair,) = batch.args
    assert pair[0].shape == (5, 2) and pair[1] is None
    edges, word = batch.kwargs["edges"]
    assert (edges.shape, int(edges.max()), word) == ((2, 900), 4, "a")
    assert batch.kwargs["options"]["scale"] == 0.5 and batch.kwargs["options"]["mask"].shape == (5,)


def test_batches_differ_in_values_only_and_are_the_same_in_every_process() -> None:
    batches = make_batches(_user(), Net(), _spec("int64[4,8]<0,1000>", "mask=bool[4,8]"), CPU)
    again = make_batches(_user(), Net(), _spec("int64[4,8]<0,1000>", "mask=bool[4,8]"), CPU)
    assert len(batches) == ROTATED_BATCHES
    assert [info.path for info in describe_inputs(batches[0])] == ["args[0]", "mask"]
    assert {describe_inputs(batch) for batch in batches} == {describe_inputs(batches[0])}
    assert not torch.equal(batches[0].args[0], batches[1].args[0])
    assert all(torch.equal(a.args[0], b.args[0]) for a, b in zip(batches, again, strict=True))


@pytest.mark.parametrize(
    ("made", "args", "names"),
    [
        (torch.ones(2), 1, []),
        ((torch.ones(2), torch.ones(2)), 2, []),
        ([torch.ones(2)], 1, []),
        ({"ids": torch.ones(2)}, 0, ["ids"]),
        (Keyed(ids=torch.ones(2), mask=torch.ones(2)), 0, ["ids", "mask"]),
    ],
    ids=["tensor", "tuple", "list", "dict", "mapping"],
)
def test_what_example_inputs_may_return(made: Any, args: int, names: list[str]) -> None:
    batch = make_batches(_user(example_inputs=lambda: made), Net(), _spec(), CPU)[0]
    assert len(batch.args) == args and list(batch.kwargs) == names


def test_the_asked_dtype_goes_to_floating_inputs_only() -> None:
    made = {"ids": torch.ones(2, dtype=torch.int64), "mask": torch.ones(2)}
    batch = make_batches(_user(example_inputs=lambda: made), Net(), _spec(dtype="bfloat16"), CPU)[0]
    assert batch.kwargs["ids"].dtype is torch.int64 and batch.kwargs["mask"].dtype is torch.bfloat16


def test_inputs_that_change_their_shape_are_measured_in_their_first_one() -> None:
    lengths = iter(range(3, 100))
    batches = make_batches(_user(example_inputs=lambda: torch.ones(next(lengths))), Net(), _spec(), CPU)
    assert [batch.args[0].shape[0] for batch in batches] == [3]


def test_further_inputs_are_the_files_and_only_without_input_options() -> None:
    user = _user(more_inputs=lambda: (torch.ones(n) for n in (3, 5)))
    assert [batch.args[0].shape[0] for batch in make_further_batches(user, _spec(), CPU)] == [3, 5]
    assert make_further_batches(user, _spec("float32[4]"), CPU) == []
    assert make_further_batches(_user(), _spec(), CPU) == []


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError


def _fails() -> Any:
    raise UnprintableError


@pytest.mark.parametrize(
    ("user", "spec", "words"),
    [
        (_user(), _spec(), ["no input given", "tcompile-tui inspect", "--input", "forward(ids", "example_inputs"]),
        (_user(), _spec("float32[2]", "size=float32[2]"), ["do not fit", "'size'"]),
        (_user(), _spec("mask=float32[2]"), ["do not fit", "'ids'"]),
        (_user(example_inputs=_fails), _spec(), ["example_inputs() failed", "UnprintableError"]),
    ],
    ids=["none", "unknown name", "missing", "hook fails"],
)
def test_input_that_cannot_work_is_refused_in_words(user: UserFile, spec: RunSpec, words: list[str]) -> None:
    with pytest.raises(StageError) as caught:
        make_batches(user, Net(), spec, CPU)
    assert caught.value.fault == "input"
    assert all(word in str(caught.value) for word in words)


# ---------------------------------------------------------------- structures


def _doubled(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * 2


def test_every_container_is_entered_and_keeps_its_kind() -> None:
    one = torch.ones(1)
    keyed = Keyed(a=one)
    keyed.origin = "tokenizer"
    counts = defaultdict(list, a=one)
    value = {"list": [one, 5], "named": Pair(one, "x"), "odd": Named(one), "frozen": Frozen(one, "y"),
             "keyed": keyed, "counts": counts, "none": None}  # fmt: skip
    mapped = map_tensors(value, _doubled)
    assert mapped["list"][0] == 2 and mapped["list"][1] == 5
    assert isinstance(mapped["named"], Pair) and mapped["named"].first == 2 and mapped["named"].second == "x"
    assert isinstance(mapped["odd"], Named) and mapped["odd"].first == 2
    assert isinstance(mapped["frozen"], Frozen) and mapped["frozen"].ids == 2 and mapped["frozen"].derived == 4
    assert isinstance(mapped["keyed"], Keyed) and mapped["keyed"]["a"] == 2 and mapped["keyed"].origin == "tokenizer"
    assert isinstance(mapped["counts"], defaultdict) and mapped["counts"]["missing"] == []
    assert all(tensor == 1 for _, tensor in walk_tensors(value) if tensor is not value["frozen"].derived)  # type: ignore[attr-defined]


def test_leaves_have_paths_as_a_person_would_write_them() -> None:
    one = torch.ones(1)
    value = {"hidden": [one, (one, 3)], "out": Frozen(one, "y"), "map": collections.OrderedDict(a=None)}
    paths = [path for path, _ in walk_leaves(value)]
    assert paths == [
        "['hidden'][0]", "['hidden'][1][0]", "['hidden'][1][1]", "['out'].ids", "['out'].label", "['out'].derived",
        "['map']['a']",
    ]  # fmt: skip
    assert list(walk_leaves(one)) == [("", one)]


def test_a_cloned_batch_shares_no_memory() -> None:
    (batch,) = make_batches(_user(example_inputs=lambda: [[torch.ones(3)]]), Net(), _spec(), CPU)[:1]
    twin = clone_batch(batch)
    twin.args[0][0].zero_()
    assert bool(batch.args[0][0].all())
