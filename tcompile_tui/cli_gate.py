"""The gate's options, shared by `run` and `decide`, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcompile_tui.cli_shared import recorded_run

if TYPE_CHECKING:
    from tcompile_tui.core.gate import Gate, GateCheck
    from tcompile_tui.core.verdict import Verdict

FAIL_ON = ("graph-breaks", "recompiles", "ran-eager", "slower", "accuracy", "cudagraph-skips")


def gate_options(function: Any) -> Any:
    """Conditions that every mode of the run has to hold to."""
    options = [
        click.option("--fail-on", "fail_on", multiple=True, type=click.Choice(FAIL_ON), help="Gate: exit status 10 if this happens in any mode; repeat it for several. slower: the whole interval is below 1. accuracy: outputs or gradients differ, or could not be shown to agree."),
        click.option("--min-speedup", type=click.FloatRange(min=0, min_open=True), metavar="X", help="Gate: exit status 10 if the lower end of a mode's 95 % interval is below X."),
        click.option("--max-cold-start", type=click.FloatRange(min=0), metavar="SECONDS", help="Gate: exit status 10 if a start on empty compile caches takes longer."),
        click.option("--baseline", metavar="RUN", help="Gate: exit status 10 if this is a regression against RUN, an earlier run folder of the same model, inputs and device (see compare)."),
        click.option("--junit", "junit_path", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write decision and gate as JUnit XML."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def gate_of(options: dict[str, Any]) -> Gate:
    """Leaves with status 2 where there is no such baseline."""
    from tcompile_tui.core.gate import FailOn, Gate
    from tcompile_tui.host.recorded import read_compared_run

    baseline = options["baseline"]
    return Gate(
        fail_on=tuple(FailOn(what) for what in options["fail_on"]),
        min_speedup=options["min_speedup"],
        max_cold_start_s=options["max_cold_start"],
        baseline=read_compared_run(recorded_run(baseline)) if baseline is not None else None,
    )


def tell_gate(checks: Sequence[GateCheck]) -> None:
    """On stderr, one line a reason; a gate that asks nothing says nothing."""
    for check in checks:
        for reason in check.reasons:
            click.echo(f"gate: {check.name}: {reason}", err=True)
    if checks and all(check.passed for check in checks):
        click.echo(f"gate: passed ({', '.join(check.name for check in checks)})", err=True)


def write_junit(path: Path, name: str, verdict: Verdict, checks: Sequence[GateCheck], seconds: float) -> None:
    """A file that cannot be written is told, and changes no exit status: the decision stands."""
    from tcompile_tui.report.junit import junit_xml

    try:
        path.write_bytes(junit_xml(name, verdict, checks, seconds))
    except OSError as error:
        click.echo(f"error: cannot write {path}: {error.strerror or error}", err=True)
