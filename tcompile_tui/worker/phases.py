"""What each worker process does, from its job to its last record but one."""

from __future__ import annotations

import copy
import inspect
import math
import resource
import sys
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, perf_counter_ns
from typing import Any

import torch

from ..core.events import (
    Block,
    BlockRole,
    ComparisonKind,
    ImportsDone,
    Level,
    MemoryPeak,
    ModelReady,
    Notice,
    WorkerReady,
)  # fmt: skip
from ..core.spec import Arm, Job, Mode, Phase, Task
from . import compiler
from .channel import Channel
from .compare import compare_snapshots, snapshot_outputs
from .failures import StageError, text_of
from .inputs import Batch, clone_batch, describe_inputs, make_batches, make_further_batches
from .loading import UserFile, build_model, import_user_file, seed_everything
from .stepping import Step, make_step
from .timing import MAX_BLOCK_STEPS, BlockTimer, make_timer

STEP_SEED = 11
OTHER_STEP_SEED = 12
_TARGET_BLOCK_NS = 100_000_000
_MIN_WARMUP_STEPS = 3
_PAIR_BLOCK_NS = 20_000_000
_MIN_PAIR_STEPS = 8
_MAX_PAIR_BLOCK_NS = 1_000_000_000
_SLOW_PAIR_STEPS = 2
# Fewer give no interval worth having; the supervisor's limit still holds.
_MIN_PAIRS = 8
_STEPS_AFTER_SWITCH = 2
_MEMORY_STEPS = 3
# The second copy of a model must leave room for both arms' activations.
_COPY_HEADROOM = 2.5


class Stage:
    """Which part of the work is in hand, for the record of a failure."""

    def __init__(self) -> None:
        self.name = "start"
        self.compiled = False


@dataclass
class Bench:
    """The loaded model with everything that its steps need."""

    job: Job
    channel: Channel
    signals: compiler.CompileSignals
    stage: Stage
    user: UserFile
    device: torch.device
    timer: BlockTimer
    task: Task
    loop: int = 0

    @property
    def training(self) -> bool:
        return self.task is Task.TRAIN


def run_phase(job: Job, channel: Channel, stage: Stage, torch_s: float) -> None:
    """Run the job's phase. Whatever it raises is described by the caller with `stage`."""
    compiler_s = None
    if job.phase is not Phase.EAGER:
        compiler_s = compiler.import_compiler()
        compiler.assert_private_caches(job.cache_root)
    signals = compiler.CompileSignals(channel.send)
    capabilities = signals.attach()
    device = _open_device(job)
    channel.send(_worker_facts(device, capabilities))
    if job.phase is Phase.PREFLIGHT:
        channel.send(ImportsDone(torch_s=torch_s, compiler_s=compiler_s))
        stage.name, stage.compiled = "preflight compile", True
        _compile_one_op(device)
        return
    stage.name = "import"
    started = perf_counter()
    user = import_user_file(job)
    channel.send(ImportsDone(torch_s=torch_s, compiler_s=compiler_s, target_s=perf_counter() - started))
    signals.register_callbacks()
    task = user.task(job.spec.task)
    bench = Bench(job, channel, signals, stage, user, device, make_timer(device), task)
    {Phase.EAGER: _run_eager, Phase.COLD: _run_cold, Phase.WARM: _run_warm}[job.phase](bench)
    channel.send(signals.summary())
    if job.phase is not Phase.EAGER:
        compiler.stop_compile_workers()


# ---------------------------------------------------------------- the phases


def _run_eager(bench: Bench) -> None:
    """The user's own code, from its first step until it is steady."""
    model, batches = _prepare(bench)
    step = _first_step(bench, model, batches)
    loop = _Loop(bench, Arm.EAGER, step)
    loop.warm_up()
    loop.send_memory_peak()
    loop.run_further_calls(model)  # what fails without the compiler is not to be blamed on it


def _run_cold(bench: Bench) -> None:
    """What we advise to paste, on empty caches: from the first call until it is steady."""
    model, batches = _prepare(bench)
    _compile(bench, model)
    loop = _Loop(bench, Arm.COMPILED, _first_step(bench, model, batches))
    loop.warm_up()
    loop.send_memory_peak()
    loop.run_further_calls(model)


