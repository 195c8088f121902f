"""The usual 20-iteration script and this program, both against a long interleaved reference, on real models.

    python -m tests.benchmarks.against_script [MODEL ...] [--rows FILE] [--json FILE]

The models are those of `real_models/`. The reference is the mean of the speedups of five processes, each from some
seconds of blocks of both arms in turn, order alternating, timed as a person would (a clock around a synchronised
loop). The usual script runs 3 steps to warm up and 20 that count, eager first, then compiled. Every process is forked
from one that has imported the libraries. A row is written when its model is done, and kept if the file has it.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from statistics import fmean, median, stdev
from time import perf_counter, perf_counter_ns
from typing import Any

from tests.benchmarks.record import Figure, Record, device_here, parser, publish, record, table

_PROJECT = Path(__file__).resolve().parents[2]
_MODELS = Path(__file__).parent / "real_models"
_PROCESSES = 5
_T_OF_FOUR = 2.776  # Student's t, 97.5 %, 4 degrees of freedom
_WARMUP_S = 1.0
_SECONDS = 4.0
_BLOCK_NS = 60_000_000
_NEAR = 0.02
_SHARP = 0.003
_SIZE_BAR = 0.01

Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """Speedups of one model. `between_sd` is the standard deviation of the processes' own speedups."""

    model: str
    reference: float
    reference_half: float
    between_sd: float
    script: float
    program: float | None
    program_lo: float | None
    program_hi: float | None
    decision: str
    wall_s: float

    @property
    def sharp(self) -> bool:
        return self.reference_half <= _SHARP * self.reference

    def script_sign(self) -> bool:
        return _class(self.script, self.script) == self.truth()

    def program_sign(self) -> bool:
        if self.program is None or self.program_lo is None or self.program_hi is None:
            return self.decision == "RAN EAGER" and self.truth() == 0
        return _class(self.program_lo, self.program_hi) == self.truth() or (
            self.truth() == 0 and self.program_lo <= 1 + _NEAR and self.program_hi >= 1 - _NEAR
        )

    @property
    def told(self) -> bool:
        """Does the reference itself know the sign, or that there is nothing to gain or lose?"""
        lo, hi = self.reference - self.reference_half, self.reference + self.reference_half
        return self.truth() != 0 or (lo > 1 - _NEAR and hi < 1 + _NEAR)

    def truth(self) -> int:
        return _class(self.reference - self.reference_half, self.reference + self.reference_half)


def _class(lo: float, hi: float) -> int:
    """1 faster, -1 slower, 0 within 2 % or not to be told."""
    return 1 if lo > 1 and hi > 1 + _NEAR else -1 if hi < 1 and lo < 1 - _NEAR else 0


# ---------------------------------------------------------------- in forked processes


