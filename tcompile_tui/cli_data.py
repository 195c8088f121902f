"""The options about the batches of a real run: how fast they come, and how large they can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tcompile_tui.core.spec import RunSpec


def data_options(function: Any) -> Any:
    """`--data-ms`, `--loader` and `--fit-batch`."""
    options = [
        click.option("--data-ms", metavar="MS", help="Milliseconds between two batches of your loader: where that is slower than a step, the gain end to end decides."),
        click.option("--fit-batch", is_flag=True, help="Also find the largest batch of each arm, and compare samples a second there (GPU, from preset standard on): the dimension named B, else the leading one of all inputs."),
        click.option("--loader", metavar="FILE.py:FN", help="Or a function that returns your loader, whose batches are timed in a process of their own."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def with_data(spec: RunSpec, options: dict[str, Any]) -> RunSpec:
    """The spec with what is said of the batches. Raises SpecError."""
    from dataclasses import replace

    from tcompile_tui.core.data_spec import read_data
    from tcompile_tui.core.spec import SpecError

    data = read_data(options["data_ms"], options["loader"])
    if data is not None and spec.shapes is not None:
        raise SpecError(
            f"{data.words[0]} and {' '.join(spec.shapes.words)}: a sequence of shapes is decided by its steps alone,"
            " leave one of them out"
        )
    spec = replace(spec, data=data, fit_batch=options["fit_batch"])
    if spec.fit_batch:
        check_fit_batch(spec)
    return spec


def check_fit_batch(spec: RunSpec) -> None:
    """Can a larger batch be made of what is given? Raises SpecError."""
    from tcompile_tui.core.fit_batch import FIT_NEEDS_GPU
    from tcompile_tui.core.spec import Preset, SpecError

    if spec.device == "cpu":
        raise SpecError(FIT_NEEDS_GPU)
    if spec.inputs_from is not None:
        raise SpecError(
            f"--fit-batch has no use with --inputs {spec.inputs_from}, whose batch has the size that it has"
        )
    if spec.step.own is not None:
        raise SpecError(f"--fit-batch and --step {spec.step.own}: a step of your own may do anything with its batch")
    if spec.shapes is not None:
        raise SpecError(f"--fit-batch and {' '.join(spec.shapes.words)}: leave one of them out")
    if spec.preset not in (Preset.STANDARD, Preset.THOROUGH):
        raise SpecError(f"--fit-batch takes minutes: use --preset standard or thorough, not {spec.preset.value}")
