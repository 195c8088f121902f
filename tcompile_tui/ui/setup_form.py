"""What the Setup form holds and means: values in, a checked run out. Knows no widgets, reads no disk."""

from __future__ import annotations

import enum
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tcompile_tui.config import Config
from tcompile_tui.core.candidates import Candidate, FileHooks, Parameter
from tcompile_tui.core.spec import (
    Argument,
    Dim,
    InputSpec,
    Mode,
    Plan,
    Preset,
    RunSpec,
    SpecError,
    Target,
    Task,
    command_line,
    order_modes,
    parse_arguments,
    parse_inputs,
    parse_target,
)
from tcompile_tui.core.step_spec import USUAL_STEP, StepSpec, check_step, parse_step, split_step
from tcompile_tui.core.task_spec import check_shapes, with_task
from tcompile_tui.ui.setup_sizes import (
    SIZES,
    check_sizes_of,
    read_batch,
    read_sizes,
    see_unused_sizes,
    size_names,
)

TARGET = "target"
ARGUMENTS = "arguments"
MODES = "modes"
STEP = "step"
PLAN = "plan"
_INTEGER_NAME = re.compile(r"(^|_)(ids?|tokens?|labels?|targets?|idx|index|indices|positions?|mask)\d*$", re.I)
_IMAGE_NAME = re.compile(r"(^|_)(images?|img|imgs|pixel_values|pixels)\d*$", re.I)
_PLAIN_VALUE = re.compile(r"^(Optional\[)?(int|float|bool|str|None)\]?( *\| *(int|float|bool|str|None))*$")


class PlanUnit(str, enum.Enum):
    HOURS = "hours"
    STEPS = "steps"


@dataclass(frozen=True)
class FormValues:
    """The form as it stands, texts as written. `inputs` are pairs of parameter name and text. `task` None means:
    as the file says. `arguments` are the constructor's, separated by spaces; `step` holds options as on the command
    line; `sizes` those of named dimensions, `batch` a file in place of `inputs`. An empty `plan` is the assumed one."""

    target: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    task: Task | None = None
    modes: tuple[Mode, ...] = (Mode.DEFAULT,)
    device: str = "auto"
    dtype: str | None = None
    amp: str | None = None
    step: str = ""
    plan: str = ""
    plan_unit: PlanUnit = PlanUnit.HOURS
    preset: Preset = Preset.STANDARD
    arguments: str = ""
    sizes: str = ""
    batch: str = ""


def form_defaults(config: Config) -> FormValues:
    """What an untouched form holds."""
    standard = FormValues()
    plan = config.planned_steps if config.planned_steps is not None else config.planned_hours
    return FormValues(
        modes=config.modes or standard.modes,
        device=config.device or standard.device,
        plan=f"{plan:.15g}" if isinstance(plan, float) else str(plan or ""),
        plan_unit=PlanUnit.STEPS if config.planned_steps is not None else PlanUnit.HOURS,
        preset=config.preset or standard.preset,
    )


@dataclass(frozen=True)
class InputRow:
    """What one row asks for. A row without `name` takes any inputs, separated by spaces."""

    name: str
    example: str
    required: bool

    @property
    def key(self) -> str:
        """Its name among the errors."""
        return f"input {self.name}"


@dataclass(frozen=True)
class Checked:
    """`errors` are wrong as written, `missing` must still be filled in; both by field. `spec` is what can be
    understood, None without a target. `takes_sizes`: sizes with a name mean something here."""

    spec: RunSpec | None
    errors: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    takes_sizes: bool = False

    @property
    def can_run(self) -> bool:
        return self.spec is not None and not self.errors and not self.missing

    @property
    def next_step(self) -> str:
        """What a person does next, in a few words."""
        if self.errors:
            return "correct what is marked with !"
        if TARGET in self.missing:
            return "choose a model, then press r"
        return "fill in the inputs, or press i; then r" if self.missing else "press r to find out"

    @property
    def command(self) -> str:
        """The line that a person would type."""
        return command_line(self.spec) if self.spec else "tcompile-tui run MODEL.py"

    @property
    def arguments(self) -> list[str]:
        """Those of `tcompile-tui run`."""
        return shlex.split(self.command)[2:]


