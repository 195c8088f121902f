"""What the probe with fullgraph=True found, beside a verdict that it has no part in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcompile_tui.core import events as ev
from tcompile_tui.core.failure_words import failure_place, failure_text
from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import plural

_ID = "fullgraph"


def _probed(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    process = state.process_of(Phase.FULLGRAPH)
    if process is None or process.running:
        return
    if process.fullgraph is None:
        failed = process.failure
        why = failure_text(failed) if failed is not None else process.ended.detail if process.ended is not None else ""
        yield Finding(_ID, Severity.NOTE, "whether it compiles with fullgraph=True was not found out", evidence=why)
    elif process.fullgraph.holds:
        yield _holds(results, process.compile.graphs)
    else:
        yield _does_not_hold(process.fullgraph)


def _holds(results: Sequence[ModeResult], graphs: int) -> Finding:
    """With breaks in the run's own compile the two disagree, and torch's setting is why."""
    if graphs == 0:
        return Finding(_ID, Severity.NOTE, "with fullgraph=True nothing is compiled either, and torch does not say so")
    breaks = next((result.graph_breaks for result in results if result.graph_breaks), 0)
    title = f"it compiles with fullgraph=True, into {plural(graphs, 'graph')}"
    if not breaks:
        return Finding(_ID, Severity.NOTE, title, advice="with it a later graph break is an error, and not slow")
    return Finding(
        _ID,
        Severity.ADVICE,
        f"{title}, though the run had {plural(breaks, 'graph break')}",
        evidence="fullgraph=True also captures values and sizes that hang on data, such as .item()",
        advice="model.compile(fullgraph=True) may be faster: this run measured it without",
    )


def _does_not_hold(probed: ev.FullgraphProbed) -> Finding:
    failure = ev.WorkerFailed(
        stage="", error_type=probed.error_type, message=probed.message, file=probed.file, line=probed.line, source=None,
        fault="compiler", traceback="",
    )  # fmt: skip
    file, line = failure_place(failure) or (None, None)
    return Finding(
        _ID,
        Severity.ADVICE,
        "with fullgraph=True it would not compile: this is the first thing in the way",
        evidence=failure_text(failure),
        advice="the verdict stands without it; change that line, or leave fullgraph out",
        file=file,
        line=line or None,
    )


RULES: tuple[Rule, ...] = (_probed,)
