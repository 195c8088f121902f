"""What the probe with fullgraph=True says beside the verdict."""

from __future__ import annotations

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.findings import Finding
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.verdict import decide

from .streams import Compiled, Process, both, done, eager_process, ended, replay, started

HOLDS = ev.FullgraphProbed(holds=True)
FAILS = ev.FullgraphProbed(
    holds=False,
    error_type="Unsupported",
    message="Failed to trace\n  Explanation: no print here",
    file="net.py",
    line=7,
)
BREAK = ev.GraphBreak(compile_id="0/0", reason="print", file="net.py", line=7)
GRAPH = ev.GraphCaptured(compile_id="0/0", ops=3)


def found(*told: ev.Event, broken: bool = False, end: Process | None = None) -> Finding:
    cold, warm = both(Compiled())
    cold = [*cold[:4], BREAK, *cold[4:]] if broken else cold
    probe = [started(Phase.FULLGRAPH, Mode.DEFAULT), *told, *(end or done(Phase.FULLGRAPH, Mode.DEFAULT))]
    without = decide(replay(eager_process(), cold, warm))
    verdict = decide(replay(eager_process(), cold, warm, probe))
    assert (verdict.decision, verdict.headline) == (without.decision, without.headline)
    return next(finding for finding in verdict.findings if finding.id == "fullgraph")


@pytest.mark.parametrize(
    ("broken", "title"),
    [
        (False, "it compiles with fullgraph=True, into 1 graph"),
        (True, "it compiles with fullgraph=True, into 1 graph, though the run had 1 graph break"),
    ],
)
def test_it_holds(broken: bool, title: str) -> None:
    assert found(GRAPH, HOLDS, broken=broken).title == title


def test_it_does_not_hold_and_here_is_why() -> None:
    finding = found(FAILS)
    assert "would not compile" in finding.title and (finding.file, finding.line) == ("net.py", 7)
    assert finding.evidence == "Unsupported: Failed to trace: no print here (net.py:7)"


def test_a_model_that_dynamo_skips_is_told() -> None:
    assert "nothing is compiled either" in found(HOLDS).title


def test_a_probe_without_an_answer_says_so() -> None:
    cut = found(end=[ended(Phase.FULLGRAPH, Mode.DEFAULT, ev.Outcome.TIMED_OUT, "no end within 9 s")])
    assert "was not found out" in cut.title and cut.evidence == "no end within 9 s"
