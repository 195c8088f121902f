"""The largest batch of each arm: the search, and what it makes of the answer."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core import events as ev
from tcompile_tui.core.fit_batch import find_largest, smaller_sizes
from tcompile_tui.core.results import mode_result
from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, decide
from tcompile_tui.core.verdict_json import verdict_document
from tcompile_tui.report.text import verdict_text
from tests.core.streams import Compiled, Process, alone, both, eager_process, model_ready, replay

_SIZES = st.integers(1, 5_000)


@given(_SIZES, st.integers(1, 300_000))
def test_what_is_found_fits_and_hardly_more_does(start: int, limit: int) -> None:
    tried: list[int] = []
    limit = min(limit, start << 15)

    def fits(size: int) -> bool:
        tried.append(size)
        return size <= limit

    found = find_largest(start, fits)
    if start > limit:
        assert found is None and tried == [start]
        return
    assert found is not None and found.too_large is not None and found.probes == len(tried)
    assert start <= found.largest <= limit < found.too_large
    assert found.too_large - found.largest <= max(1, found.largest // 16)
    assert len(set(tried)) == len(tried) and all(size >= start for size in tried)
    assert len(tried) <= 2 + (limit // start).bit_length() + 6


@given(_SIZES, st.integers(0, 20))
def test_a_search_that_has_to_end_keeps_what_fitted(start: int, probes: int) -> None:
    left = iter([True] * probes)
    found = find_largest(start, lambda size: size <= 100_000, lambda: next(left, False))
    assert found is not None and start <= found.largest <= 100_000 and found.probes <= probes + 1


def test_a_model_without_a_limit_is_not_searched_for_ever() -> None:
    found = find_largest(8, lambda size: True)
    assert found is not None and found.too_large is None and found.largest == 8 << 16


@given(_SIZES, _SIZES)
def test_what_is_fallen_back_on_is_smaller_but_never_below_the_run_s(largest: int, start: int) -> None:
    sizes = smaller_sizes(max(largest, start), start)
    assert sizes[0] == max(largest, start) and list(sizes) == sorted(set(sizes), reverse=True)
    assert len(sizes) <= 4 and sizes[-1] >= start


# ---------------------------------------------------------------- a whole run: 10 ms eager at a batch of 8


def _fit(arm: Arm, largest: int, step_ms: float, mode: Mode | None) -> Process:
    fitted = ev.BatchFitted(arm=arm, matched=8, largest=largest, too_large=largest + 4, probes=9, limit_bytes=60 << 30)
    first, *rest = alone(Phase.FIT, arm, step_ms, mode)
    return [first, fitted, *rest]


def fitted_run(speedup: float, compiled_ms: float = 10.0, *, compiled: bool = True) -> RunState:
    """Eager at most 64 samples in 9 ms, compiled 96."""
    run = Compiled(speedup=speedup, reserved_bytes=6 << 30)
    eager = eager_process(reserved_bytes=10 << 30, model=model_ready(training=True))
    fits = [_fit(Arm.EAGER, 64, 9.0, None)]
    fits += [_fit(Arm.COMPILED, 96, compiled_ms, Mode.DEFAULT)] if compiled else []
    return replay(eager, *both(run), *fits, device="cuda", fit_batch=True)


def test_samples_a_second_are_told_at_both_batches() -> None:
    state = fitted_run(speedup=2.0)
    fit = mode_result(state, Mode.DEFAULT).fit
    assert fit is not None and fit.gain is not None and fit.gain.lo is not None and fit.gain.hi is not None
    assert fit.gain.value == pytest.approx(9.0 / 10.0 * 96 / 64, rel=0.001)
    assert fit.gain.lo < fit.gain.value < fit.gain.hi
    assert fit.eager.matched_per_s == pytest.approx(800, rel=0.01)
    assert fit.compiled.matched_per_s == pytest.approx(1600, rel=0.01)
    assert fit.compiled.largest_per_s == pytest.approx(9600, rel=0.01)
    text = verdict_text(state, decide(state))
    assert "at most 64 (7,105 samples/s) eager, 96 (9,591 samples/s) compiled" in text
    assert verdict_document(state, decide(state))["per_mode"]["default"]["fit_batch"]["compiled"]["batch"] == 96


def test_no_skip_is_said_where_the_larger_batch_gains() -> None:
    verdict = decide(fitted_run(speedup=1.001))
    assert verdict.decision is Decision.TEST_CAREFULLY
    assert (
        "no gain larger than" in verdict.headline and "at the largest batch of each it gives 1.35x" in verdict.headline
    )
    assert "--fit-batch" not in verdict_text(fitted_run(speedup=1.001), verdict), "it was"


def test_a_larger_batch_that_gains_nothing_leaves_skip() -> None:
    verdict = decide(fitted_run(speedup=1.001, compiled_ms=14.0))
    assert verdict.decision is Decision.SKIP and "at the largest batch of each it gives 0.96" in verdict.headline


def test_the_plan_counts_steps_of_the_run_s_own_batch() -> None:
    state = fitted_run(speedup=2.0)
    assert state.eager_step_ns == pytest.approx(10e6, rel=0.02)


def test_an_arm_without_its_largest_batch_is_told() -> None:
    verdict = decide(fitted_run(speedup=2.0, compiled=False))
    assert any(finding.id == "fit-batch-not-found" for finding in verdict.findings)
    assert verdict.best is not None and verdict.best.result.fit is None
