"""What the data of a real run does to the gain of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcompile_tui.core.end_to_end import DataTime
from tcompile_tui.core.failure_words import failure_text
from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import milliseconds, percent, plural, ratio

_LOSS_THAT_MATTERS = 0.05
_ALONE = "timed alone: beside the training loop it may be slower"


def _loader_limits(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """One finding, of the mode that loses most to the data."""
    losing = [result for result in results if result.waits_for_data]
    result = min(losing, key=lambda each: each.compiled_ms or 0.0, default=None)
    if result is None or result.data is None or result.eager_ms is None or result.compiled_ms is None:
        return
    data, eager, compiled = (_ms(value) for value in (result.data.step_ms, result.eager_ms, result.compiled_ms))
    end_to_end, faster = result.end_to_end.speedup, result.speedup is not None and result.speedup.lo > 1
    reached = f", end to end {ratio(end_to_end.value)}" if end_to_end is not None else ""
    evidence = f"a step computes {eager} eager and {compiled} compiled{reached}; {_told(result.data)}"
    if result.data.step_ms >= result.eager_ms:
        yield Finding(
            "data-limits",
            Severity.WARNING,
            f"the data of a step takes {data}, longer than the step itself: fix the loader first",
            evidence=evidence,
            advice=_how(result.data) + (f"; {result.mode.value} gains below {eager} a step" if faster else ""),
        )
        return
    if not faster:
        return
    share = 1 - (result.eager_ms - result.data.step_ms) / (result.eager_ms - result.compiled_ms)
    if share >= _LOSS_THAT_MATTERS:
        yield Finding(
            "data-limits",
            Severity.ADVICE,
            f"{result.mode.value} computes faster than its data comes: {percent(share)} of its gain waits for"
            f" {data} of data a step",
            evidence=evidence,
            advice=f"{_how(result.data)}, to {compiled} a step",
        )


def _ms(value: float) -> str:
    return milliseconds(1e6 * value)


def _told(data: DataTime) -> str:
    if data.timed is None:
        return "by --data-ms"
    workers = "" if data.timed.workers is None else f", {plural(data.timed.workers, 'worker')}"
    return f"{data.source} gave {plural(data.timed.batches, 'batch')}{workers}, {_ALONE}"


def _how(data: DataTime) -> str:
    if data.timed is not None and data.timed.workers == 0:
        return "give the loader workers (num_workers), which fetch beside the step"
    return "make the loader faster: more workers, cheaper decoding, or data that is prepared once"


def _loader_failed(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    spec = state.run.spec if state.run is not None else None
    if spec is None or spec.data is None or spec.data.loader is None:
        return
    process = state.process_of(Phase.LOADER)
    if (process is None and not results) or (process is not None and (process.loader is not None or process.running)):
        return
    failure = process.failure if process is not None else None
    ended = process.ended.detail if process is not None and process.ended is not None else ""
    yield Finding(
        "loader-not-timed",
        Severity.WARNING,
        "the loader could not be timed: the figures are those of the steps alone",
        evidence=failure_text(failure) if failure is not None else ended,
        file=failure.file if failure is not None else None,
        line=failure.line if failure is not None else None,
        advice="or say how long a batch takes with --data-ms",
    )


def _other_batch(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """A loader of other batches than those that were measured says nothing of their step."""
    data = next((result.data for result in results if result.data is not None), None)
    model = next((process.model for process in state.processes.values() if process.model is not None), None)
    loaded = data.timed.samples if data is not None and data.timed is not None else None
    if loaded is None or model is None:
        return
    measured = [tensor.shape[0] for tensor in model.inputs if tensor.shape]
    if measured and loaded not in measured:
        yield Finding(
            "loader-other-batch",
            Severity.WARNING,
            f"the loader gives batches of {loaded:,}, but batches of {measured[0]:,} were measured",
            advice="measure the batch that the loader gives",
        )


RULES: tuple[Rule, ...] = (_loader_limits, _loader_failed, _other_batch)
