"""The grammar of inputs: what is read is what was meant, and an error is one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core.input_spec import (
    DISTRIBUTIONS,
    DTYPES,
    INTEGER_DTYPES,
    LAYOUT_RANKS,
    Dim,
    TensorSpec,
    check_sizes,
    format_value,
    parse_dims,
    parse_input,
    parse_inputs,
    parse_tensor,
    read_input,
    tensors_in,
)
from tcompile_tui.core.spec_error import SpecError

names = st.from_regex(r"[^\W\d]\w{0,8}", fullmatch=True).filter(str.isidentifier)
int_ranges = {
    dtype: (0, 255) if dtype == "uint8" else (-(2 ** (int(dtype[3:]) - 1)), 2 ** (int(dtype[3:]) - 1) - 1)
    for dtype in INTEGER_DTYPES
}


sizes = names


@st.composite
def tensors(draw: st.DrawFn, called: st.SearchStrategy[str | None] = st.none() | names) -> TensorSpec:  # noqa: B008
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 10**6) | sizes, max_size=5)))
    tensor = TensorSpec(dtype, shape, draw(called))
    if draw(st.booleans()):
        strides = draw(st.lists(st.integers(0, 10**6), min_size=len(shape), max_size=len(shape)))
        tensor = replace(tensor, strides=tuple(strides))
    elif len(shape) in LAYOUT_RANKS.values() and draw(st.booleans()):
        tensor = replace(tensor, layout={4: "channels_last", 5: "channels_last_3d"}[len(shape)])
    if dtype.startswith(("float", "bfloat", "complex")):
        choices = st.sampled_from([None, *DISTRIBUTIONS])
        return replace(tensor, distribution=draw(choices), requires_grad=draw(st.booleans()))
    if dtype not in int_ranges or draw(st.booleans()):
        return tensor
    smallest, largest = int_ranges[dtype]
    low = draw(st.integers(smallest, largest - 1))
    return replace(tensor, low=low, high=draw(st.integers(low + 1, largest) | sizes))


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
values = st.recursive(
    plain | tensors(st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=4), inner, max_size=3),
    ),
    max_leaves=8,
)


# ---------------------------------------------------------------- one tensor


@given(tensors())
def test_tensors_are_read_and_written_alike(tensor: TensorSpec) -> None:
    assert parse_tensor(str(tensor)) == tensor


@pytest.mark.parametrize(
    ("text", "tensor"),
    [
        ("f32[]", TensorSpec("float32", ())),
        (" x = torch.half [ 4 , 3 ] ", TensorSpec("float16", (4, 3), "x")),
        ("ids=long[4,512]<0, 50257>", TensorSpec("int64", (4, 512), "ids", 0, 50257)),
        ("u8[2]<0,256>", TensorSpec("uint8", (2,), None, 0, 256)),
        ("i8[0]<-128,-127>", TensorSpec("int8", (0,), None, -128, -127)),
        ("bool[1]", TensorSpec("bool", (1,))),
        ("x=f32[B,3]", TensorSpec("float32", ("B", 3), "x")),
        ("edges=long[2,E]<0,num_nodes>", TensorSpec("int64", (2, "E"), "edges", 0, "num_nodes")),
        (
            "f32[1,2,3,4]@channels_last @grad",
            TensorSpec("float32", (1, 2, 3, 4), layout="channels_last", requires_grad=True),
        ),
        ("f16[2,3]@strides[1, 2]@uniform", TensorSpec("float16", (2, 3), strides=(1, 2), distribution="uniform")),
        ("complex64[2]@zeros", TensorSpec("complex64", (2,), distribution="zeros")),
    ],
)
def test_tensors_as_people_write_them(text: str, tensor: TensorSpec) -> None:
    assert parse_tensor(text) == tensor


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
        ("float32[B-1]", "'B-1'"), ("int64[2]<0,n m>", "cannot read the range"),
        ("float32[2]@fast", "unknown '@fast'"), ("float32[2]@", "unknown '@'"),
        ("float32[2,3]@channels_last", "needs 4 sizes"), ("float32[2]@strides[1,2]", "needs 1 whole"),
        ("float32[1,1,1,1]@strides[1,1,1,1]@channels_last", "no strides"),
        ("float32[1,1,1,1]@channels_last@strides[1,1,1,1]", "one of them"),
        ("int64[2]@normal", "floating"), ("bool[2]@grad", "floating"),
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_a_tensor_that_is_none_is_told(text: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        parse_tensor(text)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["x=f32[1]", "x=f32[2]"], "'x' is given twice"),
        (["f32[1]", "x=f32[2]", "i8[3]"], r"int8\[3\].*put it first"),
    ],
)
def test_inputs_follow_the_rules_of_a_call(texts: list[str], told: str) -> None:
    assert parse_inputs(["f32[1]", "f32[1]", "x=f32[2]", "y=f32[2]"])[3].name == "y"
    assert parse_inputs(()) == ()
    with pytest.raises(SpecError, match=told):
        parse_inputs(texts)


# ---------------------------------------------------------------- any value


@given(values)
def test_values_are_read_and_written_alike(value: Any) -> None:
    given = parse_input(format_value(value))
    assert read_input(given) == (None, value)
    assert parse_input(str(given)) == given


@given(names, values)
def test_a_value_keeps_its_name(name: str, value: Any) -> None:
    read_name, read_value = read_input(parse_input(f"{name}={format_value(value)}"))
    assert read_name == name
    bare = replace(read_value, name=None) if isinstance(read_value, TensorSpec) else read_value
    assert bare == value


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("scale=0.5", "scale", 0.5), ("3", None, 3), ("-1e-3", None, -0.001), ("mask=none", "mask", None),
        ("return_dict=True", "return_dict", True), ("return_dict=false", "return_dict", False),
        ("how='a, (b)'", "how", "a, (b)"), ("()", None, ()), ("[ ]", None, []), ("{}", None, {}),
        ("p=(f32[2], 3)", "p", (TensorSpec("float32", (2,)), 3)),
        ("[i64[B]<0,9>]", None, [TensorSpec("int64", ("B",), None, 0, 9)]),
        ("{ids: i64[2], 'a b': {c: (none,)}}", None, {"ids": TensorSpec("int64", (2,)), "a b": {"c": (None,)}}),
    ],
)  # fmt: skip
def test_values_as_people_write_them(text: str, name: str | None, value: Any) -> None:
    assert read_input(parse_input(text)) == (name, value)


@pytest.mark.parametrize(
    "text",
    ["(f32[2]", "[1,,2]", "{a 1}", "{1: 2}", "(1 2)", "'open", "word", "1.2.3", "(" * 400, "x=(float99[2],)", "{a:}"],
)
@given(around=st.text(st.sampled_from("()[]{}',:=<> 0a"), max_size=4))
def test_a_value_that_is_none_is_told_in_one_line(text: str, around: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_input(text)
    assert str(caught.value).isprintable()
    try:
        parse_input(around + text)
    except SpecError as error:
        assert str(error).isprintable()


# ---------------------------------------------------------------- sizes with a name


def test_sizes_stand_for_their_names() -> None:
    assert parse_dims(["B=4", " num_nodes = 20 "]) == (Dim("B", 4), Dim("num_nodes", 20))
    tensor = parse_tensor("edges=i64[2,B]<0,num_nodes>").with_sizes({"B": 4, "num_nodes": 20})
    assert str(tensor) == "edges=int64[2,4]<0,20>"
    nested = read_input(parse_input("({a: f32[B]}, [f32[C]], 1)"))[1]
    assert [tensor.size_names for tensor in tensors_in(nested)] == [("B",), ("C",)]


@pytest.mark.parametrize(
    ("inputs", "dims", "told"),
    [
        (["f32[B]"], [], r"the size B .* add --dim B=8"),
        (["(f32[C], f32[B])"], ["C=1"], "the size B"),
        (["f32[B]"], ["B=1", "C=1"], "no input has a size C"),
        (["i64[2]<0,n>"], ["n=0"], "<0,0> .* is empty"),
        (["i8[2]<0,n>"], ["n=200"], "does not fit into int8"),
        ([], ["B=8"], "no input has a size B"),
    ],
)
def test_sizes_that_do_not_fit_are_told(inputs: list[str], dims: list[str], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        check_sizes(parse_inputs(inputs), parse_dims(dims))


@pytest.mark.parametrize("text", ["B", "B=", "B=-1", "B=8,16", "2B=3", "B=1.0", "=3", "B=" + "9" * 30])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(SpecError, match="write --dim B=32"):
        parse_dims([text])
