"""What a cache that grows by a token a step does to the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcompile_tui.core.compile_options import KeyValueCache
from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Arm
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import count, percent, plural


def _growing_cache(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for result in results:
        if result.mode.options.cache is not KeyValueCache.GROWING or not result.recompiles:
            continue
        tokens = state.run.spec.new_tokens if state.run is not None else 0
        speed = result.decode.tokens_per_s(Arm.COMPILED) if result.decode is not None else None
        speed_text = f"; then {count(speed)} tokens/s" if speed is not None else ""
        share = f", {percent(result.recompiles / tokens)} of its tokens" if tokens else ""
        yield Finding(
            "growing-cache",
            Severity.NOTE,
            f"{result.mode.value}: the cache that grows made {plural(result.recompiles, 'recompile')}",
            evidence=f"in a first generation of {count(tokens)} tokens{share}{speed_text}",
            advice="decode with a static cache (cache_implementation='static'): its shapes stay the same",
            mode=result.mode,
        )


RULES: tuple[Rule, ...] = (_growing_cache,)
