"""What an epoch has beside full batches, and what compiling for it costs."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import torch

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Arm, Mode, Phase, Preset
from tcompile_tui.core.step_spec import Epoch, StepSpec
from tcompile_tui.worker.epoch import epoch_steps, last_batch, usual_epoch
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.inputs import Batch

from .driver import run_phase

pytestmark = pytest.mark.xdist_group("torch")

_NET = """import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(16, 16)

    def forward(self, x):
        return self.fc(x).relu()

TRAIN = True

def example_inputs():
    return torch.randn(8, 16)
"""


def test_a_last_batch_has_fewer_samples_of_everything_that_has_samples() -> None:
    weights = torch.ones(4, requires_grad=True)
    batch = Batch((torch.arange(8).reshape(4, 2),), {"w": weights, "table": torch.ones(9), "scale": torch.tensor(2.0)})
    last = last_batch(batch, 3)
    assert last.args[0].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert last.kwargs["w"].shape == (3,) and last.kwargs["w"].is_leaf and last.kwargs["w"].requires_grad
    assert last.kwargs["table"].shape == (9,) and last.kwargs["scale"].shape == ()


@pytest.mark.parametrize("size", [4, 5])
def test_a_last_batch_that_is_full_is_refused(size: int) -> None:
    with pytest.raises(StageError, match="a full batch has 4 samples"):
        last_batch(Batch((torch.ones(4),), {}), size)


def test_evaluation_is_without_gradients_and_training_goes_on_after_it() -> None:
    seen: list[tuple[bool, bool, bool]] = []

    class Net(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append((self.training, torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
            return x

    model, trained = Net(), []

    def train_on(batches: list[Batch]) -> Any:
        return lambda index: trained.append(batches[0].args[0].size(0))

    batch = Batch((torch.ones(4),), {})
    for step in epoch_steps(Epoch(last=3, eval=1), model, batch, train_on, contextlib.nullcontext):
        step.run(0)
        assert model.training
    assert trained == [3]
    assert seen == [(False, False, False), (False, False, True)]


def test_graphs_for_an_epoch_are_compiled_before_the_comparison_and_charged_to_the_start(tmp_path: Path) -> None:
    model = tmp_path / "net.py"
    model.write_text(_NET)
    run = run_phase(model, tmp_path, Phase.COLD, Mode.DEFAULT, step=StepSpec(epoch=Epoch(last=5, eval=1)))
    assert run.process.done, run.process.failure
    settling = [block for block in run.all_of(ev.Block) if block.role is ev.BlockRole.SETTLE]
    epoch, after = settling
    assert epoch.steps == 2 * 3, "two epochs of a last batch and both kinds of evaluation"
    first = epoch.first_index
    assert {first, first + 1} <= set(epoch.compiled_at), "another size, and another mode"
    assert not after.compiled_at
    assert run.process.arms[Arm.COMPILED].later_compile_ns > 0.5 * max(epoch.step_ns)
    assert run.process.compile.dynamic_shapes


@pytest.mark.parametrize(("samples", "last"), [(1, None), (3, None), (4, 2), (33, 16)])
def test_the_usual_epoch_ends_with_half_a_batch(samples: int, last: int | None) -> None:
    batch = Batch((torch.tensor(1.0), torch.ones(samples, 2)), {})
    assert usual_epoch(batch, evaluates=True) == Epoch(last=last, eval=1)
    assert usual_epoch(batch, evaluates=False).eval == 0


def test_evaluation_leaves_what_was_frozen_in_evaluation() -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2).eval(), torch.nn.Linear(2, 2))
    model.training = True
    steps = epoch_steps(Epoch(eval=1), model, Batch((torch.ones(4, 2),), {}), lambda _: print, contextlib.nullcontext)
    for step in steps:
        step.run(0)
    assert [module.training for module in model.modules()] == [True, False, True]


def test_training_has_the_usual_end_of_an_epoch_and_its_recompiles_are_told_apart(tmp_path: Path) -> None:
    model = tmp_path / "net.py"
    model.write_text(_NET)
    run = run_phase(model, tmp_path, Phase.COLD, Mode.DEFAULT, preset=Preset.STANDARD)
    assert run.process.done, run.process.failure
    begins, over = run.all_of(ev.UsualEpochEnd)
    assert begins.begins and not over.begins and begins.last == 4 and begins.evaluations == 2
    end = run.process.compile.epoch_end
    assert end is not None and end.recompiles > 0 and end.graphs >= 2, "a dynamic size, and evaluation"
    assert run.process.compile.recompile_count == 0
    assert run.process.arms[Arm.COMPILED].later_compile_ns > 0


@pytest.mark.parametrize(
    ("preset", "step"), [(Preset.QUICK, StepSpec()), (Preset.STANDARD, StepSpec(epoch=Epoch()))], ids=["quick", "none"]
)
def test_it_is_left_out_where_there_is_no_time_or_it_is_not_wanted(
    tmp_path: Path, preset: Preset, step: StepSpec
) -> None:
    model = tmp_path / "net.py"
    model.write_text(_NET)
    run = run_phase(model, tmp_path, preset=preset, step=step)
    assert run.process.done and not run.all_of(ev.UsualEpochEnd)
    assert all(block.role is ev.BlockRole.WARMUP for block in run.all_of(ev.Block))


def test_a_model_that_takes_full_batches_only_is_measured_all_the_same(tmp_path: Path) -> None:
    model = tmp_path / "net.py"
    model.write_text(_NET.replace("self.fc(x)", "self.fc(x.view(8, 16))"))
    run = run_phase(model, tmp_path, preset=Preset.STANDARD)
    assert run.process.done, run.process.failure
    (failure,) = run.process.unlike_batch_failures
    assert failure.batch == "a last batch of 4" and failure.error_type == "RuntimeError" and failure.line == 9
    assert run.all_of(ev.Block)[-1].steps == 3, "it went on with full batches"
