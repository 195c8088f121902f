"""The options that say which sizes a real run sees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcompile_tui.cli_shared import fail

if TYPE_CHECKING:
    from tcompile_tui.core.spec import RunSpec

_MAX_FILE_BYTES = 1 << 20


def shape_options(function: Any) -> Any:
    """`--shapes`, beside the `--dim` of the other options."""
    option = click.option("--shapes", metavar="FILE|DIST", help="The sizes of the batches of a real run, replayed with each `dynamic` of torch.compile and padded: a file with a batch a line (CSV with a header B,T, or JSON lines {\"B\":8,\"T\":37}), or a distribution 'B=1:5,8:3;T=16..512' (size:weight, range). Several values of --dim do the same.")  # fmt: skip
    return option(function)


def with_shapes(spec: RunSpec, options: dict[str, Any]) -> RunSpec:
    """The spec with the sizes that `--dim` and `--shapes` name. Raises SpecError."""
    from dataclasses import replace

    from tcompile_tui.core.shape_spec import is_distribution, parse_distribution, parse_shape_file, split_dims
    from tcompile_tui.core.spec import SpecError, parse_dims
    from tcompile_tui.core.task_spec import check_shapes

    single, sequence = split_dims(options["dims"])
    dims, given = parse_dims(single), options["shapes"]
    if given is not None:
        if sequence is not None:
            raise SpecError("give --shapes or several values of --dim, not both")
        if is_distribution(given):
            sequence = parse_distribution(given)
        else:
            sequence = parse_shape_file(_read(Path(options["cwd"]) / given), given)
    if sequence is None:
        return replace(spec, dims=dims)
    twice = [dim.name for dim in dims if dim.name in sequence.names]
    if twice:
        raise SpecError(f"the size '{twice[0]}' is given twice")
    if not sequence.varying:
        raise SpecError(f"{' '.join(sequence.words)} names one shape: give it with --dim, or more of them")
    spec = replace(spec, dims=(*dims, *sequence.usual), shapes=sequence)
    check_shapes(spec)
    return spec


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MAX_FILE_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        fail(f"--shapes {path} cannot be read: {reason}", 2)
    if len(text) > _MAX_FILE_BYTES:
        fail(f"--shapes {path} is larger than {_MAX_FILE_BYTES >> 20} MiB: a sequence has a batch a line", 2)
    return text
