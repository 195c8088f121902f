"""What goes wrong around a model: lost caches, a full disk, hung compile workers, a second run, jumping clocks."""

from __future__ import annotations

import errno
import io
import itertools
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Phase
from tcompile_tui.core.verdict import Decision
from tcompile_tui.host import event_log, phase_runner, roots, supervisor
from tcompile_tui.host.claims import DeviceClaim
from tcompile_tui.host.event_log import EventLog, read_events
from tcompile_tui.host.run_folder import ProcessId, summarise_run

from .scripted import Ended, run_scripted


@pytest.fixture(autouse=True)
def _private_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = tmp_path_factory.mktemp("headers")
    (headers / "x.gch").touch()
    monkeypatch.setenv(roots.HEADERS_VARIABLE, str(headers))
    monkeypatch.setenv(roots.PRIVATE_VARIABLE, str(headers / "private"))


def _phases(run: Ended) -> list[tuple[Phase, ev.Outcome]]:
    return [(event.phase, event.outcome) for event in run.events if isinstance(event, ev.PhaseEnded)]


def _is_enabled(run: Ended) -> None:
    verdict = run.finished.verdict
    assert verdict.decision in (Decision.ENABLE, Decision.ENABLE_WITH_CARE), verdict.headline


_TRIED_AGAIN = [Phase.EAGER, Phase.COLD, Phase.COLD, Phase.WARM]


# ---------------------------------------------------------------- compiles that hang, caches that are lost


def test_a_compile_whose_workers_hang_is_tried_once_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_HANG_S", 1.0)
    run = run_scripted(tmp_path, "workers-hang")
    _is_enabled(run)
    assert [phase for phase, _ in _phases(run)] == _TRIED_AGAIN
    assert _phases(run)[1] == (Phase.COLD, ev.Outcome.TIMED_OUT)
    assert "TORCHINDUCTOR_COMPILE_THREADS=1" in run.notices["compile-workers-hang"]
    (told,) = [f for f in run.finished.verdict.findings if f.id == "compile-workers-hang"]
    assert "used no CPU for 1 s" in told.title


def test_a_compile_that_hangs_again_ends_the_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_HANG_S", 1.0)
    run = run_scripted(tmp_path, "compile-forever")
    assert [phase for phase, _ in _phases(run)] == _TRIED_AGAIN[:3]
    assert "the compile hung" in run.finished.verdict.headline


def test_a_compile_that_uses_the_cpu_in_silence_is_not_ended_before_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_HANG_S", 0.8)
    monkeypatch.setattr(phase_runner, "_FINISH_GRACE_S", 0.2)
    run = run_scripted(tmp_path, "compile-busily", budget_s=7)
    (_, (phase, outcome)) = _phases(run)
    assert (phase, outcome) == (Phase.COLD, ev.Outcome.TIMED_OUT)
    assert "not finished in" in run.finished.verdict.headline
    assert "its share of the run's time" in run.finished.verdict.headline


def test_caches_that_are_lost_in_a_compile_are_made_anew_once(tmp_path: Path) -> None:
    run = run_scripted(tmp_path, "caches-lost")
    _is_enabled(run)
    assert [phase for phase, _ in _phases(run)] == _TRIED_AGAIN
    assert "is gone" in run.notices["caches-damaged"]


def test_a_root_knows_its_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = roots.create_root()
    try:
        assert root.damage is None
        monkeypatch.setattr(roots.tempfile, "TemporaryFile", lambda dir: open("/dev/full", "r+b"))  # noqa: SIM115
        assert root.damage is not None and "No space left on device" in root.damage
    finally:
        root.remove()
    assert "is gone" in (root.damage or "")


# ---------------------------------------------------------------- a full disk


