"""A sequence of shapes, batch by batch, as the real run sees it: eager and compiled in turn."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import torch

from ..core.events import BlockRole, ReplayStarted
from ..core.shape_spec import ShapeHandling, ShapeSequence, padded
from .bench import Bench
from .failures import StageError
from .inputs import Batch, describe_inputs, make_batch_of, walk_tensors
from .loop import Loop

_MAX_SEQUENCE_BYTES = 4 << 30
_BLOCK_NS = 1_000_000_000
_MIN_BLOCK_NS = 20_000_000
_MAX_BLOCK_STEPS = 4_000
_MIN_PAIRS = 6
# Past this many budgets a sequence that is not through yet is left unfinished.
_PATIENCE = 3.0


def open_sequence(bench: Bench, model: torch.nn.Module) -> tuple[list[Batch], list[Batch]]:
    """The batches of the eager arm and those of the compiled one, which may be padded. Raises StageError."""
    sequence, handling = bench.job.spec.shapes, bench.job.handling
    assert sequence is not None and handling is not None
    compiled = padded(sequence) if handling is ShapeHandling.PADDED else sequence
    bench.stage.name = "the batches of --shapes"
    bench.channel.send(ReplayStarted(handling=handling, sequence=compiled))
    batches = make_sequence(bench, model, sequence)
    return batches, batches if compiled is sequence else make_sequence(bench, model, compiled)


def make_sequence(bench: Bench, model: torch.nn.Module, sequence: ShapeSequence) -> list[Batch]:
    """One batch for every distinct shape, at each place where it comes."""
    made: list[Batch] = []
    seen: dict[Any, str] = {}
    held_bytes = 0
    for shape in sequence.shapes:
        sizes = {dim.name: dim for dim in (*bench.job.spec.dims, *sequence.dims(shape))}
        batch = make_batch_of(bench.user, model, replace(bench.job.spec, dims=tuple(sizes.values())), bench.device)
        facts, text = describe_inputs(batch), sequence.text(shape)
        if facts in seen:
            raise StageError(f"the inputs are the same for {seen[facts]} and for {text}: a size changes none of them")
        seen[facts] = text
        held_bytes += sum(t.numel() * t.element_size() for _, t in walk_tensors((batch.args, batch.kwargs)))
        if held_bytes > _MAX_SEQUENCE_BYTES:
            room = _MAX_SEQUENCE_BYTES >> 30
            raise StageError(
                f"{len(sequence.shapes)} shapes need more than {room} GiB of inputs: give fewer, or smaller ones"
            )
        made.append(batch)
    return [made[number] for number in sequence.order]


def replay(bench: Bench, eager: Loop, compiled: Loop) -> None:
    """The whole sequence once in each arm, in which every shape compiles that has to; then pairs of blocks, one after
    the other through the sequence, until the budget is spent and every batch has been compared."""
    sequence = bench.job.spec.shapes
    assert sequence is not None
    batches = len(sequence.order)
    for loop in (compiled, eager):
        bench.stage.name, bench.stage.compiled = f"{loop.arm.value} steps on the sequence", loop is compiled
        loop.run_block(BlockRole.REPLAY, batches)
    step_ns = max(eager.recent_mean_ns, 1.0)
    steps = block_steps(step_ns, batches)
    started, budget_s, done = perf_counter(), bench.job.pair_budget_s, 0
    while True:
        for loop in (eager, compiled) if done % 2 == 0 else (compiled, eager):
            bench.stage.compiled = loop is compiled
            loop.run_block(BlockRole.REPLAY, steps, pair=done)
        done += 1
        spent_s, whole = perf_counter() - started, done * steps >= batches and done >= _MIN_PAIRS
        if (spent_s > budget_s and whole) or spent_s > _PATIENCE * budget_s or done >= bench.job.max_pairs:
            break
        if bench.channel.should_finish(bench.loop):
            break


def block_steps(step_ns: float, batches: int) -> int:
    """Steps of one compared block: the whole sequence, or several of it, for 20 ms at least; a part of it where it
    takes longer than a second."""
    if batches * step_ns > _BLOCK_NS:
        return max(1, int(_BLOCK_NS / step_ns))
    rounds = -(-_MIN_BLOCK_NS // max(1, int(batches * step_ns)))
    return min(rounds, max(1, _MAX_BLOCK_STEPS // batches)) * batches
