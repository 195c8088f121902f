"""What `tcompile-tui inspect` learns of a model: two records, one of the model, one of its inputs.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from .event import Event
from .spec import Task


class Check(str, enum.Enum):
    """How inputs were tried: by a forward on the meta device, which has shapes and no values; else for real."""

    META = "meta"
    CPU = "cpu"


@dataclass(frozen=True)
class InspectedParameter:
    """One parameter of `forward`; its texts as Python shows them."""

    name: str
    annotation: str | None
    default: str | None
    required: bool


@dataclass(frozen=True, kw_only=True)
class ModelInspected(Event):
    """The model as it was built. `devices` are those that it puts its own tensors on, empty where it was built without
    values, which a model that insists on a device of its own does not allow. `dtypes`: that of most elements first.
    `loss`: the file has a `loss(output)` that a training step can use."""

    kind: ClassVar[str] = "model_inspected"
    class_name: str
    parameters: int
    parameter_bytes: int
    buffer_bytes: int
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    forward: tuple[InspectedParameter, ...]
    task: Task
    loss: bool


class InputSource(str, enum.Enum):
    FILE = "example_inputs"
    PROPOSED = "proposed"


@dataclass(frozen=True)
class InspectedInput:
    """One input: its parameter ("" for the next one by position), what it is, and how that was found.

    `text` is `dtype[sizes]<low,high>`; with `name=` in front, if there is a name, it is an `--input`. A part of an
    argument that is no tensor itself has its place as its name, such as `args[0][1]`.
    """

    name: str
    text: str
    how: str = ""

    def __str__(self) -> str:
        return f"{self.name}={self.text}" if self.name else self.text


@dataclass(frozen=True, kw_only=True)
class InputsInspected(Event):
    """The inputs of the file's `example_inputs()`, else a proposal, else neither: then `problem` says why. `check` is
    None where no forward with these inputs was seen to run; `problem` says why here too."""

    kind: ClassVar[str] = "inputs_inspected"
    source: InputSource
    inputs: tuple[InspectedInput, ...]
    check: Check | None
    problem: str | None = None
