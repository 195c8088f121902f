"""One run from request to verdict: which process comes when, with how much time, and what is written down."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

import msgspec

from tcompile_tui.core import events as ev
from tcompile_tui.core.apart import ran_out_side_by_side
from tcompile_tui.core.chrome_trace import chrome_trace
from tcompile_tui.core.compare_runs import ComparedRun
from tcompile_tui.core.early_answer import planned_run
from tcompile_tui.core.energy import measures_energy
from tcompile_tui.core.gate import GateCheck, check_gate, gated_exit_code
from tcompile_tui.core.outlook import further_process_matters
from tcompile_tui.core.pairs import meets_stop_rule
from tcompile_tui.core.results import mode_result
from tcompile_tui.core.shape_spec import ShapeHandling
from tcompile_tui.core.spec import Arm, Job, Mode, Phase
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.verdict import ExitCode, Verdict, decide, program_failed
from tcompile_tui.core.verdict_json import encode_verdict, verdict_document
from tcompile_tui.host import machine, roots
from tcompile_tui.host.archive import build_worker_archive
from tcompile_tui.host.claims import DeviceClaim
from tcompile_tui.host.effort import EFFORTS
from tcompile_tui.host.event_log import EventLog, read_events
from tcompile_tui.host.phase_runner import PhaseLimits, PhaseRunner
from tcompile_tui.host.process_start import ProcessStarter, Surroundings
from tcompile_tui.host.recorder import Recorder
from tcompile_tui.host.reference import REFERENCE_FILE, REFERENCE_PRESETS, REFERENCE_TIME_SHARE, memory_shortage
from tcompile_tui.host.run_facts import warn, warn_of_another_run, write_start
from tcompile_tui.host.run_folder import COMPILE_TRACE_FILE, OutputLog, RunFolder, write_atomically
from tcompile_tui.host.run_request import Prepared
from tcompile_tui.host.sampler import Sampler
from tcompile_tui.host.stopping import Stop, StopRequest


@dataclass(frozen=True)
class Finished:
    """A run that came to its end."""

    folder: RunFolder
    state: RunState
    verdict: Verdict
    checks: tuple[GateCheck, ...] = ()
    unwritten: str | None = None
    """Why verdict.json is missing, if it is."""

    @property
    def exit_code(self) -> ExitCode:
        return gated_exit_code(self.verdict, self.checks)


# A process takes about as long as the one before it of its kind; one that would be cut off says nothing.
_TIME_RESERVE = 1.3
# No compile is this long without a record or any use of a CPU, in itself and in all that it starts.
_HANG_S = 90.0
# Four processes replay a sequence of shapes, and four make a round of arms that run apart.
_PAIR_SHARES = {Phase.SHAPES: 0.25, Phase.APART: 0.25, Phase.FIT: 0.25}
_ABBA = (Arm.EAGER, Arm.COMPILED, Arm.COMPILED, Arm.EAGER)
_BAAB = (Arm.COMPILED, Arm.EAGER, Arm.EAGER, Arm.COMPILED)
# Its first batch may have a long way; what it is timed for takes five seconds.
_LOADER_TIME_SHARE = 0.15
_COMPILE_THREADS = "TORCHINDUCTOR_COMPILE_THREADS"


def execute(prepared: Prepared, stop: StopRequest, on_change: Callable[[RunState], None]) -> Finished:
    """Run it all. Returns a verdict whatever the model does; raises OSError if the run folder cannot be written."""
    request = prepared.request
    if request.folder is not None:
        folder = RunFolder.create_at(request.folder)
    else:
        folder = RunFolder.create(request.runs_dir, request.name or request.spec.target.label)
    folder.reserve()
    log = EventLog(folder.events)
    recorder = Recorder(log, on_change)
    claim = DeviceClaim(prepared.device.uuid or prepared.device.kind, f"process {os.getpid()}, {folder.path}")
    run = _Run(prepared, folder, recorder, stop)
    try:
        try:
            if claim.holder is not None:
                warn_of_another_run(claim.holder, recorder)
            run.measure()
        finally:
            claim.close()
            run.close()
            log.flush()
            recorder.tick()  # what could not be written is told before the verdict
    except Exception as error:
        folder.add_traceback("tcompile-tui", traceback.format_exc())
        text = f"tcompile-tui failed: {type(error).__name__}: {error} (traceback in {folder.tracebacks})"
        verdict = program_failed(recorder.state, text)
    else:
        verdict = decide(recorder.state)
    judged = ComparedRun(folder.path.name, recorder.state, verdict, machine.facts().hostname)
    checks = check_gate(request.gate, judged)
    code = int(gated_exit_code(verdict, checks))
    recorder.record(ev.RunEnded(decision=verdict.decision.value, headline=verdict.headline, exit_code=code))
    unwritten = _write_verdict(folder, encode_verdict(verdict_document(recorder.state, verdict, checks)))
    log.close()
    _write_compile_trace(folder)
    return Finished(folder, recorder.state, verdict, checks, unwritten)


def _write_verdict(folder: RunFolder, document: bytes) -> str | None:
    """Before all else that still has to be written. Why it could not be, if so."""
    folder.release()
    try:
        write_atomically(folder.verdict, document)
    except OSError as error:
        return f"{folder.verdict} cannot be written: {error.strerror}"
    return None


def _write_compile_trace(folder: RunFolder) -> None:
    """For Perfetto. From the log, which is bounded, and not kept in memory during the run. A full disk has none."""
    with contextlib.suppress(OSError):
        trace = chrome_trace(read_events(folder.events))
        write_atomically(folder.path / COMPILE_TRACE_FILE, msgspec.json.encode(trace))


class _Run:
    """The processes of one run, one after the other."""

    def __init__(self, prepared: Prepared, folder: RunFolder, recorder: Recorder, stop: StopRequest) -> None:
        self._prepared = prepared
        self._request = prepared.request
        self._spec = replace(prepared.request.spec, device=prepared.device.kind)
        self._effort = EFFORTS[self._spec.preset]
        self._folder = folder
        self._recorder = recorder
        self._stop = stop
        self._run_id = secrets.token_hex(8)
        self._deadline = monotonic() + self._spec.budget_s
        self._output = OutputLog(folder.log)
        self._archive = build_worker_archive(folder.path / "worker.zip")
        self._roots: list[roots.PrivateRoot] = []
        self._mode_roots: dict[Mode, roots.PrivateRoot] = {}
        self._reference_file: Path | None = None
        self._processes = 0
        self._headers = roots.interpreter_key(prepared.interpreter.executable, prepared.interpreter.torch_version)
        self._worker_pid: int | None = None
        self._compile_hung = False
        self._memory_limit_bytes: int | None = None
        self._changed_environment: dict[str, str] = {}
        self._starter = ProcessStarter(
            Surroundings(
                executable=prepared.interpreter.executable,
                archive=self._archive,
                run_id=self._run_id,
                cwd=self._request.cwd,
                device=prepared.device.kind,
                on_output=self._output.write,
            ),
            notice=lambda text: recorder.notice("process-start", text),
        )

    # ------------------------------------------------------------ the order of things

    def measure(self) -> None:
        """Eager first: a model that does not run says so within seconds. Then every mode, cold and warm."""
        write_start(self._prepared, self._run_id, self._spec, self._folder, self._recorder)
        self._recorder.tick()
        warn(self._prepared, self._recorder)
        roots.remove_leftovers()
        eager = self._run_phase(Phase.EAGER, None, self._new_root())
        if not eager.done or self._stop.level is not Stop.NO:
            return
        self._choose_process_start()
        if self._stop.level is not Stop.NO:
            return
        self._run_reference(eager)
        self._time_loader()
        if self._headers_must_be_built() and not self._run_preflight().done:
            return
        checked = False
        for position, mode in enumerate(self._spec.modes):
            if self._stop.level is not Stop.NO or self._left_s() <= 0:
                return
            cold = self._measure_mode(mode, last=position == len(self._spec.modes) - 1)
            if cold.failure is not None and cold.failure.fault in ("compiler", "environment") and not checked:
                checked = True
                if not self._run_preflight().done:
                    return
        self._replay_shapes()
        self._probe_fullgraph()
        for mode in self._spec.modes:
            self._measure_again(mode)
        if self._spec.fit_batch:
            self._fit_batches()
        if self._request.explain and self._stop.level is Stop.NO and self._left_s() > 0:
            self._run_phase(Phase.EXPLAIN, None, self._new_root())

    def _run_reference(self, eager: ProcessState) -> None:
        """The outputs in higher precision, for the accuracy checks of every mode; a run without them goes on."""
        if self._spec.preset not in REFERENCE_PRESETS or self._spec.dtype == "float64":
            return
        shortage = memory_shortage(self._recorder.state, eager)
        if shortage is not None:
            self._recorder.notice("reference-missing", shortage, ev.Level.WARNING)
            return
        root = self._new_root()
        self._reference_file = root.path / REFERENCE_FILE
        self._run_phase(Phase.REFERENCE, None, root, limit_s=REFERENCE_TIME_SHARE * self._left_s())

    def _time_loader(self) -> None:
        """A run whose loader cannot be timed goes on."""
        data = self._spec.data
        if data is not None and data.loader is not None and self._stop.level is Stop.NO:
            self._run_phase(Phase.LOADER, None, self._new_root(), limit_s=_LOADER_TIME_SHARE * self._left_s())

    def _measure_mode(self, mode: Mode, last: bool) -> ProcessState:
        root = self._mode_roots[mode] = self._new_root()
        # A long autotuning run must leave an answer for the modes that are already measured, and some for itself.
        patience_s = self._left_s() * (0.5 if mode.options.autotunes or not last else 0.8)
        cold = self._run_phase(Phase.COLD, mode, root, limit_s=patience_s)
        if not cold.done and self._may_be_tried_again(cold, root):
            root = self._mode_roots[mode] = self._new_root()
            cold = self._run_phase(Phase.COLD, mode, root, limit_s=min(patience_s, self._left_s()))
        if cold.done and cold.compiled_anything and self._stop.level is Stop.NO:
            self._run_phase(Phase.WARM, mode, root)
            if ran_out_side_by_side(self._recorder.state, mode):
                self._measure_apart(mode, root)
        return cold

    def _measure_apart(self, mode: Mode, root: roots.PrivateRoot) -> None:
        """Memory has no room for both arms in one process: each alone, in turn."""
        for number in range(self._effort.apart_rounds):
            for arm in _ABBA if number % 2 == 0 else _BAAB:
                if self._stop.level is not Stop.NO or self._left_s() <= 0:
                    return
                if not self._run_phase(Phase.APART, mode, root, arm=arm).done:
                    return
            speedup = mode_result(self._recorder.state, mode).speedup
            if speedup is not None and meets_stop_rule(speedup):
                return

    def _may_be_tried_again(self, cold: ProcessState, root: roots.PrivateRoot) -> bool:
        """Once, where the blame lies neither with the model nor with its compiler; says why, and what is changed."""
        if self._stop.level is not Stop.NO or self._left_s() <= 0 or cold.compile_stopped is not None:
            return False
        if self._compile_hung and _COMPILE_THREADS not in self._changed_environment:
            self._changed_environment[_COMPILE_THREADS] = "1"
            detail = cold.ended.detail if cold.ended is not None else ""
            text = f"{detail}; compiled again with {_COMPILE_THREADS}=1, without worker processes"
            self._recorder.notice("compile-workers-hang", text, ev.Level.WARNING)
            return True
        damage = root.damage
        if damage is not None:
            text = f"the compile caches were lost during the compile ({damage}); compiled again in a new folder"
            self._recorder.notice("caches-damaged", text, ev.Level.WARNING)
        return damage is not None

    def _measure_again(self, mode: Mode) -> None:
        """One process is one draw. Only after every mode has an answer, and on the mode's own caches."""
        state, effort = self._recorder.state, self._effort
        while self._may_run_again(Phase.WARM, mode, effort.warm_processes):
            if not effort.always and not further_process_matters(state, mode, effort.warm_processes):
                break
            self._run_phase(Phase.WARM, mode, self._mode_roots[mode])
        while self._may_run_again(Phase.COLD, mode, effort.cold_processes):
            root = self._new_root()
            self._run_phase(Phase.COLD, mode, root)
            self._drop(root)
        if mode in self._mode_roots:
            self._drop(self._mode_roots[mode])

    def _replay_shapes(self) -> None:
        """The sequence of shapes with each way to deal with them, cold, in the mode that is cheapest to compile."""
        mode = self._spec.modes[0]
        last = self._recorder.state.process_of(Phase.WARM, mode)
        if self._spec.shapes is None or last is None or not last.done:
            return
        for position, handling in enumerate(ShapeHandling):
            if self._stop.level is not Stop.NO or self._left_s() <= 0:
                return
            share = 1 / (len(ShapeHandling) - position)
            root = self._new_root()
            self._run_phase(Phase.SHAPES, mode, root, limit_s=share * self._left_s(), handling=handling)
            self._drop(root)

    def _probe_fullgraph(self) -> None:
        """On the caches of the first mode, which have most of it where nothing breaks the graph."""
        mode = self._spec.modes[0]
        if self._request.fullgraph and self._stop.level is Stop.NO and self._left_s() > 0:
            self._run_phase(Phase.FULLGRAPH, mode, self._mode_roots[mode])

    def _fit_batches(self) -> None:
        """The largest batch of eager, then of each mode that was compared, held to the same memory."""
        state, root = self._recorder.state, self._new_root()
        compared = [mode for mode in self._spec.modes if mode_result(state, mode).speedup is not None]
        arms: list[tuple[Arm, Mode | None]] = [(Arm.EAGER, None), *((Arm.COMPILED, mode) for mode in compared)]
        for position, (arm, mode) in enumerate(arms if compared else ()):
            if self._stop.level is not Stop.NO or self._left_s() <= 0:
                return
            share = 1 / (len(arms) - position)
            process = self._run_phase(Phase.FIT, mode, root, limit_s=share * self._left_s(), arm=arm)
            if process.batch is None:
                return
            self._memory_limit_bytes = process.batch.limit_bytes

    def _may_run_again(self, phase: Phase, mode: Mode, at_most: int) -> bool:
        """Did the last one get through, and is there time for another?"""
        processes = self._recorder.state.processes_of(phase, mode)
        if self._stop.level is not Stop.NO or not 0 < len(processes) < at_most:
            return False
        ended = processes[-1].ended
        return processes[-1].done and ended is not None and _TIME_RESERVE * ended.seconds < self._left_s()

    def _drop(self, root: roots.PrivateRoot) -> None:
        if not self._request.keep_caches:
            root.remove()

    def _headers_must_be_built(self) -> bool:
        """A torch's first compile of CPU code on a machine precompiles headers: no mode should pay for that."""
        return self._spec.device == "cpu" and not self._request.cold_headers and not roots.headers_exist(self._headers)

    def _run_preflight(self) -> ProcessState:
        root = self._new_root()
        process = self._run_phase(Phase.PREFLIGHT, None, root)
        root.remove()
        if process.done and process.ended is not None and self._spec.device == "cpu":
            self._recorder.notice(
                "headers-built",
                f"C++ headers were precompiled for this machine ({process.ended.seconds:.0f} s, part of no figure)",
            )
        return process

    # ------------------------------------------------------------ one process

    def _choose_process_start(self) -> None:
        """Forking saves every further process the imports. Where it would measure something else: fresh ones."""
        request = self._request
        if request.fresh or request.cold_headers or request.keep_trace is not None:
            option = "--fresh" if request.fresh else "--cold-headers" if request.cold_headers else "--keep-trace"
            self._starter.stay_fresh(f"{option} asks for it")
        elif self._target_first:
            self._starter.stay_fresh(f"importing the target changes {', '.join(self._target_first)}")
        else:
            self._starter.open(self._environment(self._new_root()), self._go_on)

    @property
    def _target_first(self) -> tuple[str, ...]:
        """Variables that the target changes and that torch reads when it is imported."""
        eager = self._recorder.state.process_of(Phase.EAGER)
        return eager.imports.environment_changed if eager is not None and eager.imports is not None else ()

    def _go_on(self) -> bool:
        """While something is waited for: keep the display alive."""
        self._recorder.tick()
        return self._stop.level is Stop.NO and self._left_s() > 0

    def _run_phase(
        self,
        phase: Phase,
        mode: Mode | None,
        root: roots.PrivateRoot,
        limit_s: float | None = None,
        handling: ShapeHandling | None = None,
        arm: Arm | None = None,
    ) -> ProcessState:
        self._processes += 1
        worker = self._starter.start(phase, self._environment(root))
        self._worker_pid = worker.pid
        sampler = Sampler(
            self._prepared.device.reader(lambda: self._worker_pid, lambda: self._recorder.state.reads_energy)
        )
        left_s = self._left_s()
        limits = PhaseLimits(
            limit_s=max(1.0, limit_s if limit_s is not None else left_s),
            limit_is="the rest of the run's time" if limit_s is None else "its share of the run's time",
            hang_s=_HANG_S if phase is Phase.COLD else None,
            planned=planned_run(self._recorder.state) if phase is Phase.COLD and not self._request.gate else None,
        )
        job = replace(self._job(phase, mode, root), handling=handling, arm=arm)
        runner = PhaseRunner(worker, job, limits, self._recorder, self._stop)
        try:
            process = runner.run(sampler.take)
            self._compile_hung = runner.compile_hung
            self._deadline += runner.suspended_s
        finally:
            self._worker_pid = None
            sampler.stop()
        if process.failure is not None and process.failure.traceback:
            self._folder.add_traceback(f"{phase.value} {mode.value if mode else ''}".strip(), process.failure.traceback)
        return process

    def _job(self, phase: Phase, mode: Mode | None, root: roots.PrivateRoot) -> Job:
        resolved = self._prepared.resolved
        eager = self._recorder.state.process_of(Phase.EAGER)
        peak = next(iter(eager.memory.values()), None) if eager is not None else None
        return Job(
            phase=phase,
            mode=mode,
            spec=self._spec.under(str(self._request.cwd)),
            process=self._processes,
            run_start_ns=self._recorder.run_start_ns,
            source_path=resolved.path,
            source_module=resolved.module,
            qualified_name=resolved.qualified_name,
            import_root=resolved.import_root,
            argv=self._request.argv,
            cache_root=str(root.path),
            warmup_budget_s=self._effort.warmup_s,
            pair_budget_s=self._effort.pairs_s * _PAIR_SHARES.get(phase, 1.0),
            max_pairs=self._effort.max_pairs,
            eager_peak_bytes=peak.first_allocated_bytes if peak is not None else None,
            target_first=bool(self._target_first),
            memory_limit_bytes=self._memory_limit_bytes,
            reference_file=str(self._reference_file) if self._reference_file is not None else None,
            measure_energy=measures_energy(
                self._spec, phase, mode, len(self._recorder.state.processes_of(phase, mode))
            ),
        )

    def _environment(self, root: roots.PrivateRoot) -> dict[str, str]:
        return {
            **os.environ,
            **self._prepared.interpreter.environment_updates,
            **self._prepared.device.environment,
            **self._request.extra_environment,
            **root.environment,
            **self._trace_environment(),
            **self._changed_environment,
        }

    def _trace_environment(self) -> dict[str, str]:
        """torch writes its raw structured trace itself, one folder a process, as tlparse reads it."""
        if self._request.keep_trace is None:
            return {}
        return {"TORCH_TRACE": str(self._request.keep_trace / f"process-{self._processes}")}

    def _new_root(self) -> roots.PrivateRoot:
        root = roots.create_root(share_headers=not self._request.cold_headers, interpreter=self._headers)
        self._roots.append(root)
        return root

    def _left_s(self) -> float:
        return self._deadline - monotonic()

    def close(self) -> None:
        """Remove what is only of use during the run."""
        self._starter.close()
        self._output.close()
        self._archive.unlink(missing_ok=True)
        if not self._request.keep_caches:
            for root in self._roots:
                root.remove()
        elif self._roots:
            kept = shlex.join(str(root.path) for root in self._roots if root.path.exists())
            self._recorder.notice("caches-kept", f"the compile caches of this run are kept: {kept}")
