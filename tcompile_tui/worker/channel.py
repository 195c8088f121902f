"""The worker's two private descriptors: records out, commands in."""

from __future__ import annotations

import json
import os
import select
import threading
from time import monotonic_ns
from typing import Any

from ..core.data_spec import data_from_json
from ..core.events import Event, encode_event, stamp
from ..core.shape_spec import ShapeHandling, sequence_from_json
from ..core.spec import (
    EVERY_LOOP,
    Argument,
    Arm,
    Dim,
    InputSpec,
    Job,
    Mode,
    Phase,
    Plan,
    Preset,
    RunSpec,
    Source,
    Starts,
    Target,
    Task,
    TensorSpec,
)
from ..core.step_spec import step_from_json
from ..core.wire import CHANNEL_LOST, MAX_PAYLOAD_BYTES, FrameDecoder, encode_frame

# Bound here: user code may patch these modules.
_loads = json.loads
_dumps = json.dumps
_select = select.select
_write = os.write
_read = os.read
_getpid = os.getpid
_fstat = os.fstat
_exit = os._exit


def _identity(fd: int) -> tuple[int, int] | None:
    """What lies behind a descriptor; None if it is closed."""
    try:
        status = _fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class Channel:
    """Sends records from any thread; reads the job and, between blocks, commands.

    The supervisor drains the pipe all the time, so a write waits at most for a scheduling slice. It is still
    never done inside a timed block. The job comes on `job_fd`, or else as the first command.
    """

    def __init__(self, event_fd: int, command_fd: int, job_fd: int | None = None) -> None:
        self._event_fd = event_fd
        self._command_fd = command_fd
        self._job_fd = command_fd if job_fd is None else job_fd
        self._job_body: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._decoder = FrameDecoder()
        self._finished_loops: set[int] = set()
        self.records_dropped = 0
        self.run_start_ns = monotonic_ns()
        self.process = 0
        for fd in (event_fd, command_fd):
            os.set_inheritable(fd, False)  # compilers and forks of the user must not hold our pipes open
        self._pid = _getpid()
        self._pipe = _identity(event_fd)

    def read_job(self) -> Job:
        """Wait for the first frame and read it as the job."""
        while True:
            chunk = _read(self._job_fd, 1 << 16)
            if not chunk:
                raise EOFError("the supervisor closed the command pipe before it sent a job")
            for payload in self._decoder.feed(chunk):
                self._job_body = _loads(payload)
                job = job_from_json(self._job_body)
                self.run_start_ns, self.process = job.run_start_ns, job.process
                return job

    def hand_over(self, changes: dict[str, Any]) -> tuple[int, int, int]:
        """Descriptors for a program that this process is about to execute: records, commands, and the job with some
        of its fields changed."""
        job_fd = os.memfd_create("job")
        _write(job_fd, encode_frame(_dumps({**self._job_body, **changes}).encode()))
        os.lseek(job_fd, 0, os.SEEK_SET)
        for fd in (self._event_fd, self._command_fd, job_fd):
            os.set_inheritable(fd, True)
        return self._event_fd, self._command_fd, job_fd

    def now_s(self) -> float:
        """Seconds since the start of the run."""
        return (monotonic_ns() - self.run_start_ns) / 1e9

    def send(self, event: Event) -> None:
        """Stamp and write one record. A record over the size limit is dropped and counted.

        Ends the process where it has no business here: a fork of the user's that came back into our code, or one whose
        descriptors were closed, and whose numbers may be those of the user's own files by now."""
        if _getpid() != self._pid or _identity(self._event_fd) != self._pipe:
            _exit(CHANNEL_LOST)
        payload = encode_event(stamp(event, self.now_s(), self.process))
        if len(payload) > MAX_PAYLOAD_BYTES:
            self.records_dropped += 1
            return
        view = memoryview(encode_frame(payload))
        with self._lock:
            while view:
                view = view[_write(self._event_fd, view) :]

    def should_finish(self, loop: int) -> bool:
        """Has the supervisor asked to end this loop? Never waits."""
        while _select([self._command_fd], [], [], 0)[0]:
            chunk = _read(self._command_fd, 1 << 16)
            if not chunk:
                break
            for payload in self._decoder.feed(chunk):
                self._finished_loops.add(int(_loads(payload)["loop"]))
        return loop in self._finished_loops or EVERY_LOOP in self._finished_loops


def job_from_json(body: dict[str, Any]) -> Job:
    """Build the job from its JSON object. The supervisor is trusted; a mismatch raises KeyError or ValueError."""
    spec = body["spec"]
    run_spec = RunSpec(
        target=_target_from_json(spec["target"]),
        inputs=tuple(map(_input_from_json, spec["inputs"])),
        task=Task(spec["task"]) if spec["task"] else None,
        modes=tuple(Mode(mode) for mode in spec["modes"]),
        device=spec["device"],
        dtype=spec["dtype"],
        amp=spec["amp"],
        plan=Plan(**{**spec["plan"], "starts": Starts(**spec["plan"]["starts"])}),
        preset=Preset(spec["preset"]),
        budget_s=spec["budget_s"],
        dims=tuple(Dim(**dim) for dim in spec["dims"]),
        inputs_from=spec["inputs_from"],
        arguments=tuple(Argument(**argument) for argument in spec["arguments"]),
        step=step_from_json(spec["step"]),
        shapes=sequence_from_json(spec["shapes"]),
        new_tokens=spec["new_tokens"],
        slo_ms=spec["slo_ms"],
        data=data_from_json(spec["data"]),
        fit_batch=spec["fit_batch"],
    )
    return Job(
        **{
            **body,
            "phase": Phase(body["phase"]),
            "mode": Mode(body["mode"]) if body["mode"] else None,
            "spec": run_spec,
            "argv": tuple(body["argv"]),
            "handling": ShapeHandling(body["handling"]) if body["handling"] else None,
            "arm": Arm(body["arm"]) if body["arm"] else None,
        }
    )


def _target_from_json(target: dict[str, Any]) -> Target:
    return Target(**{**target, "source": Source(target["source"]) if target["source"] else None})


def _input_from_json(given: str | dict[str, Any]) -> InputSpec:
    if isinstance(given, str):
        return given
    strides = None if given["strides"] is None else tuple(given["strides"])
    return TensorSpec(**{**given, "shape": tuple(given["shape"]), "strides": strides})
