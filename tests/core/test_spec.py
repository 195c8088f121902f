"""The grammar of the command line: what is read is what was meant, and an error is one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core import spec as sp
from tcompile_tui.core.spec import SpecError, Target, TensorSpec

names = st.from_regex(r"[^\W\d]\w{0,8}", fullmatch=True).filter(str.isidentifier)
int_ranges = {
    dtype: (0, 255) if dtype == "uint8" else (-(2 ** (int(dtype[3:]) - 1)), 2 ** (int(dtype[3:]) - 1) - 1)
    for dtype in sp.INTEGER_DTYPES
}


@st.composite
def tensors(draw: st.DrawFn, names: st.SearchStrategy[str | None] = st.none() | names) -> TensorSpec:  # noqa: B008
    dtype = draw(st.sampled_from(sp.DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 10**6), max_size=4)))
    tensor = TensorSpec(dtype, shape, draw(names))
    if dtype not in int_ranges or draw(st.booleans()):
        return tensor
    smallest, largest = int_ranges[dtype]
    low = draw(st.integers(smallest, largest - 1))
    return replace(tensor, low=low, high=draw(st.integers(low + 1, largest)))


# ---------------------------------------------------------------- targets


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("model.py", Target("model.py", None, None)),
        (" model.py:Net ", Target("model.py", None, "Net")),
        ("a dir/model.py:Outer.Inner", Target("a dir/model.py", None, "Outer.Inner")),
        ("./models/", Target("./models/", None, None)),
        ("models/net:Net", Target("models/net", None, "Net")),
        ("odd:dir/model.py", Target("odd:dir/model.py", None, None)),
        ("odd:dir/net", Target("odd:dir/net", None, None)),
        ("odd:dir/model.py:Net", Target("odd:dir/model.py", None, "Net")),
        ("package.module:Net", Target(None, "package.module", "Net")),
        ("größe:Änderung", Target(None, "größe", "Änderung")),
    ],
)
def test_targets_are_read_and_written_alike(text: str, target: Target) -> None:
    assert sp.parse_target(text) == target
    assert sp.parse_target(str(target)) == target


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no model given"), ("  ", "no model given"), ("model.py:", "not a name"), ("model.py:3", "'3'"),
        ("model.py:Net()", "'Net()'"), ("model.py: Net", "' Net'"), ("package.module", "names no model"),
        ("train.ipynb", "nbconvert"), ("train.ipynb:Net", "nbconvert"),
        (":Net", "neither"), ("2fast:Net", "neither"),
        ("a..b:Net", "neither"), ("package\n:Net", "neither"),
    ],
)  # fmt: skip
def test_a_target_that_is_none_is_told(text: str, told: str) -> None:
    with pytest.raises(SpecError, match=told.replace("(", r"\(").replace(")", r"\)")):
        sp.parse_target(text)


def test_labels_are_short() -> None:
    texts = ("dir/net.py", "dir/net.py:Big", "dir/net.py:net", "pkg.nets:Big")
    assert [sp.parse_target(text).label for text in texts] == ["net", "net-Big", "net", "nets-Big"]


# ---------------------------------------------------------------- inputs


@given(tensors())
def test_tensors_are_read_and_written_alike(tensor: TensorSpec) -> None:
    assert sp.parse_tensor(str(tensor)) == tensor


@pytest.mark.parametrize(
    ("text", "tensor"),
    [
        ("f32[]", TensorSpec("float32", ())),
        (" x = torch.half [ 4 , 3 ] ", TensorSpec("float16", (4, 3), "x")),
        ("ids=long[4,512]<0, 50257>", TensorSpec("int64", (4, 512), "ids", 0, 50257)),
        ("u8[2]<0,256>", TensorSpec("uint8", (2,), None, 0, 256)),
        ("i8[0]<-128,-127>", TensorSpec("int8", (0,), None, -128, -127)),
        ("bool[1]", TensorSpec("bool", (1,))),
    ],
)
def test_tensors_as_people_write_them(text: str, tensor: TensorSpec) -> None:
    assert sp.parse_tensor(text) == tensor


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "cannot read the input"), ("4,3", "cannot read"),
        ("float32", "cannot read"), ("float32[2", "cannot read"),
        ("float32[2]x", "cannot read"), ("=float32[2]", "'' in"),
        ("2x=float32[2]", "'2x'"), ("float31[2]", "'float31'"),
        ("float32[2,]", "is not a size"), ("float32[-1]", "'-1'"),
        ("float32[2.0]", "'2.0'"), ("float32[٣]", "'٣'"),
        ("float32[" + "9" * 5000 + "]", "is not a size"), ("int64[2]<0>", "cannot read the range"),
        ("int64[2]<0,1,2>", "cannot read the range"),
        ("int64[2]<0," + "9" * 5000 + ">", "cannot read the range"),
        ("int64[2]<5,5>", "is empty"), ("float32[2]<0,5>", "needs an integer"),
        ("bool[2]<0,2>", "needs an integer"),
        ("uint8[2]<-1,5>", "does not fit"), ("uint8[2]<0,257>", "does not fit"),
        ("int8[2]<0,129>", "does not fit"),
        (f"int64[2]<0,{2**63}>", "does not fit"),
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_a_tensor_that_is_none_is_told(text: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        sp.parse_tensor(text)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["x=f32[1]", "x=f32[2]"], "'x' is given twice"),
        (["f32[1]", "x=f32[2]", "i8[3]"], r"int8\[3\].*put it first"),
    ],
)
def test_inputs_follow_the_rules_of_a_call(texts: list[str], told: str) -> None:
    assert sp.parse_inputs(["f32[1]", "f32[1]", "x=f32[2]", "y=f32[2]"])[3].name == "y"
    assert sp.parse_inputs(()) == ()
    with pytest.raises(SpecError, match=told):
        sp.parse_inputs(texts)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("parse", [sp.parse_target, sp.parse_tensor, sp.parse_device, sp.parse_dtype])
@given(start=st.sampled_from(["", "m.py:", "pkg:N", "x=", "f32[", "int8[2]<0,"]), rest=st.text(st.characters()))
def test_anything_is_read_or_told_in_one_printable_line(parse: Callable[[str], Any], start: str, rest: str) -> None:
    try:
        parse(start + rest)
    except SpecError as error:
        assert str(error).isprintable()
