"""Energy of one step: the GPU's own counter, while one arm runs alone for some seconds.

The counter moves every 20 to 100 ms, so over 5 s its steps are below 2 %; what the board's sensor adds to that is some
5 % (arXiv 2312.02741). It counts the whole board, and so is worth nothing where others compute on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tcompile_tui.core.events import EnergyWindow, GpuSample
from tcompile_tui.core.spec import Arm, Mode, Phase, Preset, RunSpec

_MIN_SPAN_S = 5.0
# Power and its sensor take some time to get to an arm's level.
_SETTLING_S = 0.5
_BUSY_OTHER_PERCENT = 2.0
_PRESETS = (Preset.STANDARD, Preset.THOROUGH)


@dataclass
class ArmWindow:
    """The samples that came while one arm ran alone, and how far that got."""

    samples: list[GpuSample] = field(default_factory=list)
    steps: int = 0
    wall_ns: int = 0


@dataclass
class EnergyLog:
    """What one worker process tells about energy: a window for each arm. `open_arm` runs alone now."""

    windows: dict[Arm, ArmWindow] = field(default_factory=dict)
    open_arm: Arm | None = None

    def take_window(self, event: EnergyWindow) -> None:
        """A window begins without steps and ends with them."""
        self.open_arm = event.arm if event.steps is None else None
        if event.steps is None:
            self.windows[event.arm] = ArmWindow()
        elif event.arm in self.windows:
            window = self.windows[event.arm]
            window.steps, window.wall_ns = event.steps, event.wall_ns or 0

    def take_sample(self, sample: GpuSample) -> None:
        if self.open_arm is not None:
            self.windows[self.open_arm].samples.append(sample)


@dataclass(frozen=True)
class StepEnergy:
    """Joules of one step of each arm; None with the `reason`. `others_known`: could be seen that nothing else used the
    GPU."""

    eager_j: float | None
    compiled_j: float | None
    reason: str = ""
    others_known: bool = True

    @property
    def saved_share(self) -> float | None:
        """The part of eager's energy that a compiled step does without; negative if it needs more."""
        if not self.eager_j or self.compiled_j is None:
            return None
        return 1 - self.compiled_j / self.eager_j


def measures_energy(spec: RunSpec, phase: Phase, mode: Mode | None, earlier_processes: int) -> bool:
    """Once for each mode, in its first warm process, on a GPU and where there is the time for it."""
    wanted = spec.device != "cpu" and spec.preset in _PRESETS
    return wanted and phase is Phase.WARM and mode is not None and earlier_processes == 0


def step_energy(log: EnergyLog) -> StepEnergy | None:
    """None where no arm ran for it."""
    if not log.windows:
        return None
    reason = next((why for arm in Arm if (why := _why_not(log.windows.get(arm)))), "")
    if reason:
        return StepEnergy(None, None, reason)
    known = all(sample.other_pids is not None for window in log.windows.values() for sample in window.samples)
    return StepEnergy(
        _joules_a_step(log.windows[Arm.EAGER]), _joules_a_step(log.windows[Arm.COMPILED]), others_known=known
    )


def _joules_a_step(window: ArmWindow) -> float:
    """Mean power between the first and the last reading, for as long as a step took."""
    (begin_s, begin_j), *_, (end_s, end_j) = _readings(window)
    return (end_j - begin_j) / (end_s - begin_s) * window.wall_ns / 1e9 / window.steps


def _readings(window: ArmWindow) -> list[tuple[float, float]]:
    """(when, joules) of each reading once the arm had settled."""
    known = [
        (sample.energy_read_s, sample.energy_j)
        for sample in window.samples
        if sample.energy_read_s is not None and sample.energy_j is not None
    ]
    return [reading for reading in known if reading[0] >= known[0][0] + _SETTLING_S]


def _why_not(window: ArmWindow | None) -> str:
    """Empty where the window can be trusted."""
    if window is None or not window.steps:
        return "the run ended before both arms had run for it"
    if not any(sample.energy_j is not None for sample in window.samples):
        return "the driver gives no energy counter for this device"
    if any(_used_by_others(sample) for sample in window.samples):
        return "another process used the GPU meanwhile"
    readings = _readings(window)
    if not readings or readings[-1][0] - readings[0][0] < _MIN_SPAN_S:
        return f"its counter was not read over {_MIN_SPAN_S:g} s of each arm"
    return ""


def _used_by_others(sample: GpuSample) -> bool:
    """A process whose use the driver does not tell may have used it; one that only holds memory costs no energy."""
    if not sample.other_pids:
        return False
    used_percent = sample.other_utilisation_percent
    return used_percent is None or used_percent > _BUSY_OTHER_PERCENT


def energy_figures(found: StepEnergy | None) -> Mapping[str, float | str | None] | None:
    """For programs; `saved_share` is that of eager's energy."""
    if found is None:
        return None
    return {
        "eager": found.eager_j,
        "compiled": found.compiled_j,
        "saved_share": found.saved_share,
        "reason": found.reason or None,
    }
