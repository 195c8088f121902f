"""The decision. Pure: a recorded run can be decided again, and gets the same answer."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcompile_tui.core import events as ev
from tcompile_tui.core.accuracy import Agreement
from tcompile_tui.core.apart import UNPAIRED
from tcompile_tui.core.breakeven import BreakEven
from tcompile_tui.core.causes import find_causes
from tcompile_tui.core.compile_options import KeyValueCache
from tcompile_tui.core.compile_text import compile_call, compile_lines
from tcompile_tui.core.end_to_end import data_time
from tcompile_tui.core.failure_words import failure_text
from tcompile_tui.core.findings import MEMORY_DOWN, Finding, Severity, speedup_text
from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.pairs import EQUIVALENCE, meets_stop_rule
from tcompile_tui.core.replay import Ratio
from tcompile_tui.core.results import ModeResult, mode_result, planned_break_even, planned_gain
from tcompile_tui.core.shape_results import ShapeResults, shape_results
from tcompile_tui.core.shape_verdict import shapes_headline, shapes_objection
from tcompile_tui.core.spec import ASSUMED_PLAN_HOURS, ONE_COLD_START, Mode, Phase, Plan, Preset, RunSpec, Starts
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import count, duration, milliseconds, percent

_SMALL_GAIN = 0.05
_SAFE_MARGIN = 2.0
# Work of others biased CPU comparisons by up to a fifth; an effect beyond this stands.
_BEYOND_CONTENTION = 1.25
_CONTENTION = "other work on this machine disturbed the comparison"


class Decision(str, enum.Enum):
    ENABLE = "ENABLE"
    ENABLE_WITH_CARE = "ENABLE WITH CARE"
    TEST_CAREFULLY = "TEST CAREFULLY"
    SKIP = "SKIP"
    RAN_EAGER = "RAN EAGER"
    CANNOT_COMPILE = "CANNOT COMPILE HERE"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class ExitCode(enum.IntEnum):
    """How `tcompile-tui run` leaves."""

    DECIDED = 0
    BAD_INPUT = 2
    EAGER_FAILS = 3
    CANNOT_COMPILE = 4
    STOPPED = 5
    FAILED = 6
    GATE = 10


@dataclass(frozen=True)
class JudgedMode:
    """One mode with its own decision. `planned_gain` is the share of the planned run's time that is saved, its
    starts paid; negative if it costs time. `planned_break_even` counts the steps that pay for all of its starts."""

    result: ModeResult
    decision: Decision | None
    reason: str
    planned_gain: float | None
    planned_break_even: BreakEven | None = None


@dataclass(frozen=True)
class Verdict:
    """The answer to the question, with everything that it stands on."""

    decision: Decision
    headline: str
    exit_code: ExitCode
    best_mode: Mode | None
    modes: tuple[JudgedMode, ...]
    findings: tuple[Finding, ...]
    planned_steps: float | None
    assumed_plan: bool
    compiles_optimizer: bool = False
    shapes: ShapeResults | None = None

    @property
    def best(self) -> JudgedMode | None:
        return next((judged for judged in self.modes if judged.result.mode is self.best_mode), None)

    @property
    def usual_text(self) -> str:
        """Which shape the figures of the modes are of, where several were measured."""
        return self.shapes.usual_text if self.shapes is not None else ""

    @property
    def speedup(self) -> Ratio | None:
        """What the decision rests on: over the sequence of shapes where there is one, else of the best mode."""
        if self.shapes is not None:
            row = self.shapes.best_row
            return row.speedup if row is not None else None
        found = self.best.result.end_to_end.speedup if self.best is not None else None
        return Ratio(found.value, found.lo, found.hi) if found is not None else None

    def line_for(self, judged: JudgedMode) -> str:
        """What to write to compile as this mode did, whatever its decision."""
        return paste_line(judged.result, judged.result.mode, self.compiles_optimizer, self.shapes)

    @property
    def is_answer(self) -> bool:
        """Was a decision reached, whatever it says?"""
        return self.exit_code is ExitCode.DECIDED

    @property
    def paste_line(self) -> str | None:
        """The line that we measured and advise, for a model variable called `model`."""
        if self.decision not in (Decision.ENABLE, Decision.ENABLE_WITH_CARE) or self.best_mode is None:
            return None
        result = self.best.result if self.best is not None else None
        return paste_line(result, self.best_mode, self.compiles_optimizer, self.shapes)


def paste_line(result: ModeResult | None, mode: Mode, compiles_optimizer: bool, shapes: ShapeResults | None) -> str:
    """What to write for `mode`: one line. Where a sequence of shapes was replayed in it, with the best `dynamic`."""
    options = mode.options
    setting = shapes.best if shapes is not None and shapes.mode is mode else None
    if setting is not None and setting.dynamic is not None:
        options = replace(options, dynamic=setting.dynamic)
    wrapped, blocks = (result.wrapped, result.blocks) if result is not None else (False, None)
    lines = compile_lines(options, wrapped, blocks)
    if result is not None and result.decode is not None and options.cache is not KeyValueCache.GROWING:
        lines.insert(0, 'model.generation_config.cache_implementation = "static"')
    if compiles_optimizer:
        lines.append(f"optimizer.step = {compile_call('optimizer.step', options.arguments)}")
        lines.sort(key=lambda line: line.startswith("for "))  # what follows a loop on its line would be part of it
    return "; ".join(lines)


def decide(state: RunState) -> Verdict:
    """The verdict of a run as far as its records go; never raises for a run that ended early."""
    results = tuple(mode_result(state, mode) for mode in state.modes)
    findings = find_causes(state, results if _eager_is_fine(state) else ())
    spec = state.run.spec if state.run is not None else None
    planned = _planned_steps(state, spec, results)
    judged = tuple(judge_mode(result, spec, planned, findings) for result in results)
    assumed = spec is None or spec.plan.assumed

    def verdict(decision: Decision, headline: str, code: ExitCode, best: Mode | None = None) -> Verdict:
        compiles_optimizer = spec is not None and spec.step.compile_optimizer
        shapes = shape_results(state)
        return Verdict(decision, headline, code, best, judged, findings, planned, assumed, compiles_optimizer, shapes)

    broken = _broken_before_comparison(state)
    if broken is not None:
        return verdict(*broken)
    decided = [mode for mode in judged if mode.decision is not None]
    if decided:
        best = min(decided, key=_preference)
        assert best.decision is not None
        shapes = shape_results(state)
        if shapes is not None and not _outputs_are_wrong(best.result):
            replayed = next((judged for judged in decided if judged.result.mode is shapes.mode), best)
            answer, headline = _decide_for_shapes(replayed, shapes)
            return verdict(answer, headline, ExitCode.DECIDED, shapes.mode)
        return verdict(best.decision, _headline(best, planned, spec), ExitCode.DECIDED, best.result.mode)
    return verdict(*_undecided(state, results))


def _outputs_are_wrong(result: ModeResult) -> bool:
    return result.accuracy is not None and result.accuracy.agreement is Agreement.DIFFERENT


def _decide_for_shapes(judged: JudgedMode, shapes: ShapeResults) -> tuple[Decision, str]:
    """The sequence decides, not one of its shapes. Never a plain ENABLE: it was replayed in one process, and the real
    run may have shapes that it has not."""
    objection = shapes_objection(shapes)
    if objection is not None:
        eager_is_best, reason = objection
        return Decision.SKIP if eager_is_best else Decision.TEST_CAREFULLY, reason
    care = judged.reason if judged.decision is Decision.ENABLE_WITH_CARE else ""
    return Decision.ENABLE_WITH_CARE, "; ".join([shapes_headline(shapes), *([care] if care else [])])


def _eager_is_fine(state: RunState) -> bool:
    eager = state.process_of(Phase.EAGER)
    return eager is not None and eager.failure is None and eager.done


def _planned_steps(state: RunState, spec: RunSpec | None, results: Sequence[ModeResult]) -> float | None:
    """From the eager time of one step: the mean beside the compiled arm, else the eager process's level."""
    if spec is None:
        return None
    steps_ms = [result.end_to_end.eager_mean_ms for result in results]
    measured = [step_ms for step_ms in steps_ms if step_ms is not None]
    data = data_time(state)
    step_ns = measured[0] * 1e6 if measured else state.eager_step_ns
    step_ns = max(step_ns, 1e6 * data.step_ms) if step_ns and data is not None else step_ns
    return spec.plan.steps_at(step_ns / 1e9) if step_ns else (float(spec.plan.steps) if spec.plan.steps else None)


