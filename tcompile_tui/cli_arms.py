"""The options that say which ways to compile are compared, and those of tasks that have some of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tcompile_tui.core.spec import Mode


def arm_options(function: Any) -> Any:
    """`--arm`, `--fullgraph`, `--new-tokens` and `--slo-ms`, beside the `--mode` of the other options."""
    fullgraph = click.option("--fullgraph", is_flag=True, help="Also find out whether it compiles with fullgraph=True, and what is in the way; no part of the verdict.")  # fmt: skip
    option = click.option("--arm", "arms", multiple=True, metavar="WORDS", help="One more way to compile, compared with the modes; repeat it for several. Words between commas: a mode, dynamic=true|false, cache=static|growing (for --task decode), OPTION=VALUE of Inductor (coordinate_descent_tuning=true), and regional[=Block]: each block of the class that repeats is compiled by itself, with one code for all; nested[=Block]: the same within the compiled model (torch 2.8).")  # fmt: skip
    tokens = click.option("--new-tokens", type=click.IntRange(1, 4096), help="With --task decode: tokens of one generation. Default: 32.")  # fmt: skip
    slo = click.option("--slo-ms", type=click.FloatRange(min=0, min_open=True), help="With --task serve: how long 99 of 100 requests may take, in ms.")  # fmt: skip
    return option(fullgraph(tokens(slo(function))))


def read_modes(modes: Sequence[str], arms: Sequence[str]) -> tuple[Mode, ...]:
    """What `--mode` and `--arm` ask for. Raises SpecError."""
    from tcompile_tui.core.spec import Mode, order_modes, parse_arm

    return order_modes([*map(Mode, modes), *(Mode(parse_arm(arm).label) for arm in arms)])
