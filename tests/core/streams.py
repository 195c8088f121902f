"""Recorded series, and event streams of whole runs: short functions that stand for worker processes."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tcompile_tui.core import events as ev
from tcompile_tui.core.data_spec import DataSpec
from tcompile_tui.core.spec import Arm, Mode, Phase, Plan, Preset, RunSpec, parse_target
from tcompile_tui.core.state import RunState
from tcompile_tui.core.step_spec import USUAL_STEP, StepSpec

DATA = Path(__file__).parent.parent / "data"
EAGER_MS = 10.0
_PAIR_STEPS = 10

Process = list[ev.Event]


def recorded(name: str) -> dict[str, Any]:
    """A recording from an H200: step times of both arms, block pairs of eager/compiled and eager/eager."""
    loaded: dict[str, Any] = json.loads(gzip.decompress((DATA / "h200" / f"{name}.json.gz").read_bytes()))
    return loaded


RECORDINGS = tuple(sorted(path.name.removesuffix(".json.gz") for path in (DATA / "h200").glob("*.json.gz")))


def ar1(rng: random.Random, count: int, sd: float, phi: float) -> list[float]:
    """Noise of standard deviation `sd` whose neighbours resemble each other."""
    value, values = rng.gauss(0, sd), []
    for _ in range(count):
        value = phi * value + rng.gauss(0, sd * math.sqrt(1 - phi * phi))
        values.append(value)
    return values


# ---------------------------------------------------------------- a whole run


def replay(
    *processes: Process,
    modes: tuple[Mode, ...] = (Mode.DEFAULT,),
    plan: Plan = Plan(steps=1_000_000),  # noqa: B008 - frozen
    preset: Preset = Preset.STANDARD,
    samples: Sequence[ev.Event] = (),
    device: str = "cpu",
    step: StepSpec = USUAL_STEP,
    data: DataSpec | None = None,
    fit_batch: bool = False,
) -> RunState:
    """The state after a run of these processes, one after the other."""
    spec = RunSpec(
        parse_target("net.py"), modes=modes, device=device, plan=plan, preset=preset, step=step, data=data,
        fit_batch=fit_batch,
    )  # fmt: skip
    state = RunState()
    state.apply(
        ev.RunStarted(
            run_id="r", spec=spec, python="python", torch_version="2.13.0", device=device, device_name="a device"
        )
    )
    for ordinal, process in enumerate(processes, 1):
        for event in process:
            if isinstance(event, ev.SteadyJudged):
                state.apply(replace(event, of_process=ordinal))
            else:
                state.apply(ev.stamp(event, float(ordinal), ordinal))
    for sample in samples:
        state.apply(sample)
    return state


# ---------------------------------------------------------------- its processes


def alone(phase: Phase, arm: Arm, step_ms: float, mode: Mode | None = Mode.DEFAULT, blocks: int = 10) -> Process:
    """One arm in a process of its own."""
    first = block(arm, ev.BlockRole.WARMUP, 0, [2_000.0], compiled_at=(0,) if arm is Arm.COMPILED else ())
    levels = [block(arm, ev.BlockRole.APART, 1 + 10 * i, [step_ms * (1 + 0.001 * (i % 3))] * 10) for i in range(blocks)]
    warm_up = [first, block(arm, ev.BlockRole.WARMUP, 1, [step_ms] * 60)] if phase is Phase.APART else []
    return [started(phase, mode), *warm_up, *levels, *done(phase, mode)]


@dataclass(frozen=True)
class Compiled:
    """How one mode behaves. `noise` is that of the blocks' logarithms; in `broken_pairs` the compiler works;
    `lost` is the share of the time in which the timing thread did not run."""

    mode: Mode = Mode.DEFAULT
    speedup: float = 1.5
    compile_s: float = 20.0
    pairs: int = 40
    noise: float = 0.002
    lost: float = 0.0
    broken_pairs: tuple[int, ...] = ()
    output: ev.LeafComparison = field(default_factory=lambda: leaf(1e-7))
    recompiles: int = 0
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None


def leaf(relative_difference: float, **changes: Any) -> ev.LeafComparison:
    """One float32 output that differs by this share, root mean square."""
    plain = ev.LeafComparison(
        path="output",
        dtype="float32",
        elements=1000,
        same_structure=True,
        rms_reference=1.0,
        rms_difference=relative_difference,
        allclose_violations=int(relative_difference > 1e-4),
    )
    return replace(plain, **changes)


def model_ready(training: bool) -> ev.ModelReady:
    """A batch of eight."""
    return ev.ModelReady(
        class_name="Net", file=None, line=None, parameters=1, parameter_bytes=4, training=training, input_batches=1,
        inputs=(ev.TensorInfo("x", "float32", (8, 3), "cuda:0"),),
    )  # fmt: skip


def eager_process(
    step_ms: float = EAGER_MS, reserved_bytes: int | None = None, model: ev.ModelReady | None = None
) -> Process:
    return [
        started(Phase.EAGER),
        ev.ImportsDone(torch_s=1.0),
        *([model] if model is not None else []),
        *_warm_up(Arm.EAGER, step_ms, first_s=0.5),
        ev.MemoryPeak(arm=Arm.EAGER, steady_reserved_bytes=reserved_bytes, host_rss_bytes=400 << 20),
        *done(Phase.EAGER),
    ]


def cold_process(run: Compiled) -> Process:
    recompiled = ev.Recompiled(compile_id="0/1", failures=(ev.GuardFailure("size 8 is not 9"),))
    return [
        started(Phase.COLD, run.mode),
        ev.ImportsDone(torch_s=1.0, compiler_s=2.0),
        ev.FrameStarted(compile_id="0/0", function="forward", file="net.py", line=3),
        ev.GraphCaptured(compile_id="0/0", ops=7),
        *[recompiled] * run.recompiles,
        *_warm_up(Arm.COMPILED, EAGER_MS / run.speedup, run.compile_s, compiled=True),
        ev.MemoryPeak(
            arm=Arm.COMPILED,
            steady_allocated_bytes=run.allocated_bytes,
            host_rss_bytes=500 << 20,
            steady_reserved_bytes=run.reserved_bytes,
        ),
        *done(Phase.COLD, run.mode),
    ]


def warm_process(run: Compiled) -> Process:
    return [
        started(Phase.WARM, run.mode),
        ev.ImportsDone(torch_s=1.0, compiler_s=2.0),
        ev.CacheLookup(cache=ev.CacheKind.FX, outcome=ev.CacheOutcome.HIT),
        *_warm_up(Arm.COMPILED, EAGER_MS / run.speedup, run.compile_s / 10, compiled=True),
        ev.OutputsCompared(comparison=ev.ComparisonKind.EAGER_TWICE, leaves=(leaf(0.0),)),
        ev.OutputsCompared(comparison=ev.ComparisonKind.COMPILED, leaves=(run.output,)),
        *_pairs(run),
        *done(Phase.WARM, run.mode),
    ]


def both(run: Compiled) -> tuple[Process, Process]:
    """A mode from its cold start to its last pair."""
    return cold_process(run), warm_process(run)


def started(phase: Phase, mode: Mode | None = None) -> ev.PhaseStarted:
    return ev.PhaseStarted(phase=phase, mode=mode, pid=1, limit_s=900.0)


def done(phase: Phase, mode: Mode | None = None) -> Process:
    return [ev.WorkerDone(), ended(phase, mode)]


def ended(
    phase: Phase, mode: Mode | None = None, outcome: ev.Outcome = ev.Outcome.OK, detail: str = ""
) -> ev.PhaseEnded:
    return ev.PhaseEnded(phase=phase, mode=mode, outcome=outcome, seconds=9.0, detail=detail)


def block(
    arm: Arm,
    role: ev.BlockRole,
    first_index: int,
    steps_ms: Sequence[float],
    pair: int | None = None,
    compiled_at: tuple[int, ...] = (),
    lost: float = 0.0,
) -> ev.Block:
    step_ns = tuple(round(1e6 * step) for step in steps_ms)
    wall_ns = sum(step_ns)
    return ev.Block(
        arm=arm, role=role, pair=pair, first_index=first_index, steps=len(step_ns), step_ns=step_ns,
        wall_ns=wall_ns, cpu_ns=round((1 - lost) * wall_ns), compiled_at=compiled_at,
    )  # fmt: skip


def _warm_up(arm: Arm, step_ms: float, first_s: float, compiled: bool = False) -> Process:
    first = block(arm, ev.BlockRole.WARMUP, 0, [1e3 * first_s], compiled_at=(0,) if compiled else ())
    steady = ev.SteadyJudged(of_process=0, arm=arm, steadiness=ev.Steadiness.STEADY, start_index=4, bound=0.01)
    return [first, block(arm, ev.BlockRole.WARMUP, 1, [step_ms] * 60), steady]


def _pairs(run: Compiled) -> Process:
    rng = random.Random(7)
    blocks: Process = []
    for pair in range(run.pairs):
        for arm, level_ms in ((Arm.EAGER, EAGER_MS), (Arm.COMPILED, EAGER_MS / run.speedup)):
            steps_ms = [level_ms * math.exp(rng.gauss(0, run.noise))] * _PAIR_STEPS
            index = 61 + pair * _PAIR_STEPS
            compiled_at = (index,) if arm is Arm.COMPILED and pair in run.broken_pairs else ()
            blocks.append(block(arm, ev.BlockRole.PAIR, index, steps_ms, pair, compiled_at, run.lost))
    return blocks
