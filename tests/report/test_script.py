"""The script that measures again: valid for every kind of run, and it runs without this program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.reported_run import ReportedRun
from tcompile_tui.core.spec import Mode, SpecError, Task, TensorSpec, parse_target
from tcompile_tui.core.state import RunState
from tcompile_tui.core.step_spec import Epoch, StepSpec
from tcompile_tui.report.script import script_text
from tests.core.streams import Compiled, both, eager_process, replay
from tests.report.reported import reported

MODEL = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 4)

    def forward(self, x, scale=None):
        return self.inner(x).relu() if scale is None else self.inner(x) * scale


def example_inputs():
    return (torch.randn(2, 8),)


def loss(output):
    return output.square().mean()
"""


def run_of(folder: Path, mode: Mode = Mode.DEFAULT, device: str = "cpu", **changes: Any) -> ReportedRun:
    """A run of MODEL; `changes` are those of the spec, and `notice` the way of the second copy."""
    (folder / "net.py").write_text(MODEL + changes.pop("hooks", ""))
    wrapped, notice, own_loss = (changes.pop(name, None) for name in ("wrapped", "notice", "own_loss"))
    training = changes.get("task") is Task.TRAIN
    model = ev.ModelReady(
        class_name="Net", file="net.py", line=1, parameters=36, parameter_bytes=144, training=training,
        inputs=(ev.TensorInfo("args[0]", "float32", (2, 8), "cpu"),), input_batches=2,
        optimizer="AdamW lr 0" if training else None, loss="the file's loss()" if own_loss else "mean square",
    )  # fmt: skip
    told: list[ev.Event] = [model, ev.ModelCompiled(wrapped=bool(wrapped), blocks=changes.pop("blocks", None))]
    told += [ev.Notice(level=ev.Level.INFO, code="second-copy", text=notice)] if notice else []
    cold, warm = both(Compiled(mode, speedup=1.8))
    state = replay(eager_process(), [*cold[:4], *told, *cold[4:]], warm, modes=(mode,), device=device)
    assert state.run is not None
    state.run = replace(state.run, spec=replace(state.run.spec, **changes))
    return reported(state, folder)


INPUTS = (TensorSpec("float32", (2, 8)), TensorSpec("float32", (4,), "scale"))
KINDS: dict[str, dict[str, Any]] = {
    "inference": {},
    "cuda": {"device": "cuda", "mode": Mode.REDUCE_OVERHEAD},
    "inputs": {"inputs": INPUTS, "dtype": "bfloat16"},
    "autocast": {"amp": "bf16"},
    "wrapped": {"wrapped": True, "mode": Mode.MAX_AUTOTUNE},
    "regional": {"blocks": ev.CompiledBlocks("Linear", 2), "mode": Mode("regional,dynamic=true")},
    "nested": {"blocks": ev.CompiledBlocks("Linear", 2), "mode": Mode("nested")},
    "training": {"task": Task.TRAIN, "own_loss": True},
    "default loss": {"task": Task.TRAIN},
    "accumulate": {"task": Task.TRAIN, "step": StepSpec(accumulate=4)},
    "scaled": {"task": Task.TRAIN, "amp": "fp16", "device": "cuda"},
    "scaled and accumulated": {"task": Task.TRAIN, "amp": "fp16", "device": "cuda", "step": StepSpec(accumulate=2)},
    "end of an epoch": {"task": Task.TRAIN, "step": StepSpec(epoch=Epoch(last=1, eval=2))},
    "full batches only": {"task": Task.TRAIN, "step": StepSpec(epoch=Epoch())},
    "further calls": {"hooks": "\n\ndef more_inputs():\n    return [(torch.randn(3, 8),)]\n"},
    "built again": {"notice": "the other arm's model was built again, because copying failed (TypeError)"},
    "shared": {"notice": "both arms share one set of parameters, because memory is short"},
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_run_makes_valid_python(kind: str, tmp_path: Path) -> None:
    text = script_text(run_of(tmp_path, **KINDS[kind]))
    compile(text, "reproduce.py", "exec")
    assert "tcompile_tui" not in re.sub(r'""".*?"""', "", text, count=1, flags=re.DOTALL)
    assert max(map(len, text.splitlines())) < 160


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("cuda", ['model.compile(mode="reduce-overhead")', "cudagraph_mark_step_begin()", "torch.cuda.Event"]),
        ("inputs", ["{'scale': torch.randn((4,), dtype=torch.float32)}", "DEVICE, torch.bfloat16)"]),
        ("wrapped", ['compiled_model = torch.compile(model, mode="max-autotune")']),
        ("regional", ["]: block.compile(dynamic=True)", "compiled_model = model"]),
        ("nested", ["block.__class__ = Linear", "nested_compile_region(Linear.forward)", "model.compile()"]),
        ("training", ["loss_of = module.loss", "AdamW(", "optimizer.step()", ".train(True)"]),
        ("accumulate", ["range(index * 4, (index + 1) * 4)", "(loss / 4).backward()"]),
        ("scaled and accumulated", ["scaler.scale(loss / 2).backward()", "scaler.step(optimizer)"]),
        ("further calls", ["module.more_inputs()"]),
        ("end of an epoch", ["epoch_s = end_of_epoch(compiled_arm)", "end_of_epoch(eager_arm)", " + epoch_s"]),
        ("built again", ["eager_model = build()", "load_state_dict"]),
    ],
)
def test_it_does_what_the_run_did(kind: str, words: list[str], tmp_path: Path) -> None:
    text = script_text(run_of(tmp_path, **KINDS[kind]))
    assert [word for word in words if word not in text] == []


