"""When the GPU was slowed down by its hardware's protection: heat, power delivery, or a brake from outside.

The ordinary power cap is none of these: large matrix products reach it in both arms alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tcompile_tui.core.events import GpuSample

_HARDWARE = ("thermal", "slowdown", "brake")


def is_throttled(sample: GpuSample) -> bool:
    return any(word in reason for reason in sample.throttle_reasons or () for word in _HARDWARE)


@dataclass
class ThrottleLog:
    """Spans of the run in which the GPU was throttled, or may have been: between the samples on both sides of one that
    says so, because a few samples a second are all there is."""

    spans_s: list[tuple[float, float]] = field(default_factory=list)
    _last_s: float | None = None
    _open: bool = False

    def take(self, sample: GpuSample) -> tuple[float, float] | None:
        """The span that this sample adds, or stretches to its own time; None if there is none."""
        throttled, before_s = is_throttled(sample), self._last_s
        begins_s = before_s if before_s is not None else sample.t_s
        was_open, self._open, self._last_s = self._open, throttled, sample.t_s
        if was_open:
            self.spans_s[-1] = (self.spans_s[-1][0], sample.t_s)
        elif throttled:
            self.spans_s.append((begins_s, sample.t_s))
        return self.spans_s[-1] if throttled or was_open else None

    def touches(self, begins_s: float, ends_s: float) -> bool:
        """Does any of the spans share a moment with this one? The last one goes on until a sample ends it."""
        if self._open and ends_s >= self.spans_s[-1][0]:
            return True
        return any(overlap((begins_s, ends_s), span) for span in reversed(self.spans_s))


def overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