# ---------------------------------------------------------------- one mode


def judge_mode(
    result: ModeResult, spec: RunSpec | None, planned: float | None, findings: Sequence[Finding]
) -> JudgedMode:
    """One mode's decision for a run of `planned` steps."""
    if result.status is ModeStatus.CANNOT_PAY:
        return JudgedMode(result, Decision.SKIP, result.reason, None)
    if result.status is ModeStatus.THROTTLED:
        return JudgedMode(result, Decision.TEST_CAREFULLY, result.reason, None)
    if result.status is not ModeStatus.MEASURED or result.speedup is None or spec is None:
        return JudgedMode(result, None, result.reason, None)
    starts = spec.plan.starts
    gain, break_even = planned_gain(result, planned, starts), planned_break_even(result, starts)
    decision, reason = _lost_to_data(result) or _decide_mode(
        result.end_to_end, spec.preset, planned, gain, break_even, findings
    )
    if decision is Decision.SKIP and _lost_to_data(result) is None:
        decision, reason = _with_memory(result, reason, findings)
    return JudgedMode(result, decision, reason, gain, break_even)


def _with_memory(result: ModeResult, reason: str, findings: Sequence[Finding]) -> tuple[Decision, str]:
    """No SKIP without what a larger batch, for which only the compiled arm has room, brings or may bring."""
    fit = result.fit.gain if result.fit is not None else None
    if result.fit is not None and fit is not None:
        at_largest = f"at the largest batch of each it gives {result.fit.gain_text} the samples a second"
        if fit.lo is not None and fit.lo > 1 + EQUIVALENCE:
            return Decision.TEST_CAREFULLY, f"{reason}, but {at_largest}"
        return Decision.SKIP, f"{reason}; {at_largest}"
    saved = (finding for finding in findings if finding.id == MEMORY_DOWN and finding.mode is result.mode)
    return Decision.SKIP, "; ".join([reason, *(f"but {finding.title} ({finding.advice})" for finding in saved)])


