"""What was learnt of a model, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tcompile_tui.core.inspect_json import CandidateDocument, InspectDocument, ModelDocument
from tcompile_tui.core.inspection import Check, InputSource, InspectedParameter
from tcompile_tui.core.spec import Task
from tcompile_tui.core.units import count, size

_LABEL_COLUMNS = 13
_WIDTH = 100
# Parameters, gradients, and the two moments of AdamW.
_TRAINING_COPIES = 4
CHECKED = {
    Check.META: "checked by a forward on the meta device (shapes only)",
    Check.CPU: "checked by a forward on the CPU",
}


def inspection_text(document: InspectDocument) -> str:
    """Facts, inputs, and the command that takes the proposal."""
    lines = [document.file or document.target, ""]
    lines += _candidate_lines(document)
    if document.model is not None:
        lines += _model_lines(document.model)
    lines += _input_lines(document)
    if document.proposed:
        lines += ["", "Nothing of this is used unless you say so. To take it:", f"  {document.command}"]
    return "\n".join(_literal(line) for line in lines) + "\n"


def check_text(document: InspectDocument) -> str:
    """Whether a forward ran with the inputs."""
    check = document.inputs.check if document.inputs is not None else None
    return CHECKED[check] if check is not None else "not checked"


def _candidate_lines(document: InspectDocument) -> Iterator[str]:
    given = {text.partition("=")[0].partition(".")[0] for text in document.constructor_arguments}
    for each in document.candidates:
        label = "model" if each.name == document.chosen else "candidate"
        yield _row(label, f"{_call(each)}, {each.kind}, line {each.line}" + (f", {each.note}" if each.note else ""))
        missing = [parameter for parameter in each.missing if parameter.partition(":")[0] not in given]
        if missing:
            yield _row("", f"needs values for {', '.join(missing)}")


def _call(candidate: CandidateDocument) -> str:
    return f"{candidate.name}({candidate.signature})" if candidate.kind != "value" else candidate.name


def _model_lines(model: ModelDocument) -> Iterator[str]:
    text = f"{count(model.parameters)}, {size(model.parameter_bytes)} of {', '.join(model.dtypes)}"
    buffers = f"; buffers {size(model.buffer_bytes)}" if model.buffer_bytes else ""
    yield _row("parameters", (text if model.parameters else "none") + buffers)
    if model.parameters:
        training = size(_TRAINING_COPIES * model.parameter_bytes + model.buffer_bytes)
        yield _row("memory", f"{training} with gradients and AdamW, without activations")
    if set(model.devices) - {"cpu"}:
        yield _row("device", f"the model puts its own tensors on {', '.join(model.devices)}")
    loss = "the file's loss()" if model.loss else "mean square of the output"
    trains = model.task is Task.TRAIN
    yield _row("task", f"{model.task.value}, as the file says (TRAIN)" if trains else "infer; --task train to train")
    yield _row("loss", f"{loss}, if it trains")
    for i, parameter in enumerate(model.forward):
        yield _row("" if i else "forward", _parameter_text(parameter))


def _parameter_text(parameter: InspectedParameter) -> str:
    text = f"{parameter.name}: {parameter.annotation}" if parameter.annotation else parameter.name
    return text if parameter.default is None else f"{text} = {parameter.default}"


def _input_lines(document: InspectDocument) -> Iterator[str]:
    inputs = document.inputs
    if inputs is None or not inputs.arguments:
        return
    source = "from example_inputs()" if inputs.source is InputSource.FILE else "proposed"
    yield _row("inputs", f"{source}, {check_text(document)}")
    longest = max(len(str(each)) for each in inputs.arguments)
    for each in inputs.arguments:
        yield _row("", f"{each!s:<{longest}}  {each.how}".rstrip())


def _row(label: str, text: str) -> str:
    return "\n".join(
        textwrap.wrap(
            text, _WIDTH, initial_indent=label.ljust(_LABEL_COLUMNS), subsequent_indent=" " * (_LABEL_COLUMNS + 2),
            break_long_words=False, break_on_hyphens=False,
        )
    )  # fmt: skip


def _literal(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