def input_rows(candidate: Candidate | None) -> tuple[InputRow, ...]:
    """One row for each parameter of forward; one for all where the file does not show forward."""
    if candidate is None:
        return ()
    if candidate.forward is None:
        return (InputRow("", "x=float32[8,128]", required=True),)
    tensors = [parameter for parameter in candidate.forward if not _is_option(parameter)]
    return tuple(InputRow(each.name, example_tensor(each), each.default is None) for each in tensors)


def example_tensor(parameter: Parameter) -> str:
    """A tensor that a parameter of this name and annotation may take, to show how one is written."""
    annotation = parameter.annotation or ""
    if "BoolTensor" in annotation or annotation.startswith("Bool["):
        return "bool[8,128]"
    if re.search(r"(Long|Int)Tensor|^U?Int\d*\[", annotation) or _INTEGER_NAME.search(parameter.name):
        return "int64[8,128]<0,2>" if "mask" in parameter.name else "int64[8,128]<0,1000>"
    return "float32[8,3,224,224]" if _IMAGE_NAME.search(parameter.name) else "float32[8,128]"


def check(
    values: FormValues,
    rows: tuple[InputRow, ...] = (),
    hooks: FileHooks | None = None,
    parameters: Sequence[Parameter] = (),
) -> Checked:
    """Read every field; what cannot be read is left out of the spec. `parameters` are the constructor's."""
    errors: dict[str, str] = {}
    missing: dict[str, str] = {}
    target = _read_target(values.target, errors, missing)
    arguments = _read_arguments(values, parameters, errors, missing)
    dims, shapes = read_sizes(values.sizes, errors)
    named, inputs = _read_inputs(values, rows, dims, errors)
    batch = read_batch(values.batch, bool(inputs), bool(dims), errors)
    if batch is None:
        see_unused_sizes(dims, inputs, target, errors)
        _see_what_is_missing(values, rows, hooks, errors, missing)
    step = _read_step(values, hooks, errors)
    plan = _read_plan(values, errors)
    if not values.modes:
        errors[MODES] = "choose at least one mode"
    if target is None:
        return Checked(None, errors, missing)
    takes_sizes = named or bool(values.sizes) or target.source is not None
    spec = RunSpec(
        target=target,
        inputs=inputs,
        task=values.task,
        modes=order_modes(values.modes),
        device=values.device,
        dtype=values.dtype,
        amp=values.amp,
        plan=plan,
        preset=values.preset,
        budget_s=values.preset.budget_s,
        step=step,
        arguments=arguments,
        dims=dims if SIZES not in errors else (),
        inputs_from=batch,
        shapes=shapes if SIZES not in errors else None,
    )
    try:
        if spec.shapes is not None and (spec.inputs or spec.target.source is not None):
            check_shapes(spec)
        spec = with_task(spec)
    except SpecError as error:
        errors[SIZES if spec.shapes is not None else STEP] = str(error)
    return Checked(spec, errors, missing, takes_sizes)


def _is_option(parameter: Parameter) -> bool:
    """`return_dict: bool = False` and the like: no tensor, and it need not be given."""
    return parameter.default is not None and _PLAIN_VALUE.match(parameter.annotation or "Tensor") is not None


def _read_target(text: str, errors: dict[str, str], missing: dict[str, str]) -> Target | None:
    if not text.strip():
        missing[TARGET] = "choose a file on the left, or write its path here"
        return None
    try:
        return parse_target(text)
    except SpecError as error:
        errors[TARGET] = str(error)
        return None


