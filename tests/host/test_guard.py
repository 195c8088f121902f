"""The guard and the sweep, against real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tcompile_tui.host import reclaim

GUARD = Path(reclaim.__file__).with_name("guard.py")


@dataclass
class Guarded:
    """A guard under test, as a supervisor would hold it."""

    run_id: str = field(default_factory=lambda: f"test-{uuid.uuid4().hex}")

    def start(self, code: str, *arguments: str, executable: str = sys.executable) -> None:
        lifeline, self.lifeline = os.pipe()
        self.status, status = os.pipe()
        self.frames, frames = os.pipe()
        self.guard = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-I",
                    "-S",
                    str(GUARD),
                    "--run-id",
                    self.run_id,
                    "--lifeline",
                    str(lifeline),
                ),
                *("--status", str(status), "--pass-fds", str(frames), "--"),
                *(executable, "-c", textwrap.dedent(code), str(frames), *arguments),
            ],
            pass_fds=(lifeline, status, frames),
            stdin=subprocess.DEVNULL,
            env={**os.environ, reclaim.RUN_VARIABLE: self.run_id},
        )
        for fd in (lifeline, status, frames):
            os.close(fd)

    def said(self) -> bytes:
        """What the worker wrote to the passed descriptor first."""
        return os.read(self.frames, 4096)

    def outcome(self) -> dict[str, object]:
        self.guard.wait(timeout=20)
        line = os.read(self.status, 4096)
        assert line.endswith(b"\n")
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    one = Guarded()
    yield one
    reclaim.kill_processes_of_run(one.run_id)
    for name in ("lifeline", "status", "frames"):
        with contextlib.suppress(OSError, AttributeError):
            os.close(getattr(one, name))


def becomes_true(condition: Callable[[], bool], within_s: float = 1.0) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def gone(pid: int) -> bool:
    """No such process, not even as a zombie."""
    return not Path(f"/proc/{pid}").exists()


LEAVES_GRANDCHILDREN = """
    import os, subprocess, sys
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    plain = subprocess.Popen(sleep)
    apart = subprocess.Popen(sleep, start_new_session=True)
    unmarked = subprocess.Popen(sleep, start_new_session=True, env={})
    os.write(int(sys.argv[1]), f"{plain.pid} {apart.pid} {unmarked.pid}".encode())
"""
STAYS = "    import time; time.sleep(600)\n"


def test_the_exit_status_of_the_worker_is_reported(guarded: Guarded) -> None:
    guarded.start("raise SystemExit(7)")
    assert guarded.outcome() == {"returncode": 7, "reclaimed": 0, "remaining": 0, "error": None}


def test_the_signal_that_ended_the_worker_is_reported(guarded: Guarded) -> None:
    guarded.start("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert guarded.outcome()["returncode"] == -signal.SIGSEGV


def test_an_executable_that_does_not_exist_is_reported(guarded: Guarded) -> None:
    guarded.start("", executable="/nonexistent/python")
    outcome = guarded.outcome()
    assert outcome["returncode"] == 127
    assert "No such file" in str(outcome["error"])


def test_the_worker_has_its_own_session_empty_stdin_and_only_the_passed_descriptors(guarded: Guarded) -> None:
    guarded.start(
        """
        import os, signal, sys
        own = os.getsid(0) == os.getpid()
        default = all(signal.getsignal(s) in (signal.SIG_DFL, signal.default_int_handler)
                      for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD))
        open_fds = {int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
        extra = open_fds - {0, 1, 2, int(sys.argv[1])}
        os.write(int(sys.argv[1]), repr((own, sys.stdin.read(), default, extra)).encode())
        """
    )
    assert guarded.said() == repr((True, "", True, set())).encode()


def test_the_passed_descriptor_ends_with_the_worker_not_with_the_guard(guarded: Guarded) -> None:
    guarded.start("import os, sys, time; os.close(int(sys.argv[1])); time.sleep(600)")
    assert guarded.said() == b""
    assert guarded.guard.poll() is None


def test_grandchildren_that_outlive_the_worker_are_gone_within_a_second(guarded: Guarded) -> None:
    guarded.start(LEAVES_GRANDCHILDREN)
    grandchildren = [int(pid) for pid in guarded.said().split()]
    assert len(grandchildren) == 3
    assert becomes_true(lambda: all(gone(pid) for pid in grandchildren))
    assert guarded.outcome() == {"returncode": 0, "reclaimed": 3, "remaining": 0, "error": None}


def test_closing_the_lifeline_kills_everything(guarded: Guarded) -> None:
    guarded.start(LEAVES_GRANDCHILDREN + STAYS)
    grandchildren = [int(pid) for pid in guarded.said().split()]
    os.close(guarded.lifeline)
    assert becomes_true(lambda: all(gone(pid) for pid in grandchildren))
    assert guarded.outcome() == {"returncode": -9, "reclaimed": 3, "remaining": 0, "error": None}
    assert reclaim.processes_of_run(guarded.run_id) == []


def test_kill_ends_a_worker_that_ignores_terminate(guarded: Guarded) -> None:
    guarded.start(
        """
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: os.write(int(sys.argv[1]), b"heard"))
        os.write(int(sys.argv[1]), b"ready")
        while True:
            time.sleep(600)
        """
    )
    assert guarded.said() == b"ready"
    os.write(guarded.lifeline, b"T")
    assert guarded.said() == b"heard"
    assert guarded.guard.poll() is None
    os.write(guarded.lifeline, b"K")
    assert guarded.outcome()["returncode"] == -signal.SIGKILL


def test_terminate_reaches_the_worker(guarded: Guarded) -> None:
    guarded.start("import os, sys, time; os.write(int(sys.argv[1]), b'ready'); time.sleep(600)")
    guarded.said()
    os.write(guarded.lifeline, b"T")
    assert guarded.outcome()["returncode"] == -signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_do_not_end_the_guard_before_its_worker(guarded: Guarded, number: signal.Signals) -> None:
    guarded.start("import os, sys; os.write(int(sys.argv[1]), b'ready'); sys.exit(os.read(0, 1) or 3)")
    guarded.said()
    guarded.guard.send_signal(number)
    assert guarded.outcome()["returncode"] == 3


SUPERVISOR = """
    import os, subprocess, sys
    guard, run_id, frames, code = sys.argv[1:]
    lifeline, keep = os.pipe()
    unread, status = os.pipe()
    subprocess.Popen(
        [sys.executable, "-I", "-S", guard, "--run-id", run_id, "--lifeline", str(lifeline), "--status", str(status),
         "--pass-fds", frames, "--", sys.executable, "-c", code, frames],
        pass_fds=(lifeline, status, int(frames)), env={**os.environ, "TCOMPILE_TUI_RUN": run_id})
    os.close(lifeline)
    import time; time.sleep(600)
