"""A run folder: the only interface between measuring and looking. Written so that a kill leaves it readable."""

from __future__ import annotations

import contextlib
import enum
import os
import secrets
import shutil
import socket
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import psutil

from tcompile_tui.core.spec import RunSpec
from tcompile_tui.host import reclaim
from tcompile_tui.host.machine import MachineFacts

RUN_FILE = "run.json"
EVENTS_FILE = "events.jsonl"
LOG_FILE = "log.txt"
TRACEBACK_FILE = "tracebacks.txt"
VERDICT_FILE = "verdict.json"
COMPILE_TRACE_FILE = "compile_trace.json"
RUN_SCHEMA_VERSION = 1
_STARTED_TICKS = 19  # of the fields from `state` on
_RESERVE_FILE = ".reserve"
_RESERVE_BYTES = 1 << 20
_LOG_HEAD_BYTES = 8_000_000
_LOG_TAIL_CHUNKS = 64
_LOG_CHUNK_BYTES = 4096


class ProcessId(msgspec.Struct, frozen=True):
    """A process that cannot be mistaken for another, on this host or on others that share the folder.

    `started_at` is by the clock of the wall, which may be set while the process lives; `started_ticks` is the kernel's
    own count since the boot, and decides where it is known."""

    host: str
    boot_id: str
    pid: int
    started_at: float
    started_ticks: int | None = None

    @classmethod
    def own(cls) -> ProcessId:
        pid = os.getpid()
        return cls(socket.gethostname(), boot_id(), pid, psutil.Process().create_time(), _started_ticks(pid))

    @property
    def is_elsewhere(self) -> bool:
        return self.host != socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Only meaningful on the same host."""
        if self.is_elsewhere or self.boot_id != boot_id():
            return False
        if self.started_ticks is not None:
            return _started_ticks(self.pid) == self.started_ticks
        try:
            return abs(psutil.Process(self.pid).create_time() - self.started_at) < 2.0
        except psutil.Error:
            return False


def _started_ticks(pid: int) -> int | None:
    """None where there is no such process, or it has ended and is only not reaped."""
    fields = reclaim.stat_fields(pid)
    return int(fields[_STARTED_TICKS]) if fields is not None and fields[0] not in (b"Z", b"X") else None


class RunInfo(msgspec.Struct, frozen=True):
    """`run.json`: what is run, by whom, on what."""

    run_id: str
    spec: RunSpec
    command: str
    cwd: str
    started_at: str
    supervisor: ProcessId
    program_version: str
    python: str
    torch_version: str
    device: str
    device_name: str
    machine: MachineFacts | None = None
    argv: tuple[str, ...] = ()
    schema_version: int = RUN_SCHEMA_VERSION


def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class RunFolder:
    """Paths and atomic writes inside one run folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events = path / EVENTS_FILE
        self.log = path / LOG_FILE
        self.verdict = path / VERDICT_FILE
        self.tracebacks = path / TRACEBACK_FILE

    @classmethod
    def create(cls, runs_dir: Path, label: str) -> RunFolder:
        """A new folder, mode 0700, named by time and label. Raises OSError."""
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in label)[:60].strip("-.") or "run"
        name = f"{datetime.now():%Y%m%d-%H%M%S}-{safe}-{secrets.token_hex(2)}"
        return cls.create_at(runs_dir / name)

    @classmethod
    def create_at(cls, path: Path) -> RunFolder:
        """This very folder, which must not exist yet. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.mkdir(mode=0o700)
        return cls(path)

    def write_info(self, info: RunInfo) -> None:
        write_atomically(self.path / RUN_FILE, msgspec.json.format(msgspec.json.encode(info), indent=1))

    def read_info(self) -> RunInfo | None:
        """None where run.json is missing or not ours."""
        try:
            return msgspec.json.decode((self.path / RUN_FILE).read_bytes(), type=RunInfo)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def read_verdict(self) -> dict[str, Any] | None:
        """verdict.json as it stands; None where there is none (yet)."""
        try:
            verdict = msgspec.json.decode(self.verdict.read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return verdict if isinstance(verdict, dict) else None

    def add_traceback(self, title: str, text: str) -> None:
        """As far as the disk takes it: the record has the message."""
        with (
            contextlib.suppress(OSError),
            self.tracebacks.open("a", encoding="utf-8", errors="backslashreplace") as file,
        ):
            file.write(f"--- {title}\n{text.rstrip()}\n\n")

    def reserve(self) -> None:
        """Take room for the verdict, so that a disk that fills up during the run has some left for it."""
        with contextlib.suppress(OSError), (self.path / _RESERVE_FILE).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _RESERVE_BYTES)

    def release(self) -> None:
        (self.path / _RESERVE_FILE).unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """The old content or the new, never a part of it. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