def _run_warm(bench: Bench) -> None:
    """A second start on the same caches, then eager and compiled in turn."""
    model, batches = _prepare(bench)
    original, how = _second_copy(bench, model)
    bench.channel.send(Notice(level=Level.INFO, code="second-copy", text=how))
    first_inputs = clone_batch(batches[0])
    _compile(bench, model)
    compiled_step = _first_step(bench, model, batches)
    compiled = _Loop(bench, Arm.COMPILED, compiled_step)
    first_outputs = compiled.first_call(model)
    compiled.warm_up()
    # What serves the first shape after the others have come may be another, dynamic program: that one is compared.
    compiled.run_further_calls(model)

    bench.stage.name, bench.stage.compiled = "accuracy check", False
    bench.timer = make_timer(bench.device)
    _check_accuracy(bench, original, first_inputs, first_outputs)
    del first_outputs

    bench.stage.name = "eager steps beside compiled ones"
    eager = _Loop(bench, Arm.EAGER, make_step(bench.user, original, batches, bench.job.spec, bench.task, bench.device))
    eager.warm_up(role=BlockRole.SETTLE, budget_s=1.0)
    _run_pairs(bench, eager, compiled)


def _run_pairs(bench: Bench, eager: _Loop, compiled: _Loop) -> None:
    """Blocks of both arms, eager first in even pairs and second in odd ones (ABBA), so that drift cancels."""
    bench.loop += 1
    started = perf_counter()
    # Arms share nothing but the machine, so a common length in steps keeps each block long enough.
    steps = plan_pair_steps(min(eager.recent_step_ns, compiled.recent_step_ns))
    longest_ns = steps * max(eager.recent_step_ns, compiled.recent_step_ns)
    if longest_ns > _MAX_PAIR_BLOCK_NS:
        steps = plan_pair_steps(max(eager.recent_step_ns, compiled.recent_step_ns))
    for pair in range(bench.job.max_pairs):
        for loop in (eager, compiled) if pair % 2 == 0 else (compiled, eager):
            bench.stage.compiled = loop is compiled
            loop.run_block(BlockRole.PAIR, steps + _STEPS_AFTER_SWITCH, pair=pair)
        spent = perf_counter() - started > bench.job.pair_budget_s and pair + 1 >= _MIN_PAIRS
        if spent or bench.channel.should_finish(bench.loop):
            break


def plan_pair_steps(step_ns: float) -> int:
    """Steps in one compared block: at least 8 and 20 ms, fewer for steps that take long (notes on method: README)."""
    steps = max(_MIN_PAIR_STEPS, math.ceil(_PAIR_BLOCK_NS / max(1.0, step_ns)))
    if steps * step_ns > _MAX_PAIR_BLOCK_NS:
        steps = max(_SLOW_PAIR_STEPS, int(_MAX_PAIR_BLOCK_NS / step_ns))
    return min(steps, MAX_BLOCK_STEPS - _STEPS_AFTER_SWITCH)


