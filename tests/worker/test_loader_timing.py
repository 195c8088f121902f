"""The user's loader in a real worker process, and how the time between batches is read from when they arrive."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core.data_spec import DataSpec
from tcompile_tui.core.spec import Phase
from tcompile_tui.core.step_spec import FileFunction
from tcompile_tui.worker.bench import Stage
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.loader_timing import time_between, time_loader

from .driver import run_phase

pytestmark = pytest.mark.xdist_group("torch")

_NET = "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
_DATA = """import time
import torch

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.zeros(3), index

def loader():
    return torch.utils.data.DataLoader(Slow(), batch_size=8)

def few():
    return iter([1, 2])

def number():
    return 3
"""


def _spec(folder: Path, function: str) -> DataSpec:
    (folder / "data.py").write_text(_DATA)
    return DataSpec(loader=FileFunction(str(folder / "data.py"), function))


def test_a_loader_is_timed_through_its_epochs(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(_NET)
    run = run_phase(tmp_path / "net.py", tmp_path, Phase.LOADER, data=_spec(tmp_path, "loader"))
    timed = run.process.loader
    assert run.process.done and timed is not None, run.process.failure
    assert 40e6 <= timed.batch_ns < 80e6, "eight items of 5 ms and more"
    assert (timed.workers, timed.samples) == (0, 8) and timed.epochs > 1 and timed.batches > 20
    assert run.process.model is None, "nothing else is at work in its process"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("few", r"few\(\) gave 2 batches in all"),
        ("number", r"number\(\) returned a int"),
        ("other", "has no 'other'"),
    ],
)
def test_what_is_no_loader_is_told(tmp_path: Path, function: str, words: str) -> None:
    bench = SimpleNamespace(
        job=SimpleNamespace(spec=SimpleNamespace(data=_spec(tmp_path, function))),
        stage=Stage(), loop=0, channel=SimpleNamespace(should_finish=lambda loop: False),
    )  # fmt: skip
    with pytest.raises(StageError, match=words):
        time_loader(bench)  # type: ignore[arg-type]


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=60), st.integers(1, 12))
def test_batches_that_come_together_count_with_the_wait_for_them(steps: list[int], workers: int) -> None:
    arrived = list(accumulate([0, *steps]))
    found = time_between(arrived, workers)
    assert found is not None and min(steps) <= found <= max(steps)
    burst = list(accumulate([0, *([40] + [0] * 3) * 10]))
    assert time_between(burst, 4) == 10.0, "four workers, a batch of each every 40 ns"
    assert time_between([5], workers) is None