def _lost_to_data(result: ModeResult) -> tuple[Decision, str] | None:
    """Where compiled steps are or may be faster, and both arms wait for their data. Wrong outputs weigh more."""
    alone, end_to_end = result.speedup, result.end_to_end.speedup
    if result.data is None or alone is None or end_to_end is None or _outputs_are_wrong(result):
        return None
    if alone.at_most < 1 + EQUIVALENCE or end_to_end.at_most >= 1 + EQUIVALENCE:
        return None
    data, eager = (milliseconds(1e6 * value) for value in (result.data.step_ms, result.eager_ms or 0.0))
    return Decision.SKIP, f"the data of a step takes {data}, the step {eager} in eager: fix the loader first"


def _decide_mode(
    result: ModeResult,
    preset: Preset,
    planned: float | None,
    gain: float | None,
    break_even: BreakEven | None,
    findings: Sequence[Finding],
) -> tuple[Decision, str]:
    speedup = result.speedup
    assert speedup is not None
    if _outputs_are_wrong(result):
        return Decision.TEST_CAREFULLY, "its outputs differ from eager by more than rounding"
    if speedup.lo <= 1 and lost_in_contention(result):
        return Decision.TEST_CAREFULLY, _CONTENTION
    if speedup.hi < 1:
        return Decision.SKIP, "it is slower in steady state"
    if speedup.lo <= 1:
        if speedup.at_most < 1 + EQUIVALENCE:
            gain_at_most = speedup.at_most - 1
            why = (
                f"no gain larger than {percent(gain_at_most)}"
                if gain_at_most > 0
                else "it is no faster in steady state"
            )
            return Decision.SKIP, why
        return (
            Decision.TEST_CAREFULLY,
            f"a difference below {percent(speedup.smallest_detectable)} could not be seen",
        )
    if break_even is None or planned is None or gain is None:
        return Decision.TEST_CAREFULLY, "its start was not measured, so the break-even is not known"
    if planned <= break_even.lo:
        return Decision.SKIP, f"the run ends before the break-even ({_break_even_text(break_even)})"
    if break_even.hi is None:
        return Decision.TEST_CAREFULLY, "the time that a step saves is too uncertain to name a break-even"
    if planned < break_even.hi:
        return Decision.TEST_CAREFULLY, f"the run ends near the break-even ({_break_even_text(break_even)})"
    if result.compiles_while_measuring:
        return Decision.TEST_CAREFULLY, "it keeps recompiling"
    if lost_in_contention(result):
        return Decision.TEST_CAREFULLY, _CONTENTION
    if result.mostly_throttled:
        return Decision.TEST_CAREFULLY, "the GPU was throttled in most of the comparison"
    cautions = _cautions(result, preset, planned, break_even, gain, findings)
    return (Decision.ENABLE_WITH_CARE, cautions[0]) if cautions else (Decision.ENABLE, "")


