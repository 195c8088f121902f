"""What the memory of both arms makes of the answer."""

from __future__ import annotations

import pytest

from tcompile_tui.core.spec import Plan
from tcompile_tui.core.verdict import Decision, Verdict, decide
from tests.core.streams import Compiled, both, eager_process, model_ready, replay

GIB = 1 << 30


def _verdict(
    speedup: float, eager_gib: float = 10.0, compiled_gib: float = 6.5, training: bool = True, steps: int = 1_000_000
) -> Verdict:
    run = Compiled(speedup=speedup, reserved_bytes=round(compiled_gib * GIB))
    eager = eager_process(reserved_bytes=round(eager_gib * GIB), model=model_ready(training))
    return decide(replay(eager, *both(run), plan=Plan(steps=steps), device="cuda"))


def _told(verdict: Verdict) -> bool:
    return any(finding.id == "memory-down" for finding in verdict.findings)


@pytest.mark.parametrize(
    ("speedup", "steps", "reason"),
    [(0.8, 1_000_000, "slower"), (1.001, 1_000_000, "no gain larger"), (2.0, 100, "before the break-even")],
)
def test_no_skip_is_said_without_the_memory_that_a_larger_batch_could_use(
    speedup: float, steps: int, reason: str
) -> None:
    verdict = _verdict(speedup, steps=steps)
    assert verdict.decision is Decision.SKIP and reason in verdict.headline
    assert "35 % less GPU memory" in verdict.headline and "--fit-batch" in verdict.headline


def test_where_it_pays_off_anyway_it_is_advice() -> None:
    verdict = _verdict(2.0)
    assert verdict.decision is Decision.ENABLE and _told(verdict) and "--fit-batch" not in verdict.headline


def test_it_takes_a_tenth_of_a_gpu_s_memory_in_training() -> None:
    assert _told(_verdict(0.8, compiled_gib=9.0))
    assert not _told(_verdict(0.8, compiled_gib=9.1))
    assert not _told(_verdict(0.8, training=False)), "inference has no activations to save"
    on_cpu = replay(eager_process(model=model_ready(training=True)), *both(Compiled(speedup=0.8)))
    assert not _told(decide(on_cpu)), "the resident set is no measure of it"