class _Loop:
    """Runs one arm's blocks and sends them."""

    def __init__(self, bench: Bench, arm: Arm, step: Step) -> None:
        self._bench = bench
        self._arm = arm
        self._step = step
        self._steps_done = 0
        self._first_peak_bytes: int | None = None
        self.recent_step_ns = 0.0

    def run_block(self, role: BlockRole, steps: int, pair: int | None = None, step: Step | None = None) -> bool:
        """Time and send one block; True if the compiler was active in it."""
        bench = self._bench
        timing = bench.timer.run(step or self._step, self._steps_done, steps)
        active_ns = bench.signals.take_activity_ns()
        compiled_at = sorted({self._step_at(timing.boundaries_ns, at_ns) for at_ns in active_ns})
        bench.channel.send(
            Block(
                arm=self._arm,
                role=role,
                loop=bench.loop,
                pair=pair,
                first_index=self._steps_done,
                steps=steps,
                step_ns=timing.step_ns,
                host_ns=timing.host_ns,
                wall_ns=timing.wall_ns,
                cpu_ns=timing.cpu_ns,
                involuntary_switches=timing.involuntary_switches,
                compiled_at=tuple(compiled_at),
            )
        )
        self._steps_done += steps
        # The host may be the slower side, and then the wall is what a step costs.
        self.recent_step_ns = max(float(median(timing.step_ns)), 1.0)
        return bool(compiled_at)

    def _step_at(self, boundaries_ns: tuple[int, ...], at_ns: int) -> int:
        last = len(boundaries_ns) - 2
        return self._steps_done + min(last, max(0, bisect_right(boundaries_ns, at_ns) - 1))

    def first_call(self, model: torch.nn.Module) -> dict[str, Any]:
        """The first step, with a copy of what it returned."""
        bench = self._bench
        seed_everything(STEP_SEED)
        kept: list[Any] = []
        self._name_stage()
        self.run_block(BlockRole.WARMUP, 1, step=lambda index: kept.append(self._step(index)))
        self._note_first_peak()
        return snapshot_outputs(kept.pop(), model, with_gradients=bench.training)

    def warm_up(self, role: BlockRole = BlockRole.WARMUP, budget_s: float | None = None) -> None:
        """Run blocks until the supervisor has seen a steady state or the budget of step time is spent."""
        bench = self._bench
        bench.loop += 1
        budget_ns = (budget_s if budget_s is not None else bench.job.warmup_budget_s) * 1e9
        self._name_stage()
        size, spent_ns, steps = 1, 0, 0
        while True:
            started = perf_counter_ns()
            active = self.run_block(role, size)
            self._note_first_peak()
            # The first step sets things up, and a compile may take minutes: neither eats the steps after it.
            spent_ns = 0 if active or steps == 0 else spent_ns + perf_counter_ns() - started
            steps += size
            finished = bench.channel.should_finish(bench.loop) or spent_ns >= budget_ns
            if finished and steps >= _MIN_WARMUP_STEPS:
                break
            wanted = int(_TARGET_BLOCK_NS / self.recent_step_ns)
            size = 1 if active else max(1, min(2 * size, wanted, MAX_BLOCK_STEPS))

    def run_further_calls(self, model: torch.nn.Module) -> None:
        """Each of the file's further inputs twice: what recompiles does so here, before anything is compared."""
        bench = self._bench
        batches = make_further_batches(bench.user, bench.job.spec, bench.device)
        if batches:
            bench.stage.name = "steps with more_inputs()"
            step = make_step(bench.user, model, batches, bench.job.spec, bench.task, bench.device)
            self.run_block(BlockRole.SETTLE, 2 * len(batches), step=step)
            self.run_block(BlockRole.SETTLE, _MIN_WARMUP_STEPS)

    def _name_stage(self) -> None:
        self._bench.stage.name = f"{self._arm.value} steps"
        self._bench.stage.compiled = self._arm is Arm.COMPILED

    def _note_first_peak(self) -> None:
        if self._first_peak_bytes is None and self._bench.device.type == "cuda":
            self._first_peak_bytes = torch.cuda.max_memory_allocated(self._bench.device)

    def send_memory_peak(self) -> None:
        """Peak of a few steady steps, apart from the first step's. CUDA only; the CPU has the process's RSS.

        Cudagraphs keep their memory in private pools that only the reserved figure counts."""
        device = self._bench.device
        steady = reserved = None
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
            for i in range(_MEMORY_STEPS):
                self._step(self._steps_done + i)
            torch.cuda.synchronize(device)
            steady, reserved = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
        self._bench.channel.send(
            MemoryPeak(
                arm=self._arm,
                first_allocated_bytes=self._first_peak_bytes,
                steady_allocated_bytes=steady,
                steady_reserved_bytes=reserved,
                host_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            )
        )


# ---------------------------------------------------------------- parts


def _open_device(job: Job) -> torch.device:
    """The supervisor made one GPU visible, so that it is device 0 whatever the machine has."""
    if job.spec.device == "cpu":
        return torch.device("cpu")
    try:
        torch.cuda.init()
    except Exception as error:
        raise StageError(
            f"torch {torch.__version__} cannot use the GPU ({error}): check the driver, or use --device cpu",
            fault="environment",
        ) from error
    return torch.device("cuda", 0)


def _worker_facts(device: torch.device, capabilities: tuple[str, ...]) -> WorkerReady:
    on_gpu = device.type == "cuda"
    properties = torch.cuda.get_device_properties(device) if on_gpu else None
    return WorkerReady(
        python_version=".".join(map(str, sys.version_info[:3])),
        torch_version=torch.__version__,
        cuda_version=torch.version.cuda,
        device_name=properties.name if properties is not None else "CPU",
        sm_count=properties.multi_processor_count if properties is not None else None,
        threads=torch.get_num_threads(),
        matmul_precision=torch.get_float32_matmul_precision(),
        capabilities=capabilities,
    )


