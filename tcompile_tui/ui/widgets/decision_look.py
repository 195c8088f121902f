"""How each decision looks and what a person does next. A symbol and a border of its own, so that colour is only a
help."""

from __future__ import annotations

from dataclasses import dataclass

from tcompile_tui.core import events as ev
from tcompile_tui.core.accuracy import Agreement
from tcompile_tui.core.findings import Severity
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision, ExitCode, Verdict


@dataclass(frozen=True)
class Look:
    """`symbol` and `plain_symbol` (ASCII) go with the words of `meaning`; `css` is the class that has the border."""

    symbol: str
    plain_symbol: str
    meaning: str
    css: str


LOOKS = {
    Decision.ENABLE: Look("✓", "+", "it pays off here", "-enable"),
    Decision.ENABLE_WITH_CARE: Look("✓!", "+!", "it pays off, with a caution", "-care"),
    Decision.TEST_CAREFULLY: Look("?", "?", "not sure: test it", "-test"),
    Decision.SKIP: Look("✗", "-", "it does not pay off here", "-skip"),
    Decision.RAN_EAGER: Look("=", "=", "nothing was compiled", "-eager"),
    Decision.CANNOT_COMPILE: Look("✗✗", "x", "the compiler does not work here", "-cannot"),
    Decision.FAILED: Look("!!", "!!", "something failed before the answer", "-failed"),
    Decision.STOPPED: Look("■", "#", "ended before the answer", "-stopped"),
}

SEVERITY_MARKS = {Severity.BLOCKER: "!!", Severity.WARNING: "!", Severity.ADVICE: ">", Severity.NOTE: "-"}
SEVERITY_STYLES = {
    Severity.BLOCKER: "bold $error",
    Severity.WARNING: "bold $warning",
    Severity.ADVICE: "bold $accent",
    Severity.NOTE: "$foreground-muted",
}


def next_step(verdict: Verdict, state: RunState) -> str:
    """What a person does with this answer, in one sentence."""
    decision = verdict.decision
    if decision in (Decision.ENABLE, Decision.ENABLE_WITH_CARE):
        return "put this line after the model is built"
    if decision is Decision.TEST_CAREFULLY:
        accuracy = verdict.best.result.accuracy if verdict.best is not None else None
        if accuracy is not None and accuracy.agreement is Agreement.DIFFERENT:
            return "compare the model's own metric with and without compile before you use it"
        if any(finding.id == "fit-batch" and finding.severity is Severity.ADVICE for finding in verdict.findings):
            return "try it in your own run at the larger batch, with the learning rate for that batch"
        return "measure again for longer on an idle machine (r, preset thorough), or try it in your own run"
    if decision is Decision.SKIP:
        if any(finding.id == "data-limits" and finding.severity is Severity.WARNING for finding in verdict.findings):
            return "make the loader faster, then measure again (r)"
        if any(finding.id == "graph-break" for finding in verdict.findings):
            return "leave the model as it is, or remove the graph breaks (b) and measure again (r)"
        return "leave the model as it is; measure again (r) for another plan, size or GPU"
    if decision is Decision.RAN_EAGER:
        return "remove the cause that is named above, then measure again (r)"
    if decision is Decision.CANNOT_COMPILE:
        return "fix what the message names, or choose another Python that has torch (--python); then r"
    if decision is Decision.STOPPED:
        return "measure again (r) with more time: a longer preset or --budget"
    return _after_failure(verdict, state)


def _after_failure(verdict: Verdict, state: RunState) -> str:
    if verdict.exit_code is ExitCode.BAD_INPUT:
        return "correct the model's inputs or its name in Setup (r)"
    if verdict.exit_code is ExitCode.EAGER_FAILS:
        return "make the model run without torch.compile first, then measure again (r)"
    if any(p.failure is not None and p.failure.fault == "memory" for p in state.processes.values()):
        return "free memory or make the batch smaller, then measure again (r)"
    if any(p.ended is not None and p.ended.outcome is ev.Outcome.KILLED for p in state.processes.values()):
        return "look at the end of the log (l) and at the system's own: memory, or a crash in native code"
    return "read the traceback (t) and the log (l); another mode may work (r)"
