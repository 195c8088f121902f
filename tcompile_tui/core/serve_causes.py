"""Does a server with the compiled model answer in time, and what of its start does a request wait for?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.latency import Latency
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.shape_results import shape_results
from tcompile_tui.core.spec import Arm, Task
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import duration, milliseconds, percent, plural

# A first request that takes this many times a usual one is worth a warm-up.
_SLOW_FIRST = 10.0


def _objective(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for result in results:
        eager, compiled = result.latency.get(Arm.EAGER), result.latency.get(Arm.COMPILED)
        if result.serving is None or result.serving.slo_ms is None or compiled is None:
            continue
        slo_ms, name = result.serving.slo_ms, result.mode.value
        asked = milliseconds(slo_ms * 1e6)
        shares = [result.serving.over_slo.get(arm) for arm in Arm]
        evidence = f"over {asked}: {percent(shares[0])} of requests in eager, {percent(shares[1])} compiled"
        if compiled.p99_ms is None:
            title = f"{name}: {plural(compiled.steps, 'request')} are too few to say whether p99 holds {asked}"
            yield Finding("slo-unknown", Severity.BLOCKER, title, evidence, "take a longer preset", mode=result.mode)
        elif compiled.p99_ms > slo_ms:
            title = f"{name}: p99 is {_p99(compiled)}, over the {asked} that is asked for (eager: {_p99(eager)})"
            advice = "smaller batches, another mode (reduce-overhead), or a larger objective"
            yield Finding("slo-missed", Severity.BLOCKER, title, evidence, advice, mode=result.mode)
        else:
            eager_p99_ms = eager.p99_ms if eager is not None else None
            does = "" if eager_p99_ms is None else ", which does too" if eager_p99_ms <= slo_ms else ", which does not"
            title = f"{name}: p99 is {_p99(compiled)} and holds {asked}; eager's is {_p99(eager)}{does}"
            yield Finding("slo-held", Severity.NOTE, title, evidence, mode=result.mode)


def _p99(found: Latency | None) -> str:
    return milliseconds(found.p99_ms * 1e6 if found is not None and found.p99_ms is not None else None)


def _first_request(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for result in results:
        found, usual = result.serving, result.latency.get(Arm.COMPILED)
        if found is None or found.first_cold_s is None or usual is None:
            continue
        if found.first_cold_s * 1e3 > _SLOW_FIRST * usual.p50_ms:
            warm = f", {duration(found.first_warm_s)} on kept caches" if found.first_warm_s is not None else ""
            usually = f"a usual one takes {milliseconds(usual.p50_ms * 1e6)}"
            yield Finding(
                "first-request",
                Severity.ADVICE,
                f"{result.mode.value}: the first request takes {duration(found.first_cold_s)}{warm}",
                evidence=f"in eager {duration(found.first_eager_s)}; {usually}",
                advice="send one request of each shape before the server is ready, and keep the compile caches",
            )


def _after_ready(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """A server is ready when each shape of the sequence has come once."""
    serves = state.run is not None and state.run.spec.task is Task.SERVE
    shapes = shape_results(state) if serves else None
    for row in shapes.rows if shapes is not None else ():
        if row.start_s is None or row.compiled_batches is None:
            continue
        is_best = shapes is not None and row.handling is shapes.best
        yield Finding(
            "after-ready",
            Severity.BLOCKER if is_best and not row.settled else Severity.NOTE,
            f"{row.handling.label}: {plural(row.compiled_batches, 'request')} compile, {duration(row.start_s)} in all;"
            f" {plural(row.late_compiles, 'later one')} {'does' if row.late_compiles == 1 else 'do'} so again",
            advice="send each of the shapes once before the server is ready" if row.settled else "",
        )


RULES: tuple[Rule, ...] = (_objective, _first_request, _after_ready)
