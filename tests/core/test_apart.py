"""Arms that do not fit side by side: compared in processes of their own, and nobody's fault."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.apart import compare_apart
from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.pairs import BlockLevel
from tcompile_tui.core.results import mode_result
from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.core.spread import PRIOR_BETWEEN_SD
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, decide
from tcompile_tui.core.verdict_json import verdict_document
from tcompile_tui.report.text import verdict_text
from tests.core.streams import (
    EAGER_MS,
    Compiled,
    Process,
    alone,
    block,
    cold_process,
    eager_process,
    ended,
    replay,
    warm_process,
)

_OUT = ev.WorkerFailed(
    stage="eager steps beside compiled ones",
    error_type="OutOfMemoryError",
    message="CUDA out of memory",
    fault="memory",
)


def _blocks(rng: random.Random, level_ns: float, between_sd: float) -> list[BlockLevel]:
    process_ns = level_ns * (1 + rng.gauss(0, between_sd))
    return [BlockLevel(step, step) for step in (process_ns * (1 + rng.gauss(0, 0.002)) for _ in range(12))]


@pytest.mark.parametrize("processes", [2, 4])
def test_the_interval_holds_what_differs_between_processes(processes: int) -> None:
    rng, held, runs = random.Random(3), 0, 400
    for _ in range(runs):
        eager, compiled = (
            [_blocks(rng, level_ns, PRIOR_BETWEEN_SD) for _ in range(processes)] for level_ns in (1.5e6, 1.0e6)
        )
        found = compare_apart(eager, compiled)
        assert found is not None
        held += found.speedup.lo <= 1.5 <= found.speedup.hi
    assert held / runs >= 0.95


def test_equal_arms_differ_by_chance_in_few_runs() -> None:
    rng = random.Random(4)
    told = 0
    for _ in range(400):
        found = compare_apart(*([_blocks(rng, 1e6, PRIOR_BETWEEN_SD) for _ in range(2)] for _ in range(2)))
        assert found is not None
        told += not found.speedup.lo <= 1 <= found.speedup.hi
    assert told <= 0.05 * 400


def test_it_takes_a_process_of_each_arm_with_enough_blocks() -> None:
    rng = random.Random(5)
    one, short = _blocks(rng, 1e6, 0.0), _blocks(rng, 1e6, 0.0)[:3]
    assert compare_apart([one], []) is None and compare_apart([one], [short]) is None
    found = compare_apart([one], [short, one])
    assert found is not None and (found.eager_processes, found.compiled_processes) == (1, 1)


# ---------------------------------------------------------------- a whole run


def _out_of_memory(run: Compiled) -> Process:
    """The warm process, up to where eager comes in beside the compiled arm."""
    warm = warm_process(run)
    until = next(i for i, event in enumerate(warm) if isinstance(event, ev.OutputsCompared))
    return [*warm[:until], _OUT, ended(Phase.WARM, run.mode, ev.Outcome.ERROR)]


def _run(speedup: float, *, cold_fits: bool = True, apart: bool = True, blocks: int = 10) -> RunState:
    run = Compiled(speedup=speedup)
    cold = cold_process(run)
    if not cold_fits:
        cold = [*cold[:-2], _OUT, ended(Phase.COLD, run.mode, ev.Outcome.ERROR)]
    order = (Arm.EAGER, Arm.COMPILED, Arm.COMPILED, Arm.EAGER) if apart else ()
    steps_ms = {Arm.EAGER: EAGER_MS, Arm.COMPILED: EAGER_MS / speedup}
    together = [_out_of_memory(run)] if cold_fits else []
    return replay(
        eager_process(), cold, *together, *(alone(Phase.APART, arm, steps_ms[arm], blocks=blocks) for arm in order)
    )


def test_a_run_that_has_no_room_for_both_is_decided_with_care_and_says_how() -> None:
    state = _run(2.0)
    verdict = decide(state)
    assert verdict.decision is Decision.ENABLE_WITH_CARE and verdict.best is not None
    result = verdict.best.result
    assert result.status is ModeStatus.MEASURED and result.speedup is not None
    assert result.speedup.lo < 2.0 < result.speedup.hi and result.speedup.pairs == 0 and result.speedup.processes == 2
    assert "in unpaired process blocks" in verdict.headline
    assert "unpaired process blocks, 2 eager and 2 compiled processes" in verdict_text(state, verdict).replace(
        "\n" + " " * 13, " "
    )
    assert verdict_document(state, verdict)["per_mode"]["default"]["compared_in"] == "unpaired process blocks"
    assert result.break_even_cold is not None and result.break_even_warm is not None


def test_it_is_told_as_the_doing_of_the_comparison() -> None:
    (found,) = [finding for finding in decide(_run(2.0)).findings if "memory" in finding.title]
    assert found.id == "no-room-side-by-side" and "which only this comparison asks for" in found.title
    ids = {finding.id for finding in decide(_run(2.0)).findings}
    assert not ids & {"mode-failed", "mode-not-finished"}


def test_a_slower_mode_is_skipped_all_the_same() -> None:
    assert decide(_run(0.8)).decision is Decision.SKIP


def test_without_the_processes_apart_there_is_no_answer_but_no_blame() -> None:
    for state in (_run(2.0, apart=False), _run(2.0, blocks=2)):
        result = mode_result(state, Mode.DEFAULT)
        assert result.status is ModeStatus.NOT_FINISHED and "side by side" in result.reason


def test_a_mode_that_does_not_fit_alone_has_failed() -> None:
    verdict = decide(_run(2.0, cold_fits=False, apart=False))
    assert verdict.decision is Decision.FAILED and "out of memory" in verdict.headline


def test_a_later_process_that_runs_out_takes_nothing_back() -> None:
    run = Compiled(speedup=2.0)
    state = replay(eager_process(), cold_process(run), warm_process(run), _out_of_memory(run))
    result = mode_result(state, Mode.DEFAULT)
    assert result.status is ModeStatus.MEASURED and result.apart is None
    assert result.speedup is not None and result.speedup.pairs == run.pairs


def test_a_block_in_which_the_compiler_worked_is_not_compared() -> None:
    state = _run(2.0)
    process = state.processes_of(Phase.APART, Mode.DEFAULT)[1]
    odd = replace(block(Arm.COMPILED, ev.BlockRole.APART, 900, [500.0] * 10), compiled_at=(900,))
    before = len(process.apart[Arm.COMPILED])
    state.apply(ev.stamp(odd, 9.0, process.process))
    assert len(process.apart[Arm.COMPILED]) == before