class OutputLog:
    """`log.txt`: everything that the model's code printed; of too much the beginning and the end are kept."""

    def __init__(self, path: Path, head_bytes: int = _LOG_HEAD_BYTES) -> None:
        self._file = path.open("wb", buffering=0)
        self._room = head_bytes
        self._tail: deque[bytes] = deque(maxlen=_LOG_TAIL_CHUNKS)
        self._held_back = 0
        self._lock = Lock()

    def write(self, data: bytes) -> None:
        """From any thread. Never raises: a full disk must not end a measurement."""
        with self._lock:
            head, rest = data[: self._room], data[self._room :]
            if head:
                self._room -= len(head)
                try:
                    self._file.write(head)
                except OSError:
                    self._room = 0
            self._held_back += len(rest)
            for start in range(0, len(rest), _LOG_CHUNK_BYTES):
                self._tail.append(rest[start : start + _LOG_CHUNK_BYTES])

    @property
    def dropped_bytes(self) -> int:
        return self._held_back - sum(map(len, self._tail))

    def close(self) -> None:
        with self._lock:
            try:
                if self._held_back:
                    self._file.write(f"\n[{self.dropped_bytes:,} bytes were dropped here]\n".encode())
                    self._file.write(b"".join(self._tail))
            except OSError:
                pass
            self._file.close()


# ---------------------------------------------------------------- lists of runs


class RunStatus(str, enum.Enum):
    RUNNING = "running"
    DONE = "done"
    DIED = "died"
    ELSEWHERE = "elsewhere"  # of another host that shares this folder: neither attachable nor known to be dead


@dataclass(frozen=True)
class RunSummary:
    """One run in a list."""

    folder: RunFolder
    info: RunInfo
    status: RunStatus
    decision: str | None
    headline: str | None

    @property
    def name(self) -> str:
        return self.folder.path.name


def list_runs(runs_dir: Path) -> list[RunSummary]:
    """Every run folder in `runs_dir`, newest first; folders that are none are passed over."""
    if not runs_dir.is_dir():
        return []
    return [run for path in sorted(runs_dir.iterdir(), reverse=True) if (run := summarise_run(path)) is not None]


def summarise_run(path: Path) -> RunSummary | None:
    folder = RunFolder(path)
    info = folder.read_info() if path.is_dir() else None
    if info is None:
        return None
    verdict = folder.read_verdict()
    if verdict is not None:
        status = RunStatus.DONE
    elif info.supervisor.is_elsewhere:
        status = RunStatus.ELSEWHERE
    else:
        status = RunStatus.RUNNING if info.supervisor.is_alive else RunStatus.DIED
    texts = (verdict or {}).get("decision"), (verdict or {}).get("headline")
    decision, headline = (text if isinstance(text, str) else None for text in texts)
    return RunSummary(folder, info, status, decision, headline)


def prune_runs(runs_dir: Path, older_than: timedelta, now: datetime | None = None) -> Iterator[RunSummary]:
    """Delete ended runs that started longer ago than `older_than`; yields each one deleted."""
    limit = (now or datetime.now().astimezone()) - older_than
    for run in list_runs(runs_dir):
        ended = run.status in (RunStatus.DONE, RunStatus.DIED)
        if ended and datetime.fromisoformat(run.info.started_at) < limit:
            shutil.rmtree(run.folder.path)
            yield run
