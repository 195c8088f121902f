"""One phase of a model file in a real worker process: no supervisor around it and no verdict after it."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tcompile_tui.core.discover import resolve
from tcompile_tui.core.events import Event
from tcompile_tui.core.shape_spec import ShapeHandling
from tcompile_tui.core.spec import Arm, Job, Mode, Phase, Preset, RunSpec, Target
from tcompile_tui.core.state import ProcessState
from tcompile_tui.core.step_spec import USUAL_STEP, StepSpec
from tcompile_tui.host import roots
from tcompile_tui.host.archive import build_worker_archive
from tcompile_tui.host.event_log import EventLog, read_events
from tcompile_tui.host.phase_runner import PhaseLimits, PhaseRunner
from tcompile_tui.host.recorder import Recorder
from tcompile_tui.host.stopping import StopRequest
from tcompile_tui.host.workers import FreshStart, Start, Worker

AnyEvent = TypeVar("AnyEvent", bound=Event)
_OUTPUT_KEPT_BYTES = 1 << 20
_LIMIT_S = 200.0


@dataclass(frozen=True)
class PhaseRun:
    """What came of it. `output` is the beginning of what the worker wrote to stdout and stderr."""

    process: ProcessState
    events: tuple[Event, ...]
    output: bytes
    output_bytes: int

    def all_of(self, kind: type[AnyEvent]) -> list[AnyEvent]:
        return [event for event in self.events if isinstance(event, kind)]


class _Output:
    """Counts everything and keeps the beginning: a model may write gigabytes."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self.total_bytes = 0

    def write(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        self.kept += chunk[: _OUTPUT_KEPT_BYTES - len(self.kept)]


def run_phase(
    model: Path,
    folder: Path,
    phase: Phase = Phase.EAGER,
    mode: Mode | None = None,
    warmup_s: float = 0.2,
    environment: Mapping[str, str] | None = None,
    reference_file: Path | None = None,
    step: StepSpec = USUAL_STEP,
    start: Callable[[Mapping[str, str]], Start] | None = None,
    limit_s: float = _LIMIT_S,
    artifacts_from: Path | None = None,
    artifacts_to: Path | None = None,
    handling: ShapeHandling | None = None,
    arm: Arm | None = None,
    preset: Preset = Preset.SMOKE,
    **spec_changes: Any,
) -> PhaseRun:
    """Run `phase` of the model file on the CPU, with private caches; what is written goes to `folder`. `start(private)`
    gives another way to start the worker than a fresh interpreter: `private` are the variables of its own folders."""
    spec = RunSpec(Target(str(model), None, None), preset=preset, device="cpu", step=step, **spec_changes)
    resolved = resolve(spec.target, folder)
    log, output, root = EventLog(folder / "events.jsonl"), _Output(), roots.create_root()
    recorder = Recorder(log, lambda state: None)
    try:
        job = Job(
            phase=phase, mode=mode, spec=spec, process=1, run_start_ns=recorder.run_start_ns,
            source_path=resolved.path, source_module=resolved.module, qualified_name=resolved.qualified_name,
            import_root=resolved.import_root, argv=(), cache_root=str(root.path),
            warmup_budget_s=warmup_s, pair_budget_s=0.5, max_pairs=8,
            reference_file=str(reference_file) if reference_file is not None else None,
            artifacts_from=str(artifacts_from) if artifacts_from is not None else None,
            artifacts_to=str(artifacts_to) if artifacts_to is not None else None, handling=handling,
            arm=arm,
        )  # fmt: skip
        fresh = FreshStart(
            sys.executable,
            build_worker_archive(folder / "worker.zip"),
            secrets.token_hex(8),
            {**os.environ, **(environment or {}), **root.environment},
            folder,
        )
        worker = Worker(start(root.environment) if start is not None else fresh, output.write)
        process = PhaseRunner(worker, job, PhaseLimits(limit_s), recorder, StopRequest()).run(list)
    finally:
        log.close()
        root.remove()
    return PhaseRun(process, tuple(read_events(folder / "events.jsonl")), bytes(output.kept), output.total_bytes)
