"""The form's values, what they mean on the command line, and what is said about wrong ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.cli import run as run_command
from tcompile_tui.core.candidates import Candidate, CandidateKind, FileHooks, Parameter
from tcompile_tui.core.spec import Mode, Preset, Task, parse_tensor
from tcompile_tui.ui.setup_form import (
    ARGUMENTS,
    MODES,
    PLAN,
    STEP,
    TARGET,
    FormValues,
    InputRow,
    PlanUnit,
    check,
    example_tensor,
    input_rows,
)

WITH_EXAMPLES = FileHooks(example_inputs=True)
ROWS = (InputRow("ids", "int64[8,128]<0,1000>", True), InputRow("mask", "int64[8,128]<0,2>", False))


def model(*forward: Parameter) -> Candidate:
    return Candidate("Net", 1, CandidateKind.CLASS, (), forward)


def test_an_untouched_form_is_the_shortest_command() -> None:
    checked = check(FormValues("model.py"), ROWS, WITH_EXAMPLES)
    assert checked.can_run
    assert checked.command == "tcompile-tui run model.py"
    assert checked.arguments == ["model.py"]
    assert checked.next_step == "press r to find out"


def test_every_field_reaches_the_command_line_as_the_program_reads_it() -> None:
    values = FormValues(
        target="my models/net.py:Net",
        inputs=(("ids", "i64[4,512]<0,50257>"), ("mask", " bool[4,512] ")),
        task=Task.TRAIN,
        modes=(Mode.MAX_AUTOTUNE, Mode.DEFAULT),
        device="cuda:1",
        dtype="bfloat16",
        amp="fp16",
        step="--optimizer sgd --grad-clip 0.5 --tf32",
        plan="300,000",
        plan_unit=PlanUnit.STEPS,
        preset=Preset.QUICK,
    )
    checked = check(values, ROWS, WITH_EXAMPLES)
    assert checked.can_run
    read = run_command.make_context("run", checked.arguments).params
    assert read["target"] == "my models/net.py:Net"
    assert read["inputs"] == ("ids=int64[4,512]<0,50257>", "mask=bool[4,512]")
    assert (read["task"], read["modes"]) == ("train", ("default", "max-autotune"))
    assert (read["device"], read["dtype"], read["amp"]) == ("cuda:1", "bfloat16", "fp16")
    assert (read["optimizer"], read["grad_clip"], read["tf32"]) == ("sgd", "0.5", True)
    assert (read["planned_steps"], read["planned_hours"], read["preset"]) == (300_000, None, "quick")
    assert read["budget"] is None  # the preset's own


@pytest.mark.parametrize(
    ("wrong", "field", "reason"),
    [
        ({"target": "net.ipynb"}, TARGET, "is a notebook"),
        ({"target": "package.module"}, TARGET, "names no model"),
        ({"inputs": (("ids", "int64[4"),)}, "input ids", "write it as int64[8,128]<0,1000>"),
        ({"inputs": (("ids", "int65[4]"),)}, "input ids", "unknown dtype 'int65': one of"),
        ({"inputs": (("ids", "int64[4,x]"),)}, "input ids", "the size x is not given"),
        ({"inputs": (("ids", "f32[4]<0,9>"),)}, "input ids", "a range needs an integer dtype"),
        ({"inputs": (("mask", "bool[4]"),)}, "input ids", "needed too"),
        ({"step": "--optimizer adam"}, STEP, "unknown optimizer 'adam'"),
        ({"step": "--accumulate 2"}, STEP, "--accumulate is for training"),
        ({"modes": ()}, MODES, "at least one"),
        ({"plan": "0"}, PLAN, "hours above 0"),
        ({"plan": "soon"}, PLAN, "hours above 0"),
        ({"plan": "inf"}, PLAN, "hours above 0"),
        ({"plan": "nan"}, PLAN, "hours above 0"),
        ({"plan": "2.5", "plan_unit": PlanUnit.STEPS}, PLAN, "whole number of steps"),
        ({"plan": "0", "plan_unit": PlanUnit.STEPS}, PLAN, "whole number of steps"),
        ({"plan": "9" * 5_000, "plan_unit": PlanUnit.STEPS}, PLAN, "whole number of steps"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(wrong: dict[str, object], field: str, reason: str) -> None:
    checked = check(replace(FormValues("model.py"), **wrong), ROWS, WITH_EXAMPLES)  # type: ignore[arg-type]
    assert list(checked.errors) == [field]
    assert reason in checked.errors[field]
    assert not checked.can_run
    assert checked.next_step == "correct what is marked with !"


WIDTH = (Parameter("width", "int"), Parameter("act", "str", "'relu'"))


def test_constructor_arguments_are_words_that_run_takes() -> None:
    values = FormValues("model.py", arguments="width=8 'act=\"a b\"'")
    checked = check(values, ROWS, WITH_EXAMPLES, WIDTH)
    assert checked.can_run
    read = run_command.make_context("run", checked.arguments).params
    assert read["arguments"] == ("width=8", 'act="a b"')


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("", "missing", "needed: width: int; write width=VALUE"),
        ("act=gelu", "missing", "needed: width: int; write width=VALUE"),
        ("width", "errors", "width"),
        ("act='a", "errors", "quotation mark"),
    ],
)
def test_what_is_wrong_with_constructor_arguments_is_said(text: str, where: str, reason: str) -> None:
    checked = check(FormValues("model.py", arguments=text), ROWS, WITH_EXAMPLES, WIDTH)
    assert not checked.can_run
    assert reason in getattr(checked, where)[ARGUMENTS]


def test_a_model_without_parameters_takes_none_of_them() -> None:
    """What was written for another model does not count."""
    checked = check(FormValues("model.py", arguments="width=8"), ROWS, WITH_EXAMPLES, ())
    assert checked.can_run and checked.command == "tcompile-tui run model.py"


def test_the_command_shows_what_is_right_while_something_is_wrong() -> None:
    values = FormValues("model.py", inputs=(("ids", "int64["),), plan="x", device="cpu")
    assert check(values, ROWS, WITH_EXAMPLES).command == "tcompile-tui run model.py --device cpu"
    assert check(FormValues(), ROWS).command == "tcompile-tui run MODEL.py"


def test_an_empty_form_is_not_wrong_but_cannot_run() -> None:
    checked = check(FormValues())
    assert (checked.can_run, dict(checked.errors), list(checked.missing)) == (False, {}, [TARGET])
    assert checked.next_step == "choose a model, then press r"


def test_without_example_inputs_the_required_ones_are_missing() -> None:
    checked = check(FormValues("model.py"), ROWS, FileHooks())
    assert (checked.can_run, list(checked.missing)) == (False, ["input ids"])
    assert checked.next_step == "fill in the inputs, or press i; then r"
    filled = check(FormValues("model.py", inputs=(("ids", "i64[4]<0,9>"),)), ROWS, FileHooks())
    assert filled.arguments == ["model.py", "--input", "ids=int64[4]<0,9>"]


def test_texts_of_parameters_that_the_model_has_not_are_left_out() -> None:
    values = FormValues("model.py", inputs=(("gone", "f32[2]"),))
    assert check(values, ROWS, WITH_EXAMPLES).arguments == ["model.py"]


def test_a_row_for_any_inputs_takes_several() -> None:
    rows = input_rows(Candidate("net", 1, CandidateKind.VALUE))
    assert [row.name for row in rows] == [""]
    values = FormValues("model.py", inputs=(("", "f32[2, 3]  ids = int64[4]<0, 9>"),))
    assert check(values, rows).arguments[1:] == ["--input", "float32[2,3]", "--input", "ids=int64[4]<0,9>"]
    wrong = check(FormValues("model.py", inputs=(("", "a=f32[2] f32[3]"),)), rows)
    assert "has no name but follows one that has" in wrong.errors["input "]


def test_rows_are_the_tensors_that_forward_takes() -> None:
    net = model(
        Parameter("input_ids", "torch.Tensor"),
        Parameter("attention_mask", "torch.Tensor | None", "None"),
        Parameter("past", None, "None"),
        Parameter("use_cache", "bool | None", "None"),
        Parameter("scale", "float", "1.0"),
        Parameter("steps", "Optional[int]", "None"),
    )
    assert [(row.name, row.required) for row in input_rows(net)] == [
        ("input_ids", True),
        ("attention_mask", False),
        ("past", False),
    ]
    assert input_rows(None) == ()


@pytest.mark.parametrize(
    ("name", "annotation", "example"),
    [
        ("images", "torch.Tensor", "float32[8,3,224,224]"),
        ("pixel_values", None, "float32[8,3,224,224]"),
        ("input_ids", None, "int64[8,128]<0,1000>"),
        ("x", "torch.LongTensor", "int64[8,128]<0,1000>"),
        ("x", 'Int[Tensor, "b n"]', "int64[8,128]<0,1000>"),
        ("attention_mask", None, "int64[8,128]<0,2>"),
        ("keep", "torch.BoolTensor", "bool[8,128]"),
        ("x", "torch.Tensor", "float32[8,128]"),
        ("grid", None, "float32[8,128]"),
    ],
)
def test_examples_follow_name_and_annotation(name: str, annotation: str | None, example: str) -> None:
    assert example_tensor(Parameter(name, annotation)) == example
    assert str(parse_tensor(example)) == example


@given(st.text(), st.text(), st.sampled_from(PlanUnit), st.text())
def test_nothing_that_can_be_written_raises(target: str, tensor: str, unit: PlanUnit, plan: str) -> None:
    values = FormValues(target, (("ids", tensor),), plan=plan, plan_unit=unit)
    checked = check(values, ROWS, WITH_EXAMPLES)
    assert checked.can_run or checked.errors or checked.missing
    if checked.can_run and tensor.strip():
        assert checked.spec is not None
        assert checked.spec.inputs[0] == parse_tensor(f"ids={tensor.strip()}")
