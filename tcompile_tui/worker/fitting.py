"""Find the largest batch of one arm, alone in its process, and time its steps there."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import torch

from ..core.batch_events import BatchFitted
from ..core.events import BlockRole
from ..core.fit_batch import find_largest, smaller_sizes
from ..core.spec import Arm, Dim
from . import compiler
from .bench import Bench
from .failures import StageError, chain_of, is_out_of_memory
from .inputs import Batch, make_batch_of, map_batch, walk_tensors
from .loop import Loop, run_alone

BATCH_DIMENSION = "B"
# The second step finds gradients and the optimizer's state in place.
_TRIAL_STEPS = 2
_WARMUP_S = 2.0
# CUDA's context and libraries take memory that the allocator's limit does not count.
_SPARED_SHARE = 0.02
_SPARED_BYTES = 256 << 20

OpenLoop: TypeAlias = Callable[[Batch, "bool | None"], Loop]
"""A loop on one batch; the second argument is the `dynamic` of torch.compile."""


def fit_batch(bench: Bench, model: torch.nn.Module, batch: Batch, open_loop: OpenLoop) -> None:
    """Send a BatchFitted, then the blocks of steps at that batch. Raises StageError where there is no batch to vary."""
    bench.loop += 1
    bench.stage.name = "the search for the largest batch"
    matched, batch_of = batch_maker(bench, model, batch)
    limit_bytes = hold_memory_down(bench.device, bench.job.memory_limit_bytes)

    def fits(size: int) -> bool:
        """One dynamic program serves all sizes, so that only the first has to be compiled."""
        _forget(bench, model)
        return _unless_memory_runs_out(lambda: _tried(open_loop(batch_of(size), True))) is not None

    found = find_largest(matched, fits, lambda: not bench.channel.should_finish(bench.loop))
    if found is None:
        raise StageError(f"the run's own batch of {matched:,} does not fit alone", fault="memory")
    for size in smaller_sizes(found.largest, matched):
        _forget(bench, model)
        loop = _unless_memory_runs_out(partial(_at_its_own_size, open_loop, batch_of, size))
        if loop is None:
            found = replace(found, too_large=size)
            continue
        bench.channel.send(
            BatchFitted(
                arm=loop.arm,
                matched=matched,
                largest=size,
                too_large=found.too_large,
                probes=found.probes,
                limit_bytes=limit_bytes,
            )
        )
        run_alone(bench, loop)
        return
    raise StageError(f"no batch from {matched:,} on fits as it is compiled for itself", fault="memory")


def batch_maker(bench: Bench, model: torch.nn.Module, batch: Batch) -> tuple[int, Callable[[int], Batch]]:
    """The run's batch, and how to make one of another size: the dimension named B, else the leading one of all inputs,
    whose samples are repeated. Raises StageError."""
    spec = bench.job.spec
    named = {dim.name: dim.size for dim in spec.dims}
    if BATCH_DIMENSION in named:

        def of_named(size: int) -> Batch:
            others = tuple(dim for dim in spec.dims if dim.name != BATCH_DIMENSION)
            return make_batch_of(
                bench.user, model, replace(spec, dims=(*others, Dim(BATCH_DIMENSION, size))), bench.device
            )

        return named[BATCH_DIMENSION], of_named
    leading = {tensor.shape[0] for _, tensor in walk_tensors((batch.args, batch.kwargs)) if tensor.dim()}
    if len(leading) != 1 or 0 in leading:
        raise StageError(
            "--fit-batch: the inputs have no leading dimension in common: name the batch, as in"
            " --input 'x=float32[B,128]' --dim B=8"
        )
    (matched,) = leading
    return matched, lambda size: map_batch(batch, lambda tensor: _repeated(tensor, size))


def _repeated(tensor: torch.Tensor, size: int) -> torch.Tensor:
    """`size` samples of it, again and again, that lie in memory as they did."""
    if not tensor.dim():
        return tensor
    index = torch.arange(size, device=tensor.device) % tensor.shape[0]
    made = tensor.detach().index_select(0, index)
    if tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last):
        made = made.contiguous(memory_format=torch.channels_last)
    return made.requires_grad_(tensor.requires_grad)


def hold_memory_down(device: torch.device, at_most: int | None) -> int | None:
    """Let the allocator take only what is free now, and no more than `at_most` bytes: then running out of memory is
    this process's alone. Returns the limit; None on a CPU."""
    if device.type != "cuda":
        return None
    free_bytes, total_bytes = torch.cuda.mem_get_info(device)
    own_bytes = torch.cuda.memory_reserved(device)
    limit_bytes = int(free_bytes + own_bytes - _SPARED_SHARE * total_bytes - _SPARED_BYTES)
    limit_bytes = max(1, min(limit_bytes, at_most if at_most is not None else limit_bytes))
    torch.cuda.set_per_process_memory_fraction(min(1.0, limit_bytes / total_bytes), device)
    return limit_bytes


def _at_its_own_size(open_loop: OpenLoop, batch_of: Callable[[int], Batch], size: int) -> Loop:
    """Compiled for this size alone, as a run of it is, and warm."""
    loop = open_loop(batch_of(size), None)
    loop.warm_up(BlockRole.SETTLE, _WARMUP_S)
    return loop


def _tried(loop: Loop) -> Loop:
    loop.run_untimed(_TRIAL_STEPS)
    return loop


def _unless_memory_runs_out(run: Callable[[], Loop]) -> Loop | None:
    """What `run` returns; None where memory runs out. No frame of what ran out keeps any of it."""
    try:
        return run()
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        for link in chain_of(error):
            traceback.clear_frames(link.__traceback__)
    return None


def _forget(bench: Bench, model: torch.nn.Module) -> None:
    """Give back all that a size before took."""
    model.zero_grad(set_to_none=True)
    if bench.job.arm is Arm.COMPILED:
        compiler.forget_programs()
    gc.collect()
    if bench.device.type == "cuda":
        torch.cuda.empty_cache()
