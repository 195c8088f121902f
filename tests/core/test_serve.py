"""Serving: the objective, the first request, and what still compiles after a server is ready."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.findings import Finding, Severity
from tcompile_tui.core.serve_results import serving_document, share_over
from tcompile_tui.core.spec import Arm, RunSpec, SpecError, Task, command_line, parse_target
from tcompile_tui.core.step_spec import FileFunction, StepSpec
from tcompile_tui.core.task_spec import with_task
from tcompile_tui.core.verdict import Verdict, decide
from tcompile_tui.report.text import verdict_text

from .shape_streams import AUTOMATIC, shapes_run
from .streams import Compiled, both, eager_process, replay

SERVE = RunSpec(parse_target("net.py"), task=Task.SERVE, slo_ms=12.5)


def requests(arm: Arm, ms: float, slowest_ms: float, number: int = 200) -> ev.Block:
    step_ns = tuple(int(each * 1e6) for each in [ms] * (number - 5) + [slowest_ms] * 5)
    return ev.Block(
        arm=arm, role=ev.BlockRole.LATENCY, first_index=0, steps=number, step_ns=step_ns, wall_ns=sum(step_ns)
    )


def served(
    slo_ms: float | None = 12.0, eager_ms: float = 15.0, compiled_ms: float = 10.0, number: int = 200
) -> Verdict:
    cold, warm = both(Compiled(speedup=1.5, compile_s=40.0))
    told = [requests(Arm.EAGER, 9.0, eager_ms, number), requests(Arm.COMPILED, 6.0, compiled_ms, number)]
    state = replay(eager_process(), cold, [*warm[:-2], *told, *warm[-2:]])
    assert state.run is not None
    state.run = replace(state.run, spec=replace(state.run.spec, task=Task.SERVE, slo_ms=slo_ms))
    text = verdict_text(state, decide(state))
    assert "first      request: 500 ms eager, 40.0 s compiled, 4.00 s on kept caches" in text
    return decide(state)


def finding(verdict: Verdict, name: str) -> Finding | None:
    return next((found for found in verdict.findings if found.id == name), None)


def test_a_spec_of_serving_is_written_and_checked() -> None:
    assert command_line(SERVE) == "tcompile-tui run net.py --task serve --slo-ms 12.5"
    assert with_task(SERVE) == SERVE
    with pytest.raises(SpecError, match=r"--slo-ms 12.5 is for --task serve"):
        with_task(replace(SERVE, task=None))
    with pytest.raises(SpecError, match="a request is a forward pass"):
        with_task(replace(SERVE, step=StepSpec(own=FileFunction("a.py", "fn"))))


@pytest.mark.parametrize(
    ("changes", "name", "severity", "words"),
    [
        ({}, "slo-held", Severity.NOTE, "p99 is 10.0 ms and holds 12.0 ms; eager's is 15.0 ms, which does not"),
        ({"eager_ms": 11.0}, "slo-held", Severity.NOTE, "eager's is 11.0 ms, which does too"),
        ({"compiled_ms": 13.0}, "slo-missed", Severity.BLOCKER, "p99 is 13.0 ms, over the 12.0 ms"),
        ({"number": 50}, "slo-unknown", Severity.BLOCKER, "50 requests are too few"),
    ],
)
def test_the_objective(changes: dict[str, float], name: str, severity: Severity, words: str) -> None:
    found = finding(served(**changes), name)  # type: ignore[arg-type]
    assert found is not None and found.severity is severity and words in found.title


def test_without_an_objective_nothing_is_held_against_it() -> None:
    verdict = served(slo_ms=None)
    assert not any(found.id.startswith("slo") for found in verdict.findings)
    serving = verdict.modes[0].result.serving
    assert serving is not None and serving_document(serving)["share_over_slo"] == {"eager": None, "compiled": None}


def test_the_first_request_waits_for_the_compile() -> None:
    found = finding(served(), "first-request")
    assert found is not None and "the first request takes 40.0 s, 4.00 s on kept caches" in found.title
    assert found.evidence == "in eager 500 ms; a usual one takes 6.00 ms"


def test_a_share_of_requests() -> None:
    assert share_over([1_000_000, 3_000_000], 2.0) == 0.5
    assert share_over([], 2.0) is None and share_over([1], None) is None


def test_what_compiles_after_a_server_is_ready_is_told() -> None:
    late = replace(AUTOMATIC, late=(3, 4))
    state = shapes_run([late])
    assert state.run is not None and finding(decide(state), "after-ready") is None
    state.run = replace(state.run, spec=replace(state.run.spec, task=Task.SERVE))
    found = finding(decide(state), "after-ready")
    assert found is not None and found.severity is Severity.BLOCKER
    assert found.title == "dynamic=None: 2 requests compile, 22.0 s in all; 2 later ones do so again"
