"""Two runs side by side: what was different about them, and what changed beyond what their intervals allow for.

The level of a machine wanders between runs, so step times of different runs are shown but not compared. The speedup
of each run is a ratio of neighbouring blocks: the ratio of two such ratios can be compared.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tcompile_tui.core.breakeven import PRIOR_COST_SPREAD
from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.pairs import EQUIVALENCE, SpeedupInterval
from tcompile_tui.core.results import ModeResult, StartCost
from tcompile_tui.core.spec import Mode, RunSpec, Task, order_modes
from tcompile_tui.core.state import RunState
from tcompile_tui.core.step_spec import step_words
from tcompile_tui.core.units import count, ratio
from tcompile_tui.core.verdict import Decision, JudgedMode, Verdict

DEVICE = "device"
_Z_95 = 1.96
_SAME_MEMORY = 0.05
# Of two starts, each one draw from a spread that is known before: the logarithm of their ratio has this 95 % bound.
_START_BOUND = _Z_95 * math.sqrt(2) * PRIOR_COST_SPREAD
_ORDER = (Decision.ENABLE, Decision.ENABLE_WITH_CARE, Decision.TEST_CAREFULLY, Decision.SKIP)


@dataclass(frozen=True)
class ComparedRun:
    """One side of a comparison."""

    name: str
    state: RunState
    verdict: Verdict
    host: str | None = None

    def mode(self, mode: Mode) -> JudgedMode | None:
        return next((judged for judged in self.verdict.modes if judged.result.mode is mode), None)


class Trend(str, enum.Enum):
    """What a change means for the person who waits for the model."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "the same"
    UNCLEAR = "in the noise"  # what there is lies within the intervals
    HOST = "maybe the host"  # eager waits for the host, whose speed may have made it
    UNKNOWN = "n/a"  # one of the runs does not say


_DECIDED = (Trend.BETTER, Trend.WORSE)


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same in both runs. `asks_otherwise`: the runs do not measure the same thing."""

    name: str
    before: str
    after: str
    asks_otherwise: bool = False


@dataclass(frozen=True)
class Change:
    """after / before with the 95 % interval of that ratio; all None where a run does not say."""

    value: float | None
    lo: float | None
    hi: float | None
    trend: Trend


_NOT_KNOWN = Change(None, None, None, Trend.UNKNOWN)


@dataclass(frozen=True)
class ModeComparison:
    """One mode in both runs; a side is None where that run did not ask for the mode. Counts are after minus before."""

    mode: Mode
    before: JudgedMode | None
    after: JudgedMode | None
    speedup: Change
    cold_start: Change
    warm_start: Change
    memory: Change
    graph_breaks: int | None
    recompiles: int | None


@dataclass(frozen=True)
class Comparison:
    """`worse` and `better` say in words what changed beyond the intervals."""

    before: ComparedRun
    after: ComparedRun
    differences: tuple[Difference, ...]
    modes: tuple[ModeComparison, ...]
    worse: tuple[str, ...]
    better: tuple[str, ...]

    @property
    def same_question(self) -> bool:
        """Did both runs measure the same model, step and inputs?"""
        return not any(difference.asks_otherwise for difference in self.differences)

    @property
    def same_device(self) -> bool:
        return not any(difference.name == DEVICE for difference in self.differences)

    @property
    def is_regression(self) -> bool:
        """Of the software: another device is another machine's figures, not a step back."""
        return self.same_question and self.same_device and bool(self.worse)

    @property
    def summary(self) -> str:
        """The answer in one line."""
        if not self.same_question:
            names = ", ".join(each.name for each in self.differences if each.asks_otherwise)
            return f"these runs do not measure the same thing ({names} differ): figures side by side, no judgement"
        worse = "a regression" if self.is_regression else "worse"
        parts = [
            f"{word}: {'; '.join(texts)}" for word, texts in ((worse, self.worse), ("better", self.better)) if texts
        ]
        device = [] if self.same_device else ["another device"]
        return ". ".join([*device, *parts]) if parts else "no change beyond the intervals"


def compare_runs(before: ComparedRun, after: ComparedRun) -> Comparison:
    """Pure; runs that ended early are compared as far as they got."""
    asked = (*before.state.modes, *after.state.modes)
    modes = tuple(_compare_mode(mode, before, after) for mode in order_modes(asked) if mode in asked)
    changes = [change for mode in modes for change in _changes_in_words(mode)]
    changes += _decision_in_words(before.verdict, after.verdict)
    worse = tuple(text for trend, text in changes if trend is Trend.WORSE)
    better = tuple(text for trend, text in changes if trend is Trend.BETTER)
    return Comparison(before, after, tuple(_differences(before, after)), modes, worse, better)


