"""All causes of a run: the rules on the outputs, the compiled program, the measurement and its surroundings."""

from __future__ import annotations

from collections.abc import Sequence

from tcompile_tui.core import (
    accuracy_causes,
    compiler_causes,
    data_causes,
    decode_causes,
    epoch_causes,
    fit_causes,
    fullgraph_causes,
    measurement_causes,
    no_gain_causes,
    page_fault_causes,
    region_causes,
    serve_causes,
    shape_verdict,
)
from tcompile_tui.core.findings import Finding, Severity
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.state import RunState


def find_causes(state: RunState, results: Sequence[ModeResult]) -> tuple[Finding, ...]:
    """All findings of a run, worst first, each cause once."""
    rules = (
        *accuracy_causes.RULES, *data_causes.RULES, *fit_causes.RULES, *no_gain_causes.RULES, *compiler_causes.RULES,
        *shape_verdict.RULES, *page_fault_causes.RULES, *measurement_causes.RULES, *region_causes.RULES,
        *fullgraph_causes.RULES, *decode_causes.RULES, *epoch_causes.RULES, *serve_causes.RULES,
    )  # fmt: skip
    found = {
        (finding.id, finding.title, finding.evidence, finding.file, finding.line): finding
        for rule in rules
        for finding in rule(state, results)
    }
    order = list(Severity)
    return tuple(sorted(found.values(), key=lambda finding: order.index(finding.severity)))
