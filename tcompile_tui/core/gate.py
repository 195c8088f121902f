"""The gate for CI: what a run must hold to, beyond having reached a decision. Pure, on records alone.

Every mode that the run asked for is held to it. What could not be measured does not pass: each check says so.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tcompile_tui.core.accuracy import Agreement
from tcompile_tui.core.compare_runs import DEVICE, ComparedRun, Comparison, compare_runs
from tcompile_tui.core.findings import speedup_text
from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.units import duration, ratio
from tcompile_tui.core.verdict import ExitCode, Verdict, lost_in_contention


class FailOn(str, enum.Enum):
    """What a gate can refuse."""

    GRAPH_BREAKS = "graph-breaks"
    RECOMPILES = "recompiles"
    RAN_EAGER = "ran-eager"
    SLOWER = "slower"
    ACCURACY = "accuracy"
    CUDAGRAPH_SKIPS = "cudagraph-skips"


@dataclass(frozen=True)
class Gate:
    """What is asked. `min_speedup` is held against the lower end of the 95 % interval, `baseline` is an earlier run
    of the same model on the same device."""

    fail_on: tuple[FailOn, ...] = ()
    min_speedup: float | None = None
    max_cold_start_s: float | None = None
    baseline: ComparedRun | None = None

    def __bool__(self) -> bool:
        limits = (self.min_speedup, self.max_cold_start_s, self.baseline)
        return bool(self.fail_on) or any(limit is not None for limit in limits)


NO_GATE = Gate()


@dataclass(frozen=True)
class GateCheck:
    """One condition of a gate; it holds where there is no reason against it."""

    name: str
    reasons: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.reasons


def check_gate(gate: Gate, run: ComparedRun) -> tuple[GateCheck, ...]:
    """Every condition, in a fixed order; empty for a gate that asks nothing."""
    if not gate:
        return ()
    results = [judged.result for judged in run.verdict.modes]
    asked = [what for what in FailOn if what in gate.fail_on]
    checks = [GateCheck("measured", tuple(_not_measured(results)))]
    checks += [GateCheck(what.value, tuple(_REASONS[what](run, results))) for what in asked]
    if gate.min_speedup is not None:
        checks.append(GateCheck("min-speedup", tuple(_below(gate.min_speedup, results))))
    if gate.max_cold_start_s is not None:
        checks.append(GateCheck("max-cold-start", tuple(_start_too_long(gate.max_cold_start_s, results))))
    if gate.baseline is not None:
        checks.append(GateCheck("baseline", regression_reasons(compare_runs(gate.baseline, run))))
    return tuple(checks)


def gated_exit_code(verdict: Verdict, checks: Sequence[GateCheck]) -> ExitCode:
    """A run without a decision keeps its own status, which says more."""
    return ExitCode.GATE if verdict.is_answer and not all(check.passed for check in checks) else verdict.exit_code


def regression_reasons(comparison: Comparison) -> tuple[str, ...]:
    """Why the later run does not stand up to the earlier one; runs that cannot be compared do not."""
    others = [each for each in comparison.differences if each.asks_otherwise or each.name == DEVICE]
    if others:
        names = "; ".join(f"{each.name}: {each.before}, now {each.after}" for each in others)
        return (_one_line(f"{comparison.before.name} cannot be compared with ({names})"),)
    missing = [
        f"{mode.mode.value}: not in {comparison.before.name}" for mode in comparison.modes if mode.before is None
    ]
    return tuple(map(_one_line, (*comparison.worse, *missing)))


# ---------------------------------------------------------------- reasons


_Reasons = Callable[[ComparedRun, Sequence[ModeResult]], Iterator[str]]


def _not_measured(results: Sequence[ModeResult]) -> Iterator[str]:
    if not results:
        yield "no mode was asked for"
    for result in results:
        if result.status not in (ModeStatus.MEASURED, ModeStatus.RAN_EAGER):
            yield _one_line(f"{result.mode.value}: {result.status.value}: {result.reason}")


def _findings(*ids: str) -> _Reasons:
    """The findings of these kinds, each with its place."""

    def reasons(run: ComparedRun, results: Sequence[ModeResult]) -> Iterator[str]:
        for finding in run.verdict.findings:
            if finding.id in ids:
                place = f"{finding.file}:{finding.line}: " if finding.file else ""
                evidence = f" ({finding.evidence})" if finding.evidence else ""
                yield _one_line(f"{place}{finding.title}{evidence}")

    return reasons


def _slower(run: ComparedRun, results: Sequence[ModeResult]) -> Iterator[str]:
    """Shown to be slower: the whole interval lies below 1, and work of others cannot have made it."""
    for result in results:
        speedup = result.speedup
        if speedup is None:
            yield _unknown(result, "speedup")
        elif speedup.hi < 1 and not lost_in_contention(result):
            yield f"{result.mode.value}: it runs at {speedup_text(result)} of eager speed"


def _wrong(run: ComparedRun, results: Sequence[ModeResult]) -> Iterator[str]:
    """Outputs that differ, and outputs that could not be shown to agree."""
    for result in results:
        accuracy = result.accuracy
        if accuracy is None:
            yield _unknown(result, "comparison of outputs")
        elif accuracy.agreement in (Agreement.DIFFERENT, Agreement.UNCERTAIN, Agreement.NOT_CHECKED):
            detail = f": {accuracy.detail}" if accuracy.detail else ""
            place = accuracy.path or "the output"
            yield _one_line(f"{result.mode.value}: {place} is {accuracy.agreement.value}{detail}")


def _no_cudagraph(run: ComparedRun, results: Sequence[ModeResult]) -> Iterator[str]:
    on_gpu = run.state.run is not None and run.state.run.device != "cpu"
    if not on_gpu or not any(result.mode.cudagraphs for result in results):
        yield "there were no cudagraphs to look at: they need a GPU and --mode reduce-overhead or max-autotune"
    yield from _findings("cudagraphs-skipped", "cudagraphs-not-captured", "cudagraphs-partly")(run, results)


def _below(min_speedup: float, results: Sequence[ModeResult]) -> Iterator[str]:
    for result in results:
        if result.speedup is None:
            yield _unknown(result, "speedup")
        elif result.speedup.lo < min_speedup:
            text = speedup_text(result)
            yield f"{result.mode.value}: the speedup is {text}, and its lower end is below {ratio(min_speedup)}"


def _start_too_long(limit_s: float, results: Sequence[ModeResult]) -> Iterator[str]:
    for result in results:
        if result.cold_start is None:
            yield _unknown(result, "cold start")
        elif result.cold_start.total_s > limit_s:
            yield f"{result.mode.value}: a cold start takes {duration(result.cold_start.total_s)}, over {limit_s:g} s"


def _unknown(result: ModeResult, what: str) -> str:
    return _one_line(f"{result.mode.value}: no {what} was measured ({result.reason or result.status.value})")


def _one_line(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


_REASONS: dict[FailOn, _Reasons] = {
    FailOn.GRAPH_BREAKS: _findings("graph-break"),
    FailOn.RECOMPILES: _findings("recompiles", "recompile-limit", "compiled-while-measuring"),
    FailOn.RAN_EAGER: _findings("mode-ran-eager", "frame-runs-eager", "compiled-but-not-running"),
    FailOn.SLOWER: _slower,
    FailOn.ACCURACY: _wrong,
    FailOn.CUDAGRAPH_SKIPS: _no_cudagraph,
}
