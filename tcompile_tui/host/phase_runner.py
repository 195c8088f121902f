"""Run one worker process to its end: judge steadiness, stop loops in time, keep the limits, say how it ended."""

from __future__ import annotations

import queue
import signal
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from tcompile_tui.core import events as ev
from tcompile_tui.core.early_answer import PlannedRun
from tcompile_tui.core.pairs import LOOKS, enough
from tcompile_tui.core.silence import idle_s, silent_s
from tcompile_tui.core.spec import EVERY_LOOP, Arm, Job
from tcompile_tui.core.state import ProcessState, step_times
from tcompile_tui.core.steady import SteadyGate
from tcompile_tui.core.wire import CHANNEL_LOST
from tcompile_tui.host.guarded import GuardReport
from tcompile_tui.host.recorder import Recorder
from tcompile_tui.host.stopping import Stop, StopRequest
from tcompile_tui.host.workers import RecordsEnded, Worker

_POLL_S = 0.1
# How long a worker may take to end a block after it was told to, before it is killed.
_FINISH_GRACE_S = 10.0
_EXIT_GRACE_S = 5.0
# What comes after the measurement (a profile) takes seconds, or hangs.
_EXTRAS_LIMIT_S = 60.0
# After the guard has reported, the pipes hold at most what is already in them.
_DRAIN_S = 3.0
# The pump turns ten times a second: a gap this long means that this process itself did not run.
_SUSPENDED_S = 5.0
_LONG_SILENCE_S = 60.0
# A compile works, or waits for a program that does.
_IDLE_S = 2.0


@dataclass(frozen=True)
class PhaseLimits:
    """`limit_s` from the start of the process; at the limit the worker is asked to finish, `grace_s` later killed.
    `limit_is` says whose limit that is. After `hang_s` in which a compile neither says anything nor uses a CPU it is
    ended. A start that cannot pay off in the `planned` run is ended too."""

    limit_s: float
    limit_is: str = "the run's time budget"
    hang_s: float | None = None
    planned: PlannedRun | None = None
    grace_s: float = _FINISH_GRACE_S


