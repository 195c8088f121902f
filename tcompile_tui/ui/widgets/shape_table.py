"""The settings of `dynamic` over a sequence of shapes."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from tcompile_tui.core.shape_results import ShapeResults
from tcompile_tui.report.shape_table import shape_notes, shape_text
from tcompile_tui.ui.widgets.literal import literal, one_line


class ShapeTable(Static):
    """One line a setting, and below it what the table stands on. The best setting is bold."""

    DEFAULT_CSS = """
    ShapeTable { width: 1fr; height: auto; }
    """

    def __init__(self, results: ShapeResults, ascii_only: bool, *, id: str | None = None) -> None:
        head, *rows = shape_text(results)
        best = [results.best is None, *(row.handling is results.best for row in results.rows)]
        lines = [Content.styled(head, "$foreground-muted")]
        lines += [
            Content.styled(literal(row, ascii_only), "bold" if is_best else "")
            for row, is_best in zip(rows, best, strict=True)
        ]
        lines += [Content.styled(one_line(note, ascii_only), "$foreground-muted") for note in shape_notes(results)]
        super().__init__(Content("\n").join(lines), id=id)