# ---------------------------------------------------------------- figures


def _speedup_change(before: ModeResult, after: ModeResult) -> Change:
    """Where eager waits for the host, a host of another speed moves the speedup, whatever was compiled."""
    change = ratio_of_speedups(before.speedup, after.speedup)
    hangs_on_host = before.host_dependence is not None or after.host_dependence is not None
    return replace(change, trend=Trend.HOST) if hangs_on_host and change.trend in _DECIDED else change


def ratio_of_speedups(before: SpeedupInterval | None, after: SpeedupInterval | None) -> Change:
    """The runs are independent, so the half-widths of their logarithms add in quadrature."""
    if before is None or after is None:
        return _NOT_KNOWN
    middle = math.log(after.value / before.value)
    half = math.hypot(_half_width(before), _half_width(after))
    return _judged(middle, half, more_is_better=True)


def _half_width(interval: SpeedupInterval) -> float:
    return math.log(interval.hi / interval.lo) / 2


def _judged(middle: float, half: float, more_is_better: bool) -> Change:
    value, lo, hi = math.exp(middle), math.exp(middle - half), math.exp(middle + half)
    good, bad = (Trend.BETTER, Trend.WORSE) if more_is_better else (Trend.WORSE, Trend.BETTER)
    if lo >= 1 - EQUIVALENCE and hi <= 1 + EQUIVALENCE:
        trend = Trend.SAME
    elif lo > 1:
        trend = good
    else:
        trend = bad if hi < 1 else Trend.UNCLEAR
    return Change(value, lo, hi, trend)


def _start_change(before: StartCost | None, after: StartCost | None) -> Change:
    """Each is one start only, so the bound is the spread that starts are known to have."""
    if before is None or after is None or before.total_s <= 0 or after.total_s <= 0:
        return _NOT_KNOWN
    return _judged(math.log(after.total_s / before.total_s), _START_BOUND, more_is_better=False)


def _memory_change(before: int | None, after: int | None) -> Change:
    if not before or not after:
        return _NOT_KNOWN
    value = after / before
    same = abs(value - 1) <= _SAME_MEMORY
    return Change(value, value, value, Trend.SAME if same else Trend.WORSE if value > 1 else Trend.BETTER)


def _compare_mode(mode: Mode, before: ComparedRun, after: ComparedRun) -> ModeComparison:
    old, new = before.mode(mode), after.mode(mode)
    same_device = _device_name(before) == _device_name(after)  # one's GPU memory is not the other's resident set
    a, b = (
        old.result if old else ModeResult(mode, ModeStatus.NOT_RUN),
        new.result if new else ModeResult(mode, ModeStatus.NOT_RUN),
    )
    return ModeComparison(
        mode=mode,
        before=old,
        after=new,
        speedup=_speedup_change(a, b),
        cold_start=_start_change(a.cold_start, b.cold_start),
        warm_start=_start_change(a.warm_start, b.warm_start),
        memory=_memory_change(a.peak_memory_bytes, b.peak_memory_bytes) if same_device else _NOT_KNOWN,
        graph_breaks=_minus(b.graph_breaks, a.graph_breaks),
        recompiles=_minus(b.recompiles, a.recompiles),
    )


def _minus(after: int | None, before: int | None) -> int | None:
    return after - before if after is not None and before is not None else None


# ---------------------------------------------------------------- in words


def _changes_in_words(mode: ModeComparison) -> Iterator[tuple[Trend, str]]:
    """A warm start is left out: it is short, and one draw."""
    name = mode.mode.value
    if mode.before is None or mode.after is None:
        return
    got, lost = mode.after.result.status, mode.before.result.status
    if got is not lost and ModeStatus.MEASURED in (got, lost):
        yield (Trend.BETTER if got is ModeStatus.MEASURED else Trend.WORSE), f"{name}: {lost.value}, now {got.value}"
    speedup = mode.speedup
    if speedup.trend in _DECIDED:
        bounds = f"{ratio(speedup.lo)} to {ratio(speedup.hi)}"
        yield (
            speedup.trend,
            f"{name}: the speedup is {ratio(speedup.value)} ({bounds}) of what it was{_who_moved(mode)}",
        )
    if mode.cold_start.trend in _DECIDED:
        yield mode.cold_start.trend, f"{name}: a cold start takes {ratio(mode.cold_start.value)} the time"
    for number, noun in ((mode.graph_breaks, "graph breaks"), (mode.recompiles, "recompiles")):
        if number:
            more = "more" if number > 0 else "fewer"
            yield (Trend.WORSE if number > 0 else Trend.BETTER), f"{name}: {count(abs(number))} {more} {noun}"
    if mode.memory.trend in _DECIDED:
        yield mode.memory.trend, f"{name}: {ratio(mode.memory.value)} the peak memory"


