"""Which wrong outputs the accuracy check finds: defects put into what really compiled sample models return.

    python -m tests.benchmarks.defects [MODEL...] [--out FILE]

Each sample model is compiled once for each way to calculate, its outputs (for training the smallest large gradient)
are spoilt, and the worker's comparison and the judgement are asked as in a run: with the reference in higher
precision, and without one as in the quick preset. The first column is what torch.compile itself returned: all that
is not fine there is a false alarm. Compiling takes some minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import torch

from tcompile_tui.core.accuracy import Accuracy, Agreement, judge
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
from tcompile_tui.worker.timing import CpuTimer
from tests.benchmarks.tables import print_table

_SAMPLES = Path(__file__).parents[2] / "sample_models"
_MODELS = (
    "mlp",
    "pointwise_chain",
    "transformer_block",
    "convnet",
    "dynamic_shape",
    "graph_break",
    "tiny_launch_bound",
)
_CPU = torch.device("cpu")
_LARGE = 1_000
_MARKS = {
    Agreement.DIFFERENT: "caught",
    Agreement.UNCERTAIN: "uncertain",
    Agreement.WITHIN_ROUNDING: "passed",
    Agreement.SAME: "passed",
}

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
    generator = torch.Generator().manual_seed(5)
    flat[large[torch.randperm(len(large), generator=generator)[: max(1, flat.numel() // 1000)]]] = 0
    return flat.view_as(values)


def _garbage(values: torch.Tensor) -> torch.Tensor:
    noise = torch.randn(values.shape, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    return (noise * values.double().std(correction=0) + values.double().mean()).to(values.dtype)


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


def _bench(name: str, way: Way, folder: Path) -> benches.Bench:
    spec = RunSpec(parse_target(f"{name}.py"), task=way.task, dtype=way.dtype, amp=way.amp, device="cpu")
    job = Job(
        phase=Phase.WARM, mode=None, spec=spec, process=1, run_start_ns=0, source_path=None, source_module=None,
        qualified_name=name, import_root="", argv=(), cache_root="", warmup_budget_s=1, pair_budget_s=1, max_pairs=1,
        reference_file=str(folder / "reference.pt"),
    )  # fmt: skip
    channel: Any = SimpleNamespace(send=lambda event: None)
    signals = CompileSignals(channel.send)
    return benches.Bench(job, channel, signals, benches.Stage(), _user_file(name), _CPU, CpuTimer(), way.task)


def outputs_of(name: str, way: Way, folder: Path) -> Outputs:
    """Run the first step of every arm, as a warm process does."""
    bench = _bench(name, way, folder)
    model, batches = benches.prepare(bench)
    state = FirstState([model], batches[:1])

    def run(called: torch.nn.Module, seed: int) -> Snapshot:
        state.restore()
        step = make_step(bench.user, called, [clone_batch(batches[0])], bench.job.spec, way.task, _CPU, updates=False)
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


def row_of(name: str, way: Way, outputs: Outputs, reference: Reference | None) -> list[str]:
    row = [name, way.name, "none" if reference is None else reference.dtype]
    for label, defect in DEFECTS.items():
        spoilt = spoil(outputs.compiled, defect, outputs.bench.training)
        unchanged = label != "none" and all(_same(spoilt[path], outputs.compiled[path]) for path in spoilt)
        found = judged(outputs, spoilt, reference)
        row.append("no change" if unchanged else _MARKS[found.agreement])
        if label == "none" and found.agreement is Agreement.DIFFERENT:
            print(f"false alarm: {name}, {way.name}: {found.path}: {found.detail}", file=sys.stderr)
    return row


def _same(leaf: Any, other: Any) -> bool:
    return leaf is other or (isinstance(leaf, torch.Tensor) and torch.equal(leaf, other))


def summary_of(rows: list[list[str]]) -> list[list[str]]:
    """For each way to calculate: how often each defect was caught, of those that changed anything."""
    found = []
    for way in WAYS:
        for referenced in (True, False):
            own = [row for row in rows if row[1] == way.name and (row[2] != "none") is referenced]
            if not own:
                continue
            cells = []
            for column in range(3, len(own[0])):
                marks = [row[column] for row in own if row[column] != "no change"]
                caught, uncertain = marks.count("caught"), marks.count("uncertain")
                cells.append(
                    f"{caught}/{len(marks)}" + (f" +{uncertain} uncertain" if uncertain else "") if marks else ""
                )
            found.append([way.name, "yes" if referenced else "no", *cells])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.defects")
    parser.add_argument("models", nargs="*", default=_MODELS, metavar="MODEL")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models:
            for way in WAYS:
                with contextlib.redirect_stdout(io.StringIO()):  # a sample model prints
                    outputs = outputs_of(name, way, Path(folder))
                # Without one there is nothing that the second row could add.
                references = {id(each): each for each in (outputs.reference, None)}.values()
                rows += [row_of(name, way, outputs, reference) for reference in references]
                print(f"{name}, {way.name}: done", file=sys.stderr, flush=True)
    print_table(["calculates in", "reference", *DEFECTS], summary_of(rows))
    print()
    print_table(["model", "calculates in", "reference", *DEFECTS], rows)


if __name__ == "__main__":
    main()
