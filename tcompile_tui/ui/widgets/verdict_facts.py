"""The best mode's figures against the planned run: what a start costs, when that is paid back, what is saved."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content
from textual.widgets import Static

from tcompile_tui.core.breakeven import BreakEven
from tcompile_tui.core.fit_results import BatchFit
from tcompile_tui.core.results import ModeResult, StartCost
from tcompile_tui.core.spec import ASSUMED_PLAN_HOURS, RunSpec
from tcompile_tui.core.units import MISSING, count, duration, milliseconds, percent, ratio, size
from tcompile_tui.core.verdict import JudgedMode, Verdict

_DIM = "$foreground-muted"
_WIDTHS = (7, 10, 14)  # a row's name, a start's cost, its break-even in steps


@dataclass(frozen=True)
class FactRow:
    """A row of four cells, or of a name and one text over the other three."""

    name: str
    cells: tuple[str, ...]
    strong: bool = False


def fact_rows(best: JudgedMode, verdict: Verdict, spec: RunSpec | None) -> list[FactRow]:
    """Most important first: where there is little room the last ones fall off."""
    result, eager_ms = best.result, best.result.end_to_end.eager_mean_ms
    return [
        FactRow("cold", _start_cells(result.cold_start, result.break_even_cold, eager_ms), strong=True),
        FactRow("warm", _start_cells(result.warm_start, result.break_even_warm, eager_ms)),
        FactRow("plan", ("", *_plan_cells(verdict, spec, eager_ms)), strong=True),
        FactRow("saves", (_saves(best.planned_gain),), strong=True),
        FactRow("outputs", (result.accuracy.agreement.value if result.accuracy is not None else "not checked",)),
        *([FactRow("data", (_data(result),))] if result.data is not None else []),
        FactRow("memory", (_memory(result),)),
        *([FactRow("batch", (_batch(result.fit),))] if result.fit is not None else []),
    ]


def _saves(gain: float | None) -> str:
    if gain is None:
        return MISSING
    return f"{percent(gain)} of the plan" if gain >= 0 else f"nothing: {percent(-gain)} more time than eager"


def _start_cells(start: StartCost | None, found: BreakEven | None, eager_ms: float | None) -> tuple[str, ...]:
    cost = duration(start.total_s if start is not None else None)
    if found is None:
        return cost, MISSING, ""
    if found.steps is None:
        return cost, "never", ""
    return cost, count(found.steps), duration(found.steps * eager_ms / 1e3) if eager_ms else ""


def _plan_cells(verdict: Verdict, spec: RunSpec | None, eager_ms: float | None) -> tuple[str, str]:
    steps = verdict.planned_steps
    if steps is None or spec is None:
        return MISSING, ""
    if spec.plan.assumed:
        return count(steps), f"{ASSUMED_PLAN_HOURS:g} h assumed"
    hours = f"{spec.plan.hours:g} h" if spec.plan.hours is not None else None
    return count(steps), hours or (duration(steps * eager_ms / 1e3) if eager_ms else "")


def _data(result: ModeResult) -> str:
    """Of one step, beside what the step itself gains."""
    data_ms = result.data.step_ms if result.data is not None else None
    alone = ratio(result.speedup.value) if result.speedup is not None else MISSING
    return f"{milliseconds(1e6 * data_ms if data_ms else None)} a step; steps alone {alone}"


def _memory(result: ModeResult) -> str:
    """At the peak, against eager's."""
    compiled, eager = result.peak_memory_bytes, result.eager_peak_memory_bytes
    return f"{size(compiled)} peak, eager {size(eager)}" if compiled is not None else MISSING


def _batch(fit: BatchFit) -> str:
    """The largest of each arm."""
    gain = ratio(fit.gain.value) if fit.gain is not None else MISSING
    return f"{fit.compiled.batch:,}, eager {fit.eager.batch:,}: {gain} samples/s"


class VerdictFacts(Static):
    """The rows as a table."""

    DEFAULT_CSS = """
    VerdictFacts { width: 45; height: auto; }
    """

    def __init__(self, best: JudgedMode, verdict: Verdict, spec: RunSpec | None, *, id: str | None = None) -> None:
        head = _line(FactRow("start", ("cost", "paid back after", "")), head=True)
        rows = [_line(row) for row in fact_rows(best, verdict, spec)]
        super().__init__(Content("\n").join([head, *rows]), id=id)


def _line(row: FactRow, head: bool = False) -> Content:
    name = row.name.ljust(_WIDTHS[0])
    if len(row.cells) == 1:
        return Content.assemble((f"{name} ", _DIM), (row.cells[0], "bold" if row.strong else ""))
    cost, steps, time = row.cells
    if head:
        return Content.styled(f"{name}{cost:>{_WIDTHS[1]}}{steps:>{_WIDTHS[2] + 2}}", _DIM)
    unit = " steps" if steps[-1:].isdigit() else ""
    middle = f"{steps}{unit}".rjust(_WIDTHS[2])
    style = "bold" if row.strong else ""
    return Content.assemble((name, _DIM), cost.rjust(_WIDTHS[1]), (middle, style), (f"  {time}", _DIM))
