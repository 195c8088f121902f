"""What goes with decoding token by token, and with serving, and what does not."""

from __future__ import annotations

from dataclasses import replace

from tcompile_tui.core.compile_options import KeyValueCache
from tcompile_tui.core.spec import USUAL_NEW_TOKENS, Mode, RunSpec, SpecError, Task, order_modes

GROWING = Mode(f"cache={KeyValueCache.GROWING.value}")


def with_task(spec: RunSpec) -> RunSpec:
    """The spec with what its task compares unasked: in decoding a static and a growing cache. Raises SpecError."""
    if spec.slo_ms is not None and spec.task is not Task.SERVE:
        raise SpecError(f"--slo-ms {spec.slo_ms:g} is for --task serve")
    if spec.task is Task.SERVE and spec.step.own is not None:
        raise SpecError(f"--task serve and --step {spec.step.own}: a request is a forward pass")
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
