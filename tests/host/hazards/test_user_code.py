"""What the user's code may do to its own process: each has a named outcome, and nothing is left of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.host import phase_runner
from tests.worker.driver import PhaseRun

from .forked import Parent

pytestmark = pytest.mark.xdist_group("torch")


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    one = Parent(tmp_path_factory.mktemp("parent"))
    yield one
    one.close()


def _ended(run: PhaseRun) -> tuple[ev.Outcome, str]:
    assert run.process.ended is not None
    return run.process.ended.outcome, run.process.ended.detail


def _is_measured(run: PhaseRun) -> None:
    assert run.process.done and _ended(run)[0] is ev.Outcome.OK, (run.process.failure, _ended(run), run.output[-2000:])
    assert run.process.arms[Arm.EAGER].warmup_steps >= 3


_ONCE = "'done' in self.__dict__ or setattr(self, 'done', {})"
FORWARD = "\ndef forward(self, x):\n    {}\n    return x + 1\n"


# ---------------------------------------------------------------- what a measurement survives

_HARMLESS = {
    "reads stdin": ("", FORWARD.format("assert sys.stdin.readline() == ''")),
    "leaves its folder": ("os.chdir('/')", FORWARD.format("os.chdir('/')")),
    "has signal handlers of its own": (
        "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):\n"
        "    signal.signal(number, signal.SIG_IGN)",
        FORWARD.format("os.kill(os.getpid(), signal.SIGTERM)"),
    ),
    "replaces time, json and print": (
        "for name in ('time', 'perf_counter', 'perf_counter_ns', 'monotonic', 'monotonic_ns', 'thread_time_ns'):\n"
        "    setattr(time, name, lambda: 0)\n"
        "json.dumps = json.loads = builtins.print = None",
        FORWARD.format("pass"),
    ),
    "replaces what the worker reports with": (
        "for name in ('write', 'read', 'getpid', 'fstat'):\n    setattr(os, name, None)",
        FORWARD.format("pass"),
    ),
    "sets a default device": ("", FORWARD.format("torch.set_default_device('meta')")),
    "switches logging off": ("logging.disable(logging.CRITICAL)", FORWARD.format("pass")),
    "starts threads and blocks at exit": (
        "threading.Thread(target=threading.Event().wait).start()\natexit.register(threading.Event().wait)",
        FORWARD.format("pass"),
    ),
    "prints like a protocol": (
        "",
        FORWARD.format("""os.write(1, b'{"v":1,"kind":"worker_done"}\\n\\xf5TC1\\x00\\x00\\x00\\x02')"""),
    ),
    "forks a child that comes back": ("", FORWARD.format(_ONCE.format("os.fork()"))),
    "leaves processes that ignore signals": (
        "",
        FORWARD.format(
            _ONCE.format(
                "subprocess.Popen(['sh', '-c', 'trap \"\" TERM INT HUP; sleep 600'], start_new_session=True, env={})"
            )
        ),
    ),
}


@pytest.mark.parametrize("hazard", _HARMLESS)
def test_the_measurement_goes_on(parent: Parent, tmp_path: Path, hazard: str) -> None:
    head, body = _HARMLESS[hazard]
    run = parent.run(tmp_path, body, head=head)
    _is_measured(run)
    steps = [ns for block in run.all_of(ev.Block) for ns in block.step_ns]
    assert all(0 < ns < 60_000_000_000 for ns in steps), "clocks of our own"
    assert len(run.all_of(ev.WorkerDone)) == 1, "neither forged nor sent twice"


def test_workers_of_a_dataloader_are_ended(parent: Parent, tmp_path: Path) -> None:
    body = """
    def __init__(self):
        super().__init__()
        data = torch.utils.data.TensorDataset(torch.arange(64.0))
        self.batches = iter(torch.utils.data.DataLoader(data, num_workers=2, persistent_workers=True))

    def forward(self, x):
        if "first" not in self.__dict__:
            self.first = next(self.batches)
        return x + self.first[0]
    """
    _is_measured(parent.run(tmp_path, body, head="import torch.utils.data\n"))


def test_a_flood_of_output_holds_nobody_up(parent: Parent, tmp_path: Path) -> None:
    """100 MB, while eager steps go on; log.txt is bounded (test_supervisor, test_run_folder)."""
    body = FORWARD.format(_ONCE.format("[os.write(1, b'x' * 1_000_000) for _ in range(100)]"))
    run = parent.run(tmp_path, body)
    _is_measured(run)
    assert run.output_bytes >= 100_000_000


# ---------------------------------------------------------------- what ends a process

_FATAL = {
    "os._exit": ("os._exit(0)", ev.Outcome.EXITED, "left with status 0 before its last record"),
    "os.abort": ("os.abort()", ev.Outcome.KILLED, "killed by SIGABRT"),
    "segfault": ("ctypes.string_at(0)", ev.Outcome.KILLED, "killed by SIGSEGV"),
    "the kernel's killer": (
        "os.kill(os.getpid(), signal.SIGKILL)",
        ev.Outcome.KILLED,
        "killed by SIGKILL, as the kernel does when memory runs out",
    ),
    "an alarm": ("signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(9)", ev.Outcome.KILLED, "killed by SIGALRM"),
    "closed descriptors": (
        "os.closerange(3, 4096)",
        ev.Outcome.EXITED,
        "the model's code closed the descriptors that its process reports on",
    ),
    "descriptors closed and used again": (
        "os.closerange(3, 4096); self.files = [open('theirs', 'a') for _ in range(64)]",
        ev.Outcome.EXITED,
        "the model's code closed the descriptors that its process reports on",
    ),
}


@pytest.mark.parametrize("hazard", _FATAL)
def test_the_end_of_the_process_is_named(parent: Parent, tmp_path: Path, hazard: str) -> None:
    code, outcome, detail = _FATAL[hazard]
    run = parent.run(tmp_path, FORWARD.format(code))
    assert _ended(run)[0] is outcome and _ended(run)[1].startswith(detail), _ended(run)
    theirs = tmp_path / "theirs"
    assert not theirs.exists() or theirs.read_bytes() == b"", "no record of ours in a file of theirs"


_RAISED = {
    "sys.exit": ("sys.exit(0)", "SystemExit", "sys.exit(0) was called", "model"),
    "str() raises": (
        "raise type('Ugly', (Exception,), {'__str__': lambda self: 1 / 0})()",
        "Ugly",
        "str() raised ZeroDivisionError",
        "model",
    ),
    "no network": ("socket.create_connection(('127.0.0.1', 9), 2)", "ConnectionRefusedError", "refused", "model"),
    "a memory limit": (
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33)); torch.empty(1 << 34)",
        "RuntimeError",
        "out of memory (asked for 64.0 GiB at once)",
        "memory",
    ),
    "a recursion without end": ("self.forward(x)", "RecursionError", "", "model"),
}


@pytest.mark.parametrize("hazard", _RAISED)
def test_the_error_has_its_text_and_its_line(parent: Parent, tmp_path: Path, hazard: str) -> None:
    code, error_type, words, fault = _RAISED[hazard]
    run = parent.run(tmp_path, FORWARD.format(code))
    failure = run.process.failure
    assert failure is not None and _ended(run)[0] is ev.Outcome.ERROR
    assert failure.error_type == error_type and words in failure.message and failure.fault == fault
    assert failure.file == str(tmp_path / "net.py") and code in (failure.source or "")


def test_a_hang_that_ignores_sigterm_ends_at_its_limit(
    parent: Parent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phase_runner, "_FINISH_GRACE_S", 0.5)
    head = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    run = parent.run(tmp_path, FORWARD.format("time.sleep(600)"), head=head, limit_s=2.0)
    assert _ended(run)[0] is ev.Outcome.TIMED_OUT and _ended(run)[1].startswith("not finished in 2 s")


def test_a_stopped_process_counts_the_time_in_no_step(parent: Parent, tmp_path: Path) -> None:
    body = """
    steps = 0

    def forward(self, x):
        Net.steps += 1
        if Net.steps == 6:
            subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
        return x + 1
    """
    run = parent.run(tmp_path, body)
    _is_measured(run)
    arm = run.process.arms[Arm.EAGER]
    assert max(ns for block in run.all_of(ev.Block) for ns in block.step_ns) > 900_000_000, "it was stopped"
    assert arm.suspensions == 1 and not arm.start_was_suspended
    (at,) = [index for block in run.all_of(ev.Block) for index in block.suspended_at]
    assert at == 5 and arm.series.slice(5, 6)[0] < 500_000_000


# ---------------------------------------------------------------- in a compile


def test_logging_that_is_switched_off_does_not_hide_the_compile(parent: Parent, tmp_path: Path) -> None:
    run = parent.run(
        tmp_path, FORWARD.format("x = x.sin()"), Phase.COLD, Mode.DEFAULT, head="logging.disable(logging.CRITICAL)"
    )
    assert run.process.done, (run.process.failure, run.output[-2000:])
    assert len(run.all_of(ev.GraphCaptured)) == 1 and run.process.compiled_anything


@pytest.mark.parametrize(
    ("hazard", "code"),
    [
        ("a file", "shutil.rmtree(cache); open(cache, 'w').close()"),
        ("full", "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"),
    ],
)
def test_a_cache_folder_that_is_lost_in_the_compile_is_an_error_with_a_name(
    parent: Parent, tmp_path: Path, hazard: str, code: str
) -> None:
    """That the run then tries again in a new folder is in test_recovery."""
    body = f"""
def compile(self, *arguments, **named):
    cache = os.environ["TORCHINDUCTOR_CACHE_DIR"]
    {code}
    super().compile(*arguments, **named)

def forward(self, x):
    return x.cos()
"""
    run = parent.run(tmp_path, body, Phase.COLD, Mode.DEFAULT)
    failure = run.process.failure
    assert failure is not None and _ended(run)[0] is ev.Outcome.ERROR
    assert failure.fault in ("compiler", "environment") and failure.stage != "inputs", failure
    assert any(word in failure.message for word in ("Not a directory", "File too large", "exists", "No space")), failure
    assert os.path.lexists(tmp_path / "events.jsonl")
