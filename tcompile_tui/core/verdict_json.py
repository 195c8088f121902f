"""`verdict.json`: the verdict for programs. Keys are added, never renamed; see SCHEMA_VERSION."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from tcompile_tui.core.answer_time import first_answer_s
from tcompile_tui.core.apart import UNPAIRED
from tcompile_tui.core.breakeven import BreakEven
from tcompile_tui.core.decode_results import decode_document
from tcompile_tui.core.end_to_end import DataTime, data_time
from tcompile_tui.core.energy import energy_figures
from tcompile_tui.core.findings import Finding
from tcompile_tui.core.fit_results import BatchFit
from tcompile_tui.core.gate import GateCheck, gated_exit_code
from tcompile_tui.core.latency import Latency
from tcompile_tui.core.projections import TotalTime, decisions_by_horizon, total_time, total_times
from tcompile_tui.core.results import ModeResult, StartCost, StepProof
from tcompile_tui.core.serve_results import serving_document
from tcompile_tui.core.shape_json import shapes_document
from tcompile_tui.core.spec import ONE_COLD_START, Arm, Starts, command_line
from tcompile_tui.core.spread import MeanSpeedup
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import JudgedMode, Verdict

SCHEMA_VERSION = 1


def verdict_document(state: RunState, verdict: Verdict, checks: Sequence[GateCheck] = ()) -> dict[str, Any]:
    """Plain JSON values. None is "not known", except in `break_even_steps`, where it is "never", and in `gate`, where
    it is "not asked for". `checks` are those of the gate."""
    run = state.run
    return {
        "schema_version": SCHEMA_VERSION,
        "decision": verdict.decision.value,
        "headline": verdict.headline,
        "exit_code": int(gated_exit_code(verdict, checks)),
        "gate": _gate(checks) if checks else None,
        "best_mode": verdict.best_mode.value if verdict.best_mode is not None else None,
        "paste": verdict.paste_line,
        "planned_steps": verdict.planned_steps,
        "assumed_plan": verdict.assumed_plan,
        "step": _step(state),
        "planned_starts": asdict(_starts(state)),
        "decision_by_horizon": _horizons(state) if verdict.assumed_plan else None,
        "data": _data(data_time(state)),
        "shapes": shapes_document(verdict.shapes) if verdict.shapes is not None else None,
        "per_mode": {judged.result.mode.value: _mode(judged, verdict, _starts(state)) for judged in verdict.modes},
        "findings": [_finding(finding) for finding in verdict.findings],
        "torch": run.torch_version if run is not None else None,
        "python": run.python if run is not None else None,
        "device": run.device_name if run is not None else None,
        "command": command_line(run.spec) if run is not None else None,
        "seconds": round(state.now_s, 3),
        "first_answer_s": _rounded(first_answer_s(state, verdict)),
    }


def _rounded(seconds: float | None) -> float | None:
    return round(seconds, 3) if seconds is not None else None


def encode_verdict(document: dict[str, Any]) -> bytes:
    """Indented JSON with a line end."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _gate(checks: Sequence[GateCheck]) -> dict[str, Any]:
    return {
        "passed": all(check.passed for check in checks),
        "checks": [{"name": each.name, "passed": each.passed, "reasons": list(each.reasons)} for each in checks],
    }


def _starts(state: RunState) -> Starts:
    return state.run.spec.plan.starts if state.run is not None else ONE_COLD_START


def _step(state: RunState) -> dict[str, Any] | None:
    """What both arms did in a step; functions of the user's as `file.py:name`."""
    if state.run is None:
        return None
    step, model = state.run.spec.step, next((p.model for p in state.processes.values() if p.model is not None), None)
    return {
        "training": model.training if model is not None else None,
        "loss": model.loss if model is not None else None,
        "optimizer": model.optimizer if model is not None else None,
        "compile_optimizer": step.compile_optimizer,
        "grad_clip": step.grad_clip,
        "accumulate": step.accumulate,
        "amp": state.run.spec.amp,
        "channels_last": step.channels_last,
        "tf32": step.tf32,
        "epoch": str(step.epoch) if step.epoch is not None else None,
        "own": str(step.own) if step.own is not None else None,
    }


def _horizons(state: RunState) -> dict[str, str]:
    return {name: decision.value for name, decision in decisions_by_horizon(state).items()}


