"""What each worker process does, from its job to its last record but one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from ..core.events import BlockRole, ImportsDone, Level, MeasurementDone, ModelCompiled, Notice
from ..core.spec import Arm, Job, Mode, Phase, Preset, Task
from . import compiler
from .artifacts import load_artifacts, save_artifacts
from .bench import Bench, Stage, open_device, prepare, second_copy, worker_facts
from .channel import Channel
from .checking import FirstState, check_accuracy, make_reference
from .decoding import decode_cache
from .energy import run_for_energy
from .fitting import fit_batch
from .imports import Imports
from .inputs import Batch
from .inspecting import inspect_model
from .loader_timing import time_loader
from .loading import import_user_file, seed_everything
from .loop import STEP_SEED, Loop, run_alone, run_latencies, run_pairs, run_prefills
from .profiling import profile_steps
from .regions import compile_as
from .replaying import open_sequence, replay
from .stepping import make_optimizer, make_step
from .timing import make_timer


def run_phase(job: Job, channel: Channel, stage: Stage, imports: Imports) -> None:
    """Run the job's phase. Whatever it raises is described by the caller with `stage`."""
    compiler_s = None
    if job.phase.compiles:
        compiler_s = compiler.import_compiler() if imports.compiler_s is None else imports.compiler_s
        compiler.assert_private_caches(job.cache_root)
    signals = compiler.CompileSignals(channel.send)
    capabilities = signals.attach()
    device = open_device(job)
    _allow_tf32(job)
    channel.send(worker_facts(device, capabilities))
    if job.phase is Phase.PREFLIGHT:
        channel.send(ImportsDone(torch_s=imports.torch_s, compiler_s=compiler_s))
        stage.name, stage.compiled = "preflight compile", True
        _compile_one_op(device)
        return
    stage.name = "import"
    user = imports.target or import_user_file(job)
    _allow_tf32(job)
    channel.send(
        ImportsDone(
            torch_s=imports.torch_s,
            compiler_s=compiler_s,
            target_s=user.import_s,
            environment_changed=user.environment_changed,
        )
    )
    if job.phase is Phase.INSPECT:
        inspect_model(job, channel, stage, user)
        return
    signals.register_callbacks()
    task = user.task(job.spec.task)
    bench = Bench(job, channel, signals, stage, user, device, make_timer(device), task)
    run = {
        Phase.EAGER: _run_eager,
        Phase.REFERENCE: _run_reference,
        Phase.LOADER: _run_loader,
        Phase.COLD: _run_cold,
        Phase.WARM: _run_warm,
        Phase.APART: _run_apart,
        Phase.FIT: _run_fit,
        Phase.SHAPES: _run_shapes,
        Phase.FULLGRAPH: _run_fullgraph,
        Phase.EXPLAIN: _run_explain,
    }
    loops = run[job.phase](bench)
    channel.send(signals.summary())
    channel.send(MeasurementDone())
    for loop in loops:
        profile_steps(bench, loop)
    if job.phase.compiles:
        compiler.stop_compile_workers()


# ---------------------------------------------------------------- the phases


# Each returns the loops whose steps are to be profiled.


def _run_eager(bench: Bench) -> Sequence[Loop]:
    """The user's own code, from its first step until it is steady. It is profiled beside the compiled arm only: here
    the profiler would first import the compiler."""
    model, batches = prepare(bench)
    loop = _first_loop(bench, Arm.EAGER, model, batches, _optimizer(bench, model))
    loop.warm_up()
    loop.send_memory_peak()
    loop.run_further_calls()  # what fails without the compiler is not to be blamed on it
    return ()


def _run_reference(bench: Bench) -> Sequence[Loop]:
    """The first step once more in higher precision, for the accuracy checks of later processes."""
    model, batches = prepare(bench)
    bench.stage.name = "the reference in higher precision"
    make_reference(bench, model, batches)
    return ()


def _run_loader(bench: Bench) -> Sequence[Loop]:
    """The user's loader, without a model beside it."""
    time_loader(bench)
    return ()


def _run_cold(bench: Bench) -> Sequence[Loop]:
    """What we advise to paste, on caches that are empty but for what is loaded: from the first call until it is
    steady."""
    model, batches = prepare(bench)
    if bench.job.artifacts_from is not None:
        bench.stage.name = "loading portable caches"
        bench.channel.send(load_artifacts(bench.job.artifacts_from))
    compiled, optimizer = _compile(bench, model)
    loop = _first_loop(bench, Arm.COMPILED, compiled, batches, optimizer)
    loop.warm_up()
    loop.send_memory_peak()
    loop.run_further_calls()
    if bench.job.artifacts_to is not None:
        bench.stage.name = "saving portable caches"
        bench.channel.send(save_artifacts(bench.job.artifacts_to))
    # A program that was compiled elsewhere and loaded leaves no record: only a profile can tell that it ran.
    return () if bench.signals.heard_a_program else (loop,)


