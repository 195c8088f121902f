"""What an epoch has beside full batches: what it costs, and what it does to the steps after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from tcompile_tui.core.events import Steadiness, UnlikeBatchFailed
from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Arm, Phase
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import count, duration, percent, plural

_WHOLE_FROM = 10.0
_SLOWER_AFTER = 1.05
_KEEP_STATIC = (
    "DataLoader(drop_last=True), padding the last batch, or torch.compile(dynamic=False) keep the static graph"
)


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


def _dynamic_afterwards(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """One odd batch can switch every later step to a dynamic graph: the comparison comes after it. Told only where
    the level before is known and nothing else on the machine can have moved it."""
    for result in results:
        cold, warm = state.process_of(Phase.COLD, result.mode), state.process_of(Phase.WARM, result.mode)
        if cold is None or warm is None or not cold.compile.dynamic_shapes or result.compiled_ms is None:
            continue
        arm = warm.arm(Arm.COMPILED)
        if not _has_last_batch(state, cold) or arm.steadiness is not Steadiness.STEADY or result.host_contended:
            continue
        before = arm.series.slice(arm.steady_from or 0, arm.warmup_steps)
        if before and result.compiled_ms > _SLOWER_AFTER * median(before) / 1e6:
            yield Finding(
                "dynamic-after-epoch",
                Severity.ADVICE,
                f"{result.mode.value}: after the last batch of an epoch every step runs a dynamic graph, and is slower",
                evidence=f"{median(before) / 1e6:.3g} ms before, {result.compiled_ms:.3g} ms after",
                advice=_KEEP_STATIC,
            )


def _has_last_batch(state: RunState, cold: ProcessState) -> bool:
    asked, usual = state.run.spec.step.epoch if state.run is not None else None, cold.compile.epoch_end
    return (asked is not None and asked.last is not None) or (usual is not None and usual.last is not None)


def _compiled_for_the_usual_end(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """What the batches that nobody asked for add to a start: a run of full batches only does without."""
    for result in results:
        cold = state.process_of(Phase.COLD, result.mode)
        end = cold.compile.epoch_end if cold is not None else None
        if cold is None or end is None or not end.graphs:
            continue
        told = [f"a last batch of {end.last}"] if end.last is not None else []
        start = result.cold_start
        spent_s = cold.arm(Arm.COMPILED).later_compile_ns / 1e9
        share = f", {percent(spent_s / start.total_s)} of it" if start is not None and start.total_s > spent_s else ""
        yield Finding(
            "epoch-end-compiled",
            Severity.NOTE,
            f"{result.mode.value}: the end of an epoch, {' and '.join([*told, 'evaluation'])}, compiled"
            f" {plural(end.graphs, 'graph')} more",
            evidence=f"{duration(spent_s)} of the cold start{share}",
            advice="--epoch last=N,eval=M says what yours has, --epoch none leaves it out; DataLoader(drop_last=True)"
            " saves the graphs of a smaller batch",
            mode=result.mode,
        )


def _unlike_batches_that_fail(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """What eager takes and the compiled model does not is the compiler's; else the model takes full batches only."""
    eager = state.process_of(Phase.EAGER)
    in_eager = {failure.batch for failure in eager.unlike_batch_failures} if eager is not None else set()
    for failure in eager.unlike_batch_failures if eager is not None else ():
        yield _failing(failure, Severity.NOTE, f"{failure.batch} does not run, in eager either")
    for result in results:
        cold = state.process_of(Phase.COLD, result.mode)
        for failure in cold.unlike_batch_failures if cold is not None else ():
            if failure.batch not in in_eager:
                yield _failing(
                    failure, Severity.WARNING, f"{result.mode.value}: {failure.batch} runs in eager and fails compiled"
                )


def _failing(failure: UnlikeBatchFailed, severity: Severity, title: str) -> Finding:
    return Finding(
        "unlike-batch-fails",
        severity,
        title,
        evidence=f"{failure.error_type}: {failure.message}" if failure.error_type else failure.message,
        advice="--epoch last=N,eval=M says what your epochs have, --epoch none leaves it out",
        file=failure.file,
        line=failure.line,
    )


def _epochs(number: float) -> str:
    return f"{number:.1f}" if number < _WHOLE_FROM else count(number)


RULES: tuple[Rule, ...] = (
    _dynamic_afterwards, _compiled_for_the_usual_end, _unlike_batches_that_fail, _paid_after_epochs,
)  # fmt: skip