def _in_fork(caches: str, act: Callable[[], object]) -> object:
    """What `act` returns in a forked process, as JSON."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        status = 1
        try:
            os.environ.update(TORCHINDUCTOR_CACHE_DIR=f"{caches}/inductor", TRITON_CACHE_DIR=f"{caches}/triton")
            os.write(writer, json.dumps(act()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, "rb") as pipe:
        told = pipe.read()
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError("a measuring process failed")
    return json.loads(told)


def _prepare(name: str) -> tuple[Call, Call, Callable[[], None]]:
    """(eager, compiled, wait): the steps of both arms on the device that is there."""
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    user = importlib.import_module(f"tests.benchmarks.real_models.{name}")
    torch.manual_seed(0)
    model = user.make_model().to(device).eval()
    made = [user.example_inputs() for _ in range(4)]
    batches = [
        ((), {key: value.to(device) for key, value in batch.items()})
        if isinstance(batch, dict)
        else (tuple(value.to(device) for value in batch), {})
        for batch in made
    ]
    compiled = torch.compile(model)
    turn = count()

    def step(of: Callable[..., object]) -> object:
        args, kwargs = batches[next(turn) % len(batches)]
        with torch.no_grad():
            return of(*args, **kwargs)

    wait = torch.cuda.synchronize if device.type == "cuda" else _no_wait
    return lambda: step(model), lambda: step(compiled), wait


def _no_wait() -> None:
    pass


def _loop_ns(step: Call, steps: int, wait: Callable[[], None]) -> float:
    wait()
    began = perf_counter_ns()
    for _ in range(steps):
        step()
    wait()
    return (perf_counter_ns() - began) / steps


def _reference(name: str) -> float:
    """The speedup of one process."""
    eager, compiled, wait = _prepare(name)
    for step in (eager, compiled):
        step()
        until = perf_counter() + _WARMUP_S
        while perf_counter() < until:
            _loop_ns(step, 5, wait)
    steps = max(4, math.ceil(_BLOCK_NS / min(_loop_ns(eager, 5, wait), _loop_ns(compiled, 5, wait))))
    ratios, until, turn = [], perf_counter() + _SECONDS, 0
    while perf_counter() < until or len(ratios) < 8:
        order = (eager, compiled) if turn % 2 == 0 else (compiled, eager)
        times = {step: _loop_ns(step, steps, wait) for step in order}
        ratios.append(math.log(times[eager] / times[compiled]))
        turn += 1
    return math.exp(median(ratios))


def _usual_script(name: str) -> float:
    eager, compiled, wait = _prepare(name)
    times = []
    for step in (eager, compiled):
        for _ in range(3):
            step()
        times.append(_loop_ns(step, 20, wait))
    return times[0] / times[1]


# ---------------------------------------------------------------- the program


def _program(name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as runs:
        done = subprocess.run(
            [sys.executable, "-m", "tcompile_tui", "run", str(_MODELS / f"{name}.py"), "--preset", "quick",
             "--json", "-", "--runs-dir", runs],
            capture_output=True, text=True, cwd=_PROJECT,
        )  # fmt: skip
        if not done.stdout:
            raise RuntimeError(f"the run ended with {done.returncode}: {done.stderr[-1000:]}")
        verdict: dict[str, Any] = json.loads(done.stdout)
        return verdict


def measure(name: str) -> Row:
    began = perf_counter()
    importlib.import_module(f"tests.benchmarks.real_models.{name}")  # once for all forked processes
    with tempfile.TemporaryDirectory() as caches:
        speedups = [float(str(_in_fork(caches, lambda: _reference(name)))) for _ in range(_PROCESSES)]
        script = float(str(_in_fork(caches, lambda: _usual_script(name))))
    verdict = _program(name)
    speedup = verdict["per_mode"]["default"]["speedup"] or {}
    spread = stdev(speedups)
    return Row(
        name,
        fmean(speedups),
        _T_OF_FOUR * spread / math.sqrt(_PROCESSES),
        spread,
        script,
        speedup.get("value"),
        speedup.get("lo"),
        speedup.get("hi"),
        str(verdict["decision"]),
        perf_counter() - began,
    )


def as_record(rows: list[Row]) -> Record:
    def mark(row: Row, right: bool) -> str:
        return "not told" if not row.told else "right" if right else "WRONG"

    shown = table(
        ("model", "reference (5 processes)", "usual script", "sign", "error", "this program, quick", "sign", "error",
         "decision"),
        [
            (
                row.model,
                f"{row.reference:.3f} +- {row.reference_half:.3f}",
                f"{row.script:.3f}",
                mark(row, row.script_sign()),
                f"{abs(row.script / row.reference - 1):.1%}",
                f"{row.program:.3f} ({row.program_lo:.3f} to {row.program_hi:.3f})" if row.program else "n/a",
                mark(row, row.program_sign()),
                f"{abs(row.program / row.reference - 1):.1%}" if row.program else "n/a",
                row.decision,
            )
            for row in rows
        ],
    )  # fmt: skip
    figures = [
        _signs("this program, quick", [row.program_sign() for row in rows if row.told], len(rows), counts=True),
        _signs("the usual script", [row.script_sign() for row in rows if row.told], len(rows), counts=False),
        *_errors(rows),
    ]
    apart = ", ".join(f"{row.model} {row.between_sd / row.reference:.2%}" for row in rows)
    notes = (f"Between processes (standard deviation of the reference): {apart}.",)
    return record("against_script", figures, [shown], notes, device=device_here())


def _signs(who: str, right: list[bool], models: int, counts: bool) -> Figure:
    """Of the models whose reference tells one. The bar is for the program alone (`counts`)."""
    name = f"sign of the speedup against a long reference: {who}"
    met = all(right) if counts and right else None
    untold = f"; {models - len(right)} not told by the reference" if len(right) < models else ""
    return Figure(name, f"{sum(right)} of {len(right)} right{untold}", "all" if counts else "", met)


def _errors(rows: list[Row]) -> list[Figure]:
    """The bar is for models whose reference is sharp enough to hold a size against it."""
    known = [row for row in rows if row.program is not None]
    sharp = [row for row in known if row.sharp]
    found = []
    for who, size in (("this program, quick", lambda row: row.program), ("the usual script", lambda row: row.script)):
        for name, chosen in ((f"{len(known)} models", known), (f"{len(sharp)} with a sharp reference", sharp)):
            errors = [abs(size(row) / row.reference - 1) for row in chosen]
            ours = chosen is sharp and who.startswith("this")
            value = median(errors) if errors else None
            found.append(
                Figure(
                    f"median error of the speedup: {who}, {name}",
                    f"{100 * value:.1f} %" if value is not None else "n/a",
                    "<= 1 %" if ours else "",
                    value <= _SIZE_BAR if ours and value is not None else None,
                )
            )
    return found


def main() -> None:
    options = parser(__doc__)
    known = sorted(path.stem for path in _MODELS.glob("*.py") if path.stem != "__init__")
    options.add_argument("models", nargs="*", default=known)
    options.add_argument("--rows", type=Path, default=Path("against_script.jsonl"))
    asked = options.parse_args()
    kept = [Row(**json.loads(line)) for line in asked.rows.read_text().splitlines()] if asked.rows.exists() else []
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asking for devices must not open CUDA before the fork
    import torch._dynamo
    import torch._inductor.compile_fx  # noqa: F401

    for name in (name for name in asked.models if name not in {row.model for row in kept}):
        try:
            kept.append(measure(name))
        except Exception as error:
            print(f"{name}: not run ({type(error).__name__}: {error})", flush=True)
            continue
        with asked.rows.open("a") as file:
            print(json.dumps(asdict(kept[-1])), file=file)
        print(kept[-1], flush=True)
    publish(as_record(kept), asked.json)


if __name__ == "__main__":
    main()