"""


def test_nothing_is_left_a_second_after_the_supervisor_was_killed(guarded: Guarded) -> None:
    """With a compiler at work, a child in a session of its own, and a deep one."""
    compiles = """
    import os, subprocess, sys
    shell = subprocess.Popen(["sh", "-c", "sleep 600 & exec sh -c 'while :; do :; done'"])
    apart = subprocess.Popen(["setsid", "sleep", "600"])
    os.write(int(sys.argv[1]), f"{os.getpid()} {shell.pid} {apart.pid}".encode())
    """
    guarded.frames, frames = os.pipe()
    supervisor = subprocess.Popen(
        [
            *(sys.executable, "-c", textwrap.dedent(SUPERVISOR), str(GUARD), guarded.run_id, str(frames)),
            textwrap.dedent(compiles) + STAYS.lstrip(),
        ],
        pass_fds=(frames,),
    )
    os.close(frames)
    started = [int(pid) for pid in guarded.said().split()]
    assert len(started) == 3
    assert becomes_true(lambda: len(reclaim.processes_of_run(guarded.run_id)) == 5)  # guard, worker, sh, 2 x sleep
    supervisor.kill()
    supervisor.wait()
    assert becomes_true(lambda: reclaim.processes_of_run(guarded.run_id) == [])
    assert becomes_true(lambda: all(gone(pid) for pid in started))


def test_processes_of_other_runs_survive(guarded: Guarded) -> None:
    """Also those whose variable only begins alike, or that carry the id elsewhere."""
    environments = [
        {reclaim.RUN_VARIABLE: guarded.run_id + "0"},
        {"X" + reclaim.RUN_VARIABLE: guarded.run_id},
        {"OTHER": f"{reclaim.RUN_VARIABLE}={guarded.run_id}"},
    ]
    bystanders = [subprocess.Popen(["sleep", "600"], env={**os.environ, **more}) for more in environments]
    try:
        guarded.start("pass")
        guarded.outcome()
        assert reclaim.kill_processes_of_run(guarded.run_id) == 0
        assert [process.poll() for process in bystanders] == [None] * len(bystanders)
    finally:
        for process in bystanders:
            process.kill()
            process.wait()


def test_the_sweep_without_a_guard_spares_what_it_is_told_to(guarded: Guarded) -> None:
    marked = {**os.environ, reclaim.RUN_VARIABLE: guarded.run_id}
    spared, doomed = (subprocess.Popen(["sleep", "600"], env=marked) for _ in range(2))
    assert becomes_true(lambda: {spared.pid, doomed.pid} <= set(reclaim.processes_of_run(guarded.run_id)))
    assert reclaim.kill_processes_of_run(guarded.run_id, spare={spared.pid}) == 1
    assert doomed.wait(timeout=5) == -signal.SIGKILL
    assert spared.poll() is None
    assert reclaim.kill_processes_of_run(guarded.run_id) == 1
    spared.wait()


def test_the_sweep_never_kills_its_own_process(guarded: Guarded) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import reclaim;"
        "assert reclaim.processes_of_run(sys.argv[2]);"
        "assert reclaim.kill_processes_of_run(sys.argv[2]) == 0"
    )
    command = [sys.executable, "-c", code, str(GUARD.parent), guarded.run_id]
    done = subprocess.run(command, env={**os.environ, reclaim.RUN_VARIABLE: guarded.run_id}, check=False)
    assert done.returncode == 0


def test_descendants_are_found_at_any_depth_and_zombies_are_not() -> None:
    chain = subprocess.Popen(["sh", "-c", "sh -c 'sleep 600; :'; :"])
    try:
        assert becomes_true(lambda: len(reclaim.descendants_of(chain.pid)) == 2)
        deepest = psutil.Process(chain.pid).children(recursive=True)
        assert set(reclaim.descendants_of(os.getpid())) >= {chain.pid, *(child.pid for child in deepest)}
    finally:
        for pid in [*reclaim.descendants_of(chain.pid), chain.pid]:
            os.kill(pid, signal.SIGKILL)
        assert becomes_true(lambda: chain.pid not in reclaim.descendants_of(os.getpid()))
        chain.wait()
