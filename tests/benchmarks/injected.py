"""Defects put into what really compiled sample models return, and how they are judged. `defects` makes the table."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import torch

from tcompile_tui.core.accuracy import Accuracy, judge
from tcompile_tui.core.discover import resolve
from tcompile_tui.core.events import ComparisonKind
from tcompile_tui.core.spec import Job, Phase, RunSpec, Task, parse_target
from tcompile_tui.worker import bench as benches
from tcompile_tui.worker.checking import FirstState, arithmetic_of, make_reference
from tcompile_tui.worker.compare import compare_snapshots, snapshot_outputs
from tcompile_tui.worker.compiler import CompileSignals
from tcompile_tui.worker.inputs import clone_batch
from tcompile_tui.worker.loading import UserFile, seed_everything
from tcompile_tui.worker.loop import STEP_SEED
from tcompile_tui.worker.reference import Reference
from tcompile_tui.worker.stepping import make_step
from tcompile_tui.worker.timing import make_timer

_SAMPLES = Path(__file__).parents[2] / "sample_models"
# The widest spread of operations first.
MODELS = (
    "transformer_block",
    "convnet",
    "mlp",
    "pointwise_chain",
    "dynamic_shape",
    "graph_break",
    "tiny_launch_bound",
)
_LARGE = 1_000

Snapshot: TypeAlias = dict[str, Any]
Defect: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Way:
    """How the model calculates."""

    name: str
    task: Task
    dtype: str | None = None
    amp: str | None = None


WAYS = (
    Way("float32, inference", Task.INFER),
    Way("bfloat16, inference", Task.INFER, dtype="bfloat16"),
    Way("float16, inference", Task.INFER, dtype="float16"),
    Way("float32, training", Task.TRAIN),
    Way("bfloat16, training", Task.TRAIN, dtype="bfloat16"),
    Way("amp bfloat16, training", Task.TRAIN, amp="bf16"),
)


def _scaled(factor: float) -> Defect:
    return lambda values: (values.double() * factor).to(values.dtype)


def _dropped(values: torch.Tensor) -> torch.Tensor:
    """One element in 1000 is zero, at least one; not one of the smallest, whose loss nobody could see."""
    flat = values.clone().flatten()
    large = (flat.abs() >= flat.abs().median()).nonzero().flatten()
    order = torch.randperm(len(large), generator=torch.Generator().manual_seed(5)).to(large.device)
    flat[large[order[: max(1, flat.numel() // 1000)]]] = 0
    return flat.view_as(values)


def _garbage(values: torch.Tensor) -> torch.Tensor:
    noise = torch.randn(values.shape, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    return (noise.to(values.device) * values.double().std(correction=0) + values.double().mean()).to(values.dtype)


DEFECTS: Mapping[str, Defect] = {
    "none": lambda values: values,
    "x 1.001": _scaled(1.001),
    "x 1.01": _scaled(1.01),
    "1 in 1000 dropped": _dropped,
    "rounded to bfloat16": lambda values: values.bfloat16().to(values.dtype),
    "random numbers": _garbage,
}


@dataclass(frozen=True)
class Outputs:
    """What one model gives in one way: eager, eager again with other random numbers, compiled, and exact."""

    eager: Snapshot
    again: Snapshot
    compiled: Snapshot
    reference: Reference | None
    bench: benches.Bench
    model: torch.nn.Module


def _user_file(name: str) -> UserFile:
    path = _SAMPLES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"sample_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return UserFile(module, getattr(module, resolve(parse_target(str(path)), _SAMPLES).qualified_name))


def _bench(name: str, way: Way, folder: Path, device: torch.device) -> benches.Bench:
    spec = RunSpec(parse_target(f"{name}.py"), task=way.task, dtype=way.dtype, amp=way.amp, device=str(device))
    job = Job(
        phase=Phase.WARM, mode=None, spec=spec, process=1, run_start_ns=0, source_path=None, source_module=None,
        qualified_name=name, import_root="", argv=(), cache_root="", warmup_budget_s=1, pair_budget_s=1, max_pairs=1,
        reference_file=str(folder / "reference.pt"),
    )  # fmt: skip
    channel: Any = SimpleNamespace(send=lambda event: None)
    signals = CompileSignals(channel.send)
    return benches.Bench(job, channel, signals, benches.Stage(), _user_file(name), device, make_timer(device), way.task)


def outputs_of(name: str, way: Way, folder: Path, device: torch.device) -> Outputs:
    """Run the first step of every arm, as a warm process does."""
    bench = _bench(name, way, folder, device)
    model, batches = benches.prepare(bench)
    state = FirstState([model], batches[:1])

    def run(called: torch.nn.Module, seed: int) -> Snapshot:
        state.restore()
        step = make_step(bench.user, called, [clone_batch(batches[0])], bench.job.spec, way.task, device, updates=False)
        seed_everything(seed)
        kept = snapshot_outputs(step(0), model, with_gradients=bench.training)
        model.zero_grad(set_to_none=True)
        return kept

    eager, again = run(model, STEP_SEED), run(model, STEP_SEED + 1)
    torch._dynamo.reset()
    compiled = run(torch.compile(model), STEP_SEED)
    state.restore()
    twin, inputs = benches.prepare(bench)
    file = Path(bench.job.reference_file or "")
    file.unlink(missing_ok=True)
    make_reference(bench, twin, inputs[:1])
    return Outputs(eager, again, compiled, Reference.load(file) if file.exists() else None, bench, model)


def spoil(snapshot: Snapshot, defect: Defect, training: bool) -> Snapshot:
    """The defect in every output; for training in one gradient, the smallest of those with many elements."""
    floating = {path: leaf for path, leaf in snapshot.items() if _is_floating(leaf)}
    gradients = {path: leaf for path, leaf in floating.items() if path.startswith("gradient")}
    if training and gradients:
        large = {path: leaf for path, leaf in gradients.items() if leaf.numel() >= _LARGE}
        largest = max(gradients, key=lambda path: gradients[path].numel())
        chosen = [min(large, key=lambda path: _rms(large[path])) if large else largest]
    else:
        chosen = [path for path in floating if path.startswith("output")]
    return {**snapshot, **{path: defect(floating[path]) for path in chosen}}


def _is_floating(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point()


def _rms(values: torch.Tensor) -> float:
    return float(values.double().square().mean().sqrt())


def judged(outputs: Outputs, compiled: Snapshot, reference: Reference | None) -> Accuracy:
    """As the verdict does it."""
    arithmetic = arithmetic_of(outputs.bench, outputs.model)
    twice = compare_snapshots(ComparisonKind.EAGER_TWICE, outputs.eager, outputs.again, arithmetic)
    found = compare_snapshots(ComparisonKind.COMPILED, outputs.eager, compiled, arithmetic, reference)
    return judge({ComparisonKind.EAGER_TWICE: twice, ComparisonKind.COMPILED: found}, None, outputs.bench.training)
