"""How often the gate says "steady" where the level is not: `python -m tests.benchmarks.false_steady [--runs N]`.

A word is false when the true level in the accepted window differs by more than 2 % from the steady one, or when the
compiler works inside it. "After the pairs": the words that also stood through the least number of pairs that is
measured after them, which watch on. `--runs` counts the series of each kind.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import median

from tcompile_tui.core.events import Steadiness
from tcompile_tui.core.pairs import LOOKS
from tcompile_tui.core.steady import SteadyGate, level_held
from tests.benchmarks.record import Figure, parser, publish, record, table
from tests.benchmarks.synth import KINDS, UNFORESEEABLE, Series, series
from tests.benchmarks.tables import share, statistical

_FALSE_BEYOND = 0.02
_BLOCK_STEPS, _BLOCK_NS = 8, 20_000_000


@dataclass(frozen=True)
class Word:
    """When the gate first said steady, and what it then took for the steady part."""

    steps: int
    step_time_s: float
    false: bool
    stood: bool


def first_word(made: Series) -> Word | None:
    """None where the gate runs out of steps or of its budget."""
    gate = SteadyGate()
    for index, step_ns in enumerate(made.step_ns):
        gate.extend((step_ns,), (0,) if index in made.compiled_at else ())
        if gate.state is Steadiness.NOISE_LIMITED:
            return None
        if gate.state is Steadiness.STEADY:
            start = gate.start_index or 0
            level, window = made.level_ns[-1], range(start, index + 1)
            moved = abs(median(made.level_ns[step] for step in window) / level - 1) > _FALSE_BEYOND
            own_ns = sum(own for step, own in enumerate(made.step_ns[: index + 1]) if not _near_compile(made, step))
            false = moved or any(step in made.compiled_at for step in window)
            return Word(index + 1, own_ns / 1e9, false, _stands(made, start, index + 1))
    return None


def _stands(made: Series, start: int, word: int) -> bool:
    """Through the blocks of the first look, in which a compile is seen too."""
    steps = max(_BLOCK_STEPS, round(_BLOCK_NS / made.level_ns[-1]))
    blocks = [made.step_ns[word + i * steps : word + (i + 1) * steps] for i in range(LOOKS[0])]
    compiled = any(word <= step < word + LOOKS[0] * steps for step in made.compiled_at)
    return not compiled and level_held(made.step_ns[start:word], [median(block) for block in blocks if block])


def _near_compile(made: Series, step: int) -> bool:
    return any(step - back in made.compiled_at for back in range(3))


def measure(runs: int, seed: int) -> dict[str, list[Word | None]]:
    rng = random.Random(seed)
    return {kind: [first_word(series(kind, rng)) for _ in range(runs)] for kind in KINDS}


def row(name: str, words: list[Word | None]) -> tuple[str, ...]:
    said = [word for word in words if word is not None]
    times = sorted(word.step_time_s for word in said)
    steps = sorted(word.steps for word in said)
    at = (
        [f"{median(steps):.0f}", f"{median(times):.2f}", f"{times[int(0.9 * len(times))]:.2f}"] if said else ["n/a"] * 3
    )
    false, still = sum(word.false for word in said), sum(word.false and word.stood for word in said)
    wrongly = sum(not word.false and not word.stood for word in said)
    return name, str(len(words)), *(share(part, len(words)) for part in (len(said), false, still, wrongly)), *at


def figure(name: str, words: list[Word | None], bar: float) -> Figure:
    """Words that are false and also stood through the pairs, of those said."""
    said = [word for word in words if word is not None]
    false = sum(word.false and word.stood for word in said)
    return Figure(
        f"steady said falsely: {name}", share(false, len(said)), f"<= {100 * bar:.0f} %", false <= bar * len(said)
    )


def main() -> None:
    asked = statistical(parser(__doc__), runs=60)
    by_kind = measure(asked.runs, asked.seed)
    rows = [row(kind, words) for kind, words in by_kind.items()]
    every = [word for words in by_kind.values() for word in words]
    foreseeable = [word for kind, words in by_kind.items() if kind not in UNFORESEEABLE for word in words]
    rows += [row("all", every), row("all but " + " and ".join(UNFORESEEABLE), foreseeable)]
    heads = (
        "kind",
        "series",
        "said steady",
        "false",
        "false after the pairs",
        "wrongly taken back",
        "steps p50",
        "step time p50, s",
        "p90, s",
    )
    figures = [
        figure("without drift and late recompiles", foreseeable, 0.02),
        figure("in all", every, 0.10),
    ]
    notes = (
        "Wrongly taken back counts words that were true when said. In late recompiles most of these are right to be"
        " taken back, because the compiler works during the pairs; in bimodal series the level does swap between the"
        " gate's window and the pairs. A drift over tens of seconds is seen by no rule in the first two; pairs are what"
        " stands against it.",
    )
    publish(record("false_steady", figures, [table(heads, rows)], notes), asked.json)


if __name__ == "__main__":
    main()
