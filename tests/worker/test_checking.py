"""How outputs are made comparable: the state of the first step, a twin in higher precision, random outputs."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from tcompile_tui.core import events as ev
from tcompile_tui.core.randomness import find_difference
from tcompile_tui.core.spec import Job, Phase, RunSpec, Task, parse_inputs, parse_target
from tcompile_tui.worker import bench as benches
from tcompile_tui.worker.checking import FirstState, arithmetic_of, make_reference
from tcompile_tui.worker.compare import Arithmetic, compare_snapshots
from tcompile_tui.worker.compiler import CompileSignals
from tcompile_tui.worker.inputs import Batch
from tcompile_tui.worker.loading import UserFile
from tcompile_tui.worker.randomness import RUNS, compare_distributions, is_random
from tcompile_tui.worker.reference import Reference
from tcompile_tui.worker.timing import CpuTimer

pytestmark = pytest.mark.xdist_group("torch")


class Net(torch.nn.Module):  # type: ignore[misc]
    """`hidden` is what it does between its two layers."""

    def __init__(self, hidden: Any = torch.nn.functional.gelu) -> None:
        super().__init__()
        self.first, self.second, self.hidden = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8), hidden

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second(self.hidden(self.first(x)))
        return out


def _bench(folder: Path, sent: list[ev.Event], entry: Any, task: Task = Task.INFER, **options: Any) -> benches.Bench:
    spec = RunSpec(parse_target("net.py"), inputs=parse_inputs(["float32[4,8]"]), **options)
    job = Job(
        phase=Phase.REFERENCE, mode=None, spec=spec, process=1, run_start_ns=0, source_path="net.py",
        source_module=None, qualified_name="Net", import_root="", argv=(), cache_root="", warmup_budget_s=1,
        pair_budget_s=1, max_pairs=1, reference_file=str(folder / "reference.pt"),
    )  # fmt: skip
    channel: Any = SimpleNamespace(send=sent.append, should_finish=lambda loop: False)
    user = UserFile(ModuleType("net"), entry)
    cpu = torch.device("cpu")
    return benches.Bench(job, channel, CompileSignals(sent.append), benches.Stage(), user, cpu, CpuTimer(), task)


def _made(
    folder: Path, entry: Any, task: Task = Task.INFER, **options: Any
) -> tuple[Reference | None, ev.Notice, torch.nn.Module, list[Batch]]:
    sent: list[ev.Event] = []
    bench = _bench(folder, sent, entry, task, **options)
    model, batches = benches.prepare(bench)
    plain, _ = benches.prepare(bench)
    make_reference(bench, model, batches[:1])
    (notice,) = (event for event in sent if isinstance(event, ev.Notice))
    file = folder / "reference.pt"
    return (Reference.load(file) if file.exists() else None), notice, plain, batches


# ---------------------------------------------------------------- the reference


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_the_reference_is_the_same_model_on_the_same_inputs(tmp_path: Path, dtype: str | None) -> None:
    """With the values that parameters and inputs have in the model's own type: only the arithmetic is another."""
    reference, notice, plain, batches = _made(tmp_path, Net, dtype=dtype)
    assert reference is not None and notice.code == "reference" and "float64" in notice.text
    with torch.no_grad():
        exact = plain.double()(batches[0].args[0].double())
    assert torch.equal(reference.samples["output"].values, exact.flatten())
    assert torch.get_default_dtype() is torch.float32, "as it was"


def test_the_reference_of_a_training_step_has_loss_and_gradients(tmp_path: Path) -> None:
    reference, _, plain, batches = _made(tmp_path, Net, Task.TRAIN)
    assert reference is not None
    loss = plain.double()(batches[0].args[0].double()).square().mean()
    (gradient,) = torch.autograd.grad(loss, [plain.first.weight])
    torch.testing.assert_close(reference.samples["gradient of first.weight"].values, gradient.flatten())
    torch.testing.assert_close(reference.samples["loss"].values, loss.detach().float().double().reshape(1))


def _in_float32(x: torch.Tensor) -> torch.Tensor:
    """A cast that is written down: the next layer refuses anything but float32."""
    return x.float() if x.dtype is torch.float64 else x


def test_a_model_of_16_bits_that_refuses_float64_has_a_twin_in_float32(tmp_path: Path) -> None:
    reference, notice, _, _ = _made(tmp_path, lambda: Net(_in_float32), dtype="bfloat16")
    assert reference is not None and reference.dtype == "float32"
    assert "in float32" in notice.text and "in float64: " in notice.text, "and why not in float64"