def _read_arguments(
    values: FormValues, parameters: Sequence[Parameter], errors: dict[str, str], missing: dict[str, str]
) -> tuple[Argument, ...]:
    """Without parameters there is no field for them, and what an earlier file had in it does not count."""
    if not parameters:
        return ()
    try:
        arguments = parse_arguments(shlex.split(values.arguments))
    except SpecError as error:
        errors[ARGUMENTS] = str(error)
        return ()
    except ValueError:
        errors[ARGUMENTS] = "a quotation mark is missing"
        return ()
    given = {argument.parameter for argument in arguments}
    needed = [parameter for parameter in parameters if parameter.default is None and parameter.name not in given]
    if needed:
        missing[ARGUMENTS] = f"needed: {', '.join(map(str, needed))}; write {needed[0].name}=VALUE"
    return arguments


def _read_inputs(
    values: FormValues, rows: tuple[InputRow, ...], dims: Sequence[Dim], errors: dict[str, str]
) -> tuple[bool, tuple[InputSpec, ...]]:
    """Does a size have a name? And the inputs that can be read, row by row; together they must fit each other too."""
    written = dict(values.inputs)
    good: list[str] = []
    named = False
    for row in rows:
        text = written.get(row.name, "").strip()
        texts = [f"{row.name}={text}"] if row.name and text else _split_free(text)
        try:
            read = parse_inputs([*good, *texts])
            named = named or bool(size_names(read))
            check_sizes_of(read, dims)
        except SpecError as error:
            errors[row.key] = _shortened(str(error), row, text)
        else:
            good += texts
    return named, parse_inputs(good)


def _split_free(text: str) -> list[str]:
    return re.sub(r"\s*([,=<>\[])\s*", r"\1", text).split()


def _shortened(message: str, row: InputRow, text: str) -> str:
    """The field shows what is written, so the reason need not repeat it."""
    quoted = f"'{row.name}={text}'"
    if message.startswith(f"cannot read the input {quoted}"):
        return f"write it as {row.example}"
    return message.replace(f" in {quoted}", "").replace("add --dim", "in Sizes")


def _see_what_is_missing(
    values: FormValues,
    rows: tuple[InputRow, ...],
    hooks: FileHooks | None,
    errors: dict[str, str],
    missing: dict[str, str],
) -> None:
    """Given inputs stand in for the whole of example_inputs(), so one of them asks for all that are required."""
    given = {name for name, text in values.inputs if text.strip()} & {row.name for row in rows}
    if not given and hooks is not None and hooks.example_inputs:
        return
    for row in rows:
        if not row.required or row.name in given:
            continue
        if given and hooks is not None and hooks.example_inputs:
            errors[row.key] = "needed too: inputs given here replace example_inputs()"
        else:
            missing[row.key] = f"needed, for example {row.example}"


def _read_step(values: FormValues, hooks: FileHooks | None, errors: dict[str, str]) -> StepSpec:
    try:
        step = parse_step(split_step(values.step))
        says_train = hooks is None or hooks.train is True or step.own is not None
        infers = values.task not in (None, Task.TRAIN) or (values.task is None and not says_train)
        return check_step(step, infers, values.amp)
    except SpecError as error:
        errors[STEP] = str(error)
        return USUAL_STEP


def _read_plan(values: FormValues, errors: dict[str, str]) -> Plan:
    text = re.sub(r"[\s,_]", "", values.plan)
    if not text:
        return Plan()
    if values.plan_unit is PlanUnit.STEPS:
        if text.isascii() and text.isdigit() and int(text[:19]) >= 1 and len(text) < 19:
            return Plan(steps=int(text))
        errors[PLAN] = "a whole number of steps, 1 or more"
        return Plan()
    try:
        hours = float(text)
    except ValueError:
        hours = math.nan
    if 0 < hours < math.inf:
        return Plan(hours=hours)
    errors[PLAN] = "a number of hours above 0"
    return Plan()
