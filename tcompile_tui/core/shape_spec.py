"""The sizes that a real run sees, batch by batch: a file of them, several values of `--dim`, or a distribution.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import enum
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from .input_spec import Dim
from .spec_error import SpecError

MAX_BATCHES = 4_000
DRAWN_BATCHES = 256
_SEED = 20
_MAX_SIZE_DIGITS = 12
Sizes: TypeAlias = tuple[int, ...]


class ShapeHandling(str, enum.Enum):
    """What is done about sizes that change: the `dynamic` of torch.compile, or padding to a few static sizes."""

    AUTOMATIC = "automatic"
    DYNAMIC = "dynamic"
    STATIC = "static"
    PADDED = "padded"

    @property
    def dynamic(self) -> bool | None:
        """The argument of torch.compile."""
        return {"automatic": None, "dynamic": True, "static": False, "padded": False}[self.value]

    @property
    def label(self) -> str:
        return "padded" if self is ShapeHandling.PADDED else f"dynamic={self.dynamic}"


@dataclass(frozen=True)
class ShapeSequence:
    """Batches in the order in which they come. `shapes` are the distinct ones, each with a size for every one of
    `names`; `order` has the number of its shape for every batch. `words` is what was typed for it."""

    names: tuple[str, ...]
    shapes: tuple[Sizes, ...]
    order: tuple[int, ...]
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Sequence[str], batches: Sequence[Sizes], words: Sequence[str] = ()) -> ShapeSequence:
        shapes = tuple(dict.fromkeys(batches))
        number = {shape: index for index, shape in enumerate(shapes)}
        return cls(tuple(names), shapes, tuple(number[batch] for batch in batches), tuple(words))

    @property
    def sound(self) -> bool:
        """Do its parts fit each other? A recorded one may come from anyone."""
        columns = all(len(shape) == len(self.names) for shape in self.shapes)
        return bool(self.order) and columns and set(self.order) <= set(range(len(self.shapes)))

    @property
    def varying(self) -> tuple[str, ...]:
        """The names whose sizes change."""
        columns = zip(self.names, zip(*self.shapes, strict=True), strict=True)
        return tuple(name for name, sizes in columns if len(set(sizes)) > 1)

    @property
    def usual(self) -> tuple[Dim, ...]:
        """The most frequent shape; of equally frequent ones that of median size."""
        times = Counter(self.order)
        most = max(times.values())
        frequent = sorted((self.shapes[i] for i, n in times.items() if n == most), key=prod)
        return self.dims(frequent[(len(frequent) - 1) // 2])

    def dims(self, shape: Sizes) -> tuple[Dim, ...]:
        return tuple(map(Dim, self.names, shape))

    def text(self, shape: Sizes) -> str:
        return ",".join(map(str, self.dims(shape)))


# ---------------------------------------------------------------- reading them


def split_dims(texts: Sequence[str]) -> tuple[list[str], ShapeSequence | None]:
    """The `--dim`s with one size, and the sequence that those with several make: every combination in turn, the last
    name's size changing first. Raises SpecError."""
    single = [text for text in texts if "," not in text]
    several = [text for text in texts if "," in text]
    columns: dict[str, list[int]] = {}
    for text in several:
        name, _, written = (part.strip() for part in text.partition("="))
        sizes = [_size(size) for size in written.split(",")]
        if not name.isidentifier() or None in sizes or name in columns:
            raise SpecError(f"cannot read the sizes '{text}': write --dim B=8,16,32")
        columns[name] = list(dict.fromkeys(size for size in sizes if size is not None))
    if not columns:
        return single, None
    words = [word for text in several for word in ("--dim", text)]
    return single, ShapeSequence.of(list(columns), list(itertools.product(*columns.values())), words)


def is_distribution(text: str) -> bool:
    """Does `--shapes` say the sizes itself, or does it name a file?"""
    return re.match(r"\s*\w+\s*=", text) is not None


def parse_distribution(text: str) -> ShapeSequence:
    """Read `B=1:5,8:3;T=16..512`: each name with its sizes and their weights (1 where none is given), or a range in
    which every size is as likely. Draws DRAWN_BATCHES batches, the same each time. Raises SpecError."""
    draws: dict[str, Callable[[random.Random], int]] = {}
    for part in text.split(";"):
        name, equals, written = (word.strip() for word in part.partition("="))
        if not (equals and name.isidentifier()) or name in draws:
            raise _unreadable(text)
        draws[name] = _read_draw(written, text)
    generator = random.Random(_SEED)
    batches = [tuple(draw(generator) for draw in draws.values()) for _ in range(DRAWN_BATCHES)]
    return ShapeSequence.of(list(draws), batches, ("--shapes", text))


def _read_draw(written: str, text: str) -> Callable[[random.Random], int]:
    low, dots, high = written.partition("..")
    if dots:
        first, last = _size(low), _size(high)
        if first is None or last is None or first > last:
            raise _unreadable(text)
        return lambda generator: generator.randint(first, last)
    weights: dict[int, float] = {}
    for choice in written.split(","):
        size_text, colon, weight_text = choice.partition(":")
        size = _size(size_text)
        weight = _number(weight_text) if colon else 1.0
        if size is None or weight is None or size in weights:
            raise _unreadable(text)
        weights[size] = weight
    sizes = list(weights)
    return lambda generator: generator.choices(sizes, list(weights.values()))[0]


def _unreadable(text: str) -> SpecError:
    return SpecError(f"cannot read the shapes '{text}': write B=1:5,8:3 (size:weight), T=16..512, or name a file")


