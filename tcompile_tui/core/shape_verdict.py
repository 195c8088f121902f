"""What a sequence of shapes makes of the decision: it is the real run, and one shape is only a part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.replay import Ratio
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.shape_results import ShapeResults, shape_results
from tcompile_tui.core.shape_spec import ShapeHandling
from tcompile_tui.core.spec import Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import count, duration, milliseconds, percent, plural, ratio

_PADDING_MATTERS = 0.05
_MASK = "the model must be told of the padding by a mask: an estimate of speed, not a promise of correctness"


def shapes_objection(results: ShapeResults) -> tuple[bool, str] | None:
    """Why the sequence keeps torch.compile from being advised: (is eager the answer?, the reason). None: it does
    not."""
    row = results.best_row
    if row is None:
        return True, f"over {results.text} no setting of dynamic beats eager in the planned run"
    if row.limit_hit:
        return False, f"over {results.text} the recompile limit is hit with each setting of dynamic"
    if row.late_compiles:
        return False, f"over {results.text} it compiles again for shapes that it has seen"
    if row.speedup is None or row.speedup.lo is None:
        return False, f"over {results.text} too little was compared for an interval"
    if row.speedup.lo <= 1:
        return False, f"over {results.text} a gain cannot be told from none ({speedup_text(row.speedup)})"
    return None


def shapes_headline(results: ShapeResults) -> str:
    """Of the best setting, in the planned run."""
    row = results.best_row
    assert row is not None and row.total_s is not None
    saved = 1 - row.total_s / results.eager_total_s
    return (
        f"{results.mode.value} with {row.handling.label} runs at {speedup_text(row.speedup)} of eager speed over"
        f" {results.text}; {duration(row.start_s)} of compiling; it saves {percent(saved)} of"
        f" {count(results.planned_steps)} such steps"
    )


def speedup_text(found: Ratio | None) -> str:
    """`1.71x (1.69x to 1.73x)`."""
    if found is None:
        return ratio(None)
    return ratio(found.value) + (f" ({ratio(found.lo)} to {ratio(found.hi)})" if found.lo is not None else "")


def buckets_text(results: ShapeResults) -> str:
    """`T to 20, 48, 100 or 128`."""
    texts = []
    for name, sizes in results.buckets.items():
        *others, last = map(str, sizes)
        texts.append(f"{name} to {', '.join(others)}{' or ' if others else ''}{last}")
    return " and ".join(texts)


# ---------------------------------------------------------------- findings


def _limit(state: RunState, modes: Sequence[ModeResult]) -> Iterator[Finding]:
    results = shape_results(state)
    for row in results.rows if results is not None else ():
        if row.limit_hit and results is not None:
            hit = _first_hit(state, row.handling)
            yield Finding(
                "shapes-recompile-limit",
                Severity.WARNING if row.handling in (results.best, ShapeHandling.AUTOMATIC) else Severity.ADVICE,
                f"{row.handling.label}: the recompile limit is hit, and shapes that are not compiled by then run eager",
                evidence=hit,
                advice="let the sizes be dynamic, pad to fewer sizes, or raise torch._dynamo.config.recompile_limit",
            )


def _first_hit(state: RunState, handling: ShapeHandling) -> str:
    for process in state.processes_of(Phase.SHAPES):
        if process.replay is not None and process.replay.started.handling is handling and process.compile.limit_hits:
            return process.compile.limit_hits[0].text.strip().partition("\n")[0]
    return ""


def _what_to_write(state: RunState, modes: Sequence[ModeResult]) -> Iterator[Finding]:
    results = shape_results(state)
    row = results.best_row if results is not None else None
    if results is None or row is None:
        return
    steps = [("eager", results.eager_ms), *((other.handling.label, other.step_ms) for other in results.rows)]
    spread = ", ".join(f"{name} {milliseconds(ms * 1e6)}" for name, ms in steps if ms is not None)
    promoted = row.handling is ShapeHandling.AUTOMATIC and bool(row.recompiles)
    yield Finding(
        "shapes-best",
        Severity.ADVICE,
        f"over {results.text} {row.handling.label} is the best setting",
        evidence=f"one step: {spread}",
        advice=_ADVICE[row.handling] if promoted or row.handling is not ShapeHandling.AUTOMATIC else "",
    )


_ADVICE = {
    ShapeHandling.AUTOMATIC: "torch makes a size dynamic when it first changes; torch._dynamo.mark_dynamic(tensor, "
    "dimension) before the first call spares the static graph before it",
    ShapeHandling.DYNAMIC: "write dynamic=True, or torch._dynamo.mark_dynamic(tensor, dimension) for the sizes that"
    " vary",
    ShapeHandling.STATIC: "write dynamic=False: each shape has a graph of its own, and a new one compiles again",
    ShapeHandling.PADDED: "",
}


def _padding(state: RunState, modes: Sequence[ModeResult]) -> Iterator[Finding]:
    results = shape_results(state)
    row = results.row(ShapeHandling.PADDED) if results is not None else None
    if results is None or row is None or row.total_s is None:
        return
    best = results.best_row
    against = best.total_s if best is not None and best.total_s is not None else results.eager_total_s
    if row.total_s < (1 - _PADDING_MATTERS) * against and row.settled:
        yield Finding(
            "shapes-padding",
            Severity.ADVICE,
            f"padding {buckets_text(results)} would save {percent(1 - row.total_s / against)} more of the planned run",
            evidence=f"{milliseconds((row.step_ms or 0.0) * 1e6)} a step with dynamic=False and"
            f" {plural(results.padded_shapes, 'shape')}",
            advice=_MASK,
        )


def _failed(state: RunState, modes: Sequence[ModeResult]) -> Iterator[Finding]:
    spec = state.run.spec if state.run is not None else None
    results = shape_results(state)
    if results is None:
        failures = [p for p in state.processes_of(Phase.SHAPES) if p.failure is not None]
        if spec is not None and spec.shapes is not None and failures and failures[0].failure is not None:
            yield Finding(
                "shapes-not-replayed",
                Severity.WARNING,
                "the sequence of shapes could not be replayed: the figures are those of one shape",
                evidence=failures[0].failure.message.partition("\n")[0],
            )
        elif spec is not None and spec.shapes is not None and any(mode.speedup is not None for mode in modes):
            yield Finding(
                "shapes-not-replayed",
                Severity.WARNING,
                "the sequence of shapes was not replayed: the figures are those of one shape",
                advice="give it more time with --budget",
            )
        return
    for row in results.rows:
        if row.reason:
            yield Finding(
                "shapes-setting-failed",
                Severity.WARNING if row.handling is ShapeHandling.AUTOMATIC else Severity.NOTE,
                f"{row.handling.label} was not measured over the sequence of shapes",
                evidence=row.reason,
            )


def _still_compiling(state: RunState, modes: Sequence[ModeResult]) -> Iterator[Finding]:
    results = shape_results(state)
    for row in results.rows if results is not None else ():
        if row.late_compiles:
            yield Finding(
                "shapes-compile-again",
                Severity.WARNING,
                f"{row.handling.label}: shapes that had come before were compiled again",
                evidence=f"in {plural(row.late_compiles, 'step')} after the first round; their pairs were left out",
            )


RULES: tuple[Rule, ...] = (_failed, _limit, _still_compiling, _what_to_write, _padding)
