"""What `tcompile-tui inspect --json` writes and the Setup form reads. Keys are added, never renamed."""

from __future__ import annotations

import shlex

import msgspec

from tcompile_tui.core.candidates import Candidate, signature_text
from tcompile_tui.core.events import InputsInspected, ModelInspected
from tcompile_tui.core.inspection import Check, InputSource, InspectedInput, InspectedParameter
from tcompile_tui.core.spec import Task

SCHEMA_VERSION = 1


class CandidateDocument(msgspec.Struct, frozen=True):
    """Something in the file that may be the model; `missing` are constructor arguments without default."""

    name: str
    line: int
    kind: str
    signature: str
    missing: tuple[str, ...]
    note: str | None

    @classmethod
    def of(cls, candidate: Candidate) -> CandidateDocument:
        return cls(
            candidate.name,
            candidate.line,
            candidate.kind.value,
            signature_text(candidate.parameters),
            tuple(str(parameter) for parameter in candidate.required),
            candidate.note,
        )


class ModelDocument(msgspec.Struct, frozen=True):
    """The model as it was built; see `ModelInspected`."""

    class_name: str
    parameters: int
    parameter_bytes: int
    buffer_bytes: int
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    forward: tuple[InspectedParameter, ...]
    task: Task
    loss: bool

    @classmethod
    def of(cls, model: ModelInspected) -> ModelDocument:
        return cls(**{name: getattr(model, name) for name in cls.__struct_fields__})


class InputsDocument(msgspec.Struct, frozen=True):
    """Inputs by parameter; see `InputsInspected`. `arguments` are empty where none were found."""

    source: InputSource
    check: Check | None
    arguments: tuple[InspectedInput, ...]

    @classmethod
    def of(cls, inputs: InputsInspected) -> InputsDocument:
        return cls(inputs.source, inputs.check, inputs.inputs)


class InspectDocument(msgspec.Struct, frozen=True):
    """All that is known. `model` is None where it could not be built, `chosen` where the target names none; `problem`
    is the first thing that is in the way of a run, in one line."""

    target: str
    file: str | None = None
    candidates: tuple[CandidateDocument, ...] = ()
    chosen: str | None = None
    constructor_arguments: tuple[str, ...] = ()
    python: str | None = None
    torch: str | None = None
    model: ModelDocument | None = None
    inputs: InputsDocument | None = None
    problem: str | None = None
    schema_version: int = SCHEMA_VERSION

    @property
    def proposed(self) -> tuple[InspectedInput, ...]:
        """The proposal, empty if the file gives the inputs, or none was found."""
        if self.inputs is None or self.inputs.source is not InputSource.PROPOSED:
            return ()
        return self.inputs.arguments

    @property
    def command(self) -> str:
        """What runs the target with the proposal, or with what the file gives."""
        arguments = [word for each in self.constructor_arguments for word in ("--arg", each)]
        options = [word for each in self.proposed for word in ("--input", str(each))]
        return shlex.join(["tcompile-tui", "run", self.target, *arguments, *options])


def encode_inspection(document: InspectDocument) -> bytes:
    """Indented JSON with a line end."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def decode_inspection(text: bytes) -> InspectDocument:
    """Raises msgspec.MsgspecError."""
    return msgspec.json.decode(text, type=InspectDocument)
