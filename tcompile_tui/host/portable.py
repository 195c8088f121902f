"""One start of a model on new caches, with torch's portable caches written to a file or loaded from one."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tcompile_tui.core.spec import Job, Mode, Phase
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.host import roots
from tcompile_tui.host.archive import build_worker_archive
from tcompile_tui.host.event_log import EventLog
from tcompile_tui.host.phase_runner import PhaseLimits, PhaseRunner
from tcompile_tui.host.recorder import Recorder
from tcompile_tui.host.run_folder import OutputLog
from tcompile_tui.host.run_request import Prepared
from tcompile_tui.host.stopping import StopRequest
from tcompile_tui.host.workers import FreshStart, Worker

# The start is what counts: enough steps to tell what a steady one takes.
_WARMUP_S = 5.0


class Starts:
    """Measures starts of one model in one mode, each in a fresh interpreter on caches of its own. Call it on the main
    thread; `on_change` is called often. What the model prints goes to `log`."""

    def __init__(
        self, prepared: Prepared, mode: Mode, stop: StopRequest, on_change: Callable[[RunState], None]
    ) -> None:
        self._prepared = prepared
        self._mode = mode
        self._stop = stop
        self._spec = replace(prepared.request.spec, device=prepared.device.kind, modes=(mode,))
        self._folder = tempfile.TemporaryDirectory(prefix="tct-starts-")
        self.folder = Path(self._folder.name)
        self._log = EventLog(self.folder / "events.jsonl")
        self.output = self.folder / "log.txt"
        self._output = OutputLog(self.output)
        self._recorder = Recorder(self._log, on_change)
        self._archive = build_worker_archive(self.folder / "worker.zip")
        self._processes = 0
        interpreter = prepared.interpreter
        self._headers = roots.interpreter_key(interpreter.executable, interpreter.torch_version)

    def measure(self, artifacts_from: Path | None = None, artifacts_to: Path | None = None) -> ProcessState:
        """One start. Raises OSError; what goes wrong in the process is in what is returned."""
        if self._spec.device == "cpu" and not roots.headers_exist(self._headers):
            self._run(Phase.PREFLIGHT, None, None)  # builds the C++ headers, which are part of no start
        return self._run(Phase.COLD, artifacts_from, artifacts_to)

    def _run(self, phase: Phase, artifacts_from: Path | None, artifacts_to: Path | None) -> ProcessState:
        self._processes += 1
        root = roots.create_root(interpreter=self._headers)
        try:
            worker = Worker(self._start(root), self._output.write)
            job = self._job(phase, root, artifacts_from, artifacts_to)
            limits = PhaseLimits(self._spec.budget_s, "its time limit (--budget)")
            return PhaseRunner(worker, job, limits, self._recorder, self._stop).run(list)
        finally:
            root.remove()

    def _start(self, root: roots.PrivateRoot) -> FreshStart:
        prepared = self._prepared
        environment = {
            **os.environ,
            **prepared.interpreter.environment_updates,
            **prepared.device.environment,
            **prepared.request.extra_environment,
            **root.environment,
        }
        executable, cwd = prepared.interpreter.executable, prepared.request.cwd
        return FreshStart(executable, self._archive, secrets.token_hex(8), environment, cwd)

    def _job(
        self, phase: Phase, root: roots.PrivateRoot, artifacts_from: Path | None, artifacts_to: Path | None
    ) -> Job:
        resolved = self._prepared.resolved
        return Job(
            phase=phase,
            mode=self._mode,
            spec=self._spec,
            process=self._processes,
            run_start_ns=self._recorder.run_start_ns,
            source_path=str(resolved.path),
            source_module=resolved.module,
            qualified_name=resolved.qualified_name,
            import_root=str(resolved.import_root),
            argv=self._prepared.request.argv,
            cache_root=str(root.path),
            warmup_budget_s=_WARMUP_S,
            pair_budget_s=0.0,
            max_pairs=0,
            artifacts_from=str(artifacts_from) if artifacts_from is not None else None,
            artifacts_to=str(artifacts_to) if artifacts_to is not None else None,
        )

    def close(self) -> None:
        self._output.close()
        self._log.close()
        self._folder.cleanup()
