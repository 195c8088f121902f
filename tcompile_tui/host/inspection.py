"""`tcompile-tui inspect`: build a model in a worker process, and find out what it takes."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tcompile_tui.core import events as ev
from tcompile_tui.core.discover import Resolved, find_candidates, resolve
from tcompile_tui.core.failure_words import failure_text
from tcompile_tui.core.inspect_json import CandidateDocument, InputsDocument, InspectDocument, ModelDocument
from tcompile_tui.core.spec import Argument, Job, Phase, RunSpec, SpecError, Target
from tcompile_tui.core.state import ProcessState
from tcompile_tui.host import roots
from tcompile_tui.host.archive import build_worker_archive
from tcompile_tui.host.event_log import EventLog, read_events
from tcompile_tui.host.interpreter import Interpreter, find_interpreter
from tcompile_tui.host.phase_runner import PhaseLimits, PhaseRunner
from tcompile_tui.host.recorder import Recorder
from tcompile_tui.host.stopping import Stop, StopRequest
from tcompile_tui.host.workers import FreshStart, Worker

DEFAULT_LIMIT_S = 60.0
_OUTPUT_TAIL_BYTES = 4_000


@dataclass(frozen=True)
class InspectRequest:
    """Whose inputs are asked for; as for a run."""

    target: Target
    cwd: Path
    python: str | None = None
    argv: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    extra_environment: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = DEFAULT_LIMIT_S


@dataclass(frozen=True)
class Inspected:
    """`output_tail` is the end of what the user's code printed."""

    document: InspectDocument
    output_tail: str = ""


def inspect_target(request: InspectRequest, stop: StopRequest) -> Inspected:
    """Never raises for what the file holds or does. Raises InterpreterError, and OSError where nothing can be written.
    On the main thread: the worker dies with the thread that started it."""
    try:
        resolved = resolve(request.target, request.cwd, {each.parameter for each in request.arguments})
    except SpecError as error:
        return Inspected(_unresolved(request, str(error)))
    found_here = find_candidates(Path(resolved.path)) if resolved.path is not None else ()
    candidates = tuple(CandidateDocument.of(each) for each in found_here)
    interpreter = find_interpreter(request.python, {**os.environ, **request.extra_environment})
    with tempfile.TemporaryDirectory(prefix="tcompile-tui-") as folder:
        process, found, output = _run_worker(request, resolved, interpreter, Path(folder), stop)
    model = next((event for event in found if isinstance(event, ev.ModelInspected)), None)
    # Once more when they have also been tried for real.
    inputs = next((event for event in reversed(found) if isinstance(event, ev.InputsInspected)), None)
    document = InspectDocument(
        target=str(request.target),
        file=resolved.path,
        candidates=candidates,
        chosen=resolved.qualified_name,
        constructor_arguments=tuple(str(each) for each in request.arguments),
        python=interpreter.executable,
        torch=interpreter.torch_version,
        model=ModelDocument.of(model) if model is not None else None,
        inputs=InputsDocument.of(inputs) if inputs is not None else None,
        problem=_problem(process, model, inputs),
    )
    return Inspected(document, output)


def _unresolved(request: InspectRequest, problem: str) -> InspectDocument:
    """The target names no model, or not one: what the file holds may still help."""
    path, candidates = request.target.path, tuple[CandidateDocument, ...]()
    if path is not None:
        try:
            candidates = tuple(CandidateDocument.of(each) for each in find_candidates(request.cwd / path))
        except SpecError:
            path = None
    file = str((request.cwd / path).resolve()) if path is not None else None
    return InspectDocument(target=str(request.target), file=file, candidates=candidates, problem=problem)


def _run_worker(
    request: InspectRequest, resolved: Resolved, interpreter: Interpreter, folder: Path, stop: StopRequest
) -> tuple[ProcessState, list[ev.Event], str]:
    """As a phase of a run: behind a guard, with private folders, within its time."""
    log, tail, root = EventLog(folder / "events.jsonl"), _Tail(), roots.create_root()
    recorder = Recorder(log, lambda state: None)
    try:
        start = FreshStart(
            interpreter.executable,
            build_worker_archive(folder / "worker.zip"),
            secrets.token_hex(8),
            _environment(request, interpreter, root),
            request.cwd,
        )
        runner = PhaseRunner(
            Worker(start, tail.write),
            _job(request, resolved, root, recorder),
            PhaseLimits(request.limit_s, "the time for an inspection (--limit)", grace_s=0.0),
            recorder,
            stop,
        )
        process = runner.run(_watch_parent(stop))
    finally:
        log.close()
        root.remove()
    return process, list(read_events(folder / "events.jsonl")), tail.text


def _watch_parent(stop: StopRequest) -> Callable[[], list[ev.Event]]:
    """An answer that nobody waits for any more is not worth the work."""
    parent = os.getppid()

    def look() -> list[ev.Event]:
        if os.getppid() != parent:
            stop.raise_to(Stop.ABANDON)
        return []

    return look


def _environment(request: InspectRequest, interpreter: Interpreter, root: roots.PrivateRoot) -> dict[str, str]:
    return {**os.environ, **interpreter.environment_updates, **request.extra_environment, **root.environment}


def _job(request: InspectRequest, resolved: Resolved, root: roots.PrivateRoot, recorder: Recorder) -> Job:
    return Job(
        phase=Phase.INSPECT,
        mode=None,
        spec=RunSpec(request.target, device="cpu", arguments=request.arguments),
        process=1,
        run_start_ns=recorder.run_start_ns,
        source_path=resolved.path,
        source_module=resolved.module,
        qualified_name=resolved.qualified_name,
        import_root=resolved.import_root,
        argv=request.argv,
        cache_root=str(root.path),
        warmup_budget_s=0.0,
        pair_budget_s=0.0,
        max_pairs=0,
    )


class _Tail:
    """The end of what a process writes."""

    def __init__(self) -> None:
        self._kept = b""

    def write(self, chunk: bytes) -> None:
        self._kept = (self._kept + chunk[-_OUTPUT_TAIL_BYTES:])[-_OUTPUT_TAIL_BYTES:]

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")


def _problem(process: ProcessState, model: ev.ModelInspected | None, inputs: ev.InputsInspected | None) -> str | None:
    if process.failure is not None:
        return failure_text(process.failure)
    if inputs is not None:
        return inputs.problem
    how = process.ended.detail or process.ended.outcome.value if process.ended is not None else "it did not end"
    return f"{_doing(process, model)}: {how}"


def _doing(process: ProcessState, model: ev.ModelInspected | None) -> str:
    """What was in hand when the process ended."""
    stages: list[tuple[Callable[[], bool], str]] = [
        (lambda: model is not None, "trying inputs"),
        (lambda: process.imports is not None, "building the model"),
        (lambda: process.facts is not None, "importing the file"),
    ]
    return next((words for reached, words in stages if reached()), "importing torch")
