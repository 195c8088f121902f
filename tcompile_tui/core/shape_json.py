"""The replay of a sequence of shapes, for `verdict.json`."""

from __future__ import annotations

from typing import Any

from tcompile_tui.core.replay import Ratio
from tcompile_tui.core.shape_results import ShapeResults, ShapeRow


def shapes_document(results: ShapeResults) -> dict[str, Any]:
    """Plain JSON values; None is "not known", in `best` it is eager."""
    return {
        "mode": results.mode.value,
        "given": " ".join(results.sequence.words),
        "batches": len(results.sequence.order),
        "distinct": len(results.sequence.shapes),
        "planned_steps": results.planned_steps,
        "eager_ms": results.eager_ms,
        "eager_total_s": results.eager_total_s,
        "padded_to": {name: list(sizes) for name, sizes in results.buckets.items()},
        "best": results.best.value if results.best is not None else None,
        "settings": {row.handling.value: _row(row) for row in results.rows},
    }


def _row(row: ShapeRow) -> dict[str, Any]:
    return {
        "reason": row.reason,
        "graphs": row.graphs,
        "recompiles": row.recompiles,
        "recompile_limit_hit": row.limit_hit,
        "compiled_batches": row.compiled_batches,
        "late_compiles": row.late_compiles,
        "start_s": row.start_s,
        "compile_s": row.compile_s,
        "compile_s_each": row.compile_s_each,
        "speedup": _ratio(row.speedup),
        "step_ms": row.step_ms,
        "total_s": row.total_s,
    }


def _ratio(found: Ratio | None) -> dict[str, float | None] | None:
    return {"value": found.value, "lo": found.lo, "hi": found.hi} if found is not None else None
