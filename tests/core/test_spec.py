"""The grammar of the command line: what is read is what was meant, and an error is one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core import spec as sp
from tcompile_tui.core.spec import Source, SpecError, Target

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
        (
            "timm:vit_base_patch16_224.augreg_in21k",
            Target(None, None, "vit_base_patch16_224.augreg_in21k", Source.TIMM),
        ),
        ("torchvision:vit_b_16", Target(None, None, "vit_b_16", Source.TORCHVISION)),
        ("transformers:xlm-roberta", Target(None, None, "xlm-roberta", Source.TRANSFORMERS)),
        ("transformers:./a dir/config.json", Target(None, None, "./a dir/config.json", Source.TRANSFORMERS)),
        ("torchvision.models:resnet18", Target(None, "torchvision.models", "resnet18")),
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
        ("timm:", "write timm:resnet50"), ("torchvision:a/b.py", "write torchvision:vit_b_16"),
        ("transformers:", "transformers:./config.json"), ("timm:config.yaml/x", "names no model of timm"),
    ],
)  # fmt: skip
def test_a_target_that_is_none_is_told(text: str, told: str) -> None:
    with pytest.raises(SpecError, match=told.replace("(", r"\(").replace(")", r"\)")):
        sp.parse_target(text)


def test_labels_are_short() -> None:
    labels = {
        "dir/net.py": "net", "dir/net.py:Big": "net-Big", "dir/net.py:net": "net", "pkg.nets:Big": "nets-Big",
        "timm:resnet50": "resnet50", "transformers:./dir/tiny.json": "tiny",
    }  # fmt: skip
    assert {text: sp.parse_target(text).label for text in labels} == labels


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("parse", [sp.parse_target, sp.parse_tensor, sp.parse_device, sp.parse_dtype])
@given(start=st.sampled_from(["", "m.py:", "pkg:N", "x=", "f32[", "int8[2]<0,"]), rest=st.text(st.characters()))
def test_anything_is_read_or_told_in_one_printable_line(parse: Callable[[str], Any], start: str, rest: str) -> None:
    try:
        parse(start + rest)
    except SpecError as error:
        assert str(error).isprintable()
