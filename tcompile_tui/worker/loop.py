"""Run one arm's steps block by block, and two arms' in turn."""

from __future__ import annotations

import math
import resource
from bisect import bisect_right
from itertools import pairwise
from statistics import median
from time import perf_counter, perf_counter_ns
from typing import Any

import torch

from ..core.events import Block, BlockRole, MemoryPeak, PrefillsTimed, UnlikeBatchFailed, UsualEpochEnd
from ..core.spec import Arm, Preset, Task
from ..core.step_spec import Epoch
from .bench import Bench
from .compare import snapshot_outputs
from .decoding import Decoding, decode_cache
from .epoch import epoch_steps, going_on, usual_epoch
from .failures import describe_failure
from .inputs import Batch, make_further_batches
from .loading import seed_everything
from .stepping import Step, make_autocast, make_step
from .timing import (
    EACH_STEP,
    MAX_BLOCK_STEPS,
    BlockTiming,
    CpuTimer,
    GroupPlan,
    plan_groups,
    wait_for_device,
)

STEP_SEED = 11
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
_LATENCY_TURNS = 10
_LATENCY_STEPS = 200
_PREFILL_TURNS, _PREFILL_STEPS = 8, 4
_LATENCY_NS = 3_000_000_000
_MORE_REQUESTS = 5
_LATENCY_LIMIT_S = 30.0