def test_a_disk_that_fills_up_loses_the_record_and_not_the_run(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the verdict has its own reserve."""

    def fill(state: Any) -> None:
        if state.processes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        run = run_scripted(tmp_path, on_change=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    _is_enabled(run)
    assert "File too large" in run.notices["record-incomplete"]
    folder = run.finished.folder
    assert run.finished.unwritten is None
    summary = summarise_run(folder.path)
    assert summary is not None and summary.decision == run.finished.verdict.decision.value
    assert any(isinstance(event, ev.RunStarted) for event in run.events), "what was written can be read"
    assert {path.name for path in folder.path.iterdir()} <= {
        "run.json", "events.jsonl", "log.txt", "verdict.json", "compile_trace.json",
    }  # fmt: skip


class _Disk(io.RawIOBase):
    """Takes bytes while there is room."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self.room = 0

    def write(self, data: Any) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = self._file.write(bytes(data)[: self.room])
        self.room -= taken
        return taken

    def fileno(self) -> int:
        return self._file.fileno()


@pytest.fixture
def log_on_disk(tmp_path: Path) -> Iterator[tuple[EventLog, _Disk]]:
    log = EventLog(tmp_path / "events.jsonl")
    disk = _Disk(tmp_path / "events.jsonl")
    log._file = disk  # type: ignore[assignment]
    yield log, disk


def test_records_wait_for_room_and_are_written_in_order(tmp_path: Path, log_on_disk: tuple[EventLog, _Disk]) -> None:
    log, disk = log_on_disk
    for number in range(51):
        log.append(ev.Notice(level=ev.Level.INFO, code=str(number), text="x"))
        disk.room = 1_000 if number % 7 == 0 else 10
        log.flush()
    assert log.problem is not None
    disk.room = 1 << 20
    log.close()
    assert log.problem is None and log.records_lost == 0
    codes = [event.code for event in read_events(tmp_path / "events.jsonl") if isinstance(event, ev.Notice)]
    assert codes == [str(number) for number in range(51)]


def test_what_waits_is_bounded_and_what_is_lost_is_counted(
    tmp_path: Path, log_on_disk: tuple[EventLog, _Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "_MAX_WAITING_BYTES", 1_000)
    log, disk = log_on_disk
    disk.room = 130
    for number in range(100):
        log.append(ev.Notice(level=ev.Level.INFO, code=str(number), text="x"))
        log.flush()
        assert len(log._waiting) < 1_200
    disk.room = 1 << 20
    log.append(ev.WorkerDone())
    log.close()
    events = list(read_events(tmp_path / "events.jsonl"))
    assert isinstance(events[-1], ev.WorkerDone), "the line that was cut spoils none after it"
    assert log.records_lost > 0 and log.records_lost + len(events) >= 100


def test_a_folder_that_takes_nothing_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(OSError):
        run_scripted(tmp_path)


# ---------------------------------------------------------------- two runs at once


def test_the_second_run_on_a_device_is_told_of_the_first(tmp_path: Path) -> None:
    first = DeviceClaim("GPU-1234", "process 1, /runs/one")
    try:
        assert first.holder is None
        second = DeviceClaim("GPU-1234", "process 2, /runs/two")
        assert second.holder == "process 1, /runs/one"
        second.close()
        other = DeviceClaim("GPU-5678", "process 3")
        assert other.holder is None
        other.close()
    finally:
        first.close()
    third = DeviceClaim("GPU-1234", "process 4")
    assert third.holder is None, "a run that has ended holds nothing"
    third.close()


def test_a_run_beside_another_says_so_in_its_verdict(tmp_path: Path) -> None:
    first = DeviceClaim("cpu", "process 1, /runs/one")
    try:
        run = run_scripted(tmp_path)
    finally:
        first.close()
    (told,) = [finding for finding in run.finished.verdict.findings if finding.id == "another-run"]
    assert "process 1, /runs/one" in told.title
    base = roots.base_folder()
    assert list(base.iterdir()) == list(base.parent.glob("*.lock")) == [], "neither folders nor locks are left"


def test_a_lock_of_someone_else_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a shared temporary folder anyone may have made a file, or a link, of that name."""
    monkeypatch.setenv(roots.PRIVATE_VARIABLE, str(tmp_path / "base"))
    treasure = tmp_path / "treasure"
    treasure.write_text("mine")
    (tmp_path / "base-GPU-1.lock").symlink_to(treasure)
    claim = DeviceClaim("GPU-1", "process 1")
    assert claim.holder is None and treasure.read_text() == "mine"
    claim.close()


# ---------------------------------------------------------------- clocks


def test_clocks_that_jump_change_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = itertools.cycle((0.0, 86_400.0, -86_400.0, 3.2e7))
    true_time = time.time
    monkeypatch.setattr(time, "time", lambda: true_time() + next(jumps))
    run = run_scripted(tmp_path)
    _is_enabled(run)
    ended = [event for event in run.events if isinstance(event, ev.PhaseEnded)]
    assert all(0 < event.seconds < 60 for event in ended)
    stamps = [event.t_s for event in run.events if event.process == 0]
    assert stamps == sorted(stamps) and stamps[0] >= 0 and stamps[-1] < 60


def test_a_clock_that_was_set_makes_no_living_run_a_dead_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """psutil tells when a process began by the clock of the wall, which a step of the clock moves."""
    own = ProcessId.own()
    import psutil

    monkeypatch.setattr(psutil.Process, "create_time", lambda self: 0.0)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert own.is_alive


def test_a_supervisor_that_was_stopped_charges_nobody_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour between two turns of the pump, of a run that has a minute."""
    stopped_s = [0.0]
    true_monotonic = time.monotonic
    for module in (phase_runner, supervisor):
        monkeypatch.setattr(module, "monotonic", lambda: true_monotonic() + stopped_s[0])

    def stop_once(state: Any) -> None:
        process = state.current
        if process is not None and process.phase is Phase.COLD:
            stopped_s[0] = 3600.0

    run = run_scripted(tmp_path, budget_s=60, on_change=stop_once)
    _is_enabled(run)
    assert [phase for phase, _ in _phases(run)] == [Phase.EAGER, Phase.COLD, Phase.WARM]
