"""The device under test and its host, each value with its last minute; without a GPU the CPU takes the place."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from textual.content import Content

from tcompile_tui.core import events as ev
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import MISSING, count, size
from tcompile_tui.ui.widgets.history import History, bars
from tcompile_tui.ui.widgets.literal import one_line
from tcompile_tui.ui.widgets.live_panel import DIM, LivePanel, cut

_LABEL_WIDTH = 9
_VALUE_WIDTH = 10
_ALERT = "bold $warning"
_IDLE = "idle"  # as host/gpu.py names it
_SampleT = TypeVar("_SampleT", ev.GpuSample, ev.HostSample)


@dataclass(frozen=True)
class Gauge:
    """One value of a sample: how it reads, and the top of its scale. A `top` of None is the highest value seen."""

    label: str
    value: Callable[[ev.GpuSample], float | None] | Callable[[ev.HostSample], float | None]
    text: Callable[[float | None], str]
    top: Callable[[ev.GpuSample], float | None] | Callable[[ev.HostSample], float | None] | None = None


def _unit(unit: str) -> Callable[[float | None], str]:
    return lambda value: MISSING if value is None else f"{value:,.0f} {unit}"


def _hundred(_sample: object) -> float:
    return 100.0


def _gpu_gauges(ascii_only: bool) -> tuple[Gauge, ...]:
    return (
        Gauge("GPU", lambda s: s.utilisation_percent, _unit("%"), _hundred),
        Gauge("memory", lambda s: s.memory_used_bytes, size, lambda s: s.memory_total_bytes),
        Gauge("SM clock", lambda s: s.sm_clock_mhz, _unit("MHz")),
        Gauge("power", lambda s: s.power_w, _unit("W"), lambda s: s.power_limit_w),
        Gauge("temp", lambda s: s.temperature_c, _unit("C" if ascii_only else "°C"), _hundred),
    )


_HOST_GAUGES = (
    Gauge("CPU", lambda s: s.cpu_percent, _unit("%"), _hundred),
    Gauge("RAM", lambda s: s.memory_used_bytes, size, lambda s: s.memory_total_bytes),
    Gauge("worker", lambda s: s.worker_cpu_percent, _unit("%")),
    Gauge("its RAM", lambda s: s.worker_rss_bytes, size, lambda s: s.memory_total_bytes),
    Gauge("load", lambda s: s.load_1m, lambda value: MISSING if value is None else f"{value:.2f}"),
)


class _Track:
    """A gauge with its history."""

    def __init__(self, gauge: Gauge) -> None:
        self.gauge = gauge
        self.history = History()
        self.top: float | None = None

    def add(self, sample: ev.GpuSample | ev.HostSample) -> None:
        self.history.add(sample.t_s, self.gauge.value(sample))  # type: ignore[arg-type]
        if self.gauge.top is not None:
            self.top = self.gauge.top(sample)  # type: ignore[arg-type]

    def line(self, width: int, ascii_only: bool) -> Content:
        value = self.gauge.text(self.history.latest)
        room = max(0, width - _LABEL_WIDTH - _VALUE_WIDTH - 1)
        drawn = bars(self.history.last(room), self.top or self.history.highest or 0.0, ascii_only)
        return Content.assemble(
            (self.gauge.label.ljust(_LABEL_WIDTH), DIM),
            (drawn, "$primary"),
            (value.rjust(min(width - _LABEL_WIDTH, _VALUE_WIDTH + 1)), DIM if value == MISSING else ""),
        )


class GpuPanel(LivePanel):
    """Utilisation, memory, clock, power, temperature, what throttles, who else is there; CPU and RAM beside it."""

    def __init__(self, *, ascii_only: bool = False, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(ascii_only=ascii_only, id=id, classes=classes)
        self._gpu = [_Track(gauge) for gauge in _gpu_gauges(ascii_only)]
        self._host = [_Track(gauge) for gauge in _HOST_GAUGES]
        self._taken_gpu_s = self._taken_host_s = -1.0

    def heading(self, state: RunState) -> str:
        return one_line(state.run.device_name, self.ascii_only) if state.run is not None else "device"

    def show(self, state: RunState, now_s: float) -> None:
        self._taken_gpu_s = _take(state.gpu, self._taken_gpu_s, self._gpu)
        self._taken_host_s = _take(state.host, self._taken_host_s, self._host)
        super().show(state, now_s)

    def lines(self, state: RunState, now_s: float, width: int, height: int) -> list[Content]:
        """Most important first: where there is little room the last ones fall off."""
        lines: list[Content] = []
        if has_gpu(state):
            lines += [track.line(width, self.ascii_only) for track in self._gpu]
            lines += [self._text(label, text, width, alert) for label, text, alert in _gpu_texts(state.gpu)]
        lines += [track.line(width, self.ascii_only) for track in self._host]
        lines += [self._text(label, text, width) for label, text in _facts(state)]
        return lines[:height]

    def _text(self, label: str, text: str, width: int, alert: bool = False) -> Content:
        text = cut(one_line(text, self.ascii_only), width - _LABEL_WIDTH, self.ascii_only)
        return Content.assemble(
            (label.ljust(_LABEL_WIDTH), DIM), (text, _ALERT if alert else DIM if text == MISSING else "")
        )


def has_gpu(state: RunState) -> bool:
    return state.run is not None and state.run.device != "cpu"


def _take(samples: deque[_SampleT], since_s: float, tracks: Sequence[_Track]) -> float:
    """Put the samples after `since_s` into the histories; the time of the newest comes back."""
    new: list[_SampleT] = []
    for sample in reversed(samples):
        if sample.t_s <= since_s:
            break
        new.append(sample)
    for sample in reversed(new):
        for track in tracks:
            track.add(sample)
    return new[0].t_s if new else since_s


def _gpu_texts(samples: deque[ev.GpuSample]) -> Iterator[tuple[str, str, bool]]:
    sample = samples[-1] if samples else ev.GpuSample()
    yield "throttle", *throttle_text(sample.throttle_reasons)
    yield "others", _others_text(sample), bool(sample.other_pids)


def throttle_text(reasons: Sequence[str] | None) -> tuple[str, bool]:
    """Why the clock is held down, and whether that is of note: an idle GPU's clock is low by itself."""
    if reasons is None:
        return MISSING, False
    slowing = [reason for reason in reasons if reason != _IDLE]
    return ", ".join(slowing) or ("none, idle" if reasons else "none"), bool(slowing)


def _others_text(sample: ev.GpuSample) -> str:
    """Other processes on the GPU: how many, and what they take."""
    if sample.other_pids is None:
        return MISSING
    if not sample.other_pids:
        return "none"
    share = sample.other_utilisation_percent
    busy = f", {share:.0f} %" if share is not None else ""
    return f"{len(sample.other_pids)}, {size(sample.other_memory_bytes)}{busy}"


def _facts(state: RunState) -> Iterator[tuple[str, str]]:
    """What is measured, for the room that is left."""
    processes: list[ProcessState] = list(state.processes.values())
    model = next((p.model for p in reversed(processes) if p.model is not None), None)
    if model is not None:
        yield "model", model.class_name
        yield "weights", f"{count(model.parameters)}, {size(model.parameter_bytes)}"
        if model.inputs:
            first = model.inputs[0]
            more = f" +{len(model.inputs) - 1}" if len(model.inputs) > 1 else ""
            yield "input", f"{first.dtype}[{','.join(map(str, first.shape))}]{more}"
    facts = next((p.facts for p in reversed(processes) if p.facts is not None), None)
    if facts is not None:
        yield "torch", facts.torch_version
        yield "Python", facts.python_version
        yield "threads", count(facts.threads)
