"""What one step does."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch

from tcompile_tui.core.spec import RunSpec, Task, parse_target
from tcompile_tui.core.step_spec import USUAL_STEP, BuiltinOptimizer, StepSpec
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.inputs import Batch
from tcompile_tui.worker.loading import UserFile
from tcompile_tui.worker.own_code import NO_OWN_CODE, OwnCode
from tcompile_tui.worker.stepping import Step, make_optimizer, make_step, mean_square

pytestmark = pytest.mark.xdist_group("torch")
CPU = torch.device("cpu")


class Watched(torch.nn.Module):  # type: ignore[misc]
    """Remembers in what state its forward finds it."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)
        self.seen: list[tuple[bool, bool, float]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append((self.fc.weight.grad is None, torch.is_grad_enabled(), float(x.flatten()[0])))
        out: torch.Tensor = self.fc(x)
        return out


def _step(
    model: torch.nn.Module,
    task: Task,
    batches: list[Batch] | None = None,
    spec: StepSpec = USUAL_STEP,
    own: OwnCode = NO_OWN_CODE,
    amp: str | None = None,
    **hooks: Any,
) -> Step:
    module = ModuleType("net")
    vars(module).update(hooks)
    batches = batches or [Batch((torch.full((2, 3), float(i)),), {}) for i in (1, 2)]
    run = RunSpec(parse_target("net.py"), amp=amp, step=spec)
    return make_step(UserFile(module, None, own=own), model, batches, run, task, CPU)


# ---------------------------------------------------------------- steps


def test_inference_rotates_its_batches_without_gradients() -> None:
    model = Watched()
    step = _step(model, Task.INFER)
    for index in range(3):
        assert not step(index).requires_grad
    assert model.seen == [(True, False, 1.0), (True, False, 2.0), (True, False, 1.0)]


def test_a_training_step_starts_without_gradients_and_leaves_the_parameters() -> None:
    model = Watched()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    step = _step(model, Task.TRAIN)
    for index in range(3):
        step(index)
    assert [fresh for fresh, _, _ in model.seen] == [True, True, True]
    assert model.fc.weight.grad is not None and bool(model.fc.weight.grad.any())
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("micro_batches", [1, 2, 3])
def test_gradients_add_up_over_the_micro_batches_of_a_step(micro_batches: int) -> None:
    """To those of one large batch, whose loss is the mean."""
    model = Watched()
    inputs = [torch.randn(2, 3) for _ in range(4)]
    step = _step(model, Task.TRAIN, [Batch((x,), {}) for x in inputs], spec=StepSpec(accumulate=micro_batches))
    for index in range(2):
        model.seen.clear()
        result = step(index)
        used = [inputs[i % 4] for i in range(index * micro_batches, (index + 1) * micro_batches)]
        assert [first for _, _, first in model.seen] == [float(x.flatten()[0]) for x in used]
        assert [fresh for fresh, _, _ in model.seen] == [True] + [False] * (micro_batches - 1)
        kept = model.fc.weight.grad
        (expected,) = torch.autograd.grad(mean_square(model(torch.cat(used))), [model.fc.weight])
        torch.testing.assert_close(kept, expected)
        assert float(result.loss.detach()) == pytest.approx(float(mean_square(model(used[-1])).detach()))


def test_a_step_without_updates_leaves_the_same_gradients() -> None:
    model = Watched()
    batches = [Batch((torch.randn(2, 3),), {})]
    user, spec = UserFile(ModuleType("net"), None), RunSpec(parse_target("net.py"))
    gradients = []
    for updates in (True, False):
        make_step(user, model, batches, spec, Task.TRAIN, CPU, updates)(0)
        assert model.fc.weight.grad is not None
        gradients.append(model.fc.weight.grad.clone())
    assert torch.equal(*gradients)


def test_inference_has_no_micro_batches() -> None:
    with pytest.raises(StageError, match="--accumulate 4 is for training"):
        _step(Watched(), Task.INFER, spec=StepSpec(accumulate=4))


def test_the_files_loss_is_the_one_that_is_trained() -> None:
    model = Watched()
    _step(model, Task.TRAIN, loss=lambda output: output.sum() * 0 + output[0, 0])(1)
    assert model.fc.bias.grad is not None and model.fc.bias.grad.tolist() == [1, 0, 0]


def test_the_loss_that_is_asked_for_comes_before_the_files() -> None:
    model = Watched()
    own = OwnCode(loss=lambda output: output[:, 1].sum())
    _step(model, Task.TRAIN, own=own, loss=lambda output: output.sum())(1)
    assert model.fc.bias.grad is not None and model.fc.bias.grad.tolist() == [0, 2, 0]


@pytest.mark.parametrize("amp", [None, "bf16", "fp16"])
def test_gradients_are_clipped_as_the_optimizer_gets_them(amp: str | None) -> None:
    """Of their true size: not that of the scaled loss of float16."""
    free, clipped = Watched(), Watched()
    clipped.load_state_dict(free.state_dict())
    _step(free, Task.TRAIN, amp=amp)(0)
    _step(clipped, Task.TRAIN, spec=StepSpec(grad_clip=0.25), amp=amp)(0)
    weight, bias = free.fc.weight.grad, free.fc.bias.grad
    assert weight is not None and bias is not None
    norm = float(torch.cat([weight.flatten(), bias]).norm())
    assert 0.25 < norm < 100, "it is clipped at all, and was unscaled"
    torch.testing.assert_close(clipped.fc.weight.grad, weight * 0.25 / norm, rtol=1e-3, atol=0)


@pytest.mark.parametrize(
    ("spec", "own", "kind"),
    [
        (StepSpec(), NO_OWN_CODE, torch.optim.AdamW),
        (StepSpec(optimizer=BuiltinOptimizer.SGD), NO_OWN_CODE, torch.optim.SGD),
        (StepSpec(), OwnCode(optimizer=lambda model: torch.optim.RMSprop(model.parameters())), torch.optim.RMSprop),
        (
            StepSpec(),
            OwnCode(optimizer=lambda model: torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))),
            torch.optim.Adam,
        ),
    ],
)
def test_an_optimizer_works_without_a_step_forward(spec: StepSpec, own: OwnCode, kind: type) -> None:
    model = Watched()
    before = model.fc.weight.clone()
    run = RunSpec(parse_target("net.py"), step=spec)
    user = UserFile(ModuleType("net"), None, own=own)
    optimizer = make_optimizer(user, model, run, Task.TRAIN)
    assert type(optimizer) is kind and optimizer is not None
    step = make_step(user, model, [Batch((torch.ones(2, 3),), {})], run, Task.TRAIN, CPU, optimizer=optimizer)
    step(0)
    assert torch.equal(model.fc.weight, before)
    assert optimizer.state, "it did its work"
    assert make_optimizer(user, model, run, Task.INFER) is None


