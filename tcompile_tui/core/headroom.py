"""How much there is to gain, estimated from a profile of eager; and what the GPU alone gains.

An estimate, never a bound, and it decides nothing: kernels that follow each other without a gap run faster than in
eager's profile. On an H200 a transformer block had room for 2.70x and gained 3.33x (2.92x to 3.79x) with cudagraphs.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcompile_tui.core.events import StepsProfiled


@dataclass(frozen=True)
class Headroom:
    """`ratio` is eager's step time over what would be left of it if the GPU never waited, and every run of kernels
    between two library calls were one kernel that takes as long as its longest does now. The shares are of eager's
    step: the GPU waits (launch gaps), runs kernels that can be fused, and runs library kernels (matrix products,
    convolutions, attention), which stay."""

    ratio: float
    idle_share: float
    fusible_share: float
    library_share: float


def headroom(eager: StepsProfiled | None, eager_ms: float | None) -> Headroom | None:
    """From eager's kernels and its step time without the profiler; None where the GPU was not seen, and on CPU."""
    if eager is None or not eager.steps or not eager_ms:
        return None
    if not eager.device_busy_ns or eager.library_ns is None or eager.fused_ns is None:
        return None
    busy_ns, library_ns = eager.device_busy_ns / eager.steps, eager.library_ns / eager.steps
    step_ns = max(1e6 * eager_ms, busy_ns)
    left_ns = min(busy_ns, library_ns + eager.fused_ns / eager.steps)
    if left_ns <= 0:
        return None
    return Headroom(
        ratio=step_ns / left_ns,
        idle_share=1 - busy_ns / step_ns,
        fusible_share=max(0.0, busy_ns - library_ns) / step_ns,
        library_share=library_ns / step_ns,
    )


@dataclass(frozen=True)
class DeviceTimes:
    """How long the GPU computes in one step of each arm."""

    eager_ms: float
    compiled_ms: float

    @property
    def ratio(self) -> float:
        """The speedup on a host that never lets the GPU wait."""
        return self.eager_ms / self.compiled_ms


def device_times(eager: StepsProfiled | None, compiled: StepsProfiled | None) -> DeviceTimes | None:
    """From both arms' profiles; None where one of them did not see the GPU."""
    eager_ms, compiled_ms = _busy_ms(eager), _busy_ms(compiled)
    return DeviceTimes(eager_ms, compiled_ms) if eager_ms and compiled_ms else None


def _busy_ms(seen: StepsProfiled | None) -> float | None:
    if seen is None or not seen.steps or not seen.device_busy_ns:
        return None
    return seen.device_busy_ns / seen.steps / 1e6
