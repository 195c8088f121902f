"""A sequence of shapes in a real worker process, and how its blocks are cut."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tcompile_tui.core import events as ev
from tcompile_tui.core.shape_spec import ShapeHandling, ShapeSequence
from tcompile_tui.core.spec import Arm, Dim, Mode, Phase, RunSpec, parse_input, parse_target
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.inputs import Batch
from tcompile_tui.worker.replaying import block_steps, make_sequence

from .driver import PhaseRun, run_phase

pytestmark = pytest.mark.xdist_group("torch")

_NET = """import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(16, 16)

    def forward(self, x):
        return self.fc(x).relu()
"""
_SEQUENCE = ShapeSequence.of(("T",), [(5,), (7,), (5,), (9,), (7,)])


def _replayed(folder: Path, handling: ShapeHandling) -> PhaseRun:
    model = folder / "net.py"
    model.write_text(_NET)
    return run_phase(
        model, folder, Phase.SHAPES, Mode.DEFAULT, handling=handling,
        inputs=(parse_input("x=float32[2,T,16]"),), dims=(Dim("T", 5),), shapes=_SEQUENCE,
    )  # fmt: skip


def test_a_size_becomes_dynamic_when_it_changes_and_costs_two_compiles(tmp_path: Path) -> None:
    run = _replayed(tmp_path, ShapeHandling.AUTOMATIC)
    assert run.process.done, run.process.failure
    replayed = run.process.replay
    assert replayed is not None and replayed.compile_steps == (0, 1), "the third shape finds a dynamic graph"
    assert run.process.compile.recompile_count == 1 and run.process.compile.dynamic_shapes
    assert replayed.late_compiles == 0 and replayed.ratio is not None and replayed.ratio.lo is not None
    assert replayed.compile_s is not None and replayed.compile_s > 0.1
    blocks = [block for block in run.all_of(ev.Block) if block.role is ev.BlockRole.REPLAY]
    assert [(block.arm, block.pair, block.steps) for block in blocks[:2]] == [
        (Arm.COMPILED, None, 5),
        (Arm.EAGER, None, 5),
    ]
    assert all(block.steps % 5 == 0 for block in blocks), "whole rounds where a round is short"
    assert [block.arm for block in blocks[2:6]] == [Arm.EAGER, Arm.COMPILED, Arm.COMPILED, Arm.EAGER]


def test_each_batch_has_its_sizes_and_a_size_without_effect_is_told() -> None:
    def batches(text: str) -> list[Batch]:
        target = parse_target("net.py")
        spec = RunSpec(target, inputs=(parse_input(text),), dims=(Dim("B", 3), Dim("T", 5)), shapes=_SEQUENCE)
        user = SimpleNamespace(hook=lambda name: None)
        bench = SimpleNamespace(job=SimpleNamespace(spec=spec), user=user, device=torch.device("cpu"))
        return make_sequence(bench, torch.nn.Identity(), _SEQUENCE)  # type: ignore[arg-type]

    made = batches("x=float32[B,T]")
    assert [tuple(batch.kwargs["x"].shape) for batch in made] == [(3, 5), (3, 7), (3, 5), (3, 9), (3, 7)]
    assert made[0] is made[2]
    with pytest.raises(StageError, match="the same for T=5 and for T=7"):
        batches("x=float32[B,16]")


@pytest.mark.parametrize(
    ("step_ns", "batches", "steps"),
    [(1e6, 200, 200), (1e5, 4, 200), (1e9, 200, 1), (1e8, 200, 10), (100.0, 1_500, 3_000), (1.0, 4_000, 4_000)],
)
def test_a_block_is_20_ms_to_1_s_long_and_whole_rounds_where_they_fit(step_ns: float, batches: int, steps: int) -> None:
    assert block_steps(step_ns, batches) == steps
