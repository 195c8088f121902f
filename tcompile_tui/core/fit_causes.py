"""What the largest batch of each arm makes of the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcompile_tui.core.failure_words import failure_text
from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import count, size

_MATTERS = 1.02


def _largest_batch(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for result in results:
        fit = result.fit
        if fit is None or fit.gain is None:
            continue
        gains = fit.gain.lo is not None and fit.gain.lo > _MATTERS
        held = f", each held to {size(fit.limit_bytes)}" if fit.limit_bytes is not None else ""
        matched = [count(arm.matched_per_s) for arm in (fit.eager, fit.compiled)]
        at_matched = f"at the run's batch ({fit.matched:,}) {matched[0]} eager and {matched[1]} compiled samples/s"
        yield Finding(
            "fit-batch",
            Severity.ADVICE if gains else Severity.NOTE,
            f"{result.mode.value}: each at its largest batch, compiled gives {fit.gain_text} the samples a second",
            evidence=f"eager {fit.eager.text}, compiled {fit.compiled.text}{held}; {at_matched}",
            advice="another batch is another training: adapt the learning rate" if gains else "",
            mode=result.mode,
        )


def _not_fitted(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    asked = state.run is not None and state.run.spec.fit_batch
    processes = state.processes_of(Phase.FIT)
    compared = [result for result in results if result.speedup is not None]
    if not asked or all(result.fit is not None and result.fit.gain is not None for result in compared):
        return
    failure = next((process.failure for process in processes if process.failure is not None), None)
    yield Finding(
        "fit-batch-not-found",
        Severity.WARNING,
        "the largest batch of both arms was not found, or not measured",
        evidence=failure_text(failure) if failure is not None else "",
        advice="" if failure is not None else "give it more time with --budget",
    )


RULES: tuple[Rule, ...] = (_largest_batch, _not_fitted)
