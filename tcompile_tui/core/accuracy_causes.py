"""Causes in the outputs: what is not right, and gradients that cudagraphs cannot add up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcompile_tui.core import events as ev
from tcompile_tui.core.accuracy import Agreement
from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import plural

_SEVERITY = {
    Agreement.DIFFERENT: Severity.BLOCKER,
    Agreement.UNCERTAIN: Severity.WARNING,
    Agreement.RANDOM: Severity.NOTE,
}
# What cudagraph trees raise when memory of an earlier replay is used.
_OVERWRITTEN = "overwritten by a subsequent run"


def _accuracy(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for result in results:
        accuracy = result.accuracy
        if accuracy is not None and accuracy.agreement in _SEVERITY:
            yield Finding(
                f"outputs-{accuracy.agreement.name.lower()}",
                _SEVERITY[accuracy.agreement],
                f"{result.mode.value}: {accuracy.path or 'the output'} is {accuracy.agreement.value}",
                evidence=accuracy.detail,
                advice="compare the model's metric with and without compile before you rely on it",
                mode=result.mode,
            )


def _nan_in_eager_too(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """They count as equal, so the outputs agree; but whoever trusts such a model should hear of it."""
    compared = [
        found
        for process in state.processes.values()
        if (found := process.comparisons.get(ev.ComparisonKind.COMPILED)) is not None
    ]
    leaves = next((found.leaves for found in compared if any(leaf.nan_in_both for leaf in found.leaves)), ())
    for leaf in [leaf for leaf in leaves if leaf.nan_in_both][:1]:
        yield Finding(
            "outputs-nan",
            Severity.NOTE,
            f"{leaf.path or 'the output'} has NaN, in eager as when compiled",
            evidence=f"{plural(leaf.nan_in_both, 'NaN')} of {plural(leaf.elements, 'value')}, at the same places",
            advice="check the model with inputs of your own: compile is not the cause",
        )


def _accumulation(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """The first micro-batch's gradient becomes `.grad` itself, and a cudagraph's next replay may write over it: torch
    notices that, or the sum is wrong."""
    micro_batches = state.run.spec.step.accumulate if state.run is not None else 1
    for result in results:
        evidence = _accumulation_evidence(state, result) if result.mode.cudagraphs else None
        if micro_batches > 1 and evidence is not None:
            yield Finding(
                "cudagraph-accumulation",
                Severity.BLOCKER,
                f"{result.mode.value}: cudagraphs do not add up gradients over {micro_batches} micro-batches",
                evidence=evidence,
                advice="use mode default or max-autotune-no-cudagraphs with gradient accumulation",
                link="https://github.com/pytorch/pytorch/issues/169545",
                mode=result.mode,
            )


def _accumulation_evidence(state: RunState, result: ModeResult) -> str | None:
    accuracy = result.accuracy
    if accuracy is not None and accuracy.agreement is Agreement.DIFFERENT and "gradient of" in (accuracy.path or ""):
        return f"the {accuracy.path} is wrong: {accuracy.detail}"
    if result.status is not ModeStatus.FAILED:
        return None
    failures = [process.failure for process in state.processes.values() if process.mode is result.mode]
    raised = next((failure for failure in failures if failure and _OVERWRITTEN in failure.message), None)
    return f"torch raises: {raised.message.strip().splitlines()[0][:200]}" if raised is not None else None


RULES: tuple[Rule, ...] = (_accuracy, _nan_in_eager_too, _accumulation)
