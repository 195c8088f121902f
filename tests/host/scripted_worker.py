"""A worker of the standard library only that speaks the real wire: what a real one does in minutes, in a second,
and what a hostile one may do. `SCRIPT` in the environment names what to do when.

Run as an interpreter (see `fake_python`): `scripted_worker.py EVENT_FD COMMAND_FD`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Arm, Job, Phase
from tcompile_tui.worker.channel import Channel

STEPS = 50
_SPEEDUP = {"near-tie": 1.02}


def main() -> None:
    channel = Channel(int(sys.argv[1]), int(sys.argv[2]))
    job = channel.read_job()
    channel.send(
        ev.WorkerReady(
            python_version="3",
            torch_version="2.99",
            cuda_version=None,
            device_name="CPU",
            threads=1,
            matmul_precision="",
        )
    )
    channel.send(ev.ImportsDone(torch_s=0.1, compiler_s=0.2, target_s=0.0))
    script = os.environ.get("SCRIPT", "")
    misbehave(script, job, channel)
    if job.phase is not Phase.PREFLIGHT:
        measure(job, channel)
    if job.artifacts_to is not None:
        Path(job.artifacts_to).write_bytes(b"artifacts")
        counts = (ev.ArtifactCount("inductor", 2),)
        channel.send(ev.ArtifactsMoved(saved=True, seconds=0.1, bytes=9, counts=counts))
    if script == "crash-afterwards":
        channel.send(ev.MeasurementDone())
        os.kill(os.getpid(), signal.SIGSEGV)
    channel.send(ev.WorkerDone())
    if script == "stay":
        threading.Thread(target=time.sleep, args=(1_000,)).start()
        return
    os._exit(3 if script == "bad-status" else 0)


def misbehave(script: str, job: Job, channel: Channel) -> None:
    """Most scripts act in the cold phase, where a run spends its time."""
    if script == "flood":
        for _ in range(100):
            os.write(1, b"flood " * 20_000 + b"\n")
    if script == "forge" and job.phase is Phase.COLD:
        os.write(1, b'{"v":1,"kind":"worker_done"}\n')
        for fd in range(3, 64):
            with contextlib.suppress(OSError):
                os.write(fd, b'\x00\xffgarbage{"v":1,"kind":"worker_done","records_dropped":0}\n')
    if job.phase is not Phase.COLD:
        return
    if script in ("compile-forever", "orphans"):
        if script == "orphans":
            subprocess.Popen(["sleep", "600"], start_new_session=True)
            subprocess.Popen(["sleep", "601"])
        send_compile(channel)
        time.sleep(600)
    if script == "compile-busily":
        channel.send(ev.ModelCompiled(wrapped=False))
        send_compile(channel)
        while True:
            pass
    if script == "workers-hang" and "TORCHINDUCTOR_COMPILE_THREADS" not in os.environ:
        send_compile(channel)
        time.sleep(600)
    caches = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    if script == "caches-lost" and not Path("lost").exists():
        Path("lost").touch()
        shutil.rmtree(caches)
        channel.send(ev.WorkerFailed(stage="compiled steps", error_type="OSError", message="gone", fault="compiler"))
        os._exit(1)
    if script == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if script == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if script == "leaves":
        os._exit(0)
    if script == "fails":
        channel.send(ev.WorkerFailed(stage="compiled steps", error_type="Unsupported", message="no", fault="compiler"))
        os._exit(1)


def send_compile(channel: Channel) -> None:
    """One that has begun."""
    channel.send(ev.FrameStarted(compile_id="0/0", function="forward", file="model.py", line=3))
    span = ev.CompileSpan(begins=True, stage=ev.CompileStage.KERNELS, stage_name="compile_file", compile_id="0/0")
    channel.send(span)


def measure(job: Job, channel: Channel) -> None:
    """A perfect machine: constant steps, one compile, pairs at a ratio of two."""
    arm = job.arm or (Arm.EAGER if job.phase is Phase.EAGER else Arm.COMPILED)
    channel.send(
        ev.ModelReady(
            class_name="Net", file=job.source_path, line=1, parameters=1, parameter_bytes=4, training=False,
            inputs=(), input_batches=1,
        )
    )  # fmt: skip
    if job.artifacts_from is not None:
        channel.send(ev.ArtifactsMoved(saved=False, seconds=0.1, bytes=9, counts=()))
    if arm is Arm.COMPILED:
        channel.send(ev.GraphCaptured(compile_id="0/0", ops=3))
        hit = job.artifacts_from is not None and Path(job.artifacts_from).read_bytes() == b"artifacts"
        outcome = ev.CacheOutcome.HIT if hit else ev.CacheOutcome.MISS
        channel.send(ev.CacheLookup(cache=ev.CacheKind.FX, outcome=outcome, compile_id="0/0"))
    send_block(channel, arm, ev.BlockRole.WARMUP, 0, (50_000_000,), compiled_at=(0,) if arm is Arm.COMPILED else ())
    first = 1
    while not channel.should_finish(0) and first < 2_000:
        send_block(channel, arm, ev.BlockRole.WARMUP, first, jittered(arm, STEPS))
        first += STEPS
    if job.phase is Phase.WARM and os.environ.get("SCRIPT") == "no-room":
        channel.send(ev.WorkerFailed(stage="eager steps", error_type="OutOfMemoryError", message="", fault="memory"))
        os._exit(1)
    if job.phase is Phase.APART:
        for number in range(job.max_pairs):
            send_block(channel, arm, ev.BlockRole.APART, first + 10 * number, jittered(arm, 10))
    if job.phase is Phase.WARM:
        leaf = ev.LeafComparison("output", "float32", 1, same_structure=True)
        channel.send(ev.OutputsCompared(comparison=ev.ComparisonKind.COMPILED, leaves=(leaf,)))
        for pair in range(job.max_pairs):
            for half in (Arm.EAGER, Arm.COMPILED) if pair % 2 == 0 else (Arm.COMPILED, Arm.EAGER):
                send_block(channel, half, ev.BlockRole.PAIR, first, jittered(half, 10), pair=pair)
            first += 10


def jittered(arm: Arm, steps: int) -> tuple[int, ...]:
    speedup = _SPEEDUP.get(os.environ.get("SCRIPT", ""), 2.0) if arm is Arm.COMPILED else 1.0
    return tuple(round(2_000_000 / speedup) + 1_000 * (i * 7 % 11) for i in range(steps))


def send_block(
    channel: Channel,
    arm: Arm,
    role: ev.BlockRole,
    first: int,
    steps: tuple[int, ...],
    pair: int | None = None,
    compiled_at: tuple[int, ...] = (),
) -> None:
    channel.send(
        ev.Block(
            arm=arm, role=role, pair=pair, first_index=first, steps=len(steps), step_ns=steps, wall_ns=sum(steps),
            cpu_ns=sum(steps), involuntary_switches=0, compiled_at=compiled_at,
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
