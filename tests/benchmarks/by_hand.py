"""A quick verdict against getting the same facts by hand.

    python -m tests.benchmarks.by_hand [MODEL.py:NAME] [--rounds N]

By hand means five scripts, one after the other, as a person would write and start them: eager, compiled with empty
caches, compiled with the caches of the one before, both in one process with a few steps in turn, and
torch._dynamo.explain. Both sides take the compile with empty caches once, so it is taken off the two walls before
they are compared; the bar is 0.6.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.benchmarks.record import Figure, device_here, parser, publish, record, table

_PROJECT = Path(__file__).resolve().parents[2]
_BAR = 0.6

_COMMON = """
import runpy, time, torch
user = runpy.run_path({model!r})
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = user[{name!r}]().to(device).eval()
inputs = user["example_inputs"]()
inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
inputs = [x.to(device) for x in inputs]
wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)

def call(f):
    with torch.no_grad():
        return f(*inputs)

def first(f):
    wait(); began = time.perf_counter(); call(f); wait()
    return time.perf_counter() - began

def steps(f, warm=3, count=20):
    for _ in range(warm):
        call(f)
    wait(); began = time.perf_counter()
    for _ in range(count):
        call(f)
    wait()
    return (time.perf_counter() - began) / count
"""
_EAGER = "print('first', first(model)); print('step', steps(model)); print(sum(p.numel() for p in model.parameters()))"
_COMPILED = """
compiled = torch.compile(model)
print('first', first(compiled)); print('step', steps(compiled))
print(torch._dynamo.utils.counters)
"""
_BOTH = """
compiled = torch.compile(model)
first(compiled)
for _ in range(10):
    print(steps(model), steps(compiled))
print((call(model) - call(compiled)).abs().max())
"""
_EXPLAIN = "print(torch._dynamo.explain(model)(*inputs))"


@dataclass(frozen=True)
class Walls:
    """Seconds of one round: the whole, and the first call with empty caches that is in it."""

    by_hand_s: float
    by_hand_cold_s: float
    program_s: float
    program_cold_s: float

    @property
    def ratio(self) -> float:
        return (self.program_s - self.program_cold_s) / (self.by_hand_s - self.by_hand_cold_s)


def by_hand(target: str) -> tuple[float, float]:
    """Wall seconds of all scripts, and those of the cold one's first call."""
    path, _, model = target.rpartition(":")
    with tempfile.TemporaryDirectory() as caches:
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
            "TRITON_CACHE_DIR": f"{caches}/triton",
        }
        began, cold_s = perf_counter(), 0.0
        for name, body in (
            ("eager", _EAGER), ("cold", _COMPILED), ("warm", _COMPILED), ("both", _BOTH), ("explain", _EXPLAIN)
        ):  # fmt: skip
            script = _COMMON.format(model=path, name=model) + body
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, env=environment
            )
            if done.returncode != 0:
                raise RuntimeError(f"the {name} script failed:\n{done.stderr[-1000:]}")
            if name == "cold":
                cold_s = float(done.stdout.split()[1])
        return perf_counter() - began, cold_s


def program(target: str) -> tuple[float, float]:
    """Wall seconds of a quick run, and those of its first compiled call with empty caches."""
    with tempfile.TemporaryDirectory() as runs:
        began = perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "tcompile_tui", "run", target, "--preset", "quick", "--json", "-",
             "--runs-dir", runs],
            capture_output=True, text=True, cwd=_PROJECT, env={**os.environ, "PYTHONPATH": _import_path()},
        )  # fmt: skip
        wall_s = perf_counter() - began
        if done.returncode != 0:
            raise RuntimeError(f"the run ended with {done.returncode}:\n{done.stderr[-1000:]}")
        return wall_s, first_compiled_call_s(next(Path(runs).glob("*/events.jsonl")))


def first_compiled_call_s(events: Path) -> float:
    """Of the first process that compiled: the one with empty caches."""
    for line in events.read_bytes().splitlines():
        record = json.loads(line)
        if record["kind"] == "block" and record["arm"] == "compiled":
            return float(record["wall_ns"]) / 1e9
    raise RuntimeError(f"{events} has no compiled step")


def _import_path() -> str:
    return os.pathsep.join(filter(None, (str(_PROJECT), os.environ.get("PYTHONPATH"))))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("target", nargs="?", default=f"{_PROJECT}/sample_models/convnet.py:ResNet18")
    options.add_argument("--rounds", type=int, default=2)
    asked = options.parse_args()
    rows = []
    for number in range(asked.rounds):
        if number % 2 == 0:
            hand, ours = by_hand(asked.target), program(asked.target)
        else:
            ours, hand = program(asked.target), by_hand(asked.target)
        rows.append(Walls(*hand, *ours))
    shown = table(
        ("round", "by hand", "of it cold", "quick verdict", "of it cold", "ratio without"),
        [
            (str(number), f"{row.by_hand_s:.1f} s", f"{row.by_hand_cold_s:.1f} s", f"{row.program_s:.1f} s",
             f"{row.program_cold_s:.1f} s", f"{row.ratio:.2f}")
            for number, row in enumerate(rows, 1)
        ],
    )  # fmt: skip
    ratio = median(row.ratio for row in rows)
    name = f"quick verdict / the same facts by hand, {len(rows)} rounds of {Path(asked.target).name}"
    figures = [Figure(name, f"{ratio:.2f}", f"<= {_BAR}", ratio <= _BAR)]
    publish(record("by_hand", figures, [shown], device=device_here()), asked.json)


if __name__ == "__main__":
    main()
