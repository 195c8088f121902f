"""The json report: the verdict's document with what surrounds it. Its schema is `report.schema.json` beside this."""

from __future__ import annotations

from importlib.resources import files
from statistics import median
from typing import Any

from tcompile_tui.core.reported_run import ReportedRun, environment_rows
from tcompile_tui.core.state import ArmSteps, ProcessState
from tcompile_tui.core.verdict_json import encode_verdict, verdict_document

SCHEMA_VERSION = 1
SCHEMA_FILE = "report.schema.json"


def report_json(run: ReportedRun) -> str:
    return encode_verdict(report_document(run)).decode()


def report_schema() -> str:
    """JSON Schema, draft 2020-12."""
    return files("tcompile_tui.report").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")


def report_document(run: ReportedRun) -> dict[str, Any]:
    """Plain JSON values; None is "not known"."""
    around = run.surroundings
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run.name,
        "started_at": around.started_at if around is not None else None,
        "command": around.command if around is not None else None,
        "cwd": around.cwd if around is not None else None,
        "program_version": around.program_version if around is not None else None,
        "environment": dict(environment_rows(run)),
        "verdict": verdict_document(run.state, run.verdict),
        "processes": [_process(process) for process in run.state.processes.values()],
    }


def _process(process: ProcessState) -> dict[str, Any]:
    interval, ended = process.interval, process.ended
    return {
        "process": process.process,
        "phase": process.phase.value,
        "mode": process.mode.value if process.mode is not None else None,
        "started_s": process.started_s,
        "outcome": ended.outcome.value if ended is not None else None,
        "seconds": ended.seconds if ended is not None else None,
        "arms": {arm.value: _arm(steps) for arm, steps in process.arms.items()},
        "pairs": len(process.pairs),
        "speedup": {"value": interval.value, "lo": interval.lo, "hi": interval.hi} if interval is not None else None,
    }


def _arm(steps: ArmSteps) -> dict[str, Any]:
    later = steps.series.slice(steps.warmup_steps) or steps.series.slice(0)
    return {
        "steps": len(steps.series),
        "warm_up_steps": steps.warmup_steps,
        "first_step_ms": steps.first_step_ns / 1e6 if steps.first_step_ns is not None else None,
        "median_step_ms": median(later) / 1e6 if later else None,
        "page_faults_per_step": steps.page_faults,
        "steadiness": steps.steadiness.value,
        "steady_from": steps.steady_from,
        "compiler_active_in": list(steps.compiled_at),
    }