def _run_warm(bench: Bench) -> Sequence[Loop]:
    """A second start on the same caches, then eager and compiled in turn."""
    model, batches = prepare(bench)
    original, how = second_copy(bench, model)
    bench.channel.send(Notice(level=Level.INFO, code="second-copy", text=how))
    step = bench.job.spec.step
    own_code = bench.user.own.step is not None or bench.user.own.optimizer is not None
    state = FirstState([model, original], batches[: step.accumulate], own_code)
    compiled_model, optimizer = _compile(bench, model)
    compiled = _first_loop(bench, Arm.COMPILED, compiled_model, batches, optimizer)
    first_outputs = compiled.first_call(model)
    compiled.warm_up()
    # What serves the first shape after the others have come may be another, dynamic program: that one is compared.
    compiled.run_further_calls()

    bench.stage.name, bench.stage.compiled = "accuracy check", False
    check_accuracy(bench, original, state, compiled, first_outputs)
    del first_outputs, state

    bench.stage.name = "eager steps beside compiled ones"
    eager = Loop(bench, Arm.EAGER, original, batches, _optimizer(bench, original))
    eager.warm_up(role=BlockRole.SETTLE, budget_s=1.0)
    run_pairs(bench, eager, compiled)
    if bench.task is Task.DECODE:
        run_prefills(bench, eager, compiled)
    serves = bench.task is Task.SERVE
    if serves or (not bench.training and bench.job.spec.preset in (Preset.STANDARD, Preset.THOROUGH)):
        run_latencies(bench, eager, compiled)
    if bench.job.measure_energy:
        run_for_energy(bench, (eager, compiled))
    return compiled, eager


def _run_apart(bench: Bench) -> Sequence[Loop]:
    """One of the arms on the mode's caches, where memory has no room for both."""
    model, batches = prepare(bench)
    if bench.job.arm is Arm.COMPILED:
        called, optimizer = _compile(bench, model)
        loop = _first_loop(bench, Arm.COMPILED, called, batches, optimizer)
    else:
        loop = _first_loop(bench, Arm.EAGER, model, batches, _optimizer(bench, model))
    loop.warm_up()
    loop.run_further_calls()
    run_alone(bench, loop)
    return ()


def _run_fit(bench: Bench) -> Sequence[Loop]:
    """The largest batch of one arm."""
    model, batches = prepare(bench)
    del batches[1:]

    def open_loop(batch: Batch, dynamic: bool | None) -> Loop:
        if bench.job.arm is Arm.COMPILED:
            called, optimizer = _compile(bench, model, dynamic)
            return _first_loop(bench, Arm.COMPILED, called, [batch], optimizer)
        return _first_loop(bench, Arm.EAGER, model, [batch], _optimizer(bench, model))

    fit_batch(bench, model, batches[0], open_loop)
    return ()


def _run_shapes(bench: Bench) -> Sequence[Loop]:
    """The run's sequence of shapes, with one way to deal with sizes that change. Nothing is profiled."""
    model, _ = prepare(bench)
    original, how = second_copy(bench, model)
    bench.channel.send(Notice(level=Level.INFO, code="second-copy", text=how))
    batches, compiled_batches = open_sequence(bench, model)
    compiled_model, optimizer = _compile(bench, model)
    compiled = _first_loop(bench, Arm.COMPILED, compiled_model, compiled_batches, optimizer)
    replay(bench, Loop(bench, Arm.EAGER, original, batches, _optimizer(bench, original)), compiled)
    return ()


def _run_fullgraph(bench: Bench) -> Sequence[Loop]:
    """Does a step compile with fullgraph=True? Asked apart from what is measured, since it changes what is compiled."""
    model, batches = prepare(bench)
    bench.stage.name, bench.stage.compiled = "a step with fullgraph=True", True
    compiled, _ = compiler.compile_model(model, (bench.job.mode or Mode.DEFAULT).options, fullgraph=True)
    cache = decode_cache(bench.job, Arm.COMPILED)
    step = make_step(bench.user, compiled, batches, bench.job.spec, bench.task, bench.device, cache=cache)
    bench.channel.send(compiler.probe_fullgraph(lambda: step(0)))
    return ()


def _run_explain(bench: Bench) -> Sequence[Loop]:
    """A second opinion on the graph breaks, which no figure stands on."""
    model, batches = prepare(bench)
    bench.stage.name, bench.stage.compiled = "torch._dynamo.explain", True
    with torch.set_grad_enabled(bench.training):
        bench.channel.send(compiler.explain(model, batches[0].args, batches[0].kwargs))
    return ()


# ---------------------------------------------------------------- parts


def _compile_one_op(device: torch.device) -> None:
    """The smallest real compile: says whether this machine can compile at all."""

    def double_relu(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).relu()

    compiled = torch.compile(double_relu)
    compiled(torch.randn(64, device=device))
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _allow_tf32(job: Job) -> None:
    """In both arms, and whatever the user's file sets when it is imported."""
    if job.spec.step.tf32:
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True


def _first_loop(
    bench: Bench, arm: Arm, model: torch.nn.Module, batches: list[Batch], optimizer: torch.optim.Optimizer | None
) -> Loop:
    seed_everything(STEP_SEED)
    return Loop(bench, arm, model, batches, optimizer)


def _optimizer(bench: Bench, model: torch.nn.Module) -> torch.optim.Optimizer | None:
    return make_optimizer(bench.user, model, bench.job.spec, bench.task)


def _compile(
    bench: Bench, model: torch.nn.Module, dynamic: bool | None = None
) -> tuple[torch.nn.Module, torch.optim.Optimizer | None]:
    """The model whose calls are compiled, and its optimizer; what is measured is what is advised."""
    bench.stage.name, bench.stage.compiled = "torch.compile", True
    options = (bench.job.mode or Mode.DEFAULT).options
    optimizer = _optimizer(bench, model)
    if bench.job.handling is not None:
        dynamic = bench.job.handling.dynamic
    if dynamic is not None:
        options = replace(options, dynamic=dynamic)
    compiled, wrapped, blocks = compile_as(model, options)
    if optimizer is not None and bench.job.spec.step.compile_optimizer:
        optimizer.step = compiler.compile_function(optimizer.step, options)
    bench.channel.send(ModelCompiled(wrapped=wrapped, blocks=blocks))
    return compiled, optimizer
