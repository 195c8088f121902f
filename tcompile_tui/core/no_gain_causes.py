"""Why a compiled mode gains nothing: the first cause that its records bear out, most certain first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcompile_tui.core import events as ev
from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.pairs import EQUIVALENCE
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Arm, Phase
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import percent, plural

# Issuing a step takes this share of its time: the device waits for the CPU.
_HOST_BOUND_SHARE = 0.9
_GUARDS_MATTER = 0.1
_SHORT_STEP_MS = 0.25
_MOSTLY = 0.8
_SLOWER_KERNELS = 1.02
# In the names of operators that take or make complex numbers, and of the transforms that need them.
_COMPLEX = ("complex", "_fft_")


@dataclass(frozen=True)
class _Arms:
    """What is known of a mode's arms in steady state."""

    result: ModeResult
    warm: ProcessState
    cold: ProcessState | None

    def profile(self, arm: Arm) -> ev.StepsProfiled | None:
        profile = self.warm.profiles.get(arm)
        return profile if profile is not None and profile.steps else None


@dataclass(frozen=True)
class _Cause:
    """`why` ends the sentence "no gain seen: ..."."""

    why: str
    evidence: str = ""
    advice: str = ""


_Test: TypeAlias = Callable[[_Arms], "_Cause | None"]


def _broken_graph(arms: _Arms) -> _Cause | None:
    breaks = arms.result.graph_breaks
    if not breaks:
        return None
    return _Cause(
        f"{plural(breaks, 'graph break')} cut what could be fused into pieces",
        evidence="each piece checks its guards and ends its fusion",
        advice="remove the breaks listed here, then measure again",
    )


def _compiled_again(arms: _Arms) -> _Cause | None:
    steps = arms.result.compiles_while_measuring
    if not steps:
        return None
    return _Cause(
        "it keeps compiling while it runs",
        evidence=f"the compiler worked in {plural(steps, 'compared step')}",
        advice="keep what the failing guards check constant, or mark sizes dynamic",
    )


def _no_cudagraph(arms: _Arms) -> _Cause | None:
    skips = arms.cold.compile.cudagraph_skips if arms.cold is not None else ()
    if not arms.result.mode.cudagraphs or not skips:
        return None
    return _Cause(
        "its cudagraphs were skipped",
        evidence=next(iter(skips))[:300],
        advice="remove the cause, or use the default mode, which costs less to start",
    )


def _complex_numbers(arms: _Arms) -> _Cause | None:
    """Inductor generates no code for complex operators: each stays a call of its own."""
    operators = arms.cold.compile.fallback_ops if arms.cold is not None else {}
    found = sorted(name for name in operators if any(word in name for word in _COMPLEX))
    if not found:
        return None
    return _Cause(
        "Inductor generates no code for operators on complex numbers",
        evidence=f"called one by one, as in eager: {', '.join(found[:4])}",
        advice="compute with real and imaginary parts (torch.view_as_real) where the time goes",
    )


def _short_step(arms: _Arms) -> _Cause | None:
    """Launching from the CPU, or checking guards, is what a step costs."""
    result = arms.result
    step_ms = result.compiled_ms
    if step_ms is None:
        return None
    host_share = arms.warm.arm(Arm.COMPILED).host_share
    replays = result.proof.graph_launches if result.proof is not None else None
    if host_share is not None and host_share >= _HOST_BOUND_SHARE and not replays:
        return _Cause(
            "the step is too short: the GPU waits for the CPU",
            evidence=f"issuing a compiled step takes {percent(host_share)} of its {step_ms:.3g} ms",
            advice="try --mode reduce-overhead (cudagraphs), or larger batches",
        )
    guards_ms = result.proof.guard_us / 1e3 if result.proof is not None else 0.0
    if host_share is None and step_ms < _SHORT_STEP_MS and guards_ms > _GUARDS_MATTER * step_ms:
        return _Cause(
            "the step is too short for what calling a compiled program costs",
            evidence=f"guard checks alone take {percent(guards_ms / step_ms)} of its {step_ms:.3g} ms",
            advice="larger batches make the call matter less",
        )
    return None


def _nothing_to_fuse(arms: _Arms) -> _Cause | None:
    """Matrix products and convolutions stay library calls, and they are all there is."""
    eager = arms.profile(Arm.EAGER)
    if eager is None or eager.library_ns is None:
        return None
    busy_ns = eager.device_busy_ns if eager.device_busy_ns is not None else eager.wall_ns
    eager_ms = arms.result.eager_ms
    if not busy_ns or eager.library_ns < _MOSTLY * busy_ns:
        return None
    if eager.device_busy_ns is not None and (not eager_ms or busy_ns / eager.steps < _MOSTLY * eager_ms * 1e6):
        return None
    where = "the GPU's busy time" if eager.device_busy_ns is not None else "an eager step"
    return _Cause(
        "there is nearly nothing to fuse",
        evidence=f"{percent(eager.library_ns / busy_ns)} of {where} is in matrix products, convolutions or attention,"
        " which stay library calls",
        advice="lower precision (bf16, TF32) or --mode max-autotune can speed these up; fusion cannot",
    )


def _slower_kernels(arms: _Arms) -> _Cause | None:
    eager, compiled = arms.profile(Arm.EAGER), arms.profile(Arm.COMPILED)
    if eager is None or compiled is None or not eager.device_busy_ns or not compiled.device_busy_ns:
        return None
    eager_ms, compiled_ms = (
        seen.device_busy_ns / seen.steps / 1e6 for seen in (eager, compiled) if seen.device_busy_ns
    )
    if compiled_ms < _SLOWER_KERNELS * eager_ms:
        return None
    return _Cause(
        "its kernels are slower than eager's",
        evidence=f"the GPU computes {compiled_ms:.3g} ms a step, {eager_ms:.3g} ms in eager",
        advice="try --mode max-autotune-no-cudagraphs; if a kernel stays slower, that is worth an issue for PyTorch",
    )


def _noise(arms: _Arms) -> _Cause | None:
    speedup = arms.result.speedup
    if speedup is None or speedup.hi < 1 or speedup.at_most < 1 + EQUIVALENCE:
        return None
    return _Cause(
        "a small one would be lost in the noise",
        evidence=f"a difference below {percent(speedup.smallest_detectable)} could not be seen",
        advice="measure on an idle machine, or longer (--preset thorough)",
    )


_CAUSES: tuple[_Test, ...] = (
    _broken_graph, _compiled_again, _no_cudagraph, _complex_numbers, _short_step, _nothing_to_fuse, _slower_kernels,
    _noise,
)  # fmt: skip


def _no_gain(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for result in results:
        warm = state.process_of(Phase.WARM, result.mode)
        gains = result.speedup is None or result.speedup.lo > 1
        if result.status is not ModeStatus.MEASURED or gains or warm is None:
            continue
        arms = _Arms(result, warm, state.process_of(Phase.COLD, result.mode))
        cause = next((found for test in _CAUSES if (found := test(arms)) is not None), None)
        if cause is not None:
            yield Finding(
                "no-gain",
                Severity.ADVICE,
                f"{result.mode.value}: no gain seen: {cause.why}",
                evidence=cause.evidence,
                advice=cause.advice,
                mode=result.mode,
            )


RULES: tuple[Rule, ...] = (_no_gain,)
