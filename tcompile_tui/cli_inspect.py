"""`tcompile-tui inspect`: what a model is and which inputs it takes, before anything is measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tcompile_tui.cli_shared import assignments, fail

_BAD_INPUT, _NO_TORCH, _STOPPED, _FAILED = 2, 4, 5, 6


@click.command()
@click.argument("target")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--python", metavar="EXE", help="Interpreter that has torch and the model's packages.")
@click.option(
    "--arg", "arguments", multiple=True, metavar="NAME=VALUE", help="Argument of the model's constructor, as for run."
)
@click.option("--env", "environment", multiple=True, metavar="K=V", help="Set an environment variable for the model.")
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="Folder that the model runs in.",
)
@click.option(
    "--limit",
    type=click.FloatRange(min=1),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="Time for importing, building and trying it.",
)
def inspect(target: str, argv: tuple[str, ...], **options: Any) -> None:
    """Say what TARGET is, and propose inputs for it.

    The file is imported and its model is built in a process of its own; nothing is compiled or measured. Inputs come
    from the file's example_inputs(); without one they are proposed from names, the first layers and a trial on the
    meta device, as --input options to look at and paste.

    Exit status: 0 there are inputs, 2 there are none or the target is no model, 4 there is no torch, 5 stopped, 6
    writing failed.
    """
    from tcompile_tui.config import load_config
    from tcompile_tui.core.spec import SpecError, parse_arguments, parse_target
    from tcompile_tui.host.inspection import InspectRequest, inspect_target
    from tcompile_tui.host.interpreter import InterpreterError
    from tcompile_tui.host.stopping import Stop, StopRequest

    asked = options["python"] or load_config().python
    try:
        request = InspectRequest(
            target=parse_target(target),
            cwd=options["cwd"].absolute(),
            python=asked,
            argv=argv,
            arguments=parse_arguments(options["arguments"]),
            extra_environment=assignments(options["environment"]),
            limit_s=options["limit"],
        )
    except SpecError as error:
        fail(str(error), _BAD_INPUT)
    stop = StopRequest()
    try:
        with stop.listening(first=Stop.ABANDON):
            inspected = inspect_target(request, stop)
    except InterpreterError as error:
        fail(str(error), _BAD_INPUT if asked else _NO_TORCH)
    except OSError as error:
        fail(f"cannot write temporary files: {error}", _FAILED)
    _show(inspected, options["as_json"])
    document = inspected.document
    found = document.inputs is not None and bool(document.inputs.arguments)
    raise SystemExit(_STOPPED if stop.level is not Stop.NO else 0 if found else _BAD_INPUT)


def _show(inspected: Any, as_json: bool) -> None:
    from tcompile_tui.core.inspect_json import encode_inspection
    from tcompile_tui.report.inspection import inspection_text

    document = inspected.document
    if as_json:
        click.echo(encode_inspection(document), nl=False)
        return
    if document.candidates:
        click.echo(inspection_text(document), nl=False)
    if document.problem is not None:
        sys.stdout.flush()
        click.echo(f"error: {document.problem}", err=True)
