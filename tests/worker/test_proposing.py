"""Inputs that are proposed for a model without example_inputs(): a real forward with them runs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from tcompile_tui.core.events import Event, InputsInspected, ModelInspected
from tcompile_tui.core.inspection import Check, InputSource
from tcompile_tui.core.spec import Job, Phase, RunSpec, Target, Task, parse_inputs
from tcompile_tui.worker import inspecting
from tcompile_tui.worker.bench import Stage
from tcompile_tui.worker.inputs import random_tensor
from tcompile_tui.worker.inspecting import inspect_model
from tcompile_tui.worker.loading import UserFile
from tests.worker.proposal_models import (
    TABLE,
    AllOptional,
    Branching,
    Convnet,
    FlatMlp,
    HalfBuilt,
    Masked,
    Packed,
    Starred,
    Tokens,
)


class Sent:
    """Stands for the channel."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def send(self, event: Event) -> None:
        self.events.append(event)


def inspected(make: Any, **names: Any) -> tuple[ModelInspected, InputsInspected]:
    """`names` are what else the user's file defines."""
    module = ModuleType("user")
    vars(module).update(names)
    job = Job(
        phase=Phase.INSPECT, mode=None, spec=RunSpec(Target("model.py", None, None)), process=1, run_start_ns=0,
        source_path="model.py", source_module=None, qualified_name="Model", import_root=".", argv=(), cache_root="",
        warmup_budget_s=0, pair_budget_s=0, max_pairs=0,
    )  # fmt: skip
    sent = Sent()
    inspect_model(job, sent, Stage(), UserFile(module, make))  # type: ignore[arg-type]
    facts, *_, inputs = sent.events
    assert isinstance(facts, ModelInspected) and isinstance(inputs, InputsInspected)
    return facts, inputs


def texts(inputs: InputsInspected) -> list[str]:
    return [str(each) for each in inputs.inputs]


def runs(make: Any, inputs: InputsInspected) -> bool:
    """As `tcompile-tui run` would call it, on the CPU."""
    torch.manual_seed(0)
    specs = parse_inputs(texts(inputs))
    args = [random_tensor(spec) for spec in specs if not spec.name]
    with torch.no_grad():
        make().eval()(*args, **{spec.name: random_tensor(spec) for spec in specs if spec.name})
    return True


@pytest.mark.parametrize(("make", "expected"), TABLE, ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_proposed_runs(make: Any, expected: list[str]) -> None:
    _, inputs = inspected(make)
    assert inputs.problem is None
    assert texts(inputs) == expected
    assert inputs.source is InputSource.PROPOSED and inputs.check is not None
    assert runs(make, inputs)


@pytest.mark.parametrize(
    ("make", "check"), [(Convnet, Check.META), (Tokens, Check.META), (Packed, Check.CPU), (Branching, Check.CPU)]
)
def test_a_large_model_gets_values_only_where_it_needs_them(
    make: Any, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspecting, "_SMALL_BYTES", 0)
    assert inspected(make)[1].check is check


class Places(nn.Module):
    """Looks positions up by numbers that it makes itself: without values nobody sees that there are too few."""

    def __init__(self) -> None:
        super().__init__()
        self.tok = nn.Embedding(90, 16)
        self.table = nn.Parameter(torch.zeros(50, 16))

    def forward(self, ids):
        return self.tok(ids) + self.table[torch.arange(ids.shape[1]).expand(ids.shape)]


def test_a_small_model_is_tried_for_real() -> None:
    _, inputs = inspected(Places)
    assert texts(inputs) == ["ids=int64[8,50]<0,90>"]
    assert inputs.check is Check.CPU


def test_how_it_was_found_is_said() -> None:
    _, inputs = inspected(Masked)
    assert [each.how for each in inputs.inputs] == ["from Embedding(500, 16)", "from its name"]


class NeedsGraph(nn.Module):
    def forward(self, x: torch.Tensor, graph: dict[str, int]):
        return x


class Anything(nn.Module):
    def forward(self, **kwargs):
        return kwargs


class Refuses(nn.Module):
    def forward(self, x):
        raise ValueError("never\nat all")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (NeedsGraph, ["needs graph: dict[str, int]", "no tensor", "example_inputs()"]),
        (Refuses, ["none that fits", "x=float32[8,128]", "fails: never", "example_inputs()"]),
        (Anything, ["takes no tensor", "example_inputs()"]),
        (nn.Module, ["none that fits", "example_inputs()"]),
    ],
)
def test_without_a_proposal_one_line_says_why(make: Any, words: list[str]) -> None:
    _, inputs = inspected(make)
    assert inputs.inputs == () and inputs.check is None
    assert inputs.problem is not None and "\n" not in inputs.problem
    assert all(word in inputs.problem for word in words), inputs.problem


