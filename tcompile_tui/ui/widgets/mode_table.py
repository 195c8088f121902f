"""Every figure of every mode, one column a mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from textual.content import Content
from textual.widgets import Static

from tcompile_tui.core.breakeven import BreakEven
from tcompile_tui.core.results import planned_gain
from tcompile_tui.core.units import MISSING, count, duration, milliseconds, percent, ratio, size
from tcompile_tui.core.verdict import JudgedMode, Verdict
from tcompile_tui.ui.widgets.literal import one_line
from tcompile_tui.ui.widgets.prose import wrapped
from tcompile_tui.ui.widgets.total_time_plot import MODE_LETTERS

_LABEL_WIDTH = 16
_WIDEST = 74
_MIN_CELL, _MAX_CELL = 12, 40
_HORIZONS = (("1 h", 3_600.0), ("24 h", 86_400.0), ("1 week", 604_800.0))
Row = tuple[str, Callable[[JudgedMode], str]]


def _decision(judged: JudgedMode) -> str:
    return judged.decision.value if judged.decision is not None else judged.result.status.value


def _interval(judged: JudgedMode) -> str:
    speedup = judged.result.speedup
    return f"{ratio(speedup.lo)} to {ratio(speedup.hi)}" if speedup is not None else MISSING


def _break_even(found: BreakEven | None) -> str:
    if found is None:
        return MISSING
    return f"{count(found.steps)} steps" if found.steps is not None else "never"


def _break_even_range(found: BreakEven | None) -> str:
    if found is None or found.steps is None:
        return MISSING
    return f"{count(found.lo)} to {count(found.hi) if found.hi is not None else 'never'}"


def _step_ms(value_ms: float | None) -> str:
    return milliseconds(value_ms * 1e6 if value_ms is not None else None)


def _saved_in(seconds: float) -> Callable[[JudgedMode], str]:
    def saved(judged: JudgedMode) -> str:
        eager_ms = judged.result.eager_mean_ms
        return percent(planned_gain(judged.result, seconds * 1e3 / eager_ms if eager_ms else None))

    return saved


def _rows() -> Iterator[Row]:
    yield "decision", _decision
    yield "speedup", lambda judged: ratio(judged.result.speedup.value if judged.result.speedup else None)
    yield "  95 %", _interval
    yield "eager step", lambda judged: _step_ms(judged.result.eager_ms)
    yield "compiled step", lambda judged: _step_ms(judged.result.compiled_ms)
    yield "cold start", lambda judged: duration(judged.result.cold_start.total_s if judged.result.cold_start else None)
    yield "  break-even", lambda judged: _break_even(judged.result.break_even_cold)
    yield "  95 %", lambda judged: _break_even_range(judged.result.break_even_cold)
    yield "warm start", lambda judged: duration(judged.result.warm_start.total_s if judged.result.warm_start else None)
    yield "  break-even", lambda judged: _break_even(judged.result.break_even_warm)
    for name, seconds in _HORIZONS:
        yield f"saves in {name}", _saved_in(seconds)
    yield "outputs", lambda judged: judged.result.accuracy.agreement.value if judged.result.accuracy else MISSING
    yield "peak memory", lambda judged: size(judged.result.peak_memory_bytes)
    yield "eager's peak", lambda judged: size(judged.result.eager_peak_memory_bytes)
    yield "graphs", lambda judged: count(judged.result.graphs)
    yield "graph breaks", lambda judged: count(judged.result.graph_breaks)
    yield "recompiles", lambda judged: count(judged.result.recompiles)


class ModeTable(Static):
    """The best mode's column is bold. A row that no mode has a value for is left out."""

    DEFAULT_CSS = """
    ModeTable { width: auto; height: auto; }
    """

    def __init__(self, verdict: Verdict, *, id: str | None = None) -> None:
        super().__init__(mode_table(verdict), id=id)


def mode_table(verdict: Verdict) -> Content:
    """The table as text. Empty without a mode."""
    modes = verdict.modes
    if not modes:
        return Content("")
    widest = max(_MIN_CELL, min(_MAX_CELL, (_WIDEST - _LABEL_WIDTH) // len(modes) - 2))
    texts = [("", [f"{MODE_LETTERS[m.result.mode]} {m.result.mode.value}" for m in modes])]
    texts += [(label, [value(judged) for judged in modes]) for label, value in _rows()]
    reasons = [one_line(judged.reason) for judged in modes]
    texts.insert(2, ("  because", [reason or "" for reason in reasons]))
    kept = [(label, values) for label, values in texts if any(value not in (MISSING, "") for value in values)]
    folded = [
        (label, [[line.plain for line in wrapped(Content(value), widest)] for value in values])
        for label, values in kept
    ]
    widths = [max(len(line) for _, cells in folded for line in cells[column]) for column in range(len(modes))]
    bold = [judged is verdict.best and len(modes) > 1 for judged in modes]
    lines = []
    for row, (label, cells) in enumerate(folded):
        for part in range(max(map(len, cells))):
            line = [Content.styled((label if part == 0 else "").ljust(_LABEL_WIDTH), "$foreground-muted")]
            for cell, width, is_best in zip(cells, widths, bold):
                text = (cell[part] if part < len(cell) else "").ljust(width + 2)
                line.append(Content.styled(text, "bold" if is_best or row == 0 else ""))
            lines.append(Content.assemble(*line).rstrip())
    return Content("\n").join(lines)