class PhaseRunner:
    """Pumps one worker's messages on the main thread."""

    def __init__(self, worker: Worker, job: Job, limits: PhaseLimits, recorder: Recorder, stop: StopRequest) -> None:
        self._worker = worker
        self._job = job
        self._limits = limits
        self._recorder = recorder
        self._stop = stop
        self._started = monotonic()
        self._gates: dict[Arm, SteadyGate] = {}
        self._judged_loops: set[int] = set()
        self._asked_to_finish_at: float | None = None
        self._killed_because: ev.Outcome | None = None
        self._measured_at: float | None = None
        self._done_at: float | None = None
        self._looked_at: float | None = None
        self.compile_hung = False
        self.suspended_s = 0.0

    def run(self, samples: Callable[[], list[ev.Event]]) -> ProcessState:
        """Returns the process's state after its last record; never raises for what a worker does."""
        job, recorder = self._job, self._recorder
        recorder.take(
            ev.stamp(
                ev.PhaseStarted(
                    phase=job.phase,
                    mode=job.mode,
                    pid=self._worker.pid,
                    limit_s=self._limits.limit_s,
                    how=self._worker.how,
                ),
                recorder.now_s(),
                job.process,
            )
        )
        self._worker.send_job(job)
        try:
            report, ended = self._pump(samples)
        finally:
            self._worker.close()
        process = recorder.state.processes[job.process]
        recorder.take(ev.stamp(self._ending(process, report, ended), recorder.now_s(), job.process))
        recorder.tick()
        return process

    # ------------------------------------------------------------ the pump

    def _pump(self, samples: Callable[[], list[ev.Event]]) -> tuple[GuardReport | None, RecordsEnded | None]:
        report: GuardReport | None = None
        ended: RecordsEnded | None = None
        drain_until: float | None = None
        while report is None or ended is None:
            try:
                message = self._worker.messages.get(timeout=_POLL_S)
            except queue.Empty:
                message = None
            if isinstance(message, GuardReport):
                report, drain_until = message, monotonic() + _DRAIN_S
            elif isinstance(message, RecordsEnded):
                ended = message
            elif message is not None:
                self._take(message)
            for sample in samples():
                self._recorder.record(sample)
            self._recorder.tick()
            self._keep_limits()
            if drain_until is not None and monotonic() > drain_until:
                break  # a process outside the guard's reach still holds the pipe
        return report, ended

    def _take(self, event: ev.Event) -> None:
        self._recorder.take(event)
        if isinstance(event, ev.Block):
            if event.role is ev.BlockRole.WARMUP:
                self._judge_steadiness(event)
            elif event.role is ev.BlockRole.PAIR:
                self._judge_pairs(event)
        elif isinstance(event, ev.MeasurementDone):
            self._measured_at = monotonic()
        elif isinstance(event, (ev.WorkerDone, ev.WorkerFailed)):
            self._done_at = monotonic()

    def _judge_steadiness(self, block: ev.Block) -> None:
        gate = self._gates.setdefault(block.arm, SteadyGate(budget_ns=int(self._job.warmup_budget_s * 1e9)))
        disturbed = {*block.compiled_at, *block.suspended_at}
        gate.extend(step_times(block), {index - block.first_index for index in disturbed})
        if gate.state is ev.Steadiness.WARMING_UP or block.loop in self._judged_loops:
            return
        self._judged_loops.add(block.loop)
        self._worker.finish_loop(block.loop)
        self._recorder.record(
            ev.SteadyJudged(
                of_process=self._job.process,
                arm=block.arm,
                steadiness=gate.state,
                start_index=gate.start_index,
                bound=gate.bound,
                reason=gate.reason,
            )
        )

    def _judge_pairs(self, block: ev.Block) -> None:
        process = self._recorder.state.processes[self._job.process]
        pairs = len(process.pairs)
        if pairs in LOOKS and block.loop not in self._judged_loops:
            interval = process.interval
            if interval is not None and enough(interval, pairs):
                self._judged_loops.add(block.loop)
                self._worker.finish_loop(block.loop)

    # ------------------------------------------------------------ limits

    def _keep_limits(self) -> None:
        now = monotonic()
        if self._looked_at is not None and now - self._looked_at > _SUSPENDED_S:
            # This process was stopped, and so perhaps was the worker.
            self.suspended_s += now - self._looked_at
            self._started += now - self._looked_at
        self._looked_at = now
        if self._killed_because is not None:
            return
        if self._stop.level is Stop.ABANDON:
            self._kill(ev.Outcome.STOPPED)
        elif self._done_at is not None:
            if now - self._done_at > _EXIT_GRACE_S:
                self._kill(ev.Outcome.OK)  # its last record is there: only the process would not leave
        elif self._measured_at is not None and now - self._measured_at > _EXTRAS_LIMIT_S:
            self._kill(ev.Outcome.OK)
        elif self._asked_to_finish_at is not None:
            if now - self._asked_to_finish_at > self._limits.grace_s:
                self._kill(ev.Outcome.STOPPED if self._stop.level is not Stop.NO else ev.Outcome.TIMED_OUT)
        elif self._stop.level is Stop.DECIDE_NOW or now - self._started > self._limits.limit_s:
            self._asked_to_finish_at = now
            self._worker.finish_loop(EVERY_LOOP)
        elif self._hangs_in_a_compile():
            self.compile_hung = True
            self._kill(ev.Outcome.TIMED_OUT)
        elif self._cannot_pay():
            self._kill(ev.Outcome.STOPPED)

    def _cannot_pay(self) -> bool:
        """Is the answer certain in the middle of the compile? Time in which nothing ran is none that it cost."""
        planned, state = self._limits.planned, self._recorder.state
        process = state.processes[self._job.process]
        if planned is None or self.suspended_s or idle_s(state, process) > _IDLE_S:
            return False
        start_s = planned.start_so_far_s(process, self._recorder.now_s())
        if start_s is None or not planned.cannot_pay(start_s):
            return False
        self._recorder.record(ev.CompileStopped(of_process=self._job.process, start_s=start_s))
        return True

    def _hangs_in_a_compile(self) -> bool:
        process = self._recorder.state.processes[self._job.process]
        if self._limits.hang_s is None or not process.compile.current_stages:
            return False
        return idle_s(self._recorder.state, process) > self._limits.hang_s

    def _kill(self, because: ev.Outcome) -> None:
        self._killed_because = because
        self._worker.kill()

    # ------------------------------------------------------------ the ending

    def _ending(self, process: ProcessState, report: GuardReport | None, ended: RecordsEnded | None) -> ev.PhaseEnded:
        outcome, detail = self._outcome(process, report)
        if ended is not None and (ended.unreadable or ended.stray_bytes):
            detail += f"; {ended.unreadable} unreadable records and {ended.stray_bytes} stray bytes were skipped"
        return ev.PhaseEnded(
            phase=self._job.phase,
            mode=self._job.mode,
            outcome=outcome,
            seconds=monotonic() - self._started,
            detail=detail,
            reclaimed=report.reclaimed if report is not None else 0,
        )

    def _outcome(self, process: ProcessState, report: GuardReport | None) -> tuple[ev.Outcome, str]:
        """The last record decides, not the exit status: user code can fake any status."""
        if process.done:
            return ev.Outcome.OK, "had to be killed after its measurement" if self._killed_because else ""
        if self._killed_because is ev.Outcome.TIMED_OUT:
            return ev.Outcome.TIMED_OUT, self._timed_out_text(process)
        if self._killed_because is ev.Outcome.STOPPED:
            early = process.compile_stopped is not None
            return ev.Outcome.STOPPED, "it cannot pay off in the planned run" if early else "stopped on request"
        if process.failure is not None:
            return ev.Outcome.ERROR, ""
        if report is None or report.error is not None:
            return ev.Outcome.KILLED, report.error or "" if report is not None else "its guard is gone"
        if report.returncode < 0:
            return ev.Outcome.KILLED, _killed_text(-report.returncode)
        if report.returncode == CHANNEL_LOST:
            return ev.Outcome.EXITED, "the model's code closed the descriptors that its process reports on"
        return ev.Outcome.EXITED, f"left with status {report.returncode} before its last record"

    def _timed_out_text(self, process: ProcessState) -> str:
        if self.compile_hung:
            return f"the compile hung: it said nothing and used no CPU for {self._limits.hang_s:.0f} s"
        text = f"not finished in {self._limits.limit_s:.0f} s, {self._limits.limit_is}"
        quiet_s = silent_s(process, self._recorder.now_s())
        return text if quiet_s < _LONG_SILENCE_S else f"{text}; nothing was heard of it for {quiet_s:.0f} s"


def _killed_text(number: int) -> str:
    """The kernel's killer leaves no other trace in the process."""
    hint = ", as the kernel does when memory runs out" if number == signal.SIGKILL else ""
    return f"killed by {_signal_name(number)}{hint}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