def _who_moved(mode: ModeComparison) -> str:
    """Which arm the change comes from, as far as step times of different runs can tell."""
    if mode.before is None or mode.after is None:
        return ""
    old, new = mode.before.result, mode.after.result
    if not old.eager_ms or not old.compiled_ms or new.eager_ms is None or new.compiled_ms is None:
        return ""
    eager, compiled = new.eager_ms / old.eager_ms, new.compiled_ms / old.compiled_ms
    return f", with {ratio(eager)} the time in eager and {ratio(compiled)} compiled"


def _decision_in_words(before: Verdict, after: Verdict) -> Iterator[tuple[Trend, str]]:
    if before.decision is after.decision:
        return
    known = before.decision in _ORDER and after.decision in _ORDER
    fell = _ORDER.index(after.decision) > _ORDER.index(before.decision) if known else not after.is_answer
    text = f"the decision was {before.decision.value} and is {after.decision.value}"
    # Of two answers the order alone is no regression: TEST CAREFULLY is a doubt, and a doubt may be the noise's.
    doubtful = Decision.TEST_CAREFULLY in (before.decision, after.decision)
    if not doubtful:
        yield (Trend.WORSE if fell else Trend.BETTER), text


# ---------------------------------------------------------------- settings


def _differences(before: ComparedRun, after: ComparedRun) -> Iterator[Difference]:
    for name, asks_otherwise, value in _SETTINGS:
        old, new = value(before), value(after)
        if old != new:
            yield Difference(name, old or "n/a", new or "n/a", asks_otherwise and bool(old) and bool(new))


def _of_spec(read: Callable[[RunSpec], str]) -> Callable[[ComparedRun], str]:
    def read_side(side: ComparedRun) -> str:
        return read(side.state.run.spec) if side.state.run is not None else ""

    return read_side


def _device_name(side: ComparedRun) -> str:
    return side.state.run.device_name if side.state.run is not None else ""


def _torch(side: ComparedRun) -> str:
    return side.state.run.torch_version if side.state.run is not None else ""


def _python(side: ComparedRun) -> str:
    return next((p.facts.python_version for p in side.state.processes.values() if p.facts is not None), "")


def _precision(side: ComparedRun) -> str:
    return next((p.facts.matmul_precision for p in side.state.processes.values() if p.facts is not None), "")


def _model_inputs(side: ComparedRun) -> str:
    """As the worker had them: those of example_inputs() too."""
    model = next((p.model for p in side.state.processes.values() if p.model is not None), None)
    if model is None:
        return ""
    return ", ".join(f"{t.path}={t.dtype}[{','.join(map(str, t.shape))}]" for t in model.inputs)


def _plan(spec: RunSpec) -> str:
    if spec.plan.steps is not None:
        return f"{count(spec.plan.steps)} steps"
    return f"{spec.plan.hours:g} h" if spec.plan.hours is not None else "assumed"


def _task(side: ComparedRun) -> str:
    asked = side.state.run.spec.task if side.state.run is not None else None
    if asked is Task.DECODE or asked is Task.SERVE:
        return str(asked.value)
    model = next((p.model for p in side.state.processes.values() if p.model is not None), None)
    if model is not None:
        return "train" if model.training else "infer"
    return side.state.run.spec.task or "" if side.state.run is not None else ""


_SETTINGS: tuple[tuple[str, bool, Callable[[ComparedRun], str]], ...] = (
    ("model", True, _of_spec(lambda spec: str(spec.target))),
    ("task", True, _task),
    ("arguments", True, _of_spec(lambda spec: " ".join(map(str, spec.arguments)) or "none")),
    ("inputs", True, _model_inputs),
    ("dtype", True, _of_spec(lambda spec: spec.dtype or "as built")),
    ("AMP", True, _of_spec(lambda spec: spec.amp or "off")),
    ("step", True, _of_spec(lambda spec: " ".join(step_words(spec.step)) or "as usual")),
    ("torch", False, _torch),
    ("Python", False, _python),
    ("matmul precision", False, _precision),
    (DEVICE, False, _device_name),
    ("host", False, lambda side: side.host or ""),
    ("data", False, _of_spec(lambda spec: " ".join(spec.data.words) if spec.data is not None else "not given")),
    ("modes", False, _of_spec(lambda spec: ", ".join(mode.value for mode in spec.modes))),
    ("plan", False, _of_spec(_plan)),
    ("preset", False, _of_spec(lambda spec: spec.preset.value)),
)
