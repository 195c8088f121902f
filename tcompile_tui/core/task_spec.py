"""What goes with decoding token by token, with serving and with a sequence of shapes, and what does not."""

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


def check_shapes(spec: RunSpec) -> None:
    """Can a sequence of shapes be replayed with the other options? Raises SpecError."""
    assert spec.shapes is not None
    what = " ".join(spec.shapes.words)
    if spec.inputs_from is not None:
        raise SpecError(f"{what} has no use with --inputs {spec.inputs_from}, which says its sizes itself")
    if not spec.inputs and spec.target.source is None:
        name = spec.shapes.names[0]
        raise SpecError(f"{what} needs inputs with sizes of these names: add --input 'x=float32[{name},128]'")
    if spec.step.accumulate > 1:
        raise SpecError(f"{what} and --accumulate: a sequence is replayed with one batch a step, leave one of them out")
