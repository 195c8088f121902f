"""What several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click


def fail(message: str, status: int) -> NoReturn:
    """Leave with one line on stderr."""
    from tcompile_tui.core.literal import one_line

    click.echo(f"error: {one_line(message)}", err=True)
    raise SystemExit(status)


def recorded_run(run: str) -> Path:
    """The run folder that is meant: a path, or a name among the recorded runs."""
    from tcompile_tui.paths import default_runs_dir

    places = (Path(run), default_runs_dir() / run)
    path = next((place for place in places if (place / "events.jsonl").exists()), None)
    if path is None:
        fail(f"{run} is no run folder and no run in {default_runs_dir()}; see tcompile-tui runs", 2)
    return path.absolute()


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """Read every `--env`. Raises SpecError."""
    from tcompile_tui.core.spec import SpecError

    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise SpecError(f"--env '{name}' is no assignment: write --env NAME=VALUE")
    return {name: value for name, _, value in pairs}
