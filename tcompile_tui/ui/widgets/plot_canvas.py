"""Dots to characters. A column of dots is one whole number, bit 0 the lowest dot: drawing is arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import or_
from typing import Final

from tcompile_tui.ui.widgets.plot_columns import Column
from tcompile_tui.ui.widgets.plot_scale import TimeScale

NONE: Final = 0
EAGER: Final = 1
COMPILED: Final = 2
BOTH: Final = 3
Run = tuple[str, int]  # some characters and whose they are

_LEFT_DOTS = (0x40, 0x04, 0x02, 0x01)  # of a braille cell, from the lowest up
_RIGHT_DOTS = (0x80, 0x20, 0x10, 0x08)


@dataclass(frozen=True)
class Glyphs:
    """A way to draw. Eager has the left dots of a cell only, so that it looks dotted beside compiled's full
    line. A cell is looked up by eager's, compiled's left and compiled's right dots."""

    dots_per_row: int
    columns_per_cell: int
    cells: tuple[str, ...]
    eager_key: str
    compiled_key: str
    both_key: str
    upright: tuple[str, str]  # the axis of times, without and with a tick
    level: tuple[str, str, str]  # the axis of steps: corner, without and with a tick


def _braille_cells() -> tuple[str, ...]:
    left = [sum(dot for bit, dot in enumerate(_LEFT_DOTS) if mask >> bit & 1) for mask in range(16)]
    right = [sum(dot for bit, dot in enumerate(_RIGHT_DOTS) if mask >> bit & 1) for mask in range(16)]
    dots = (left[code & 15] | left[code >> 4 & 15] | right[code >> 8] for code in range(4096))
    return tuple(chr(0x2800 + mask) if mask else " " for mask in dots)


BRAILLE = Glyphs(4, 2, _braille_cells(), "⠂⠂⠂", "⠒⠒⠒", "⠒", ("│", "┤"), ("└", "─", "┬"))
ASCII = Glyphs(1, 1, (" ", ".", ":", "#"), ".", ":", "#", ("|", "+"), ("+", "-", "+"))


@dataclass(frozen=True)
class Trace:
    """A series as dots: a number per column, and the columns with a step above the scale."""

    dots: list[int]
    clipped: list[bool]


def trace(columns: Sequence[Column | None], scale: TimeScale, height: int) -> Trace:
    """Columns as dots: the body filled and joined to its neighbour, the extremes as lone dots."""
    full = (1 << height) - 1
    dot_of = scale.dots(height)
    dots, clipped = [], []
    before_low, before_high = 0, height
    for column in columns:
        if column is None:
            dots.append(0)
            clipped.append(False)
            before_low, before_high = 0, height
            continue
        low, high, top = dot_of(column.body_low), dot_of(column.body_high), dot_of(column.high)
        first, last = low, high
        if low > before_high:
            first = before_high + 1
        elif high < before_low < height:
            last = before_low - 1
        before_low, before_high = low, high
        mask = (2 << last) - (1 << first) | 1 << dot_of(column.low) | 1 << top
        dots.append(mask & full)
        clipped.append(top == height)
    return Trace(dots, clipped)


def rows(eager: Trace, compiled: Trace, height: int, glyphs: Glyphs) -> list[list[Run]]:
    """The plot, from the top row down."""
    bits, per_cell = glyphs.dots_per_row, glyphs.columns_per_cell
    left, right = compiled.dots[::per_cell], compiled.dots[1::per_cell] if per_cell == 2 else None
    lines: list[list[Run]] = []
    nibble = (1 << bits) - 1
    used = reduce(or_, eager.dots + compiled.dots, 0)
    empty = [(" " * len(left), NONE)]
    for row in reversed(range(height)):
        shift = row * bits
        if lines and not used >> shift & nibble:
            lines.append(empty)
            continue
        codes = [(e >> shift & nibble) | (c >> shift & nibble) << bits for e, c in zip(eager.dots, left)]
        if right is not None:
            codes = [code | (c >> shift & nibble) << 2 * bits for code, c in zip(codes, right)]
        owners = [(code & nibble and EAGER) | (code > nibble and COMPILED) for code in codes]
        text = [glyphs.cells[code] for code in codes]
        if not lines:
            _mark_clipped(text, owners, eager, compiled, per_cell)
        lines.append(runs("".join(text), owners))
    return lines


def _mark_clipped(text: list[str], owners: list[int], eager: Trace, compiled: Trace, per_cell: int) -> None:
    for cell, eager_clipped in enumerate(eager.clipped):
        compiled_clipped = any(compiled.clipped[cell * per_cell : (cell + 1) * per_cell])
        if eager_clipped or compiled_clipped:
            text[cell] = "^"
            owners[cell] = (eager_clipped and EAGER) | (compiled_clipped and COMPILED)


def runs(text: str, owners: Sequence[int]) -> list[Run]:
    """Text cut where its owner changes."""
    found, at = [], 0
    for owner, group in groupby(owners):
        end = at + sum(1 for _ in group)
        found.append((text[at:end], owner))
        at = end
    return found
