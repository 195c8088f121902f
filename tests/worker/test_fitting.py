"""The search for the largest batch in a worker, with a limit that is not a GPU's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Arm, Dim, Phase, RunSpec, parse_input, parse_target
from tcompile_tui.worker import fitting
from tcompile_tui.worker.bench import Stage
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.inputs import Batch

from .driver import run_phase

pytestmark = pytest.mark.xdist_group("torch")

_NET = """import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x, y):
        if len(x) > 9:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self.fc(x) + y

def example_inputs():
    return torch.randn(4, 4), torch.tensor(1.0)

TRAIN = True
"""


def test_a_real_process_finds_what_fits_and_times_it(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(_NET)
    run = run_phase(tmp_path / "net.py", tmp_path, Phase.FIT, arm=Arm.EAGER)
    assert run.process.done, run.process.failure
    fitted = run.process.batch
    assert fitted is not None and (fitted.matched, fitted.largest, fitted.too_large) == (4, 9, 10)
    assert fitted.limit_bytes is None and len(run.process.apart[Arm.EAGER]) == 8


# ---------------------------------------------------------------- its parts


def _bench(sent: list[Any], arm: Arm = Arm.EAGER, **spec: Any) -> Any:
    job = SimpleNamespace(
        arm=arm, memory_limit_bytes=None, spec=RunSpec(parse_target("net.py"), **spec), mode=None, max_pairs=1
    )
    channel = SimpleNamespace(should_finish=lambda loop: False, send=sent.append)
    user = SimpleNamespace(hook=lambda name: None)
    return SimpleNamespace(job=job, channel=channel, user=user, device=torch.device("cpu"), stage=Stage(), loop=0)


def _loops(
    limits: dict[bool | None, int], opened: list[tuple[int, bool | None]]
) -> Callable[[Batch, bool | None], Any]:
    """Loops that hold `limits` samples, by the `dynamic` that they are compiled with."""

    def open_loop(batch: Batch, dynamic: bool | None) -> Any:
        size = len(batch.args[0])
        opened.append((size, dynamic))

        def run_untimed(steps: int) -> None:
            if size > limits[dynamic]:
                try:
                    raise torch.OutOfMemoryError("CUDA out of memory")
                except torch.OutOfMemoryError as error:
                    raise RuntimeError("backend='inductor' raised") from error

        return SimpleNamespace(run_untimed=run_untimed, warm_up=lambda role, budget_s: run_untimed(1), arm=Arm.COMPILED)

    return open_loop


def test_a_size_of_its_own_that_needs_more_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[Any] = []
    monkeypatch.setattr(fitting, "run_alone", lambda bench, loop: timed.append(loop))
    sent: list[Any] = []
    opened: list[tuple[int, bool | None]] = []
    batch = Batch((torch.zeros(8, 2),), {})
    fitting.fit_batch(_bench(sent), torch.nn.Identity(), batch, _loops({True: 100, None: 90}, opened))
    (fitted,) = sent
    assert isinstance(fitted, ev.BatchFitted) and len(timed) == 1
    assert (fitted.matched, fitted.largest, fitted.too_large) == (8, 88, 94)
    assert [size for size, dynamic in opened if dynamic is None] == [100, 94, 88]


def test_an_error_of_another_kind_is_not_taken_for_a_limit() -> None:
    def open_loop(batch: Batch, dynamic: bool | None) -> Any:
        raise ValueError("the batch must be 8")

    with pytest.raises(ValueError, match="must be 8"):
        fitting.fit_batch(_bench([]), torch.nn.Identity(), Batch((torch.zeros(8, 2),), {}), open_loop)


def test_a_run_that_does_not_fit_under_its_limit_says_so() -> None:
    loops = _loops({True: 4, None: 4}, [])
    with pytest.raises(StageError, match="own batch of 8 does not fit alone"):
        fitting.fit_batch(_bench([]), torch.nn.Identity(), Batch((torch.zeros(8, 2),), {}), loops)


def test_samples_are_repeated_in_every_input_and_lie_as_they_did() -> None:
    images = torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last).requires_grad_()
    batch = Batch((images,), {"ids": torch.tensor([5, 7]), "scale": torch.tensor(2.0), "flag": True})
    matched, of = fitting.batch_maker(_bench([]), torch.nn.Identity(), batch)
    made = of(5)
    assert matched == 2 and made.args[0].shape == (5, 3, 4, 4) and made.args[0].requires_grad
    assert made.args[0].is_contiguous(memory_format=torch.channels_last)
    assert made.kwargs["ids"].tolist() == [5, 7, 5, 7, 5]
    assert made.kwargs["scale"].item() == 2.0 and made.kwargs["flag"] is True


def test_a_dimension_called_b_is_the_batch_wherever_it_is() -> None:
    inputs = (parse_input("x=float32[3,B]"), parse_input("i=int64[4]<0,B>"))
    bench = _bench([], inputs=inputs, dims=(Dim("B", 6), Dim("T", 2)))
    matched, of = fitting.batch_maker(bench, torch.nn.Identity(), Batch((), {}))
    assert matched == 6 and of(10).kwargs["x"].shape == (3, 10) and of(10).kwargs["i"].shape == (4,)


def test_inputs_without_a_common_dimension_need_a_name() -> None:
    batch = Batch((torch.zeros(8, 2), torch.zeros(3)), {})
    with pytest.raises(StageError, match="name the batch"):
        fitting.batch_maker(_bench([]), torch.nn.Identity(), batch)