def _mode(judged: JudgedMode, verdict: Verdict, starts: Starts) -> dict[str, Any]:
    result = judged.result
    planned = total_time(result, verdict.planned_steps, starts) if verdict.planned_steps is not None else None
    return {
        "status": result.status.value,
        "decision": judged.decision.value if judged.decision is not None else None,
        "reason": judged.reason,
        "paste": verdict.line_for(judged),
        "speedup": _speedup(result.speedup),
        "compared_in": _compared_in(result),
        "fit_batch": _fit(result.fit),
        "end_to_end_speedup": _ratio(result.end_to_end.speedup) if result.data is not None else None,
        "eager_ms": result.eager_ms,
        "compiled_ms": result.compiled_ms,
        "eager_mean_ms": result.eager_mean_ms,
        "compiled_mean_ms": result.compiled_mean_ms,
        "throttled_pairs": result.throttled_pairs,
        "energy_j_per_step": energy_figures(result.energy),
        "headroom": asdict(result.headroom) if result.headroom is not None else None,
        "device_limited_speedup": result.device_times.ratio if result.device_times is not None else None,
        "decode": decode_document(result.decode) if result.decode is not None else None,
        "serving": serving_document(result.serving) if result.serving is not None else None,
        "latency_ms": {arm.value: _latency(result.latency.get(arm)) for arm in Arm},
        "cold_start_s": _start(result.cold_start),
        "warm_start_s": _start(result.warm_start),
        "break_even_steps": {"cold": _steps(result.break_even_cold), "warm": _steps(result.break_even_warm)},
        "break_even_interval": {
            "cold": _bounds(result.break_even_cold),
            "warm": _bounds(result.break_even_warm),
        },
        "planned_break_even_steps": _steps(judged.planned_break_even),
        "planned_gain": judged.planned_gain,
        "planned_time_s": _total_time(planned) if planned is not None else None,
        "total_time_s": [_total_time(row) for row in total_times(result, starts)],
        "peak_memory_bytes": result.peak_memory_bytes,
        "eager_peak_memory_bytes": result.eager_peak_memory_bytes,
        "graphs": result.graphs,
        "graph_breaks": result.graph_breaks,
        "recompiles": result.recompiles,
        "agreement": result.accuracy.agreement.value if result.accuracy is not None else None,
        "steadiness": result.steadiness.value if result.steadiness is not None else None,
        "compile_form": "wrapper" if result.wrapped else "in place",
        "compile_s": {
            "forward": {part.value: seconds for part, seconds in result.forward_compile_s.items()},
            "backward": {part.value: seconds for part, seconds in result.backward_compile_s.items()},
            "listening": result.cold_start.logging_s if result.cold_start is not None else None,
        },
        "cudagraph_recordings": result.cudagraph_recordings,
        "step_profile": _proof(result.proof),
        "course": result.course.shape.value if result.course is not None else None,
        "warm_cache": {"hits": result.warm_cache_hits, "misses": result.warm_cache_misses},
    }


def _data(data: DataTime | None) -> dict[str, Any] | None:
    """How fast the batches of the real run come, and what is known of their loader."""
    if data is None:
        return None
    timed = data.timed
    return {
        "step_ms": data.step_ms,
        "batch_ms": data.step_ms / data.batches,
        "source": data.source,
        "timed_batches": timed.batches if timed is not None else None,
        "workers": timed.workers if timed is not None else None,
        "samples": timed.samples if timed is not None else None,
    }


def _compared_in(result: ModeResult) -> str | None:
    if result.speedup is None:
        return None
    return UNPAIRED if result.apart is not None else "pairs"


def _fit(fit: BatchFit | None) -> dict[str, Any] | None:
    """Samples a second at the run's batch and at the largest of each arm."""
    if fit is None:
        return None
    arms = {Arm.EAGER.value: fit.eager, Arm.COMPILED.value: fit.compiled}
    return {
        "matched": fit.matched,
        "memory_limit_bytes": fit.limit_bytes,
        "samples_per_s_ratio": asdict(fit.gain) if fit.gain is not None else None,
        **{name: asdict(arm) for name, arm in arms.items()},
    }


def _latency(found: Latency | None) -> dict[str, float | int | None] | None:
    return {"p50": found.p50_ms, "p99": found.p99_ms, "steps": found.steps} if found is not None else None


def _speedup(interval: MeanSpeedup | None) -> dict[str, float | int] | None:
    if interval is None:
        return None
    return {
        "value": interval.value,
        "lo": interval.lo,
        "hi": interval.hi,
        "pairs": interval.pairs,
        "processes": interval.processes,
        "within_sd": interval.within_sd,
        "between_sd": interval.between_sd,
    }


def _ratio(interval: MeanSpeedup | None) -> dict[str, float] | None:
    return {"value": interval.value, "lo": interval.lo, "hi": interval.hi} if interval is not None else None


def _total_time(row: TotalTime) -> dict[str, float]:
    return {
        "steps": row.steps,
        "eager": row.eager_s,
        "compiled": row.compiled_s,
        "compiled_lo": row.compiled_lo_s,
        "compiled_hi": row.compiled_hi_s,
    }


def _proof(proof: StepProof | None) -> dict[str, float | None] | None:
    """Per step."""
    if proof is None:
        return None
    return {
        "guard_us": proof.guard_us,
        "guard_checks": proof.guard_checks,
        "compiled_program_calls": proof.program_calls,
        "kernels": proof.kernels,
        "cudagraph_replays": proof.graph_launches,
    }


def _start(cost: StartCost | None) -> float | None:
    return cost.total_s if cost is not None else None


def _steps(found: BreakEven | None) -> float | None:
    return found.steps if found is not None else None


def _bounds(found: BreakEven | None) -> list[float | None] | None:
    return [found.lo, found.hi] if found is not None else None


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "severity": finding.severity.value,
        "title": finding.title,
        "evidence": finding.evidence,
        "advice": finding.advice,
        "file": finding.file,
        "line": finding.line,
        "link": finding.link,
    }
