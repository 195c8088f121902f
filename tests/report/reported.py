"""Runs to report on: recorded ones, and one with hostile text everywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tcompile_tui.core import events as ev
from tcompile_tui.core.reported_run import ReportedRun, Surroundings
from tcompile_tui.core.spec import parse_target
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import decide
from tcompile_tui.host.recorded import read_reported_run
from tests.core.streams import Compiled, both, eager_process, replay
from tests.ui.recorded import recorded_run

HOSTILE = "<script>alert(1)</script>|`a`\\*b*_c_[d](javascript:e)&amp;\"'@you #1 $x$ \x1b[31m"


def recorded(name: str, folder: Path) -> ReportedRun:
    return read_reported_run(recorded_run(name, folder).path)


def reported(state: RunState, cwd: Path = Path("/home/user"), **changes: object) -> ReportedRun:
    around = Surroundings(
        started_at="2026-12-02T18:50:42+00:00",
        command="tcompile-tui run net.py",
        cwd=str(cwd),
        argv=(),
        program_version="0.1.0",
    )
    run = ReportedRun("20261202-185042-net", state, decide(state), around)
    return replace(run, **changes)  # type: ignore[arg-type]


def hostile() -> ReportedRun:
    """Every text that comes from the user, or from the compiler, is HOSTILE."""
    broken = ev.GraphBreak(
        compile_id="0/0", file=f"/x/{HOSTILE}.py", line=7, function=HOSTILE, source=HOSTILE, reason=HOSTILE,
        hints=(HOSTILE,), url=f"javascript:{HOSTILE}",
    )  # fmt: skip
    cold, warm = both(Compiled(speedup=1.8))
    model = ev.ModelReady(
        class_name=HOSTILE, file=HOSTILE, line=1, parameters=1, parameter_bytes=4, training=False,
        inputs=(ev.TensorInfo(HOSTILE, "float32", (1,), "cpu"),), input_batches=1,
    )  # fmt: skip
    state = replay(eager_process(), [*cold[:4], model, broken, *cold[4:]], warm)
    assert state.run is not None
    target = replace(parse_target("net.py"), path=f"{HOSTILE}.py")
    state.run = replace(state.run, spec=replace(state.run.spec, target=target), device_name=HOSTILE)
    run = reported(state)
    assert run.surroundings is not None
    return replace(run, name=HOSTILE, surroundings=replace(run.surroundings, command=HOSTILE))
