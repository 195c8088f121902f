"""Every figure of every mode, one column a mode."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from tcompile_tui.core.verdict import Verdict
from tcompile_tui.report.mode_rows import known_rows
from tcompile_tui.ui.widgets.literal import one_line
from tcompile_tui.ui.widgets.prose import wrapped
from tcompile_tui.ui.widgets.total_time_plot import mode_letters

_LABEL_WIDTH = 16
_WIDEST = 74
_MIN_CELL, _MAX_CELL = 12, 40


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
    letters = mode_letters(verdict)
    texts = [("", [f"{letters[m.result.mode]} {m.result.mode.value}" for m in modes])]
    texts += known_rows(modes)
    folded = [
        (label, [[line.plain for line in wrapped(Content(one_line(value)), widest)] for value in values])
        for label, values in texts
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
