"""`tcompile-tui doctor`: can torch.compile work here, and what would spoil a measurement?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tcompile_tui.host.check import Check

_NAME_WIDTH = 13
_CANNOT_COMPILE = 4


@click.command(short_help="Say whether torch.compile can work here, with the fix.")
@click.option("--python", metavar="EXE", help="Interpreter that has torch. Default: the one that a run would take.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def doctor(python: str | None, as_json: bool) -> None:
    """Say whether torch.compile can work here, and the fix for what is amiss.

    torch is not imported; a C++ compiler is tried out. Exit status: 0 it can work, 4 something keeps it from working.
    """
    from tcompile_tui.host.check import Level
    from tcompile_tui.host.preflight import examine

    checks = []
    for check in examine(os.environ, python):
        checks.append(check)
        if not as_json:
            click.echo("\n".join(_lines(check)))
    blocked = any(check.level is Level.BLOCKER for check in checks)
    if as_json:
        _print_json(checks, blocked)
    elif blocked:
        click.echo("\ntorch.compile cannot work here until what is marked !! is repaired")
    sys.stdout.flush()
    # A driver that hangs holds its thread for ever.
    os._exit(_CANNOT_COMPILE if blocked else 0)


def _lines(check: Check) -> list[str]:
    from tcompile_tui.host.check import Level

    marks = {Level.FINE: "ok", Level.NOTE: "-", Level.WARNING: "!", Level.BLOCKER: "!!"}
    lines = [f"{marks[check.level]:>2}  {check.name:<{_NAME_WIDTH}}{_printable(check.text)}"]
    if check.fix is not None:
        lines.append(f"    {'':<{_NAME_WIDTH}}fix: {_printable(check.fix)}")
    return lines


def _print_json(checks: Iterable[Check], blocked: bool) -> None:
    import msgspec

    rows = [
        {
            "name": check.name,
            "level": check.level.value,
            "text": _printable(check.text),
            "fix": _printable(check.fix) if check.fix is not None else None,
        }
        for check in checks
    ]
    document = {"schema_version": 1, "can_compile": not blocked, "checks": rows}
    click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))


def _printable(text: str) -> str:
    from tcompile_tui.host.caches import printable

    return printable(text)
