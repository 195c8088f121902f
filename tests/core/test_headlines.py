"""Headlines are read by people: no bracket inside another."""

from __future__ import annotations

import pytest

from tcompile_tui.core.spec import Plan
from tcompile_tui.core.verdict import Decision, decide
from tests.core.streams import Compiled, both, eager_process, replay
from tests.ui.verdict_cases import CASES

PLANS = (Plan(), Plan(steps=2_000), Plan(steps=4_300), Plan(hours=8.0), Plan(steps=10_000_000))
RUNS = [Compiled(speedup=speedup, noise=noise) for speedup in (0.8, 1.0, 1.02, 1.8) for noise in (0.002, 0.08)]


def depth(text: str) -> int:
    deepest = now = 0
    for letter in text:
        now += {"(": 1, ")": -1}.get(letter, 0)
        deepest = max(deepest, now)
    return deepest


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("run", RUNS)
def test_no_bracket_is_inside_another(plan: Plan, run: Compiled) -> None:
    headline = decide(replay(eager_process(), *both(run), plan=plan)).headline
    assert depth(headline) == 1, headline


@pytest.mark.parametrize("decision", CASES)
def test_nor_in_any_other_decision(decision: Decision) -> None:
    assert depth(decide(CASES[decision]()).headline) <= 1