def lost_in_contention(result: ModeResult) -> bool:
    """Could the work of others alone have made this ratio, in either direction?"""
    speedup = result.speedup
    assert speedup is not None
    beyond = speedup.lo >= _BEYOND_CONTENTION or speedup.hi <= 1 / _BEYOND_CONTENTION
    return result.host_contended and not beyond


def _cautions(
    result: ModeResult,
    preset: Preset,
    planned: float,
    break_even: BreakEven,
    gain: float,
    findings: Sequence[Finding],
) -> list[str]:
    """Why a mode that pays off is not simply to be enabled, most important first."""
    assert result.speedup is not None and break_even.hi is not None
    cautions = [
        finding.title
        for finding in findings
        if finding.severity is Severity.BLOCKER and finding.mode in (None, result.mode)
    ]
    agreement = result.accuracy.agreement if result.accuracy is not None else Agreement.NOT_CHECKED
    if agreement in (Agreement.UNCERTAIN, Agreement.NOT_CHECKED):
        cautions.append("whether its outputs are right could not be established")
    if planned < _SAFE_MARGIN * break_even.hi:
        cautions.append(f"the run is not much longer than the break-even ({_break_even_text(break_even)})")
    if gain < _SMALL_GAIN:
        cautions.append(f"the gain is small ({percent(gain)} of the run)")
    if result.speedup.one_process and result.speedup.lo < 1 + _SMALL_GAIN:
        cautions.append("one process was measured, and in another the gain may be small")
    if not meets_stop_rule(result.speedup):
        cautions.append("the interval is wide")
    if result.host_dependence is not None and result.host_dependence.lo_at_fastest < 1 + _SMALL_GAIN:
        cautions.append("little would be left of the gain on a faster CPU")
    if result.apart is not None:
        cautions.append(f"eager and compiled did not fit side by side: {UNPAIRED}")
    if result.ratio_drifted:
        cautions.append("the speedup moved while it was measured")
    if result.host_contended:
        cautions.append(_CONTENTION)
    if result.recompiles and preset is Preset.SMOKE:
        cautions.append("it recompiled, and was not watched for long")
    return cautions