# ---------------------------------------------------------------- the model, and what the file gives


def test_facts_are_those_of_the_model_and_cost_no_memory() -> None:
    def make() -> nn.Module:
        return nn.Linear(1 << 20, 1 << 14)  # 64 GiB, if it had values

    facts, inputs = inspected(make, TRAIN=True, loss=lambda output: output.sum())
    assert facts.class_name == "Linear"
    assert facts.parameters == (1 << 34) + (1 << 14) and facts.parameter_bytes == 4 * facts.parameters
    assert facts.dtypes == ("float32",) and facts.devices == ()
    assert facts.task is Task.TRAIN and facts.loss
    assert texts(inputs) == [f"input=float32[8,{1 << 20}]"]


def test_parameters_of_forward_are_listed_as_written() -> None:
    facts, _ = inspected(AllOptional)
    (ids, embeds) = facts.forward
    assert (ids.name, ids.default, ids.required) == ("input_ids", "None", False)
    assert ids.annotation == embeds.annotation == "torch.Tensor | None"
    assert [each.name for each in inspected(Starred)[0].forward] == ["*args"]


def test_a_model_that_already_exists_keeps_its_values() -> None:
    model = HalfBuilt()
    facts, inputs = inspected(model)
    assert facts.devices == ("cpu",)
    assert texts(inputs) == ["x=float32[8,14]"]
    assert all(parameter.device.type == "cpu" for parameter in model.parameters())


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (lambda: torch.rand(4, 10), ["float32[4,10]"]),
        (lambda: {"x": torch.rand(2, 10)}, ["x=float32[2,10]"]),
    ],
)
def test_the_files_own_inputs_come_first(example: Any, expected: list[str]) -> None:
    _, inputs = inspected(Branching, example_inputs=example)
    assert (inputs.source, inputs.check, inputs.problem) == (InputSource.FILE, Check.CPU, None)
    assert texts(inputs) == expected


def test_integers_of_the_file_are_shown_with_their_range_and_parts_with_their_place() -> None:
    class Nested(nn.Module):
        def forward(self, pair, more):
            return pair[0] + pair[1] + more

    def example() -> Any:
        return (torch.tensor([3, 9]), torch.tensor([1.0, 2.0])), torch.tensor([0, 0])

    _, inputs = inspected(Nested, example_inputs=example)
    assert texts(inputs) == ["args[0][0]=int64[2]<3,10>", "args[0][1]=float32[2]", "args[1]=int64[2]<0,1>"]


def test_inputs_of_the_file_that_do_not_fit_are_told() -> None:
    _, inputs = inspected(Branching, example_inputs=lambda: torch.rand(4, 11))
    assert inputs.source is InputSource.FILE and inputs.check is None
    assert inputs.problem is not None and inputs.problem.startswith("a forward with them fails: ")


def test_inputs_of_the_file_that_cannot_be_made_are_told_with_a_proposal() -> None:
    def example() -> Any:
        raise OSError("no data here")

    _, inputs = inspected(FlatMlp, example_inputs=example)
    assert texts(inputs) == ["x=float32[8,784]"]
    assert inputs.problem == "example_inputs() failed: OSError: no data here"
