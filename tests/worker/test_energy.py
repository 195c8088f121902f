"""Each arm alone for some seconds, with a record before and after."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tcompile_tui.core.events import EnergyWindow
from tcompile_tui.core.spec import Arm
from tcompile_tui.worker import energy


class _Loop:
    def __init__(self, arm: Arm, step_ns: float) -> None:
        self.arm = arm
        self.recent_step_ns = step_ns
        self.steps = 0

    def run_untimed(self, steps: int) -> None:
        self.steps += steps


def _run(monkeypatch: pytest.MonkeyPatch, activity: list[int], finish: bool = False) -> tuple[list[Any], list[_Loop]]:
    monkeypatch.setattr(energy, "_WINDOW_NS", 2_000_000)
    sent: list[Any] = []
    bench: Any = SimpleNamespace(
        loop=4,
        stage=SimpleNamespace(name="", compiled=False),
        signals=SimpleNamespace(take_activity_ns=lambda: activity),
        channel=SimpleNamespace(send=sent.append, should_finish=lambda loop: finish and loop == 5),
    )
    loops = [_Loop(Arm.EAGER, 100_000.0), _Loop(Arm.COMPILED, 1e9)]
    energy.run_for_energy(bench, loops)  # type: ignore[arg-type]
    return sent, loops


def test_steps_and_time_are_those_between_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, loops = _run(monkeypatch, [])
    assert [(event.arm, event.steps is None) for event in sent] == [
        (Arm.EAGER, True), (Arm.EAGER, False), (Arm.COMPILED, True), (Arm.COMPILED, False)
    ]  # fmt: skip
    assert all(isinstance(event, EnergyWindow) for event in sent)
    assert [event.steps for event in sent[1::2]] == [loop.steps - 1 for loop in loops]
    assert all(event.wall_ns >= 2_000_000 for event in sent[1::2])
    assert (loops[0].steps - 1) % 2_000 == 0, "0.2 s of steps between two looks at the clock"


def test_it_ends_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, loops = _run(monkeypatch, [], finish=True)
    assert len(sent) == 1 and loops[1].steps == 0


def test_what_the_compiler_spent_is_not_taken_for_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, _ = _run(monkeypatch, [7])
    assert [event.steps for event in sent] == [None]
