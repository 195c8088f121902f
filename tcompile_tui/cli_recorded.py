"""Commands on recorded runs: decide one again, compare several, write a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcompile_tui.cli_gate import gate_of, gate_options, tell_gate, write_junit
from tcompile_tui.cli_shared import fail, recorded_run

FORMATS = ("text", "markdown", "html", "json", "script", "csv", "prometheus")


@click.command(short_help="Decide a recorded run again, and hold it to a gate.")
@click.argument("run_folder", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@gate_options
def decide(run_folder: str, as_json: bool, **options: Any) -> None:
    """Decide a recorded run again, from its records alone, and hold it to a gate.

    RUN is a run folder, or its name as `tcompile-tui runs` lists it. Exit status: as that of `run`.
    """
    from tcompile_tui.core.gate import check_gate, gated_exit_code
    from tcompile_tui.core.verdict_json import encode_verdict, verdict_document
    from tcompile_tui.host.recorded import read_compared_run
    from tcompile_tui.report.text import verdict_text

    path = recorded_run(run_folder)
    run = read_compared_run(path)
    checks = check_gate(gate_of(options), run)
    if as_json:
        click.echo(encode_verdict(verdict_document(run.state, run.verdict, checks)), nl=False)
    else:
        click.echo(verdict_text(run.state, run.verdict, path), nl=False)
    tell_gate(checks)
    if options["junit_path"] is not None:
        write_junit(options["junit_path"], path.name, run.verdict, checks, run.state.now_s)
    raise SystemExit(int(gated_exit_code(run.verdict, checks)))


@click.command(short_help="Compare recorded runs with the first of them.")
@click.argument("run_folders", metavar="RUN RUN...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="As JSON: a list, one comparison for each run after the first.")
@click.option("--gate", is_flag=True, help="Exit status 10 if a run is a regression against the first, or cannot be compared with it.")  # fmt: skip
def compare(run_folders: tuple[str, ...], as_json: bool, gate: bool) -> None:
    """Compare recorded runs with the first of them: what was different, and what changed beyond the intervals.

    RUN is a run folder, or its name as `tcompile-tui runs` lists it.
    """
    import msgspec

    from tcompile_tui.core.compare_runs import compare_runs
    from tcompile_tui.core.gate import GateCheck, regression_reasons
    from tcompile_tui.host.recorded import read_compared_run
    from tcompile_tui.report.comparison import comparison_document, comparison_text

    if len(run_folders) < 2:
        fail("compare needs two runs or more: tcompile-tui compare BEFORE AFTER", 2)
    before, *others = [read_compared_run(recorded_run(run)) for run in run_folders]
    found = [compare_runs(before, after) for after in others]
    if as_json:
        documents = msgspec.json.encode([comparison_document(comparison) for comparison in found])
        click.echo(msgspec.json.format(documents, indent=2))
    else:
        click.echo("\n".join(comparison_text(comparison) for comparison in found), nl=False)
    checks = [GateCheck(each.after.name, regression_reasons(each)) for each in found] if gate else []
    tell_gate(checks)
    raise SystemExit(0 if all(check.passed for check in checks) else 10)


@click.command()
@click.argument("run_folder", metavar="RUN", required=False)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="markdown: for an issue or a pull request. html: one file with figures. script: plain PyTorch that measures the best mode again. csv: every step's time. prometheus: for node_exporter's textfile collector.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to this file. Default: stdout.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of --format json.")
def report(run_folder: str | None, format_name: str, output: Path | None, schema: bool) -> None:
    """Write what a recorded run found, to take away.

    RUN is a run folder, or its name as `tcompile-tui runs` lists it. --format html needs
    pip install 'tcompile-tui[report]'.
    """
    from tcompile_tui.core.spec import SpecError
    from tcompile_tui.host.recorded import read_reported_run
    from tcompile_tui.host.run_folder import write_atomically
    from tcompile_tui.report.document import report_schema
    from tcompile_tui.report.formats import MissingLibraryError, ReportFormat, render

    if schema:
        click.echo(report_schema(), nl=False)
        return
    if run_folder is None:
        fail("which run? tcompile-tui report RUN; tcompile-tui runs lists them", 2)
    path = recorded_run(run_folder)
    try:
        text = render(read_reported_run(path), ReportFormat(format_name), path)
    except (SpecError, MissingLibraryError) as error:
        fail(str(error), 2)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        write_atomically(output, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        fail(f"cannot write {output}: {error.strerror or error}", 6)
    click.echo(str(output), err=True)
