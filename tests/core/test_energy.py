"""Joules of a step: from the GPU's counter while an arm runs alone, or a reason why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.energy import StepEnergy, measures_energy
from tcompile_tui.core.spec import Arm, Mode, Phase, Preset, RunSpec, parse_target
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import decide
from tcompile_tui.core.verdict_json import verdict_document
from tcompile_tui.report.html import html_page
from tcompile_tui.report.markdown import markdown_text
from tcompile_tui.report.text import verdict_text
from tests.core.streams import Compiled, Process, cold_process, eager_process, replay, warm_process
from tests.report.reported import reported

IDLE_W = 90.0
WATTS = {Arm.EAGER: 400.0, Arm.COMPILED: 600.0}
STEPS = {Arm.EAGER: 650, Arm.COMPILED: 1300}
WALL_NS = 6_500_000_000
# 400 W for 10 ms, 600 W for 5 ms
EAGER_J, COMPILED_J = 4.0, 3.0


def _sample(read_s: float, energy_j: float | None) -> ev.GpuSample:
    read = read_s if energy_j is not None else None
    return ev.GpuSample(energy_j=energy_j, energy_read_s=read, other_pids=(), other_utilisation_percent=0.0)


def _window(arm: Arm, span_s: float = 6.4) -> Process:
    """Read five times a second; in the first half second the board is still at its idle power."""
    times = [1000.0 + 0.2 * i for i in range(int(span_s / 0.2) + 1)]
    energies = [IDLE_W * min(t - 1000, 0.5) + WATTS[arm] * max(0.0, t - 1000.5) for t in times]
    samples = [_sample(t, energy) for t, energy in zip(times, energies)]
    return [ev.EnergyWindow(arm=arm), *samples, ev.EnergyWindow(arm=arm, steps=STEPS[arm], wall_ns=WALL_NS)]


Change = Callable[[ev.GpuSample], ev.GpuSample]


def _run(windows: Process, change: Change = lambda sample: sample) -> RunState:
    warm = warm_process(Compiled())
    warm[-2:-2] = [change(event) if isinstance(event, ev.GpuSample) else event for event in windows]
    return replay(eager_process(), cold_process(Compiled()), warm, device="cuda")


BOTH = [*_window(Arm.EAGER), _sample(2000.0, 9e9), *_window(Arm.COMPILED)]


def _energy(state: RunState) -> StepEnergy | None:
    return decide(state).modes[0].result.energy


def test_a_step_takes_its_share_of_the_mean_power() -> None:
    found = _energy(_run(BOTH))
    assert found is not None and found.reason == "" and found.others_known
    assert (found.eager_j, found.compiled_j) == (pytest.approx(EAGER_J), pytest.approx(COMPILED_J))
    assert found.saved_share == pytest.approx(0.25)


def test_it_is_told_and_changes_no_other_figure() -> None:
    state, without = _run(BOTH), _run([])
    text = " ".join(verdict_text(state, decide(state)).split())
    assert "energy 4.00 J eager, 3.00 J compiled, 25 % less (to 5 %)" in text
    assert "| energy a step | 3.00 J |" in markdown_text(reported(state))
    assert "<span>energy of a step</span><b>3.00 J</b><span>eager 4.00 J</span>" in html_page(reported(state))
    document = verdict_document(state, decide(state))["per_mode"]["default"]
    assert document["energy_j_per_step"] == {
        "eager": pytest.approx(EAGER_J), "compiled": pytest.approx(COMPILED_J), "saved_share": pytest.approx(0.25),
        "reason": None,
    }  # fmt: skip
    plain = verdict_document(without, decide(without))["per_mode"]["default"]
    assert plain["energy_j_per_step"] is None and "energy" not in verdict_text(without, decide(without))
    assert {**document, "energy_j_per_step": None} == plain


@pytest.mark.parametrize(
    ("windows", "change", "reason"),
    [
        (BOTH, lambda s: replace(s, energy_j=None, energy_read_s=None), "gives no energy counter"),
        (BOTH, lambda s: replace(s, other_pids=(7,), other_utilisation_percent=30.0), "another process used the GPU"),
        (BOTH, lambda s: replace(s, other_pids=(7,), other_utilisation_percent=None), "another process used the GPU"),
        ([*_window(Arm.EAGER, 5.2), *_window(Arm.COMPILED)], lambda s: s, "not read over 5 s"),
        (_window(Arm.EAGER), lambda s: s, "before both arms"),
        ([*_window(Arm.EAGER), *_window(Arm.COMPILED)[:-1]], lambda s: s, "before both arms"),
    ],
    ids=["no counter", "shared", "perhaps shared", "too short", "one arm", "cut off"],
)
def test_what_cannot_be_trusted_has_a_reason(windows: Process, change: Change, reason: str) -> None:
    state = _run(windows, change)
    found = _energy(state)
    assert found is not None and (found.eager_j, found.compiled_j, found.saved_share) == (None, None, None)
    assert reason in found.reason
    assert "energy     n/a: " in verdict_text(state, decide(state))
    figures = verdict_document(state, decide(state))["per_mode"]["default"]["energy_j_per_step"]
    assert figures["eager"] is None and reason in figures["reason"]


def test_a_process_that_only_holds_memory_costs_no_energy() -> None:
    found = _energy(_run(BOTH, lambda s: replace(s, other_pids=(7,), other_utilisation_percent=0.0)))
    assert found is not None and found.eager_j == pytest.approx(EAGER_J)


def test_where_a_container_hides_other_processes_it_says_so() -> None:
    state = _run(BOTH, lambda s: replace(s, other_pids=None, other_utilisation_percent=None))
    assert "if nothing else used the GPU" in " ".join(verdict_text(state, decide(state)).split())


def test_the_counter_is_read_only_while_an_arm_runs_alone() -> None:
    state = replay(eager_process(), warm_process(Compiled())[:1])
    assert not state.reads_energy
    state.apply(ev.stamp(ev.EnergyWindow(arm=Arm.EAGER), 3.0, 2))
    assert state.reads_energy
    state.apply(ev.stamp(ev.EnergyWindow(arm=Arm.EAGER, steps=1, wall_ns=1), 9.0, 2))
    assert not state.reads_energy
    state.apply(ev.stamp(ev.EnergyWindow(arm=Arm.COMPILED), 9.0, 2))
    state.apply(ev.stamp(ev.PhaseEnded(phase=Phase.WARM, outcome=ev.Outcome.KILLED, seconds=1.0), 9.5, 2))
    assert not state.reads_energy


@pytest.mark.parametrize(
    ("preset", "device", "phase", "earlier", "wanted"),
    [
        (Preset.STANDARD, "cuda", Phase.WARM, 0, True),
        (Preset.THOROUGH, "cuda", Phase.WARM, 0, True),
        (Preset.QUICK, "cuda", Phase.WARM, 0, False),
        (Preset.STANDARD, "cpu", Phase.WARM, 0, False),
        (Preset.STANDARD, "cuda", Phase.COLD, 0, False),
        (Preset.STANDARD, "cuda", Phase.WARM, 1, False),
    ],
)
def test_it_is_measured_once_a_mode_where_there_is_time(
    preset: Preset, device: str, phase: Phase, earlier: int, wanted: bool
) -> None:
    spec = RunSpec(parse_target("net.py"), preset=preset, device=device)
    assert measures_energy(spec, phase, Mode.DEFAULT, earlier) is wanted
