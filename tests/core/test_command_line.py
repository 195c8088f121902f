"""The rest of a run's specification, and the command line that stands for it."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core import spec as sp
from tcompile_tui.core.data_spec import DataSpec, read_data
from tcompile_tui.core.spec import Mode, Plan, Preset, RunSpec, SpecError, Starts, Target, Task
from tcompile_tui.core.step_spec import BuiltinOptimizer, Epoch, FileFunction, StepSpec, parse_step


def test_devices_and_dtypes() -> None:
    assert [sp.parse_device(text) for text in ("auto", "cpu", "cuda:11")] == ["auto", "cpu", "cuda:11"]
    assert [sp.parse_dtype(text) for text in ("bf16", "float64", "half")] == [
        "bfloat16",
        "float64",
        "float16",
    ]
    for text in ("gpu", "cuda:", "cuda:x", "cuda:٣", "cpu\n", "CPU"):
        with pytest.raises(SpecError, match="unknown device"):
            sp.parse_device(text)
    for text in ("int64", "complex64", "bool", ""):
        with pytest.raises(SpecError, match="for the model"):
            sp.parse_dtype(text)


def test_modes_come_once_and_the_quick_ones_first() -> None:
    assert sp.order_modes([]) == (Mode.DEFAULT,)
    assert sp.order_modes([Mode.MAX_AUTOTUNE, Mode.DEFAULT, Mode.MAX_AUTOTUNE]) == (
        Mode.DEFAULT,
        Mode.MAX_AUTOTUNE,
    )
    assert sp.order_modes(tuple(reversed(Mode)))[:2] == (Mode.DEFAULT, Mode.REDUCE_OVERHEAD)


def test_a_plan_is_in_steps_or_in_hours_of_eager_steps() -> None:
    assert (Plan().assumed, Plan(steps=1).assumed, Plan(hours=1.0).assumed) == (True, False, False)
    assert Plan(steps=500).steps_at(0.25) == 500.0
    assert Plan(hours=2.0).steps_at(0.5) == 14_400.0
    assert Plan().steps_at(0.5) == sp.ASSUMED_PLAN_HOURS * 7_200


starts = st.builds(Starts, st.integers(0, 10**9), st.integers(0, 10**9)).filter(lambda each: each.cold + each.warm > 0)


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("cold=1,warm=20", Starts(1, 20)),
        (" warm = 3 ", Starts(0, 3)),
        ("cold=2", Starts(2, 0)),
        ("warm=1,cold=0", Starts(0, 1)),
    ],
)
def test_starts_are_read(text: str, starts: Starts) -> None:
    assert sp.parse_starts(text) == starts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "cold",
        "cold=",
        "cold=-1",
        "cold=1.5",
        "cold=1,cold=2",
        "hot=1",
        "cold=1,,",
        "cold=٣",
        "cold=1e3",
        "cold=99999999999",
    ],
)
def test_what_is_no_number_of_starts_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="write cold=1,warm=20"):
        sp.parse_starts(text)


def test_planned_work_is_started_at_least_once() -> None:
    with pytest.raises(SpecError, match="at least once"):
        sp.parse_starts("cold=0,warm=0")


plans = st.one_of(
    st.builds(Plan, starts=starts),
    st.builds(Plan, steps=st.integers(1, 10**12), starts=starts),
    st.builds(Plan, hours=st.floats(1e-6, 1e7), starts=st.just(Starts())),
)
functions = st.builds(FileFunction, st.sampled_from(["loss.py", "my dir/it's.py"]), st.sampled_from(["fn", "make"]))
steps = st.builds(
    StepSpec,
    loss=st.none() | functions,
    optimizer=st.sampled_from(BuiltinOptimizer) | functions,
    compile_optimizer=st.booleans(),
    grad_clip=st.none() | st.floats(1e-6, 1e6),
    accumulate=st.integers(1, 64),
    channels_last=st.booleans(),
    tf32=st.booleans(),
    own=st.none() | functions,
    epoch=st.none()
    | st.builds(Epoch, st.integers(1, 99), st.integers(0, 9), st.none() | st.integers(1, 9999))
    | st.just(Epoch(eval=2)),
)
runs = st.builds(
    RunSpec,
    target=st.sampled_from(["model.py", "my dir/it's.py:Net", "pkg.mod:Net", "timm:resnet50"]).map(sp.parse_target),
    inputs=st.sampled_from([[], ["f32[2]"], ["f16[]", "ids=i64[B]<0,9>", "p=(f32[2]@grad, none)"]]).map(
        sp.parse_inputs
    ),
    task=st.none() | st.sampled_from(Task),
    modes=st.sets(st.sampled_from(Mode), min_size=1).map(tuple).map(sp.order_modes),
    device=st.sampled_from(["auto", "cpu", "cuda:1"]),
    dtype=st.none() | st.sampled_from(sp.FLOATING_DTYPES),
    amp=st.none() | st.sampled_from(["bfloat16", "float16"]),
    plan=plans,
    preset=st.sampled_from(Preset),
    budget_s=st.sampled_from([preset.budget_s for preset in Preset]) | st.floats(1.0, 1e8),
    dims=st.sampled_from([[], ["B=8", "T=128"]]).map(sp.parse_dims),
    inputs_from=st.none() | st.sampled_from(["my batch.pt", "data.py:make_batch"]),
    arguments=st.sampled_from([[], ["hidden=8", "act='a b'", "config=@c.json"]]).map(sp.parse_arguments),
    step=steps,
    fit_batch=st.booleans(),
    data=st.none() | st.builds(DataSpec, batch_ms=st.floats(1e-3, 1e6)) | st.builds(DataSpec, loader=functions),
)


_STEP_WORDS = ("loss", "optimizer", "grad-clip", "accumulate", "epoch", "step")


def read_command(line: str) -> RunSpec:
    """What the words of a command line mean, option by option."""
    words = shlex.split(line)
    assert words[:2] == ["tcompile-tui", "run"]
    given_as: dict[str, list[str]] = {}
    flags = [word for word in words if word in ("--compile-optimizer", "--channels-last", "--tf32", "--fit-batch")]
    words = [word for word in words if word not in flags]
    for option, word in zip(words[3::2], words[4::2], strict=True):
        given_as.setdefault(option.removeprefix("--"), []).append(word)
    one = {option: told[0] for option, told in given_as.items()}
    preset = Preset(one.get("preset", "standard"))
    return RunSpec(
        target=sp.parse_target(words[2]),
        inputs=tuple(map(sp.parse_input, given_as.get("input", ()))),
        task=Task(one["task"]) if "task" in one else None,
        modes=tuple(map(Mode, given_as.get("mode", ["default"]))),
        device=one.get("device", "auto"),
        dtype=one.get("dtype"),
        amp=one.get("amp"),
        plan=Plan(
            int(one["planned-steps"]) if "planned-steps" in one else None,
            float(one["planned-hours"]) if "planned-hours" in one else None,
            sp.parse_starts(one["starts"]) if "starts" in one else Starts(),
        ),
        preset=preset,
        budget_s=float(one.get("budget", preset.budget_s)),
        dims=sp.parse_dims(given_as.get("dim", ())),
        inputs_from=one.get("inputs"),
        arguments=sp.parse_arguments(given_as.get("arg", ())),
        data=read_data(one.get("data-ms"), one.get("loader")),
        step=parse_step(
            [
                *(f"--{name}={one[name]}" for name in _STEP_WORDS if name in one),
                *(f for f in flags if f != "--fit-batch"),
            ]
        ),
        fit_batch="--fit-batch" in flags,
    )


@given(runs)
def test_the_command_line_means_the_same_run(run: RunSpec) -> None:
    assert read_command(sp.command_line(run)) == run


def test_the_command_line_leaves_defaults_out() -> None:
    run = RunSpec(target=Target("model.py", None, None))
    assert sp.command_line(run) == "tcompile-tui run model.py"
    quick = replace(run, preset=Preset.QUICK, budget_s=Preset.QUICK.budget_s, plan=Plan(hours=24.0))
    assert sp.command_line(quick) == "tcompile-tui run model.py --planned-hours 24 --preset quick"


def test_inputs_come_from_one_place() -> None:
    plain = RunSpec(Target("model.py", None, None))
    for target in (plain.target, sp.parse_target("timm:resnet50")):
        sp.check_inputs(replace(plain, target=target, inputs=sp.parse_inputs(["f32[B]"]), dims=sp.parse_dims(["B=8"])))
    sp.check_inputs(RunSpec(sp.parse_target("timm:resnet50"), dims=sp.parse_dims(["B=8"])))
    with pytest.raises(SpecError, match="--input or --inputs, not both"):
        sp.check_inputs(replace(plain, inputs=sp.parse_inputs(["f32[1]"]), inputs_from="batch.pt"))
    with pytest.raises(SpecError, match=r"names no function: write data\.py:make_batch"):
        sp.check_inputs(replace(plain, inputs_from="data.py"))
    with pytest.raises(SpecError, match=r"--dim has no use with --inputs batch\.pt"):
        sp.check_inputs(replace(plain, dims=sp.parse_dims(["B=8"]), inputs_from="batch.pt"))
    with pytest.raises(SpecError, match="no input has a size B"):
        sp.check_inputs(replace(plain, dims=sp.parse_dims(["B=8"])))
