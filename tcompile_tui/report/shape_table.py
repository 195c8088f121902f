"""The settings of `dynamic` over a sequence of shapes, as a table for every report."""

from __future__ import annotations

from tcompile_tui.core.shape_results import ShapeResults, ShapeRow
from tcompile_tui.core.shape_verdict import buckets_text
from tcompile_tui.core.units import MISSING, duration, milliseconds

HEAD = ("", "graphs", "recompiles", "compiling", "each", "a step", "planned run")


def shape_rows(results: ShapeResults) -> list[tuple[str, list[str]]]:
    """Label and cells: eager first; a star marks the best."""
    eager = ["", "", "", "", _step(results.eager_ms), duration(results.eager_total_s)]
    star = "*" if results.best is None else ""
    return [(f"eager{star}", eager), *((_label(results, row), _cells(row)) for row in results.rows)]


def shape_notes(results: ShapeResults) -> list[str]:
    """What the table stands on."""
    words = " ".join(results.sequence.words)
    lines = [f"{results.mode.value} over {results.text}, from {words}. Each setting in a process of its own."]
    if results.padded_shapes:
        lines.append(
            f"padded: {buckets_text(results)}, dynamic=False. The model must be told of padding by a mask: this is an"
            " estimate of speed, not a promise of correctness."
        )
    if any(row.limit_hit for row in results.rows):
        lines.append("(limit): the recompile limit was hit, and what is not compiled by then runs eager.")
    return lines


def _label(results: ShapeResults, row: ShapeRow) -> str:
    return row.handling.label + ("*" if row.handling is results.best else "")


def _cells(row: ShapeRow) -> list[str]:
    if row.reason:  # which a finding tells
        return [MISSING] * (len(HEAD) - 1)
    recompiles = MISSING if row.recompiles is None else f"{row.recompiles}{' (limit)' if row.limit_hit else ''}"
    graphs = MISSING if row.graphs is None else str(row.graphs)
    each = duration(row.compile_s_each)
    return [graphs, recompiles, duration(row.start_s), each, _step(row.step_ms), duration(row.total_s)]


def _step(value_ms: float | None) -> str:
    return milliseconds(value_ms * 1e6 if value_ms is not None else None)


def shape_text(results: ShapeResults) -> list[str]:
    """The table as lines of text."""
    rows = [("dynamic", list(HEAD[1:])), *shape_rows(results)]
    widths = [max(len(cells[column]) for _, cells in rows) for column in range(len(HEAD) - 1)]
    wide = max(len(label) for label, _ in rows)
    return [
        "  ".join([label.ljust(wide), *(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))]).rstrip()
        for label, cells in rows
    ]
