"""Could more measuring change the decision? Processes two and three cost a warm start each."""

from __future__ import annotations

import math
from dataclasses import replace

from tcompile_tui.core.pairs import TimeGain
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Mode
from tcompile_tui.core.spread import if_known_from
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import decide, judge_mode


def further_process_matters(state: RunState, mode: Mode, most_processes: int) -> bool:
    """Could warm processes up to `most_processes` in all put `mode` into another class?

    They could put its speedup anywhere in the present interval, and would narrow that; so the mode is decided with
    the narrower interval at both ends and in the middle of the present one. False where nothing was compared yet.
    """
    verdict = decide(state)
    judged = next((judged for judged in verdict.modes if judged.result.mode is mode), None)
    speedup = judged.result.speedup if judged is not None else None
    if judged is None or judged.decision is None or speedup is None or speedup.processes >= most_processes:
        return False
    spec = state.run.spec if state.run is not None else None
    later = [
        _known_better(judged.result, value, most_processes, len(state.modes))
        for value in (speedup.lo, speedup.value, speedup.hi)
    ]
    decisions = {judge_mode(result, spec, verdict.planned_steps, verdict.findings).decision for result in later}
    return decisions != {judged.decision}


def _known_better(result: ModeResult, value: float, processes: int, compared_modes: int) -> ModeResult:
    """`result` as it would be had that many warm processes come to a speedup of `value`."""
    speedup, gain, eager_ms = result.speedup, result.gain, result.eager_mean_ms
    assert speedup is not None and gain is not None and eager_ms is not None
    eager_ns = 1e6 * eager_ms
    compiled_ns = (eager_ns - gain.mean_ns) * speedup.value / value
    narrower = math.sqrt(speedup.processes / processes)
    later_gain = TimeGain(eager_ns - compiled_ns, gain.standard_error_ns * narrower)
    return replace(result, speedup=if_known_from(speedup, value, processes, compared_modes), gain=later_gain)
