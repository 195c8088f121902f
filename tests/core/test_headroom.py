"""Estimates from profiles: what compiling could bring at most, and what the GPU alone gains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.headroom import headroom
from tcompile_tui.core.spec import Arm
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import decide
from tcompile_tui.core.verdict_json import verdict_document
from tcompile_tui.report.markdown import markdown_text
from tcompile_tui.report.text import verdict_text
from tests.core.streams import Compiled, cold_process, eager_process, replay, warm_process
from tests.report.reported import reported


def _profile(arm: Arm, busy_ms: float, library_ms: float, fused_ms: float | None) -> ev.StepsProfiled:
    """Of four steps."""
    return ev.StepsProfiled(
        arm=arm, steps=4, wall_ns=80_000_000, lookups=0, lookup_ns=0, regions=(), program_calls=None, kernels=40,
        device_busy_ns=int(4e6 * busy_ms), library_ns=int(4e6 * library_ms),
        fused_ns=int(4e6 * fused_ms) if fused_ms is not None else None,
    )  # fmt: skip


EAGER = _profile(Arm.EAGER, busy_ms=8, library_ms=3, fused_ms=1)


def _run(*profiles: ev.StepsProfiled, speedup: float = 1.5) -> RunState:
    warm = warm_process(Compiled(speedup=speedup))
    warm[-2:-2] = profiles
    return replay(eager_process(), cold_process(Compiled(speedup=speedup)), warm, device="cuda")


def test_launch_gaps_and_kernels_that_fuse_are_what_there_is_to_gain() -> None:
    found = headroom(EAGER, eager_ms=10.0)
    assert found is not None and found.ratio == pytest.approx(10 / (3 + 1))
    assert (found.idle_share, found.fusible_share, found.library_share) == pytest.approx((0.2, 0.5, 0.3))


def test_library_calls_alone_leave_nothing() -> None:
    found = headroom(_profile(Arm.EAGER, busy_ms=10, library_ms=10, fused_ms=0), eager_ms=9.9)
    assert found is not None and found.ratio == pytest.approx(1.0)
    assert found.idle_share == 0, "the profiler saw a slower GPU than the pairs did"


@pytest.mark.parametrize(
    "unseen",
    [None, replace(EAGER, steps=0), replace(EAGER, device_busy_ns=None), replace(EAGER, fused_ns=None)],
    ids=["no profile", "no step", "on CPU", "an older record"],
)
def test_without_the_gpu_in_sight_there_is_no_estimate(unseen: ev.StepsProfiled | None) -> None:
    assert headroom(unseen, 10.0) is None


def test_it_is_told_as_an_estimate_and_decides_nothing() -> None:
    state, without = _run(EAGER), _run()
    text = " ".join(verdict_text(state, decide(state)).split())
    assert "headroom room for about 2.50x here, by a profile of eager: the GPU waits 20 % of its step" in text
    assert "| headroom | about 2.50x |" in markdown_text(reported(state))
    assert decide(state).decision is decide(without).decision
    document = verdict_document(state, decide(state))["per_mode"]["default"]
    assert document["headroom"]["ratio"] == pytest.approx(2.5, rel=1e-3)
    assert verdict_document(without, decide(without))["per_mode"]["default"]["headroom"] is None
    assert "headroom" not in verdict_text(without, decide(without))


@pytest.mark.parametrize(("compiled_ms", "told"), [(4.0, True), (8 / 1.5, False)])
def test_the_gpu_alone_is_told_where_its_ratio_differs_from_that_of_the_step(compiled_ms: float, told: bool) -> None:
    state = _run(EAGER, _profile(Arm.COMPILED, compiled_ms, 3, 1))
    assert ("GPU alone  2.00x in the time that it computes" in verdict_text(state, decide(state))) is told
    document = verdict_document(state, decide(state))["per_mode"]["default"]
    assert document["device_limited_speedup"] == pytest.approx(8 / compiled_ms)
