"""What the replays of a sequence of shapes come to: one row for each way to deal with sizes that change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from tcompile_tui.core import events as ev
from tcompile_tui.core.failure_words import failure_text
from tcompile_tui.core.replay import Ratio
from tcompile_tui.core.shape_spec import ShapeHandling, ShapeSequence, bucket_sizes, padded
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.state import ProcessState, RunState


@dataclass(frozen=True)
class ShapeRow:
    """One setting. `compile_s` is what its first round cost beyond steady steps, `start_s` that and the compiler's
    import; `compiled_batches` counts the batches of that round which compiled, `late_compiles` those that still did
    when their shape came again. `step_ms` is the mean over the sequence, from the paired ratio and the eager time of
    all replays; `total_s` is the planned run with one cold start. None where `reason` says why not."""

    handling: ShapeHandling
    reason: str = ""
    graphs: int | None = None
    recompiles: int | None = None
    limit_hit: bool = False
    compile_s: float | None = None
    start_s: float | None = None
    compiled_batches: int | None = None
    late_compiles: int = 0
    speedup: Ratio | None = None
    step_ms: float | None = None
    total_s: float | None = None

    @property
    def settled(self) -> bool:
        """Is everything compiled that will come?"""
        return not (self.limit_hit or self.late_compiles)

    @property
    def compile_s_each(self) -> float | None:
        """Seconds of one compile."""
        return self.compile_s / self.compiled_batches if self.compile_s is not None and self.compiled_batches else None


@dataclass(frozen=True)
class ShapeResults:
    """All settings on one sequence, in one mode. `best` is the setting with the least total for the planned run, of
    those that settle if any does; never padding, which needs another model. None: eager has the least."""

    mode: Mode
    sequence: ShapeSequence
    buckets: dict[str, tuple[int, ...]]
    padded_shapes: int
    eager_ms: float
    planned_steps: float
    eager_total_s: float
    rows: tuple[ShapeRow, ...]
    best: ShapeHandling | None

    def row(self, handling: ShapeHandling | None) -> ShapeRow | None:
        return next((row for row in self.rows if row.handling is handling), None)

    @property
    def best_row(self) -> ShapeRow | None:
        return self.row(self.best)

    @property
    def usual_text(self) -> str:
        """` at B=8,T=9`: what the figures of a mode are measured on."""
        return f" at {','.join(map(str, self.sequence.usual))}"

    @property
    def text(self) -> str:
        """`220 batches of 12 shapes (T 7 to 128)`."""
        ranges = [
            f"{name} {min(sizes)} to {max(sizes)}"
            for name, sizes in zip(self.sequence.names, zip(*self.sequence.shapes, strict=True), strict=True)
            if name in self.sequence.varying
        ]
        shapes = len(self.sequence.shapes)
        return f"{len(self.sequence.order)} batches of {shapes} shapes ({', '.join(ranges)})"


def shape_results(state: RunState) -> ShapeResults | None:
    """None where no sequence was replayed, or none of the replays got to a comparison."""
    spec = state.run.spec if state.run is not None else None
    if spec is None or spec.shapes is None or not spec.shapes.sound:
        return None
    processes = [process for process in state.processes_of(Phase.SHAPES) if process.replay is not None]
    levels = [each.replay.eager_step_ns for each in processes if each.replay is not None]
    known = [level for level in levels if level]
    if not known:
        return None
    eager_ns = fmean(known)
    steps = spec.plan.steps_at(eager_ns / 1e9)
    rows = tuple(_row(processes, handling, eager_ns, steps) for handling in ShapeHandling)
    eager_total_s = steps * eager_ns / 1e9
    return ShapeResults(
        mode=processes[0].mode or Mode.DEFAULT,
        sequence=spec.shapes,
        buckets=bucket_sizes(spec.shapes),
        padded_shapes=len(padded(spec.shapes).shapes),
        eager_ms=eager_ns / 1e6,
        planned_steps=steps,
        eager_total_s=eager_total_s,
        rows=rows,
        best=_best(rows, eager_total_s),
    )


def _row(processes: Sequence[ProcessState], handling: ShapeHandling, eager_ns: float, steps: float) -> ShapeRow:
    found = next((p for p in processes if p.replay is not None and p.replay.started.handling is handling), None)
    if found is None or found.replay is None:
        return ShapeRow(handling, "the run ended before its turn")
    log, replayed = found.compile, found.replay
    counts = ShapeRow(
        handling=handling,
        graphs=log.graphs,
        recompiles=log.recompile_count,
        limit_hit=bool(log.limit_hits),
        compiled_batches=len(replayed.compile_steps),
        late_compiles=replayed.late_compiles,
    )
    ratio, compile_s = replayed.ratio, replayed.compile_s
    if found.failure is not None or ratio is None or compile_s is None or not found.compiled_anything:
        return replace(counts, reason=_why_not(found))
    imports_s = (found.imports.compiler_s or 0.0) if found.imports is not None else 0.0
    compile_s = max(0.0, compile_s - log.logging_s)
    step_ns = eager_ns / ratio.value
    return replace(
        counts,
        compile_s=compile_s,
        start_s=compile_s + imports_s,
        speedup=ratio,
        step_ms=step_ns / 1e6,
        total_s=compile_s + imports_s + steps * step_ns / 1e9,
    )


def _why_not(process: ProcessState) -> str:
    if process.failure is not None:
        return failure_text(process.failure)
    if process.ended is not None and process.ended.outcome is not ev.Outcome.OK:
        return process.ended.detail or process.ended.outcome.value
    return "nothing was compiled" if process.done else "not compared"


def _best(rows: Sequence[ShapeRow], eager_total_s: float) -> ShapeHandling | None:
    measured = [row for row in rows if row.total_s is not None and row.handling is not ShapeHandling.PADDED]
    measured = [row for row in measured if row.settled] or measured
    best = min(measured, key=lambda row: row.total_s or 0.0, default=None)
    return best.handling if best is not None and (best.total_s or 0.0) < eager_total_s else None