def parse_shape_file(text: str, path: str) -> ShapeSequence:
    """Read the batches of a file, one a line: CSV with a header of names (`B,T`, then `8,37`), or JSON lines
    (`{"B": 8, "T": 37}`). Empty lines and those that begin with # are skipped. Raises SpecError with the line."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        raise SpecError(f"--shapes {path} has no batch: write a header B,T and a line 8,37 for each batch")
    names, rows = _json_rows(lines, path) if lines[0][1].startswith("{") else _csv_rows(lines, path)
    if not rows:
        raise SpecError(f"--shapes {path} has a header and no batch below it")
    if len(rows) > MAX_BATCHES:
        raise SpecError(f"--shapes {path} has {len(rows):,} batches: a sequence has at most {MAX_BATCHES:,}")
    return ShapeSequence.of(names, rows, ("--shapes", path))


def _csv_rows(lines: Sequence[tuple[int, str]], path: str) -> tuple[list[str], list[Sizes]]:
    names = [name.strip() for name in lines[0][1].split(",")]
    if not all(name.isidentifier() for name in names) or len(set(names)) < len(names):
        raise SpecError(f"--shapes {path}, line {lines[0][0]}: a header of size names is needed, as B,T")
    return names, [_row(line.split(","), len(names), number, path) for number, line in lines[1:]]


def _json_rows(lines: Sequence[tuple[int, str]], path: str) -> tuple[list[str], list[Sizes]]:
    names: list[str] = []
    rows = []
    for number, line in lines:
        batch = _json_object(line)
        names = names or list(batch)
        if not names or set(batch) != set(names) or not all(name.isidentifier() for name in names):
            raise SpecError(f'--shapes {path}, line {number}: write {{"B": 8, "T": 37}}, the same names in every line')
        rows.append(_row([str(batch[name]) for name in names], len(names), number, path))
    return names, rows


def _json_object(line: str) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _row(cells: Sequence[str], columns: int, number: int, path: str) -> Sizes:
    sizes = [_size(cell) for cell in cells]
    known = tuple(size for size in sizes if size is not None)
    if len(known) != columns or len(sizes) != columns:
        raise SpecError(f"--shapes {path}, line {number}: {columns} whole numbers from 1 up are needed")
    return known


def _size(text: str) -> int | None:
    text = text.strip()
    valid = text.isascii() and text.isdigit() and len(text) <= _MAX_SIZE_DIGITS
    return int(text) or None if valid else None


def _number(text: str) -> float | None:
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 < weight < 1e9 else None


# ---------------------------------------------------------------- padding

_BUCKETS_OF_ONE, _BUCKETS_OF_MORE = 4, 2
_MOST_DISTINCT = 256


def padded(sequence: ShapeSequence) -> ShapeSequence:
    """The same batches with every varying size raised to one of a few: four where one size varies, two of each where
    more do, so that the shapes stay below torch's recompile limit of 8 up to three varying sizes."""
    buckets = bucket_sizes(sequence)
    batches = [
        tuple(
            min(bucket for bucket in buckets[name] if bucket >= size) if name in buckets else size
            for name, size in zip(sequence.names, sequence.shapes[number], strict=True)
        )
        for number in sequence.order
    ]
    return ShapeSequence.of(sequence.names, batches, sequence.words)


def bucket_sizes(sequence: ShapeSequence) -> dict[str, tuple[int, ...]]:
    """The sizes that each varying one is padded to."""
    varying = sequence.varying
    most = _BUCKETS_OF_ONE if len(varying) == 1 else _BUCKETS_OF_MORE
    position = {name: sequence.names.index(name) for name in varying}
    return {
        name: choose_buckets([sequence.shapes[number][at] for number in sequence.order], most)
        for name, at in position.items()
    }


def choose_buckets(sizes: Sequence[int], most: int) -> tuple[int, ...]:
    """At most `most` sizes, the largest among them, for which the least is padded in all: exact, by dynamic
    programming over the distinct sizes (thinned to quantiles where there are very many)."""
    counts = sorted(Counter(sizes).items())
    if len(counts) > _MOST_DISTINCT:
        ordered = sorted(sizes)
        last = len(ordered) - 1
        quantiles = [ordered[round(i * last / _MOST_DISTINCT)] for i in range(1, _MOST_DISTINCT + 1)]
        raised = [min(q for q in quantiles if q >= size) for size in ordered]
        counts = sorted(Counter(raised).items())
    values = [value for value, _ in counts]
    below = [0, *itertools.accumulate(n for _, n in counts)]
    # least[j]: what the first j values cost, raised to the buckets so far, without the constant sum of sizes.
    least: list[float] = [0.0] + [float("inf")] * len(values)
    chosen: list[tuple[int, ...]] = [()] * (len(values) + 1)
    for _ in range(min(most, len(values))):
        rows = [
            min((least[i] + (below[j] - below[i]) * values[j - 1], chosen[i] + (values[j - 1],)) for i in range(j))
            for j in range(1, len(values) + 1)
        ]
        least, chosen = [0.0, *(cost for cost, _ in rows)], [(), *(picked for _, picked in rows)]
    return chosen[-1]


# ---------------------------------------------------------------- records


def sequence_from_json(body: Mapping[str, Any] | None) -> ShapeSequence | None:
    """Build it from its JSON object, which msgspec wrote."""
    if body is None:
        return None
    return ShapeSequence(
        names=tuple(body["names"]),
        shapes=tuple(map(tuple, body["shapes"])),
        order=tuple(body["order"]),
        words=tuple(body["words"]),
    )