def _break_even_text(break_even: BreakEven) -> str:
    if break_even.steps is None:
        return "never"
    return (
        f"{count(break_even.lo)} to {count(break_even.hi)} steps"
        if break_even.hi
        else f"{count(break_even.steps)} steps"
    )


# ---------------------------------------------------------------- all modes


def _preference(judged: JudgedMode) -> tuple[int, float]:
    """The safest class first, then the larger gain over the planned run."""
    order = [Decision.ENABLE, Decision.ENABLE_WITH_CARE, Decision.TEST_CAREFULLY, Decision.SKIP]
    assert judged.decision is not None
    speedup = judged.result.speedup
    gain = judged.planned_gain if judged.planned_gain is not None else (speedup.value - 1 if speedup else 0.0)
    return order.index(judged.decision), -gain


def _headline(best: JudgedMode, planned: float | None, spec: RunSpec | None) -> str:
    result, decision = best.result, best.decision
    end_to_end = result.end_to_end
    plan = _plan_text(planned, end_to_end, spec)
    measured = f"{result.mode.value} runs at {speedup_text(result)} of eager speed"
    measured += f" in {UNPAIRED}" if result.apart is not None else ""
    if result.data is not None and result.waits_for_data:
        data = milliseconds(1e6 * result.data.step_ms)
        measured += f", {speedup_text(end_to_end)} end to end with {data} of data a step"
    if result.speedup is None:
        return f"{result.mode.value} {result.status.value}: {best.reason}"
    if decision in (Decision.ENABLE, Decision.ENABLE_WITH_CARE) and best.planned_break_even is not None:
        steps = best.planned_break_even.steps or 0.0
        wall_s = steps * (end_to_end.eager_mean_ms or 0.0) / 1e3
        starts = _starts_text(spec.plan.starts if spec is not None else ONE_COLD_START)
        paid = f"{starts} paid back after {count(steps)} steps ({duration(wall_s)})"
        saved = f"it saves {percent(best.planned_gain)} of {plan}"
        return "; ".join([measured, paid, saved, *([best.reason] if best.reason else [])])
    return "; ".join([measured, *([best.reason] if best.reason else []), f"decided for {plan}"])


def _starts_text(starts: Starts) -> str:
    """`a cold start is`, `1 cold and 20 warm starts are`."""
    if starts == ONE_COLD_START:
        return "a cold start is"
    kinds = [f"{count(number)} {kind}" for number, kind in ((starts.cold, "cold"), (starts.warm, "warm")) if number]
    return f"{' and '.join(kinds)} {'start is' if starts.cold + starts.warm == 1 else 'starts are'}"


def _plan_text(planned: float | None, result: ModeResult, spec: RunSpec | None) -> str:
    if planned is None or spec is None:
        return "the planned run"
    hours = ASSUMED_PLAN_HOURS if spec.plan.assumed else spec.plan.hours
    if hours is not None:
        return f"{'an assumed' if spec.plan.assumed else 'the planned'} {hours:g} h of eager steps ({count(planned)})"
    wall_s = planned * result.eager_mean_ms / 1e3 if result.eager_mean_ms is not None else None
    return f"the planned {count(planned)} steps ({duration(wall_s)} eager)"


def decide_for(state: RunState, plan: Plan) -> Verdict:
    """The verdict of the same measurements for another plan."""
    run = state.run
    return decide(replace(state, run=replace(run, spec=replace(run.spec, plan=plan))) if run is not None else state)


def program_failed(state: RunState, message: str) -> Verdict:
    """The verdict of a run that this program itself could not go on with."""
    return replace(decide(state), decision=Decision.FAILED, headline=message, exit_code=ExitCode.FAILED)


