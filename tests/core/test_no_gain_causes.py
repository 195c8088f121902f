"""Why a mode gains nothing: one cause each, the most certain first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.findings import Finding
from tcompile_tui.core.spec import Arm, Mode
from tcompile_tui.core.verdict import Decision, decide
from tests.core.streams import EAGER_MS, Compiled, Process, cold_process, eager_process, replay, warm_process

SLOWER = Compiled(speedup=0.9)
SKIPPED = ev.CudagraphSkipped(reason="skipping cudagraphs due to mutated inputs")
BREAK = ev.GraphBreak(compile_id="0/0", file="net.py", line=5, reason="print")


def _profile(
    arm: Arm, busy_ms: float, library_ms: float, on_gpu: bool = True, guard_us: float = 20
) -> ev.StepsProfiled:
    """Ten steps of which each keeps the device busy for so long."""
    return ev.StepsProfiled(
        arm=arm, steps=10, wall_ns=int(EAGER_MS * 1e7), lookups=10, lookup_ns=int(guard_us * 1e4), regions=("0/0",),
        program_calls=10, library_ns=int(library_ms * 1e7), device_busy_ns=int(busy_ms * 1e7) if on_gpu else None,
    )  # fmt: skip


def _issued(host_share: float) -> ev.Block:
    """A block of compiled steps of which the host needed this share of the time."""
    return ev.Block(
        arm=Arm.COMPILED, role=ev.BlockRole.PAIR, loop=3, pair=999, first_index=0, steps=1, step_ns=(10_000_000,),
        host_ns=(int(10_000_000 * host_share),), wall_ns=10_000_000,
    )  # fmt: skip


def _causes(
    run: Compiled, cold: Sequence[ev.Event] = (), warm: Sequence[ev.Event] = (), device: str = "cuda"
) -> list[Finding]:
    first, second = cold_process(run), warm_process(run)
    first[-2:-2] = cold
    second[-2:-2] = warm
    verdict = decide(replay(eager_process(), first, second, modes=(run.mode,), device=device))
    return [finding for finding in verdict.findings if finding.id == "no-gain"]


COMPLEX = ev.CodeGenerated(
    compile_id="0/0", kernels=1, kernel_languages=("triton",), library_calls=(),
    fallback_ops=("aten.mul.Tensor", "aten.view_as_complex.default"),
)  # fmt: skip
BUSY = [_profile(Arm.EAGER, 9.5, 9), _profile(Arm.COMPILED, 10.5, 9)]
REDUCED = replace(SLOWER, mode=Mode.REDUCE_OVERHEAD)


@pytest.mark.parametrize(
    ("run", "cold", "warm", "device", "why"),
    [
        (replace(SLOWER, broken_pairs=(3,)), [BREAK, SKIPPED], [_issued(1.0), *BUSY], "cuda", "1 graph break"),
        (replace(SLOWER, broken_pairs=(3,)), [SKIPPED], [_issued(1.0), *BUSY], "cuda", "keeps compiling"),
        (REDUCED, [SKIPPED], [_issued(1.0), *BUSY], "cuda", "cudagraphs were skipped"),
        (SLOWER, [COMPLEX], [_issued(1.0), *BUSY], "cuda", "operators on complex numbers"),
        (SLOWER, [SKIPPED], [_issued(1.0), *BUSY], "cuda", "the GPU waits for the CPU"),
        (SLOWER, [SKIPPED], [_issued(0.1), *BUSY], "cuda", "nearly nothing to fuse"),
        (SLOWER, [], [_profile(Arm.EAGER, 9.5, 1), _profile(Arm.COMPILED, 10.5, 1)], "cuda", "slower than eager's"),
        (SLOWER, [], [_profile(Arm.EAGER, 0, 9, on_gpu=False)], "cpu", "nearly nothing to fuse"),
        (replace(SLOWER, speedup=1.0, noise=0.2), [], [], "cpu", "lost in the noise"),
    ],
)
def test_the_first_cause_that_the_records_bear_out_is_told(
    run: Compiled, cold: Process, warm: Process, device: str, why: str
) -> None:
    (finding,) = _causes(run, cold, warm, device)
    assert why in finding.title and finding.title.startswith(f"{run.mode.value}: no gain seen: ")
    assert finding.evidence and finding.advice and finding.mode is run.mode


@pytest.mark.parametrize(
    "warm",
    [
        [],
        [_profile(Arm.EAGER, 9.5, 5)],  # half of it can be fused
        [_profile(Arm.EAGER, 4, 4)],  # the device idles for most of the step
        [_profile(Arm.EAGER, 9.5, 1), _profile(Arm.COMPILED, 9.6, 1)],  # kernels as fast as eager's
        [_issued(0.5)],
    ],
)
def test_without_evidence_no_cause_is_made_up(warm: Process) -> None:
    assert _causes(SLOWER, warm=warm) == []


def _shorter(process: Process, factor: int) -> Process:
    """The same with every timed step this many times as short."""
    return [
        replace(e, step_ns=tuple(ns // factor for ns in e.step_ns), wall_ns=e.wall_ns // factor)
        if isinstance(e, ev.Block)
        else e
        for e in process
    ]


@pytest.mark.parametrize(("guard_us", "told"), [(3, False), (8, True)])
def test_a_step_of_microseconds_is_too_short_for_its_guards(guard_us: float, told: bool) -> None:
    """A compiled step of 55 us."""
    cold, warm = _shorter(cold_process(SLOWER), 200), _shorter(warm_process(SLOWER), 200)
    warm[-2:-2] = [_profile(Arm.COMPILED, 0, 0, on_gpu=False, guard_us=guard_us)]
    verdict = decide(replay(_shorter(eager_process(), 200), cold, warm))
    assert any("what calling a compiled program costs" in f.title for f in verdict.findings) is told


def test_a_mode_that_gains_has_no_such_cause() -> None:
    assert _causes(Compiled(speedup=1.5), cold=[BREAK], warm=BUSY) == []


def test_the_cause_changes_no_decision() -> None:
    run = SLOWER
    verdict = decide(replay(eager_process(), cold_process(run), warm_process(run), device="cuda"))
    assert verdict.decision is Decision.SKIP
