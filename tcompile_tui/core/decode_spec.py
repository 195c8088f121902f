"""What goes with decoding token by token, and what does not."""

from __future__ import annotations

from dataclasses import replace

from tcompile_tui.core.compile_options import KeyValueCache
from tcompile_tui.core.spec import USUAL_NEW_TOKENS, Mode, RunSpec, SpecError, Task, order_modes

GROWING = Mode(f"cache={KeyValueCache.GROWING.value}")


def with_decode(spec: RunSpec) -> RunSpec:
    """The spec with what decoding compares unasked: a static and a growing cache. Raises SpecError."""
    caches = [mode.value for mode in spec.modes if mode.options.cache is not None]
    if spec.task is not Task.DECODE:
        if caches:
            raise SpecError(f"--arm {caches[0]} is for --task decode")
        if spec.new_tokens != USUAL_NEW_TOKENS:
            raise SpecError(f"--new-tokens {spec.new_tokens} is for --task decode")
        return spec
    if spec.shapes is not None:
        raise SpecError(f"--task decode and {' '.join(spec.shapes.words)}: the cache makes the shapes, leave one out")
    if spec.step.own is not None:
        raise SpecError(f"--task decode and --step {spec.step.own}: a step of one's own is no generation")
    return spec if caches else replace(spec, modes=order_modes([*spec.modes, GROWING]))
