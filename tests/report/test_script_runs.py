"""Scripts of every kind of run, carried out as far as one step of each arm: they build what the run built."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import SpecError, Task, parse_arguments, parse_dims, parse_inputs, parse_target
from tcompile_tui.core.step_spec import parse_step, split_step
from tcompile_tui.report.script import script_text
from tests.report.test_script import run_of

pytestmark = pytest.mark.xdist_group("torch")

LIBRARIES = Path(__file__).parent.parent / "data" / "fake_libraries"
CONFIGURED = """

import dataclasses


@dataclasses.dataclass
class Config:
    width: int
    depth: int = 1


class Configured(Net):
    def __init__(self, config: Config, scale=1.0):
        super().__init__()
        assert isinstance(config, Config) and (config.width, config.depth, scale) == (16, 3, 0.5)


def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=torch.tensor(0.1))


def half(output):
    return output.mean() / 2


def make_batch():
    return {"x": torch.zeros(3, 8)}
"""


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A script moves to its folder and imports what it likes."""
    modules, folder, precision = set(sys.modules), Path.cwd(), torch.get_float32_matmul_precision()
    monkeypatch.setattr(sys, "path", [str(LIBRARIES), *sys.path])
    monkeypatch.setattr(sys, "argv", ["pytest"])
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    yield
    os.chdir(folder)
    torch.set_float32_matmul_precision(precision)
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in ("net", "own_net", "timm", "torchvision", "transformers"):
            del sys.modules[name]


def _carried_out(folder: Path, **changes: Any) -> dict[str, Any]:
    """The names of the script after one step of the eager arm. `inputs_of_run` are those that it recorded."""
    target, recorded = changes.pop("target", "net.py:Net"), changes.pop("inputs_of_run", None)
    class_name = changes.pop("class_name", "Net")
    run = run_of(folder, **changes)
    for process in run.state.processes.values():
        if process.model is not None and recorded is not None:
            tensors = tuple(ev.TensorInfo(path, dtype, shape, "cpu") for path, dtype, shape in recorded)
            process.model = replace(process.model, inputs=tensors, class_name=class_name)
    assert run.state.run is not None
    run.state.run = replace(run.state.run, spec=replace(run.state.run.spec, target=parse_target(target)))
    names: dict[str, Any] = {"__name__": "reproduce"}
    exec(compile(script_text(run), "reproduce.py", "exec"), names)
    names["result"] = names["eager"](0)
    return names


def test_arguments_become_what_they_are_annotated_with(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"width": 16}')
    given = parse_arguments(["config=@config.json", "config.depth=3", "scale=0.5"])
    names = _carried_out(tmp_path, arguments=given, hooks=CONFIGURED, target="net.py:Configured")
    assert type(names["eager_model"]).__name__ == "Configured" and names["result"].shape == (2, 4)


def test_inputs_of_the_whole_grammar(tmp_path: Path) -> None:
    inputs = parse_inputs(["float32[B,8]@grad", "scale=float32[4]@zeros"])
    names = _carried_out(tmp_path, inputs=inputs, dims=parse_dims(["B=5"]))
    (x,), kwargs = names["batches"][0]
    assert x.shape == (5, 8) and x.requires_grad and x.is_leaf and not kwargs["scale"].any()
    nested = parse_inputs(["({a: [int64[2]<3,4>, none], b: true}, 0.5)"])
    assert "{'a': [torch.randint(3, 4, (2,), dtype=torch.int64), None], 'b': True}, float('0.5'),)" in script_text(
        run_of(tmp_path, inputs=nested)
    )


def test_a_saved_batch_and_one_that_a_function_makes(tmp_path: Path) -> None:
    torch.save((torch.ones(7, 8),), tmp_path / "batch.pt")
    assert _carried_out(tmp_path, inputs_from="batch.pt")["result"].shape == (7, 4)
    names = _carried_out(tmp_path, inputs_from="net.py:make_batch", hooks=CONFIGURED)
    assert names["result"].shape == (3, 4)


def test_a_step_with_options(tmp_path: Path) -> None:
    step = parse_step(
        split_step(
            "--loss net.py:half --optimizer net.py:make_optimizer --grad-clip 0.01 --accumulate 2 --tf32"
            " --channels-last --compile-optimizer"
        )
    )
    names = _carried_out(tmp_path, task=Task.TRAIN, step=step, hooks=CONFIGURED)
    gradients = [parameter.grad for parameter in names["eager_model"].parameters()]
    assert torch.cat([gradient.flatten() for gradient in gradients]).norm() <= 0.0101
    (group,) = names["eager_optimizer"].param_groups
    assert isinstance(group["lr"], torch.Tensor) and group["lr"] == 0
    assert names["loss_of"] is names["module"].half and torch.get_float32_matmul_precision() == "high"
    sgd = _carried_out(tmp_path, task=Task.TRAIN, step=parse_step(["--optimizer", "sgd"]))
    assert sgd["eager_optimizer"].param_groups[0]["momentum"] == 0.9


@pytest.mark.parametrize(
    ("target", "class_name", "inputs", "arguments"),
    [
        ("timm:resnet18", "Net", [("args[0]", "float32", (2, 3, 8, 8))], ["num_classes=7"]),
        ("torchvision:image_net", "Net", [("args[0]", "float32", (2, 3, 8, 8))], []),
        (
            "transformers:gpt", "GPTForCausalLM",
            [("input_ids", "int64", (2, 8)), ("attention_mask", "int64", (2, 8)), ("labels", "int64", (2, 8))],
            ["hidden=8"],
        ),
    ],
)  # fmt: skip
def test_a_model_of_a_library(target: str, class_name: str, inputs: Any, arguments: list[str], tmp_path: Path) -> None:
    given = parse_arguments(arguments)
    names = _carried_out(
        tmp_path, target=target, class_name=class_name, inputs_of_run=inputs, arguments=given, task=Task.TRAIN
    )
    assert all(parameter.grad is not None for parameter in names["eager_model"].parameters())
    if target.startswith("timm"):
        assert names["eager_model"].head.out_features == 7
    if target.startswith("transformers"):
        (_, kwargs) = names["batches"][0]
        assert kwargs["attention_mask"].all() and kwargs["input_ids"].max() < 50
        assert names["eager_model"].config.hidden == 8 and not names["eager_model"].config.use_cache


@pytest.mark.parametrize("frozen", [False, True])
def test_the_end_of_an_epoch_is_run_before_the_comparison(frozen: bool, tmp_path: Path) -> None:
    names = _carried_out(
        tmp_path, task=Task.TRAIN, step=parse_step(["--epoch", "last=1,eval=2"]), inputs=parse_inputs(["float32[4,8]"])
    )
    seen: list[tuple[int, bool, bool, bool]] = []
    model = names["eager_model"]
    model.train(not frozen)
    model.register_forward_hook(
        lambda model, args, out: seen.append(
            (args[0].size(0), model.training, torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        )
    )
    assert names["end_of_epoch"](names["eager_arm"]) >= 0
    once = [(1, not frozen, True, False), (4, False, False, False), (4, False, False, True)]
    assert seen == 2 * once and model.training is not frozen


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"step": parse_step(["--step", "net.py:step"])}, "a step of your own"),
        ({"inputs": parse_inputs(["float32[4,3]@strides[1,4]"])}, "inputs with strides"),
        ({"arguments": parse_arguments(["config=@config.yaml"])}, "arguments from YAML"),
    ],
)
def test_what_no_plain_file_repeats_is_one_line(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=reason) as caught:
        script_text(run_of(tmp_path, **changes))
    assert "\n" not in str(caught.value) and "--format json" in str(caught.value)
