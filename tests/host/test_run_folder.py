"""The run folder: private, listed, pruned, and readable whatever happened to its writer."""

from __future__ import annotations

import stat
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Arm, RunSpec, parse_target
from tcompile_tui.core.state import step_times
from tcompile_tui.host import event_log, machine
from tcompile_tui.host.event_log import EventLog, EventTail, read_events, summarise_block
from tcompile_tui.host.run_folder import (
    OutputLog,
    ProcessId,
    RunFolder,
    RunInfo,
    RunStatus,
    list_runs,
    prune_runs,
    write_atomically,
)

_DEAD_PID = 2**22 + 1


def _info(supervisor: ProcessId, started: datetime | None = None) -> RunInfo:
    return RunInfo(
        run_id="r",
        spec=RunSpec(parse_target("model.py:Net")),
        command="tcompile-tui run model.py:Net",
        cwd="/somewhere",
        started_at=(started or datetime.now().astimezone()).isoformat(),
        supervisor=supervisor,
        program_version="0",
        python="python",
        torch_version="2.11",
        device="cpu",
        device_name="CPU",
        machine=machine.facts(),
    )


def _block(first: int, steps: tuple[int, ...]) -> ev.Block:
    return ev.Block(
        arm=Arm.EAGER, role=ev.BlockRole.WARMUP, first_index=first, steps=len(steps), step_ns=steps, wall_ns=sum(steps)
    )


def test_a_run_folder_is_private_and_has_a_safe_name(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "../evil name\n")
    assert folder.path.parent == tmp_path / "runs"
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert "\n" not in folder.path.name and "/" not in folder.path.name


def test_two_runs_of_one_second_get_two_folders(tmp_path: Path) -> None:
    assert RunFolder.create(tmp_path, "a").path != RunFolder.create(tmp_path, "a").path


def test_info_survives_the_round_trip(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "a")
    info = _info(ProcessId.own())
    folder.write_info(info)
    assert folder.read_info() == info


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"run_id": 3}'])
def test_damaged_files_read_as_missing(tmp_path: Path, content: bytes) -> None:
    folder = RunFolder.create(tmp_path, "a")
    (folder.path / "run.json").write_bytes(content)
    folder.verdict.write_bytes(content)
    assert folder.read_info() is None
    assert not isinstance(folder.read_verdict(), list)
    assert list_runs(tmp_path) == []


def test_status_tells_running_done_died_and_elsewhere(tmp_path: Path) -> None:
    own = ProcessId.own()
    writers = {
        RunStatus.RUNNING: own,
        RunStatus.DIED: ProcessId(own.host, own.boot_id, _DEAD_PID, 0.0),
        RunStatus.ELSEWHERE: ProcessId("another-host", own.boot_id, own.pid, own.started_at),
        RunStatus.DONE: own,
    }
    for status, writer in writers.items():
        folder = RunFolder.create(tmp_path, status.value)
        folder.write_info(_info(writer))
        if status is RunStatus.DONE:
            folder.verdict.write_bytes(b'{"decision": "SKIP", "headline": "no"}')
    assert {run.name.split("-")[2]: run.status for run in list_runs(tmp_path)} == {s.value: s for s in writers}


def test_a_reused_pid_is_not_taken_for_the_run(tmp_path: Path) -> None:
    own = ProcessId.own()
    assert own.is_alive
    assert ProcessId(own.host, own.boot_id, own.pid, own.started_at).is_alive, "as older versions wrote it"
    assert not ProcessId(own.host, own.boot_id, own.pid, own.started_at - 100).is_alive
    assert not ProcessId(own.host, own.boot_id, own.pid, own.started_at, (own.started_ticks or 0) - 100).is_alive
    assert not ProcessId(own.host, "another boot", own.pid, own.started_at).is_alive


def test_prune_deletes_only_old_runs_that_have_ended(tmp_path: Path) -> None:
    now = datetime.now().astimezone()
    own = ProcessId.own()
    dead = ProcessId(own.host, own.boot_id, _DEAD_PID, 0.0)
    for name, writer, age_days in (("old", dead, 40), ("young", dead, 2), ("alive", own, 40)):
        RunFolder.create(tmp_path, name).write_info(_info(writer, now - timedelta(days=age_days)))
    gone = [run.name for run in prune_runs(tmp_path, timedelta(days=30), now)]
    assert [name.split("-")[2] for name in gone] == ["old"]
    assert sorted(run.name.split("-")[2] for run in list_runs(tmp_path)) == ["alive", "young"]


def test_an_atomic_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "x", b"1")
    write_atomically(tmp_path / "x", b"2")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"2"


# ---------------------------------------------------------------- events.jsonl


