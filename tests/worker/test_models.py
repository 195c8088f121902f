"""How a phase gets its model ready: lazy modules, and a second copy for the other arm."""

from __future__ import annotations

import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Job, Phase, RunSpec, Task, parse_inputs, parse_target
from tcompile_tui.worker import bench as benches
from tcompile_tui.worker.compiler import CompileSignals
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.loading import UserFile
from tcompile_tui.worker.timing import CpuTimer

pytestmark = pytest.mark.xdist_group("torch")


class Locked(torch.nn.Module):  # type: ignore[misc]
    """Cannot be copied: a lock cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.lock = torch.nn.Linear(3, 3), threading.Lock()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.fc(x)
        return out


def _bench(entry: Any, sent: list[ev.Event]) -> benches.Bench:
    job = Job(
        phase=Phase.WARM, mode=None, spec=RunSpec(parse_target("net.py"), inputs=parse_inputs(["float32[2,3]"])),
        process=1, run_start_ns=0, source_path="net.py", source_module=None, qualified_name="Net", import_root="",
        argv=(), cache_root="", warmup_budget_s=1, pair_budget_s=1, max_pairs=1,
    )  # fmt: skip
    channel: Any = SimpleNamespace(send=sent.append, should_finish=lambda loop: False)
    user = UserFile(ModuleType("net"), entry)
    signals, stage = CompileSignals(sent.append), benches.Stage()
    return benches.Bench(job, channel, signals, stage, user, torch.device("cpu"), CpuTimer(), Task.INFER)


@pytest.mark.parametrize("entry", [lambda: torch.nn.Linear(3, 3), Locked], ids=["copied", "built again"])
def test_each_arm_has_an_equal_model_of_its_own(entry: Any) -> None:
    bench = _bench(entry, [])
    model, _ = benches.prepare(bench)
    with torch.no_grad():
        next(model.parameters()).add_(1)
    other, how = benches.second_copy(bench, model)
    assert ("copying failed" in how) == (entry is Locked)
    assert other is not model and other.training is model.training
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs) and mine.data_ptr() != theirs.data_ptr()


def test_a_model_that_can_be_had_only_once_is_refused() -> None:
    """Both arms would be the same compiled object, and no difference the verdict."""
    bench = _bench(Locked(), [])
    model, _ = benches.prepare(bench)
    with pytest.raises(StageError, match=r"cannot be copied \(TypeError.*make_model"):
        benches.second_copy(bench, model)


def test_lazy_modules_have_their_parameters_before_anything_counts_them() -> None:
    sent: list[ev.Event] = []
    model, _ = benches.prepare(_bench(lambda: torch.nn.LazyLinear(5), sent))
    (ready,) = sent
    assert isinstance(ready, ev.ModelReady) and ready.parameters == 3 * 5 + 5
    assert isinstance(model, torch.nn.Linear)


def test_facts_name_the_place_of_forward() -> None:
    sent: list[ev.Event] = []
    benches.prepare(_bench(Locked, sent))
    (ready,) = sent
    assert isinstance(ready, ev.ModelReady)
    lines = Path(__file__).read_text().splitlines()
    assert (ready.file, ready.forward_file) == (__file__, __file__)
    assert ready.forward_line is not None and "def forward" in lines[ready.forward_line - 1]
    assert (ready.input_batches, ready.training, ready.optimizer) == (4, False, None)