def test_what_is_no_optimizer_is_refused() -> None:
    own = OwnCode(optimizer=lambda model: [model])
    with pytest.raises(StageError, match=r"returned a list, not a torch\.optim\.Optimizer"):
        _step(Watched(), Task.TRAIN, own=own)


@pytest.mark.parametrize(
    ("batch", "given"),
    [
        (Batch((1,), {}, single=True), 1),
        (Batch((1,), {}), (1,)),
        (Batch((1, 2), {}), (1, 2)),
        (Batch((), {"x": 1}), {"x": 1}),
    ],
)
def test_a_step_of_ones_own_gets_the_batch_as_it_was_given(batch: Batch, given: Any) -> None:
    calls = []

    def own_step(model: torch.nn.Module, batch: Any) -> str:
        calls.append((model, batch))
        return "its result"

    model = Watched()
    step = _step(model, Task.TRAIN, [batch], own=OwnCode(step=own_step))
    assert step(0) == "its result" and calls == [(model, given)]


def test_a_step_of_ones_own_may_ask_for_the_optimizer() -> None:
    def own_step(model: torch.nn.Module, batch: Any, optimizer: torch.optim.Optimizer) -> Any:
        return optimizer

    spec = StepSpec(optimizer=BuiltinOptimizer.SGD)
    assert isinstance(_step(Watched(), Task.TRAIN, spec=spec, own=OwnCode(step=own_step))(0), torch.optim.SGD)


def test_a_step_of_ones_own_cannot_get_half_named_inputs() -> None:
    with pytest.raises(StageError, match="give all inputs by name, or none"):
        _step(Watched(), Task.TRAIN, [Batch((1,), {"y": 2})], own=OwnCode(step=lambda model, batch: None))


def test_the_default_loss_is_finite_where_a_sum_would_not_be() -> None:
    output = torch.full((2048, 64), 200.0, dtype=torch.float16, requires_grad=True)
    assert not output.sum().isfinite()
    loss = mean_square(output)
    assert loss.dtype is torch.float32 and float(loss.detach()) == pytest.approx(40_000)


def test_the_default_loss_takes_what_has_a_gradient() -> None:
    passed_through, trained = torch.ones(2), torch.full((2,), 3.0, requires_grad=True)
    loss = mean_square({"mask": torch.ones(2, dtype=torch.bool), "x": passed_through, "y": trained})
    assert float(loss.detach()) == 9


@pytest.mark.parametrize("output", [torch.ones(2), torch.ones(2, dtype=torch.int64), "text"])
def test_an_output_that_cannot_be_trained_asks_for_a_loss(output: Any) -> None:
    with pytest.raises(StageError, match=r"add `def loss\(output\):`"):
        mean_square(output)


def test_a_model_without_parameters_cannot_be_trained_but_its_inputs_can() -> None:
    class Plain(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    with pytest.raises(StageError, match="nothing to train"):
        _step(Plain(), Task.TRAIN)
    image = torch.ones(2, requires_grad=True)
    _step(Plain(), Task.TRAIN, [Batch((image,), {})])(0)
    assert image.grad is not None


def test_a_step_on_the_cpu_marks_no_cudagraph_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark imports Inductor: seconds that would be taken for the cost of an eager start."""
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: pytest.fail("marked"))
    for task in (Task.INFER, Task.TRAIN, Task.SERVE):
        _step(Watched(), task)(0)