def test_the_log_is_flushed_and_read_back(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "e.jsonl")
    events = [_block(i * 3, (1, 2, 3)) for i in range(50)]
    for event in events:
        log.append(event)
    log.flush()
    assert list(read_events(tmp_path / "e.jsonl")) == events
    log.close()


def test_a_line_cut_short_by_a_kill_is_left_out_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    log = EventLog(path)
    for i in range(3):
        log.append(_block(i, (1,)))
    log.close()
    path.write_bytes(path.read_bytes()[:-20])
    assert len(list(read_events(path))) == 2


def test_a_tail_waits_for_the_rest_of_a_line_and_counts_garbage(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    line = ev.encode_event(_block(0, (7,)))
    path.write_bytes(line[:30])
    tail = EventTail(path)
    assert tail.read() == [] and tail.read() == []
    with path.open("ab") as file:
        file.write(line[30:] + b"\nnot json\n" + line + b"\n")
    assert tail.read() == [_block(0, (7,))] * 2
    assert tail.unreadable == 1
    tail.close()


def test_past_the_bound_blocks_are_summarised_and_the_log_says_so(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    log = EventLog(path, max_bytes=40_000)
    for i in range(200):
        log.append(_block(i * 100, tuple(range(1_000, 1_100))))
    log.append(ev.WorkerDone())
    log.close()
    events = list(read_events(path))
    assert path.stat().st_size < 60_000
    assert log.records_left_out > 0
    assert [event.code for event in events if isinstance(event, ev.Notice)] == ["log-summarised"]
    assert isinstance(events[-1], ev.WorkerDone), "what a verdict needs is kept"
    summarised = [event for event in events if isinstance(event, ev.Block) and not event.step_ns]
    assert summarised and all(len(step_times(block)) == block.steps for block in summarised)


def test_a_summary_keeps_extremes_level_and_count() -> None:
    summary = summarise_block(_block(0, (5, 1, 3, 3, 9)))
    assert summary.summary_ns == (1, 3, 9, 21)
    assert step_times(summary) == (1, 3, 3, 3, 9)
    assert summarise_block(summary) == summary


# ---------------------------------------------------------------- log.txt


def test_of_too_much_output_beginning_and_end_are_kept_and_the_rest_counted(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log.txt", head_bytes=1_000)
    log.write(b"first line\n")
    for _ in range(500):
        log.write(b"x" * 4_096)
    log.write(b"last line\n")
    dropped = log.dropped_bytes
    log.close()
    text = (tmp_path / "log.txt").read_bytes()
    assert text.startswith(b"first line\n") and text.endswith(b"last line\n")
    assert dropped > 1_000_000 and f"{dropped:,} bytes were dropped".encode() in text
    assert len(text) < 300_000


def test_output_that_fits_is_kept_as_it_is(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log.txt")
    log.write(b"\x1b[31mred\x00\xff\n")
    log.close()
    assert (tmp_path / "log.txt").read_bytes() == b"\x1b[31mred\x00\xff\n"


# ---------------------------------------------------------------- events.jsonl of others


def _lines(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


NOTICE = ev.Notice(level=ev.Level.INFO, code="x", text="y")


def test_a_record_longer_than_a_look_is_read_with_what_follows(tmp_path: Path) -> None:
    long = ev.Notice(level=ev.Level.INFO, code="long", text="x" * 2_000_000)
    path = _lines(tmp_path / "e.jsonl", ev.encode_event(long), b"#" * 3_000_000, ev.encode_event(NOTICE))
    assert list(read_events(path)) == [long, NOTICE]


def test_a_line_without_an_end_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MAX_PAYLOAD_BYTES", 10_000)
    path = _lines(tmp_path / "e.jsonl", b"[" * 5_000_000, ev.encode_event(NOTICE))
    tail = EventTail(path)
    assert tail.read() == [NOTICE] and tail.unreadable == 1
    assert len(tail._rest) < 10_000
    tail.close()


def test_a_file_of_any_size_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "_MAX_READ_BYTES", 2_000)
    path = _lines(tmp_path / "e.jsonl", *[ev.encode_event(NOTICE)] * 1_000)
    assert 10 < len(list(read_events(path))) < 50


def test_blocks_that_claim_endless_steps_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred bytes can claim a million steps."""
    monkeypatch.setattr(event_log, "_MAX_READ_STEPS", 5_000_000)
    claim = ev.Block(
        arm=Arm.EAGER, role=ev.BlockRole.WARMUP, first_index=0, steps=1_000_000, step_ns=(), wall_ns=1,
        summary_ns=(1, 1, 1, 1),
    )  # fmt: skip
    path = _lines(tmp_path / "e.jsonl", *[ev.encode_event(claim)] * 1_000, ev.encode_event(NOTICE))
    events = list(read_events(path))
    assert sum(isinstance(event, ev.Block) for event in events) == 5 and events[-1] == NOTICE