def verdict_of(state: RunState) -> Verdict:
    """The verdict of a recorded run; where the program itself failed, what it said."""
    verdict, ended = decide(state), state.ended
    if ended is not None and ended.decision == Decision.FAILED.value and verdict.decision is not Decision.FAILED:
        return program_failed(state, ended.headline)
    return verdict


# ---------------------------------------------------------------- runs that did not get to a comparison

_Outcome = tuple[Decision, str, ExitCode]


def _broken_before_comparison(state: RunState) -> _Outcome | None:
    preflight, eager = state.process_of(Phase.PREFLIGHT), state.process_of(Phase.EAGER)
    if eager is not None and not eager.done:
        return _eager_outcome(eager)
    preflight_over = preflight is not None and not preflight.running and not preflight.done
    if preflight is not None and preflight_over and not _was_stopped(preflight):
        return Decision.CANNOT_COMPILE, _process_text(preflight), ExitCode.CANNOT_COMPILE
    if eager is None:
        return Decision.STOPPED, "stopped before anything was measured", ExitCode.STOPPED
    return None


def _eager_outcome(eager: ProcessState) -> _Outcome:
    failure = eager.failure
    if failure is None:
        if eager.ended is None or _was_stopped(eager):
            return Decision.STOPPED, "stopped before the eager model was measured", ExitCode.STOPPED
        text = f"the model's process does not get through without torch.compile: {_process_text(eager)}"
        return Decision.FAILED, text, ExitCode.EAGER_FAILS
    if failure.fault == "input":
        return Decision.FAILED, failure_text(failure), ExitCode.BAD_INPUT
    if failure.fault == "environment":
        return Decision.CANNOT_COMPILE, failure_text(failure), ExitCode.CANNOT_COMPILE
    if failure.fault == "program":
        return Decision.FAILED, failure_text(failure), ExitCode.FAILED
    return (
        Decision.FAILED,
        f"the model fails without torch.compile: {failure_text(failure)}",
        ExitCode.EAGER_FAILS,
    )


def _undecided(state: RunState, results: Sequence[ModeResult]) -> _Outcome:
    environment = [
        process.failure
        for process in state.processes.values()
        if process.failure is not None and process.failure.fault == "environment"
    ]
    if environment:
        return Decision.CANNOT_COMPILE, failure_text(environment[0]), ExitCode.CANNOT_COMPILE
    eager_runs = [result for result in results if result.status is ModeStatus.RAN_EAGER]
    if eager_runs:
        text = f"nothing was compiled, so there is nothing to gain: {eager_runs[0].reason}"
        return Decision.RAN_EAGER, text, ExitCode.DECIDED
    failed = [result for result in results if result.status is ModeStatus.FAILED]
    if failed:
        text = "; ".join(f"{result.mode.value}: {result.reason}" for result in failed)
        return Decision.FAILED, text, ExitCode.FAILED
    cut_short = next((p for p in state.processes.values() if p.compile_stopped is not None), None)
    if cut_short is not None and state.current is None:
        reason = next(result.reason for result in results if result.mode is cut_short.mode)
        return Decision.STOPPED, f"nothing was measured that holds for this plan: {reason}", ExitCode.STOPPED
    if any(_was_stopped(process) for process in state.processes.values()) or state.current is not None:
        return Decision.STOPPED, "stopped before eager and compiled steps could be compared", ExitCode.STOPPED
    unfinished = next((result for result in results if result.status is ModeStatus.NOT_FINISHED), None)
    text = f"{unfinished.mode.value}: {unfinished.reason}" if unfinished is not None else "no mode was measured"
    return Decision.STOPPED, f"the time was too short for a decision: {text}", ExitCode.STOPPED


def _was_stopped(process: ProcessState) -> bool:
    return process.ended is not None and process.ended.outcome is ev.Outcome.STOPPED


def _process_text(process: ProcessState) -> str:
    if process.failure is not None:
        return failure_text(process.failure)
    return process.ended.detail or process.ended.outcome.value if process.ended is not None else "it did not end"
