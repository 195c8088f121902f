"""A comparison of two runs as rows, as text and as JSON values."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcompile_tui.core.compare_runs import Change, Comparison, ModeComparison, Trend
from tcompile_tui.core.literal import literal
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.units import MISSING, count, duration, milliseconds, ratio, size
from tcompile_tui.core.verdict import JudgedMode

SCHEMA_VERSION = 1
_LABEL_COLUMNS = 14


@dataclass(frozen=True)
class ComparedRow:
    """One line of the table: what, in the earlier run, in the later one, and what that means."""

    label: str
    before: str
    after: str
    change: str = ""
    trend: Trend = Trend.SAME


def setting_rows(comparison: Comparison) -> list[ComparedRow]:
    return [ComparedRow(each.name, each.before, each.after) for each in comparison.differences]


def mode_rows(mode: ModeComparison) -> list[ComparedRow]:
    """Rows that neither run has a value for are left out."""
    rows = [
        _row(mode, "decision", _decision),
        _row(mode, "speedup", _speedup, mode.speedup),
        replace(_row(mode, "  95 %", _interval), change=_bounds(mode.speedup)),
        _row(mode, "eager step", lambda judged: _step(judged.result.eager_ms)),
        _row(mode, "compiled step", lambda judged: _step(judged.result.compiled_ms)),
        _row(mode, "cold start", lambda judged: _start(judged.result, cold=True), mode.cold_start),
        _row(mode, "warm start", lambda judged: _start(judged.result, cold=False), mode.warm_start),
        _row(mode, "break-even", _break_even),
        _counts(mode, "graph breaks", lambda judged: judged.result.graph_breaks, mode.graph_breaks),
        _counts(mode, "recompiles", lambda judged: judged.result.recompiles, mode.recompiles),
        _row(mode, "peak memory", lambda judged: size(judged.result.peak_memory_bytes), mode.memory),
        _row(mode, "outputs", _outputs),
    ]
    return [row for row in rows if (row.before, row.after) != (MISSING, MISSING)]


def comparison_text(comparison: Comparison, width: int = 79) -> str:
    """Summary, settings that differ, and every mode. Safe to print."""
    lines = [f"{comparison.before.name}  ->  {comparison.after.name}", ""]
    lines += [*textwrap.wrap(comparison.summary, width, break_long_words=False), ""]
    for title, rows in comparison_tables(comparison):
        lines += [title, *(f"  {line}" for _, line in table_lines(rows, width - 2)), ""]
    return literal("\n".join(lines)).rstrip() + "\n"


def comparison_tables(comparison: Comparison) -> Iterator[tuple[str, list[ComparedRow]]]:
    """Each with its title; a table without rows is left out."""
    settings = setting_rows(comparison)
    if settings:
        yield "what differs", settings
    for mode in comparison.modes:
        rows = mode_rows(mode)
        if rows:
            yield mode.mode.value, rows


def table_lines(rows: list[ComparedRow], width: int) -> list[tuple[ComparedRow, str]]:
    """A head and the rows as lines in columns, each with its row; a row with a long value has one line a value."""
    head = ComparedRow("", "before", "after", "change" if any(row.change for row in rows) else "")
    return [(row, line) for row in (head, *rows) for line in _lines(row, (head, *rows), width)]


def _lines(row: ComparedRow, rows: Sequence[ComparedRow], width: int) -> Iterator[str]:
    room = max(0, width - _LABEL_COLUMNS) // 3
    first = max((len(each.before) for each in rows if len(each.before) <= room), default=0)
    second = max((len(each.after) for each in rows if len(each.after) <= room), default=0)
    if len(row.before) <= room and len(row.after) <= room:
        yield f"{row.label:<{_LABEL_COLUMNS}}{row.before:<{first}}  {row.after:<{second}}  {row.change}".rstrip()
        return
    for label, text in ((row.label, row.before), ("", row.after), ("", row.change)):
        if text:
            yield f"{label:<{_LABEL_COLUMNS}}{text}"


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Plain JSON values; None is "not known"."""
    return {
        "schema_version": SCHEMA_VERSION,
        "before": comparison.before.name,
        "after": comparison.after.name,
        "summary": comparison.summary,
        "same_question": comparison.same_question,
        "regression": comparison.is_regression,
        "worse": list(comparison.worse),
        "better": list(comparison.better),
        "decisions": [side.verdict.decision.value for side in (comparison.before, comparison.after)],
        "differences": {each.name: [each.before, each.after] for each in comparison.differences},
        "per_mode": {mode.mode.value: _mode_document(mode) for mode in comparison.modes},
    }