def _compile_one_op(device: torch.device) -> None:
    """The smallest real compile: says whether this machine can compile at all."""

    def double_relu(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).relu()

    compiled = torch.compile(double_relu)
    compiled(torch.randn(64, device=device))
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _prepare(bench: Bench) -> tuple[torch.nn.Module, list[Batch]]:
    job, stage = bench.job, bench.stage
    stage.name = "build"
    model = build_model(bench.user, job)
    dtype = getattr(torch, job.spec.dtype) if job.spec.dtype else None
    model = model.to(bench.device, dtype) if dtype is not None else model.to(bench.device)
    model.train(bench.user.training_mode(bench.task))
    stage.name = "inputs"
    batches = make_batches(bench.user, model, job.spec, bench.device)
    if any(torch.nn.parameter.is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        with torch.no_grad():  # lazy modules get their parameters from a first call, in the user's loop too
            model(*batches[0].args, **batches[0].kwargs)
    bench.channel.send(_model_facts(bench, model, batches))
    return model, batches


def _model_facts(bench: Bench, model: torch.nn.Module, batches: list[Batch]) -> ModelReady:
    parameters = list(model.parameters())
    file, line = _place_of(type(model))
    forward_file, forward_line = _place_of(type(model).forward)
    return ModelReady(
        class_name=type(model).__name__,
        file=file,
        line=line,
        parameters=sum(p.numel() for p in parameters),
        parameter_bytes=sum(p.numel() * p.element_size() for p in parameters),
        training=bench.training,
        inputs=describe_inputs(batches[0]),
        input_batches=len(batches),
        optimizer="AdamW lr 0" if bench.training else None,
        loss=("the file's loss()" if bench.user.loss else "mean square") if bench.training else None,
        forward_file=forward_file,
        forward_line=forward_line,
    )


def _place_of(code: Callable[..., Any] | type) -> tuple[str | None, int | None]:
    try:
        return inspect.getsourcefile(code), inspect.getsourcelines(code)[1]
    except (OSError, TypeError):
        return None, None


def _first_step(bench: Bench, model: torch.nn.Module, batches: list[Batch]) -> Step:
    seed_everything(STEP_SEED)
    return make_step(bench.user, model, batches, bench.job.spec, bench.task, bench.device)


def _compile(bench: Bench, model: torch.nn.Module) -> None:
    """In place, which keeps the names of the state_dict: what is measured is what is advised."""
    mode = bench.job.mode or Mode.DEFAULT
    model.compile() if mode is Mode.DEFAULT else model.compile(mode=mode.value)


def _second_copy(bench: Bench, model: torch.nn.Module) -> tuple[torch.nn.Module, str]:
    """An identical, independent model for the other arm; where memory is short one that shares every tensor."""
    bench.stage.name = "second copy of the model"
    if not _copy_fits(bench):
        shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
        return copy.deepcopy(model, shared), "both arms share one set of parameters, because memory is short"
    try:
        return copy.deepcopy(model), "each arm has its own copy of the model"
    except Exception as error:
        other = build_model(bench.user, bench.job).to(bench.device)
        if other is model:
            raise StageError(
                f"both arms need a model of their own, but this one cannot be copied ({type(error).__name__}:"
                f" {text_of(error)}): add `def make_model():` that builds a new one"
            ) from error
        if bench.job.spec.dtype:
            other = other.to(getattr(torch, bench.job.spec.dtype))
        other.load_state_dict(model.state_dict())
        other.train(model.training)
        return (
            other,
            f"the other arm's model was built again, because copying failed ({type(error).__name__})",
        )


def _copy_fits(bench: Bench) -> bool:
    peak_bytes = bench.job.eager_peak_bytes
    if bench.device.type != "cuda" or peak_bytes is None:
        return True
    free_bytes: int = torch.cuda.mem_get_info(bench.device)[0]
    return _COPY_HEADROOM * peak_bytes <= free_bytes


def _check_accuracy(
    bench: Bench, original: torch.nn.Module, first_inputs: Batch, compiled_outputs: dict[str, Any]
) -> None:
    """Eager twice (with other random numbers the second time) and compiled, on the same inputs and state."""
    state = [(tensor, tensor.detach().clone()) for tensor in (*original.parameters(), *original.buffers())]

    def eager_outputs(seed: int) -> dict[str, Any]:
        step = make_step(bench.user, original, [clone_batch(first_inputs)], bench.job.spec, bench.task, bench.device)
        seed_everything(seed)
        outputs = snapshot_outputs(step(0), original, with_gradients=bench.training)
        original.zero_grad(set_to_none=True)
        with torch.no_grad():
            for tensor, value in state:
                tensor.copy_(value)  # in place: cudagraphs and optimizers hold the addresses
        return outputs

    reference = eager_outputs(STEP_SEED)
    again = eager_outputs(OTHER_STEP_SEED)
    bench.channel.send(compare_snapshots(ComparisonKind.EAGER_TWICE, reference, again, bench.training))
    bench.channel.send(compare_snapshots(ComparisonKind.COMPILED, reference, compiled_outputs, bench.training))
    bench.signals.take_activity_ns()
