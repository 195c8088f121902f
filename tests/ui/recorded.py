"""Recorded runs as run folders: real ones from `tests/data/runs`, and synthetic ones from streams of records."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from tcompile_tui.core.events import Event
from tcompile_tui.core.state import RunState
from tcompile_tui.host.event_log import EventLog, read_events
from tcompile_tui.host.run_folder import RunFolder

RUNS = Path(__file__).parent.parent / "data" / "runs"
CONVNET = "h200-convnet"
TRANSFORMER = "h200-transformer"
POINTWISE = "cpu-pointwise_chain"
TWO_BREAKS = "h200-two_breaks"


def recorded_run(name: str, into: Path) -> RunFolder:
    """A recorded run, unpacked to `into/name`."""
    path = into / name
    path.mkdir(parents=True)
    (path / "events.jsonl").write_bytes(gzip.decompress((RUNS / name / "events.jsonl.gz").read_bytes()))
    (path / "run.json").write_bytes((RUNS / name / "run.json").read_bytes())
    (path / "log.txt").write_text("a line that the model printed\n")
    return RunFolder(path)


def state_of(folder: RunFolder) -> RunState:
    state = RunState()
    for event in read_events(folder.events):
        state.apply(event)
    return state


def write_run(path: Path, events: Iterable[Event], **info: object) -> RunFolder:
    """A run folder with these records; `info` changes the recorded run.json's fields."""
    path.mkdir(parents=True)
    log = EventLog(path / "events.jsonl")
    for event in events:
        log.append(event)
    log.close()
    (path / "run.json").write_text(json.dumps(json.loads((RUNS / POINTWISE / "run.json").read_text()) | info))
    return RunFolder(path)
