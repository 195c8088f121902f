"""The options that say how fast the batches of a real run come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tcompile_tui.core.spec import RunSpec


def data_options(function: Any) -> Any:
    """`--data-ms` and `--loader`."""
    options = [
        click.option("--data-ms", metavar="MS", help="Milliseconds between two batches of your loader: where that is slower than a step, the gain end to end decides."),
        click.option("--loader", metavar="FILE.py:FN", help="Or a function that returns your loader, whose batches are timed in a process of their own."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def with_data(spec: RunSpec, options: dict[str, Any]) -> RunSpec:
    """The spec with what is said of the data. Raises SpecError."""
    from dataclasses import replace

    from tcompile_tui.core.data_spec import read_data
    from tcompile_tui.core.spec import SpecError

    data = read_data(options["data_ms"], options["loader"])
    if data is not None and spec.shapes is not None:
        raise SpecError(
            f"{data.words[0]} and {' '.join(spec.shapes.words)}: a sequence of shapes is decided by its steps alone,"
            " leave one of them out"
        )
    return replace(spec, data=data)
