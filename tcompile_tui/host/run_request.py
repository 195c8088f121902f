"""What a person asked for, and what of it must be found before anything starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tcompile_tui.core.discover import Resolved, find_batch_file, resolve
from tcompile_tui.core.gate import NO_GATE, Gate
from tcompile_tui.core.spec import RunSpec
from tcompile_tui.host.devices import Device, choose_device
from tcompile_tui.host.fit_checks import look_at_fit
from tcompile_tui.host.interpreter import Interpreter, find_interpreter
from tcompile_tui.host.step_files import look_at_step


@dataclass(frozen=True)
class RunRequest:
    """What a person asked for, as far as it is not part of what is measured (that is `spec`)."""

    spec: RunSpec
    cwd: Path
    runs_dir: Path
    command: str
    python: str | None = None
    name: str | None = None
    folder: Path | None = None
    argv: tuple[str, ...] = ()
    extra_environment: Mapping[str, str] = field(default_factory=dict)
    keep_caches: bool = False
    cold_headers: bool = False
    explain: bool = False
    fullgraph: bool = False
    keep_trace: Path | None = None
    fresh: bool = False
    gate: Gate = NO_GATE


@dataclass(frozen=True)
class Prepared:
    """A request that can be run: everything that may be wrong with it was looked at."""

    request: RunRequest
    resolved: Resolved
    interpreter: Interpreter
    device: Device


def prepare(request: RunRequest) -> Prepared:
    """Find model, interpreter and device before anything starts. Raises SpecError or InterpreterError."""
    environment = {**os.environ, **request.extra_environment}
    given = {argument.parameter for argument in request.spec.arguments}
    resolved = resolve(request.spec.target, request.cwd, given)
    if request.spec.inputs_from is not None:
        find_batch_file(request.spec.inputs_from, request.cwd)
    look_at_step(request.spec, Path(resolved.path) if resolved.path is not None else None, request.cwd)
    interpreter = find_interpreter(request.python, environment)
    device = choose_device(request.spec.device, environment, interpreter.torch_cuda is not None)
    look_at_fit(request.spec, device)
    return Prepared(request, resolved, interpreter, device)
