"""Constructor arguments: literals as in Python or JSON, words, and files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core.argument_spec import Argument, parse_arguments, read_value
from tcompile_tui.core.spec_error import SpecError

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(json_values)
def test_literals_of_json_and_of_python_mean_the_same(value: Any) -> None:
    for text in (json.dumps(value), repr(value)):
        (argument,) = parse_arguments([f"a={text}"])
        assert read_value(argument) == value
        assert parse_arguments([str(argument)]) == (argument,)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("256", 256), ("1e-3", 0.001), ("relu", "relu"), ("models/a-b.pt", "models/a-b.pt"), ("None", None),
        ("true", True), ("True", True), ("(1, 2)", (1, 2)), ("[64,128]", [64, 128]), ('{"a": null}', {"a": None}),
    ],
)  # fmt: skip
def test_values_as_people_write_them(text: str, value: Any) -> None:
    assert read_value(Argument("a", text)) == value


def test_a_dotted_name_is_a_field_and_an_at_sign_a_file() -> None:
    field, file = parse_arguments(["config.hidden=8", "config=@my dir/config.json"])
    assert (field.parameter, field.file) == ("config", None)
    assert (file.parameter, file.file) == ("config", "my dir/config.json")


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["hidden"], "write --arg hidden=256"), (["=3"], "write --arg"), (["2a=3"], "write --arg"),
        (["a.=3"], "write --arg"), (["a=1", "a=2"], "'a' is given twice"), (["a=two words"], "cannot read the value"),
        (["a=[1"], "cannot read the value"), (["a="], "cannot read the value"), (["a=@"], "no file after @"),
        (["a=print(1)"], "cannot read the value"),
    ],
)  # fmt: skip
def test_what_is_no_argument_is_told(texts: list[str], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        parse_arguments(texts)