def test_text_of_the_user_s_stays_text(tmp_path: Path) -> None:
    folder = tmp_path / 'a"""b\\n\'c'
    folder.mkdir()
    run = run_of(folder)
    assert run.surroundings is not None
    command = 'tcompile-tui run net.py --env \'A=x"""; y\' --env=B=2 -- --env C=3 \\ \x1b é'
    text = script_text(replace(run, surroundings=replace(run.surroundings, command=command)))
    compile(text, "reproduce.py", "exec")
    assert """os.environ['A'] = 'x\"\"\"; y'\nos.environ['B'] = '2'\n""" in text and "os.environ['C']" not in text
    assert text.isascii()


def test_a_file_that_is_gone_and_a_run_without_a_step_are_told(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    (tmp_path / "net.py").unlink()
    with pytest.raises(SpecError, match=r"net\.py"):
        script_text(run)
    with pytest.raises(SpecError, match="nothing to reproduce"):
        script_text(reported(RunState()))


def test_it_runs(tmp_path: Path) -> None:
    """In little time: a few short blocks, and nothing is really compiled."""
    text = script_text(run_of(tmp_path, **KINDS["training"]))
    for setting, short in (
        ("PAIRS = 40", "PAIRS = 6"),
        ("seconds=5.0", "seconds=0.05"),
        ("(eager, 2.0)", "(eager, 0.05)"),
    ):
        assert text.count(setting) == 1
        text = text.replace(setting, short)
    script = tmp_path / "reproduce.py"
    script.write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(script), "--cold-start"], cwd="/", env={**environment, "TORCHDYNAMO_DISABLE": "1"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    cold, run_s_cold, levels, speedup, found, *differences = done.stdout.splitlines()
    assert cold.startswith("cold start ") and run_s_cold.startswith("the run found ")
    assert re.fullmatch(r"eager [0-9.]+ ms, compiled [0-9.]+ ms a step", levels), levels
    assert re.fullmatch(r"speedup [0-9.]+x \([0-9.]+x to [0-9.]+x\), 6 pairs, one process", speedup), speedup
    assert re.fullmatch(r"the run found 1\.8.*: the intervals (overlap|do not overlap)", found), found
    assert any("the run had 2." in line for line in differences), "another torch than that of the run is named"


def test_a_module_is_imported_by_its_name(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    package = tmp_path / "mynet"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "net.py").write_text(MODEL)
    assert run.state.run is not None
    run.state.run = replace(run.state.run, spec=replace(run.state.run.spec, target=parse_target("mynet.net:Net")))
    text = script_text(run)
    assert "import importlib\n" in text and "module = importlib.import_module('mynet.net')" in text
    assert f"sys.path.insert(0, {str(tmp_path)!r})" in text