def _mode_document(mode: ModeComparison) -> dict[str, Any]:
    return {
        "decisions": [_decision_or_none(judged) for judged in (mode.before, mode.after)],
        "speedups": [_speedup_or_none(judged) for judged in (mode.before, mode.after)],
        "speedup": _change(mode.speedup),
        "cold_start": _change(mode.cold_start),
        "warm_start": _change(mode.warm_start),
        "memory": _change(mode.memory),
        "graph_breaks": mode.graph_breaks,
        "recompiles": mode.recompiles,
    }


def _change(change: Change) -> dict[str, Any] | None:
    if change.value is None:
        return None
    return {"ratio": change.value, "lo": change.lo, "hi": change.hi, "trend": change.trend.value}


def _decision_or_none(judged: JudgedMode | None) -> str | None:
    return _decision(judged) if judged is not None else None


def _speedup_or_none(judged: JudgedMode | None) -> float | None:
    speedup = judged.result.speedup if judged is not None else None
    return speedup.value if speedup is not None else None


# ---------------------------------------------------------------- rows


def _row(
    mode: ModeComparison, label: str, text: Callable[[JudgedMode], str], change: Change | None = None
) -> ComparedRow:
    before, after = (text(judged) if judged is not None else MISSING for judged in (mode.before, mode.after))
    if change is None or change.value is None:
        return ComparedRow(label, before, after)
    word = change.trend.value
    return ComparedRow(
        label, before, after, word if change.trend is Trend.SAME else f"{ratio(change.value)} {word}", change.trend
    )


def _counts(
    mode: ModeComparison, label: str, value: Callable[[JudgedMode], int | None], more: int | None
) -> ComparedRow:
    before, after = (count(value(judged)) if judged is not None else MISSING for judged in (mode.before, mode.after))
    if not more:
        return ComparedRow(label, before, after)
    return ComparedRow(label, before, after, f"{more:+,}", Trend.WORSE if more > 0 else Trend.BETTER)


def _decision(judged: JudgedMode) -> str:
    return judged.decision.value if judged.decision is not None else judged.result.status.value


def _speedup(judged: JudgedMode) -> str:
    speedup = judged.result.speedup
    return ratio(speedup.value if speedup is not None else None)


def _interval(judged: JudgedMode) -> str:
    speedup = judged.result.speedup
    return f"{ratio(speedup.lo)} to {ratio(speedup.hi)}" if speedup is not None else MISSING


def _bounds(change: Change) -> str:
    return f"{ratio(change.lo)} to {ratio(change.hi)}" if change.value is not None else ""


def _step(value_ms: float | None) -> str:
    return milliseconds(value_ms * 1e6 if value_ms is not None else None)


def _start(result: ModeResult, cold: bool) -> str:
    start = result.cold_start if cold else result.warm_start
    return duration(start.total_s if start is not None else None)


def _break_even(judged: JudgedMode) -> str:
    found = judged.result.break_even_cold
    if found is None:
        return MISSING
    return f"{count(found.steps)} steps" if found.steps is not None else "never"


def _outputs(judged: JudgedMode) -> str:
    return judged.result.accuracy.agreement.value if judged.result.accuracy is not None else MISSING
