"""Sizes with a name, a batch from a file and a library's model in the Setup form."""

from __future__ import annotations

import pytest

from tcompile_tui.core.candidates import FileHooks
from tcompile_tui.core.spec import Task
from tcompile_tui.ui.setup_form import Checked, FormValues, InputRow, check
from tcompile_tui.ui.setup_sizes import BATCH, SIZES, inputs_giver

ROW = InputRow("x", "float32[8,128]", True)
LIBRARY = FileHooks(example_inputs=True)


def form(written: str = "", target: str = "net.py", hooks: FileHooks | None = None, **values: str) -> Checked:
    inputs = (("x", written),) if written else ()
    return check(FormValues(target, inputs, sizes=values.get(SIZES, ""), batch=values.get(BATCH, "")), (ROW,), hooks)


def test_a_named_size_asks_for_its_number_and_takes_it() -> None:
    asked = form("float32[B,128]")
    assert asked.takes_sizes and not asked.can_run
    assert "the size B" in asked.errors["input x"] and asked.errors["input x"].endswith("or in Sizes B=8")
    checked = form("float32[B,128]", sizes="B=4")
    assert checked.command == "tcompile-tui run net.py --input 'x=float32[B,128]' --dim B=4"


def test_without_a_name_there_is_no_field_for_sizes() -> None:
    assert not form("float32[8,128]").takes_sizes


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [("B", "cannot read the size 'B': write B=32"), ("B=4 T=2", "no input has a size T: write it in a shape")],
)
def test_wrong_sizes_are_one_line_at_their_field(sizes: str, reason: str) -> None:
    checked = form("float32[B,128]" if "T" in sizes else "float32[4,128]", sizes=sizes)
    assert checked.errors[SIZES].startswith(reason) and set(checked.errors) == {SIZES}


def test_a_library_takes_sizes_for_its_own_inputs() -> None:
    checked = form(target="timm:resnet50", hooks=LIBRARY, sizes="B=32 H=288")
    assert checked.takes_sizes and checked.command == "tcompile-tui run timm:resnet50 --dim B=32 --dim H=288"


@pytest.mark.parametrize("batch", ["my batch.pt", "data.py:make_batch"])
def test_a_batch_stands_in_for_inputs(batch: str) -> None:
    checked = form(batch=batch)
    assert checked.can_run and checked.arguments == ["net.py", "--inputs", batch]


@pytest.mark.parametrize(
    ("values", "field", "reason"),
    [
        ({"written": "float32[8,128]", BATCH: "b.pt"}, BATCH, "inputs are written above: give those, or a batch"),
        ({BATCH: "data.py"}, BATCH, "which function makes it? write data.py:make_batch"),
        ({BATCH: "b.pt", SIZES: "B=8"}, SIZES, "a batch has its own sizes: leave these out"),
    ],
)
def test_what_does_not_go_together_is_one_line(values: dict[str, str], field: str, reason: str) -> None:
    checked = form(**values)
    assert checked.errors == {field: reason} and not checked.can_run


def test_inputs_come_from_the_file_or_from_the_library() -> None:
    assert inputs_giver("net.py:Net") == "example_inputs()"
    assert inputs_giver("timm:resnet50") == "timm"
    assert inputs_giver("timm:") == "example_inputs()"


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ("B=8 T=64,128", "--dim B=8 --dim T=64,128"),
        ("B=8,T=64,128", "--dim B=8 --dim T=64,128"),
        ("B=8; T=16..512", "--dim B=8 --shapes T=16..512"),
        ("B=1:5,8:3 T=9..16", "--shapes 'B=1:5,8:3;T=9..16'"),
    ],
)
def test_sizes_that_change_are_a_sequence_of_shapes(sizes: str, options: str) -> None:
    checked = form("float32[B,T]", sizes=sizes)
    assert checked.can_run and checked.command == f"tcompile-tui run net.py --input 'x=float32[B,T]' {options}"
    assert checked.spec is not None and checked.spec.shapes is not None
    assert {dim.name for dim in checked.spec.dims} == {"B", "T"}


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ("B=8,16 T=1..9", "write all that changes in one way"),
        ("B=8,16 B=4 T=3", "each size once"),
        ("B=8 T=9..9", "each size once, and of those that change more than one value"),
        ("B=8 T=9..3", "cannot read the shapes 'T=9..3'"),
    ],
)
def test_a_sequence_that_cannot_be_is_one_line_at_its_field(sizes: str, reason: str) -> None:
    checked = form("float32[B,T]", sizes=sizes)
    assert checked.errors[SIZES].startswith(reason) and not checked.can_run


def test_what_a_sequence_does_not_go_with_is_told_at_its_field() -> None:
    row = (InputRow("x", "float32[8,128]", True),)
    values = FormValues("net.py", (("x", "float32[B,8]"),), task=Task.TRAIN, sizes="B=8,16", step="--accumulate 2")
    assert "leave one of them out" in check(values, row).errors[SIZES]


def test_setup_decodes_with_both_caches() -> None:
    values = FormValues("transformers:gpt2", task=Task.DECODE)
    assert check(values, (), LIBRARY).command == "tcompile-tui run transformers:gpt2 --task decode --arm cache=growing"
