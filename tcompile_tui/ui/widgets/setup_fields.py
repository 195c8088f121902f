"""All fields of the Setup form, as one thing that has values, shows facts and complains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Input

from tcompile_tui.core.candidates import Parameter
from tcompile_tui.core.inspect_json import InspectDocument
from tcompile_tui.core.spec import Mode, Preset, Task
from tcompile_tui.ui.inspecting import Answer, answer_for
from tcompile_tui.ui.setup_form import (
    ARGUMENTS,
    MODES,
    PLAN,
    STEP,
    TARGET,
    Checked,
    FormValues,
    PlanUnit,
    check,
    input_rows,
)
from tcompile_tui.ui.setup_sizes import BATCH, SIZES, inputs_giver
from tcompile_tui.ui.target_facts import TargetFacts, call_text, origin_text
from tcompile_tui.ui.widgets import setup_choices as offered
from tcompile_tui.ui.widgets.choices import Choices, Option
from tcompile_tui.ui.widgets.field import Field
from tcompile_tui.ui.widgets.input_rows import InputRows
from tcompile_tui.ui.widgets.literal import one_line
from tcompile_tui.ui.widgets.target_field import TargetInput, TargetSuggester

_ORIGIN_COLUMNS = 20
_PLAN_COLUMNS = 12
_TAKE = "enter takes it"
_NOT_TAKEN = f"only proposed so far: {_TAKE}"


class SetupFields(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Posts Edited for what a person changes, TargetEdited if it is the target."""

    BINDINGS: ClassVar[list[Binding]] = [  # type: ignore[assignment]
        Binding("up", "app.focus_previous", "Previous field", show=False),
        Binding("down", "app.focus_next", "Next field", show=False),
    ]
    SCOPED_CSS = False  # a scope would hide the classes of screen and app
    DEFAULT_CSS = f"""
    SetupFields {{ scrollbar-size: 1 1; overflow-x: hidden; }}
    SetupFields #plan-line {{ width: {_PLAN_COLUMNS}; margin-right: 2; }}
    SetupFields #models {{ display: none; }}
    SetupFields #models.-shown {{ display: block; }}
    SetupFields #arguments {{ display: none; }}
    SetupFields #arguments.-shown {{ display: block; }}
    SetupFields #sizes {{ display: none; }}
    SetupFields #sizes.-shown {{ display: block; }}
    .-tall SetupFields .-first {{ margin-top: 1; }}
    """

    class Edited(Message):
        """A person changed a field."""

    @dataclass
    class TargetEdited(Message):
        """`complete`: it was chosen or entered, no longer being typed."""

        complete: bool

    def __init__(self, cwd: Path, target: str, ascii_only: bool, defaults: FormValues) -> None:
        super().__init__(id="form", classes="panel")
        self._defaults = defaults
        self._offers_smoke = defaults.preset is Preset.SMOKE
        self._task_of_file = Task.INFER
        self._facts = TargetFacts("")
        self._insists = False
        self._ascii_only = ascii_only
        self._wanted_device = "auto"
        self._announced = target.strip()
        line = TargetInput(
            target,
            placeholder="file.py, file.py:Name or pkg.mod:Name",
            suggester=TargetSuggester(cwd),
            id="target-line",
            select_on_focus=False,
        )
        self._target = Field(TARGET, "File", line)
        self._models = Choices(
            "Model", (), id="models", column=True, detail_columns=_ORIGIN_COLUMNS, ascii_only=ascii_only
        )
        self._arguments = Field(
            ARGUMENTS, "Args", Input(placeholder="name=value ...", id="arguments-line"), id="arguments"
        )
        self._inputs = InputRows()
        self._sizes = Field(
            SIZES, "Sizes", Input(placeholder="B=8 T=512, or T=64,128 or T=16..512", id="sizes-line"), id="sizes"
        )
        self._batch = Field(BATCH, "Batch", Input(placeholder="or from a file: batch.pt, data.py:f", id="batch-line"))
        self._task_row = Choices("Task", offered.TASKS, ["infer"], id="task", ascii_only=ascii_only)
        self._modes = Choices(
            "Modes", offered.MODES, ["default"], id="modes", column=True, several=True, ascii_only=ascii_only
        )
        self._device = Choices("Device", offered.DEVICES, ["auto"], id="device", ascii_only=ascii_only)
        self._dtype = Choices("Dtype", offered.DTYPES, [offered.AS_BUILT], id="dtype", ascii_only=ascii_only)
        self._amp = Choices("AMP", offered.AMPS, [offered.AS_BUILT], id="amp", ascii_only=ascii_only)
        self._step = Field(STEP, "Step", Input(placeholder="as usual", id="step-line"))
        self._unit = Choices("", offered.PLAN_UNITS, ["hours"], id="unit", ascii_only=ascii_only)
        self._plan = Field(PLAN, "Plan", Input(placeholder="24 (assumed)", id="plan-line"), self._unit, id="plan")
        presets = offered.preset_options(self._offers_smoke)
        self._preset = Choices("Preset", presets, ["standard"], id="preset", ascii_only=ascii_only)

        for begins_a_group in (self._inputs, self._task_row, self._device, self._plan):
            begins_a_group.add_class("-first")

    def compose(self) -> ComposeResult:
        yield self._target
        yield self._models
        yield self._arguments
        yield self._inputs
        yield self._sizes
        yield self._batch
        yield self._task_row
        yield self._modes
        yield self._plan
        yield self._preset
        yield self._device
        yield self._dtype
        yield self._amp
        yield self._step

    def on_mount(self) -> None:
        self._restore(self._defaults)

    # ------------------------------------------------------------ values

    @property
    def target(self) -> str:
        return self._target.line.value.strip()

    def set_target(self, text: str) -> None:
        """From the program: posts TargetEdited once."""
        with self.prevent(Input.Changed):
            self._target.line.value = text
        self._announced = self.target
        self._target.line.cursor_position = len(text)
        self.post_message(self.TargetEdited(complete=True))

    @property
    def values(self) -> FormValues:
        task = Task(self._task_row.value)
        return FormValues(
            target=self.target,
            arguments=self._arguments.line.value.strip(),
            inputs=self._inputs.texts,
            task=None if task is self._task_of_file else task,
            modes=tuple(map(Mode, self._modes.chosen)),
            device=self._device.value,
            dtype=self._dtype.value or None,
            amp=self._amp.value or None,
            step=self._step.line.value.strip(),
            plan=self._plan.line.value.strip(),
            plan_unit=PlanUnit(self._unit.value),
            preset=Preset(self._preset.value),
            sizes=self._sizes.line.value.strip(),
            batch=self._batch.line.value.strip(),
        )

    @property
    def checked(self) -> Checked:
        """With what is wrong with the target's file."""
        checked = check(self.values, self._inputs.rows, self._facts.hooks, self._parameters)
        if self._facts.problem and self._facts.text == self.target and TARGET not in checked.errors:
            return replace(checked, errors={TARGET: self._facts.problem, **checked.errors})
        return checked

    @property
    def _parameters(self) -> tuple[Parameter, ...]:
        """What building the chosen model takes."""
        return self._facts.chosen.parameters if self._facts.chosen is not None else ()

    # ------------------------------------------------------------ what the program shows

    def show_facts(self, facts: TargetFacts, remembered: FormValues | None) -> None:
        """Another file brings its own defaults or its last settings; another model of it, its inputs."""
        before, self._facts = self._facts, facts
        self._show_models(facts)
        values = self.values
        if facts.path != before.path:
            self._insists = False
            self._task_of_file = Task.TRAIN if facts.hooks.train else Task.INFER
            values = remembered or self._defaults
            self._restore(values)
        self._arguments.set_class(bool(self._parameters), "-shown")
        if facts.path != before.path or facts.chosen != before.chosen or facts.hooks != before.hooks:
            rows = input_rows(facts.chosen)
            giver = inputs_giver(facts.text) if facts.hooks.example_inputs else None
            self._inputs.show(rows, dict(values.inputs), giver)
        self.complain()

    def inspecting(self, text: str) -> None:
        """What is being done to find inputs; "" for nothing."""
        self._inputs.say(text)

    def show_answer(self, document: InspectDocument) -> Input | None:
        """Proposals for the rows that nothing is written in; returns the first of these."""
        return self._inputs.answer(answer_for(document, self._inputs.rows, dict(self._inputs.texts)))

    def inspecting_failed(self, reason: str) -> None:
        self._inputs.answer(Answer(reason, {}, failed=True))

    def show_devices(self, options: tuple[Option, ...]) -> None:
        self._device.options = options
        self._choose_device()

    def complain(self, insist: bool = False) -> None:
        """Mark what is wrong; with `insist`, from now on also what is missing."""
        self._insists = self._insists or insist
        checked = self.checked
        missing = {**checked.missing, **{key: _NOT_TAKEN for key in checked.missing if key in self._inputs.offered}}
        reasons = {**(missing if self._insists else {}), **checked.errors}
        self._sizes.set_class(checked.takes_sizes, "-shown")
        fields = [self._target, self._arguments, *self._inputs.fields, self._sizes, self._batch, self._step, self._plan]
        for field in fields:
            field.complain(reasons.get(field.key))
        self._modes.reason = reasons.get(MODES, "")
        if insist:
            first = next((field for field in fields if field.key in reasons), None)
            (first.line if first else self._modes).focus()

    def refuse(self, reason: str) -> None:
        """Show why the run did not start."""
        self._target.complain(reason)
        self._target.scroll_visible(animate=False)

    def _show_models(self, facts: TargetFacts) -> None:
        candidates = [*facts.candidates]
        if facts.chosen is not None and facts.chosen.name not in {each.name for each in candidates}:
            candidates.insert(0, facts.chosen)
        options = tuple(
            Option(each.name, self._line(call_text(each)), self._line(origin_text(each, facts.bases)))
            for each in candidates
        )
        self._models.show(options, [facts.chosen.name] if facts.chosen else [])
        self._models.set_class(bool(options), "-shown")

    def _line(self, text: str) -> str:
        return one_line(text, self._ascii_only)

    def _restore(self, values: FormValues) -> None:
        self._task_row.choose([(values.task or self._task_of_file).value])
        self._modes.choose([mode.value for mode in values.modes])
        self._wanted_device = values.device
        self._choose_device()
        self._dtype.choose([values.dtype or offered.AS_BUILT])
        self._amp.choose([values.amp or offered.AS_BUILT])
        self._unit.choose([values.plan_unit.value])
        preset = values.preset if values.preset is not Preset.SMOKE or self._offers_smoke else Preset.QUICK
        self._preset.choose([preset.value])
        with self.prevent(Input.Changed):
            self._arguments.line.value = values.arguments
            self._step.line.value = values.step
            self._sizes.line.value = values.sizes
            self._batch.line.value = values.batch
            self._plan.line.value = values.plan

    def _choose_device(self) -> None:
        """The GPU of the last run may be listed later, or be on another machine."""
        there = any(option.value == self._wanted_device for option in self._device.options)
        self._device.choose([self._wanted_device if there else "auto"])

    # ------------------------------------------------------------ what a person does

    @on(Input.Changed)
    def _written(self, event: Input.Changed) -> None:
        event.stop()
        if event.input is self._target.line:
            if self.target == self._announced:
                return  # an input also tells the text that it was made with
            self._announced = self.target
            self.post_message(self.TargetEdited(complete=False))
        else:
            self._edited()

    @on(Input.Submitted, "#target-line")
    def _entered(self, event: Input.Submitted) -> None:
        self.post_message(self.TargetEdited(complete=True))

    @on(Choices.Changed)
    def _changed(self, event: Choices.Changed) -> None:
        event.stop()
        if event.choices is self._device:
            self._wanted_device = self._device.value
        if event.choices is not self._models:
            self._edited()
            return
        chosen = next(each for each in self._facts.candidates if each.name == self._models.value)
        self.set_target(self._facts.target_for(chosen))

    def _edited(self) -> None:
        self.complain()
        self.post_message(self.Edited())

    @on(Choices.Moved)
    def _moved(self, event: Choices.Moved) -> None:
        event.stop()
        self.border_subtitle = _escaped(event.choices.detail)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        widget = event.widget
        offer = self._inputs.offer_in(widget)
        if isinstance(widget, Choices):
            self.border_subtitle = _escaped(widget.detail)
        elif offer is not None:
            self.border_subtitle = _escaped(one_line(f"{offer.how}: {_TAKE}"))
        else:
            self.border_subtitle = _hint(widget.id or "")

    def on_descendant_blur(self) -> None:
        self.border_subtitle = ""


def _escaped(text: str) -> str:
    """A border's title is read as markup."""
    return text.replace("[", r"\[")


def _hint(name: str) -> str:
    if name == "target-line":
        return "tab completes, enter takes it"
    if name == "arguments-line":
        return "of the constructor: hidden=256 act=gelu config=@c.json"
    if name == "sizes-line":
        return "of named dimensions: B batch, T tokens, H W image"
    if name == "batch-line":
        return "torch.save's file (tensors only), or a function's"
    if name == "plan-line":
        return "how long the run you plan will be"
    if name == "step-line":
        return "--optimizer sgd --grad-clip 1 --tf32 ..., see run --help"
    return "dtype[sizes]<low,high>, for example int64[4,512]<0,50257>".replace("[", r"\[")
