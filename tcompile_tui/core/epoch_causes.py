"""What a start costs in epochs, where a person said how long one is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import count

_WHOLE_FROM = 10.0


def _paid_after_epochs(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    epoch = state.run.spec.step.epoch if state.run is not None else None
    if epoch is None or epoch.steps is None:
        return
    for result in results:
        found = result.break_even_cold
        if found is None or found.steps is None:
            continue
        lower, usual = (_epochs(steps / epoch.steps) for steps in (found.lo, found.steps))
        upper = _epochs(found.hi / epoch.steps) if found.hi is not None else "never"
        yield Finding(
            "epochs-to-break-even",
            Severity.NOTE,
            f"{result.mode.value}: a cold start is paid back after {usual} epochs ({lower} to {upper})",
            evidence=f"of {count(epoch.steps)} training steps; every graph of an epoch is in the start",
            mode=result.mode,
        )


def _epochs(number: float) -> str:
    return f"{number:.1f}" if number < _WHOLE_FROM else count(number)


RULES: tuple[Rule, ...] = (_paid_after_epochs,)