def test_a_model_of_float32_that_refuses_float64_has_no_reference(tmp_path: Path) -> None:
    reference, notice, _, _ = _made(tmp_path, lambda: Net(_in_float32))
    assert reference is None and (notice.code, notice.level) == ("reference-missing", ev.Level.WARNING)


def test_a_twin_that_goes_to_16_bits_by_itself_is_no_reference(tmp_path: Path) -> None:
    """It would share eager's roundings, and make its errors look smaller than they are."""
    reference, notice, _, _ = _made(tmp_path, lambda: Net(lambda x: x.bfloat16().to(x.dtype)), dtype="bfloat16")
    assert reference is None and "the model itself calculates in bfloat16" in notice.text


def test_autocast_is_left_out_of_the_reference(tmp_path: Path) -> None:
    reference, _, plain, batches = _made(tmp_path, Net, amp="bf16")
    with torch.no_grad():
        exact = plain.double()(batches[0].args[0].double())
    assert reference is not None and torch.equal(reference.samples["output"].values, exact.flatten())


@pytest.mark.parametrize(
    ("options", "convert", "low"),
    [
        ({}, lambda model: model, None),
        ({"amp": "bf16"}, lambda model: model, "bfloat16"),
        ({"dtype": "float16"}, lambda model: model, "float16"),
        ({}, lambda model: model.bfloat16(), "bfloat16"),  # as the file may do
    ],
)
def test_what_calculates_in_16_bits_is_recognised(tmp_path: Path, options: Any, convert: Any, low: str | None) -> None:
    assert arithmetic_of(_bench(tmp_path, [], Net, **options), convert(Net())) == Arithmetic(low)


# ---------------------------------------------------------------- state


def test_buffers_and_inputs_return_to_what_they_were_where_they_are() -> None:
    model = torch.nn.BatchNorm1d(3)
    batch = Batch((torch.ones(2, 3),), {"mask": torch.zeros(1).expand(4)})
    state = FirstState([model], [batch])
    address = model.running_mean.data_ptr()
    model(batch.args[0] * 5)
    batch.args[0].zero_()
    assert model.running_mean.any()
    state.restore()
    assert not model.running_mean.any() and model.num_batches_tracked == 0
    assert model.running_mean.data_ptr() == address and bool(batch.args[0].all())


# ---------------------------------------------------------------- random outputs


def _twice(first: torch.Tensor, second: torch.Tensor) -> ev.OutputsCompared:
    return compare_snapshots(ev.ComparisonKind.EAGER_TWICE, {"output": first}, {"output": second}, Arithmetic())


def test_other_random_numbers_are_told_from_another_order_of_sums() -> None:
    ones = torch.ones(9)
    assert not is_random(_twice(ones, ones * (1 + 1e-6)))
    assert is_random(_twice(ones, ones * 1.1))
    assert is_random(_twice(torch.tensor([1, 2]), torch.tensor([1, 3])))


def _dropout(keep: float, scale: float) -> Any:
    signal = torch.linspace(-2, 2, 2_000)

    def run(seed: int) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(seed)
        mask = torch.rand(signal.shape, generator=generator) < keep
        return {"output": signal * mask * scale, "ids": mask.long(), "count": 3}

    return run


@pytest.mark.parametrize(
    ("compiled", "differs"),
    [
        (_dropout(0.5, 2.0), False),
        (_dropout(1.0, 1.0), True),  # left out: the mean is the same
        (_dropout(0.5, 1.0), True),  # not scaled
        (_dropout(0.6, 1 / 0.6), True),  # another rate
        (lambda seed: {**_dropout(0.5, 2.0)(seed), "output": _dropout(0.5, 2.0)(seed)["output"].flip(0)}, True),
    ],
    ids=["right", "left out", "not scaled", "another rate", "flipped"],
)
def test_wrong_random_outputs_are_found_and_right_ones_are_not(compiled: Any, differs: bool) -> None:
    found = compare_distributions(_dropout(0.5, 2.0), compiled, low_precision=None)
    leaves = {leaf.path: leaf for leaf in found.leaves}
    assert set(leaves) == {"output", "ids"} and found.runs == RUNS
    assert (find_difference(leaves["output"], RUNS, low_precision=False) is not None) is differs