class Loop:
    """Runs one arm's blocks and sends them. `called` is what a step calls: the model, or what compiles it."""

    def __init__(
        self,
        bench: Bench,
        arm: Arm,
        called: torch.nn.Module,
        batches: list[Batch],
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        self._bench = bench
        self.arm = arm
        self._called = called
        self._optimizer = optimizer
        self._batches = batches
        self._step = self._step_on(batches)
        self._steps_done = 0
        self._first_peak_bytes: int | None = None
        self.recent_step_ns = self.recent_mean_ns = 0.0
        self._model: torch.nn.Module | None = None

    def run_block(
        self,
        role: BlockRole,
        steps: int,
        pair: int | None = None,
        step: Step | None = None,
        groups: GroupPlan = EACH_STEP,
    ) -> bool:
        """Time and send one block; True if the compiler was active in it, or it was interrupted."""
        timing = self._bench.timer.run(step or self._step, self._steps_done, steps, groups)
        return self._send(role, steps, timing, pair)

    def run_waiting(self, steps: int) -> None:
        """Time and send a block in which each step is waited for: latencies, where run_block has the throughput."""
        device = self._bench.device

        def step(index: int) -> None:
            self._step(index)
            wait_for_device(device)

        wait_for_device(device)
        self._send(BlockRole.LATENCY, steps, CpuTimer().run(step, self._steps_done, steps), None)

    def _send(self, role: BlockRole, steps: int, timing: BlockTiming, pair: int | None) -> bool:
        bench = self._bench
        active_ns = bench.signals.take_activity_ns()
        compiled_at = sorted({self._step_at(timing.boundaries_ns, at_ns) for at_ns in active_ns})
        suspended_at = {self._step_before(timing.boundaries_ns, at_ns) for at_ns in bench.suspensions.take_ns()}
        bench.channel.send(
            Block(
                arm=self.arm,
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
                group_steps=timing.group_steps,
                suspended_at=tuple(sorted(suspended_at)),
                minor_faults=timing.minor_faults,
            )
        )
        self._steps_done += steps
        # The host may be the slower side, and then the wall is what a step costs.
        self.recent_step_ns = max(float(median(timing.step_ns)), 1.0)
        self.recent_mean_ns = timing.wall_ns / steps
        return bool(compiled_at or suspended_at)

    def _step_at(self, boundaries_ns: tuple[int, ...], at_ns: int) -> int:
        last = len(boundaries_ns) - 2
        return self._steps_done + min(last, max(0, bisect_right(boundaries_ns, at_ns) - 1))

    def _step_before(self, boundaries_ns: tuple[int, ...], at_ns: int) -> int:
        """The step that a signal came in: its handler runs a little later, perhaps when the next step has begun."""
        step = self._step_at(boundaries_ns, at_ns) - self._steps_done
        earlier = max(0, step - 1)
        lengths = [after - before for before, after in pairwise(boundaries_ns)]
        return self._steps_done + max((earlier, step), key=lengths.__getitem__)

    def first_call(self, model: torch.nn.Module) -> dict[str, Any]:
        """The first step, with a copy of what it returned."""
        bench = self._bench
        seed_everything(STEP_SEED)
        kept: list[Any] = []
        self._name_stage()
        self.run_block(BlockRole.WARMUP, 1, step=lambda index: kept.append(self._step(index)))
        self._note_first_peak()
        self._model = model
        return snapshot_outputs(kept.pop(), model, with_gradients=bench.training)

    def outputs_of_first_inputs(self, seed: int) -> dict[str, Any]:
        """A step like the first call's, untimed, with what is compiled and recorded by now."""
        assert self._model is not None, "after first_call"
        seed_everything(seed)
        return snapshot_outputs(self._step(0), self._model, with_gradients=self._bench.training)

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

    def _step_on(self, batches: list[Batch]) -> Step:
        bench = self._bench
        return make_step(
            bench.user, self._called, batches, bench.job.spec, bench.task, bench.device, optimizer=self._optimizer,
            cache=decode_cache(bench.job, self.arm),
        )  # fmt: skip

    def time_prefills(self, steps: int) -> list[int]:
        """Of some generations in ns, up to where the first token comes from. Only where tokens are decoded."""
        assert isinstance(self._step, Decoding)
        return list(self._bench.timer.run(self._step.prefill, self._steps_done, steps, EACH_STEP).step_ns)

    def send_prefills(self, step_ns: list[int]) -> None:
        assert isinstance(self._step, Decoding)
        self._bench.channel.send(
            PrefillsTimed(
                arm=self.arm,
                sequences=self._step.sequences,
                prompt_tokens=self._step.prompt_tokens,
                new_tokens=self._step.new_tokens,
                step_ns=tuple(step_ns),
            )
        )

    def run_further_calls(self) -> None:
        """Each of the file's further inputs, and what an epoch has beside full batches, twice: what recompiles does so
        here, before anything is compared."""
        bench = self._bench
        batches = make_further_batches(bench.user, bench.job.spec, bench.device)
        if batches:
            bench.stage.name = "steps with more_inputs()"
            self.run_block(BlockRole.SETTLE, 2 * len(batches), step=self._step_on(batches))
        ran_epoch = self._run_end_of_epoch()
        if batches or ran_epoch:
            self.run_block(BlockRole.SETTLE, _MIN_WARMUP_STEPS)

    def _run_end_of_epoch(self) -> bool:
        """The one that was asked for, else the usual one where there is time for it. False: there is none."""
        bench, asked = self._bench, self._bench.job.spec.step.epoch
        usual = asked is None and bench.training and bench.job.spec.preset in (Preset.STANDARD, Preset.THOROUGH)
        epoch = usual_epoch(self._batches[0], bench.user.own.step is None) if usual else asked
        if epoch is None or not epoch.has_unlike_batches:
            return False
        bench.stage.name = f"steps of an epoch with {epoch}"
        autocast = make_autocast(bench.job.spec, bench.device)
        unlike = epoch_steps(epoch, self._called, self._batches[0], self._step_on, autocast)
        if usual:
            unlike = going_on(unlike, self._tell_unlike_batch)
            self._send_usual_epoch(epoch, begins=True)
        first = self._steps_done
        self.run_block(
            BlockRole.SETTLE, 2 * len(unlike), step=lambda index: unlike[(index - first) % len(unlike)].run(index)
        )
        if usual:
            self._send_usual_epoch(epoch, begins=False)
        return True

    def _send_usual_epoch(self, epoch: Epoch, *, begins: bool) -> None:
        self._bench.channel.send(UsualEpochEnd(begins=begins, last=epoch.last, evaluations=2 * epoch.eval))

    def _tell_unlike_batch(self, batch: str, error: Exception) -> None:
        told = describe_failure(error, self._bench.stage.name, self.arm is Arm.COMPILED, inputs_given=True)
        self._bench.channel.send(
            UnlikeBatchFailed(
                batch=batch, error_type=told.error_type, message=told.message, file=told.file, line=told.line
            )
        )

    def run_untimed(self, steps: int) -> None:
        """Steps that are not sent."""
        for i in range(steps):
            self._step(self._steps_done + i)
        self._steps_done += steps
        wait_for_device(self._bench.device)

    def _name_stage(self) -> None:
        self._bench.stage.name = f"{self.arm.value} steps"
        self._bench.stage.compiled = self.arm is Arm.COMPILED

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
            self.run_untimed(_MEMORY_STEPS)
            steady, reserved = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
        self._bench.channel.send(
            MemoryPeak(
                arm=self.arm,
                first_allocated_bytes=self._first_peak_bytes,
                steady_allocated_bytes=steady,
                steady_reserved_bytes=reserved,
                host_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            )
        )


def run_pairs(bench: Bench, eager: Loop, compiled: Loop) -> None:
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
            groups = plan_groups(loop.recent_step_ns, _STEPS_AFTER_SWITCH)
            loop.run_block(BlockRole.PAIR, steps + _STEPS_AFTER_SWITCH, pair=pair, groups=groups)
        spent = perf_counter() - started > bench.job.pair_budget_s and pair + 1 >= _MIN_PAIRS
        if spent or bench.channel.should_finish(bench.loop):
            break


def run_alone(bench: Bench, loop: Loop) -> None:
    """The blocks of one arm as they are in pairs, without the other's between them."""
    bench.loop += 1
    bench.stage.name = f"{loop.arm.value} steps in a process of their own"
    started, steps = perf_counter(), plan_pair_steps(loop.recent_step_ns)
    for done in range(bench.job.max_pairs):
        groups = plan_groups(loop.recent_step_ns, _STEPS_AFTER_SWITCH)
        loop.run_block(BlockRole.APART, steps + _STEPS_AFTER_SWITCH, groups=groups)
        spent = perf_counter() - started > bench.job.pair_budget_s and done + 1 >= _MIN_PAIRS
        if spent or bench.channel.should_finish(bench.loop):
            break


def run_latencies(bench: Bench, eager: Loop, compiled: Loop) -> None:
    """Both arms in turn as in pairs, but each step waited for: 3 s or 200 steps of each; more of requests."""
    bench.stage.name = "latencies"
    more = _MORE_REQUESTS if bench.task is Task.SERVE else 1
    steps = plan_latency_steps(max(eager.recent_step_ns, compiled.recent_step_ns), more)
    started = perf_counter()
    for turn in range(_LATENCY_TURNS):
        for loop in (eager, compiled) if turn % 2 == 0 else (compiled, eager):
            bench.stage.compiled = loop is compiled
            loop.run_waiting(steps)
        if perf_counter() - started > _LATENCY_LIMIT_S:  # a busy machine makes steps slower than they were
            break


def run_prefills(bench: Bench, eager: Loop, compiled: Loop) -> None:
    """Both arms in turn: what of a generation is no decoding."""
    bench.stage.name = "prefills"
    times: dict[Loop, list[int]] = {eager: [], compiled: []}
    for turn in range(_PREFILL_TURNS):
        for loop in (eager, compiled) if turn % 2 == 0 else (compiled, eager):
            bench.stage.compiled = loop is compiled
            # The first one after the switch of arms is not representative.
            times[loop] += loop.time_prefills(1 + _PREFILL_STEPS)[1:]
    for loop, step_ns in times.items():
        loop.send_prefills(step_ns)


def plan_latency_steps(step_ns: float, more: int = 1) -> int:
    """Steps of one arm in one turn."""
    return max(1, more * min(_LATENCY_STEPS, int(_LATENCY_NS / max(1.0, step_ns))) // _LATENCY_TURNS)


def plan_pair_steps(step_ns: float) -> int:
    """Steps in one compared block: at least 8 and 20 ms, fewer for steps that take long (notes on method: README)."""
    steps = max(_MIN_PAIR_STEPS, math.ceil(_PAIR_BLOCK_NS / max(1.0, step_ns)))
    if steps * step_ns > _MAX_PAIR_BLOCK_NS:
        steps = max(_SLOW_PAIR_STEPS, int(_MAX_PAIR_BLOCK_NS / step_ns))
    return min(steps, MAX_BLOCK_STEPS - _STEPS_AFTER_SWITCH)
