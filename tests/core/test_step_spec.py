"""What is written about a step, and what is refused before anything starts."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given

from tcompile_tui.core.spec import RunSpec, SpecError, parse_target
from tcompile_tui.core.step_spec import (
    BuiltinOptimizer,
    FileFunction,
    StepSpec,
    check_step,
    parse_step,
    split_step,
    step_from_json,
    step_text,
    step_words,
)

from .test_command_line import steps

LOSS = FileFunction("loss.py", "fn")


@given(steps)
def test_what_is_written_means_the_same_step(step: StepSpec) -> None:
    assert parse_step(step_words(step)) == step


@given(steps)
def test_a_step_crosses_the_wire_and_comes_back_from_a_record(step: StepSpec) -> None:
    written = msgspec.json.encode(RunSpec(parse_target("net.py"), step=step))
    assert step_from_json(json.loads(written)["step"]) == step
    assert msgspec.json.decode(written, type=RunSpec).step == step


def test_an_untouched_step_is_written_as_nothing() -> None:
    assert step_words(StepSpec()) == [] and step_text(StepSpec(), None) == ""
    assert parse_step([]) == StepSpec()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("--loss fn", "names no function: write file.py:function"),
        ("--loss my.py:1x", "names no function"),
        ("--optimizer adam", "unknown optimizer 'adam': sgd, adamw, or file.py:function"),
        ("--grad-clip 0", "is no norm"),
        ("--grad-clip nan", "is no norm"),
        ("--accumulate 0", "at least one micro-batch"),
        ("--accumulate 1.5", "at least one micro-batch"),
        ("--epoch last=0", "write last=37,eval=2"),
        ("--epoch last=3,last=4", "write last=37,eval=2"),
        ("--epoch train=0", "with train=500 before it"),
        ("--epoch no", "or none"),
        ("--loss", "--loss needs a value"),
        ("--learning-rate 1", "'--learning-rate' is no option of a step"),
        ("--tf32=yes", "is no option of a step"),
        ("--loss 'a.py:f", "a quote is not closed"),
    ],
)
def test_what_cannot_be_understood_is_named(line: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        parse_step(split_step(line))


@pytest.mark.parametrize(
    "line",
    ["--loss l.py:f", "--optimizer sgd", "--compile-optimizer", "--grad-clip 1", "--accumulate 2", "--epoch last=3"],
)
def test_an_inference_has_no_part_of_training(line: str) -> None:
    step = parse_step(split_step(line))
    assert check_step(step, infers=False, amp=None) == step
    with pytest.raises(SpecError, match=f"{line.split()[0]} is for training: leave it out, or use --task train"):
        check_step(step, infers=True, amp=None)


def test_settings_of_both_tasks_are_taken_in_both() -> None:
    step = StepSpec(channels_last=True, tf32=True)
    assert check_step(step, infers=True, amp="bf16") == step


def test_a_step_of_ones_own_leaves_nothing_to_what_it_replaces() -> None:
    own = StepSpec(own=FileFunction("train.py", "step"), optimizer=BuiltinOptimizer.SGD)
    assert check_step(own, infers=False, amp=None) == own
    for step, amp, option in (
        (replace(own, loss=LOSS), None, "--loss"),
        (replace(own, grad_clip=1.0), None, "--grad-clip"),
        (own, "bf16", "--amp"),
    ):
        with pytest.raises(SpecError, match=f"{option} and --step"):
            check_step(step, infers=False, amp=amp)


def test_files_are_named_absolutely_for_a_process_that_may_change_its_folder() -> None:
    step = StepSpec(loss=LOSS, optimizer=FileFunction("/elsewhere/opt.py", "make"))
    placed = step.under("/there")
    assert [str(function) for function in placed.functions] == ["/there/loss.py:fn", "/elsewhere/opt.py:make"]


def test_the_reader_is_told_what_both_arms_did() -> None:
    step = StepSpec(loss=LOSS, optimizer=BuiltinOptimizer.SGD, accumulate=4, grad_clip=1.0, tf32=True)
    words = "loss loss.py:fn, optimizer SGD with momentum, 4 micro-batches a step, gradients clipped to 1"
    assert step_text(step, "fp16") == f"{words}, autocast to fp16, TF32"
