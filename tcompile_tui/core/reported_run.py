"""A run as every report is made from it: records, verdict, and what surrounded it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tcompile_tui.core.findings import Finding
from tcompile_tui.core.results import ModeResult, mode_result
from tcompile_tui.core.spec import Mode, Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import MISSING, count, duration, size
from tcompile_tui.core.verdict import Verdict


@dataclass(frozen=True)
class Surroundings:
    """What `run.json` has beside the records; None where it does not say. `started_at` is ISO 8601."""

    started_at: str
    command: str
    cwd: str
    argv: tuple[str, ...]
    program_version: str
    os: str | None = None
    cpu_model: str | None = None
    cpu_count: int | None = None
    memory_total_bytes: int | None = None


@dataclass(frozen=True)
class Excerpt:
    """Lines of a source file, the first of which has number `first`."""

    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class ReportedRun:
    """`name` is that of the run folder. `sources` has the lines around the places of findings, where the file is
    still there and no newer than the run."""

    name: str
    state: RunState
    verdict: Verdict
    surroundings: Surroundings | None = None
    sources: Mapping[tuple[str, int], Excerpt] = field(default_factory=dict)

    @property
    def shown_mode(self) -> Mode | None:
        """The mode that figures show: the best, else the first that ran."""
        if self.verdict.best_mode is not None:
            return self.verdict.best_mode
        return next((mode for mode in self.state.modes if self.state.processes_of(Phase.COLD, mode)), None)

    @property
    def shown_result(self) -> ModeResult | None:
        return mode_result(self.state, self.shown_mode) if self.shown_mode is not None else None

    @property
    def target(self) -> str:
        return str(self.state.run.spec.target) if self.state.run is not None else MISSING

    def excerpt(self, finding: Finding) -> Excerpt | None:
        return self.sources.get((finding.file or "", finding.line or 0))

    def place(self, finding: Finding) -> str:
        """`file:line`, the file as seen from where the run was started; empty without one."""
        if finding.file is None:
            return ""
        cwd = self.surroundings.cwd.rstrip("/") + "/" if self.surroundings is not None else ""
        file = finding.file.removeprefix(cwd) if cwd != "/" else finding.file
        return f"{file}:{finding.line}" if finding.line is not None else file


def environment_rows(run: ReportedRun) -> list[tuple[str, str]]:
    """What was measured, on what; facts that are not known are left out."""
    state, around = run.state, run.surroundings
    started = state.run
    facts = next((p.facts for p in state.processes.values() if p.facts is not None), None)
    model = next((p.model for p in state.processes.values() if p.model is not None), None)
    rows: list[tuple[str, str | None]] = []
    if started is not None:
        spec = started.spec
        rows += [("model", str(spec.target)), ("command", around.command if around is not None else None)]
        if model is not None:
            inputs = ", ".join(f"{t.path}={t.dtype}[{','.join(map(str, t.shape))}]" for t in model.inputs)
            kind = "training" if model.training else "inference"
            rows += [
                ("class", f"{model.class_name}, {count(model.parameters)} parameters"),
                ("inputs", inputs),
                ("one step", f"{kind}, {model.optimizer}, loss: {model.loss}" if model.training else kind),
            ]
        rows += [("precision", f"{spec.dtype or 'as built'}, autocast {spec.amp or 'off'}")]
        rows += [("preset", spec.preset.value), ("device", started.device_name), ("torch", started.torch_version)]
    if facts is not None:
        rows += [("CUDA", facts.cuda_version), ("Python", facts.python_version), ("threads", count(facts.threads))]
        rows += [("matmul precision", facts.matmul_precision)]
    if around is not None:
        cpus = f"{around.cpu_model or 'unknown'}, {around.cpu_count} usable" if around.cpu_count else around.cpu_model
        memory = size(around.memory_total_bytes) if around.memory_total_bytes else None
        rows += [("CPU", cpus), ("memory", memory), ("system", around.os)]
        rows += [("started", around.started_at), ("tcompile-tui", around.program_version)]
    rows += [("measuring took", duration(state.now_s) if state.now_s else None)]
    return [(label, text) for label, text in rows if text]
