"""Recorded runs come from anyone: whatever records they hold, in whatever order, they are data and end in a verdict."""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tcompile_tui.core import events as ev
from tcompile_tui.core.chrome_trace import chrome_trace
from tcompile_tui.core.codec import BadRecordError, decode_event
from tcompile_tui.core.events import EVENT_TYPES, Event, encode_event
from tcompile_tui.core.spec import Mode, Phase, RunSpec, parse_target
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import decide
from tcompile_tui.core.verdict_json import encode_verdict, verdict_document
from tcompile_tui.report.progress import progress_text
from tcompile_tui.report.text import verdict_text
from tests.core.test_codec import records

DATA = Path(__file__).parent.parent / "data" / "runs"
_PROCESSES = st.integers(0, 3)


def _stamped(event: Event, process: int, t_s: float) -> Event:
    return ev.stamp(event, t_s, process)


any_records = st.lists(
    st.builds(_stamped, st.one_of(*map(records, EVENT_TYPES)), _PROCESSES, st.floats()), min_size=1, max_size=30
)
# Around them a run that began: most rules look at nothing else.
_BEGUN = (
    ev.RunStarted(
        run_id="r", spec=RunSpec(parse_target("net.py")), python="", torch_version="", device="cpu", device_name="cpu"
    ),
    ev.PhaseStarted(process=1, phase=Phase.EAGER, pid=1, limit_s=1.0),
    ev.PhaseStarted(process=2, phase=Phase.COLD, mode=Mode.DEFAULT, pid=2, limit_s=1.0),
    ev.PhaseStarted(process=3, phase=Phase.WARM, mode=Mode.DEFAULT, pid=3, limit_s=1.0),
)


def _read(events: list[Event]) -> None:
    """All that is done with a recorded run, short of drawing it."""
    state = RunState()
    for event in events:
        line = encode_event(event)
        try:
            decoded = decode_event(line)
        except BadRecordError:
            continue
        assert decoded is not None
        state.apply(decoded)
        if state.current is not None:
            assert progress_text(state, state.current)
    verdict = decide(state)
    assert verdict.headline
    assert verdict_text(state, verdict)
    assert encode_verdict(verdict_document(state, verdict))
    chrome_trace(events)


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(any_records, st.booleans())
def test_any_records_end_in_a_verdict(events: list[Event], begun: bool) -> None:
    _read([*(_BEGUN if begun else ()), *events])


def _lines(name: str) -> list[bytes]:
    return gzip.decompress((DATA / name / "events.jsonl.gz").read_bytes()).splitlines()


@pytest.mark.parametrize("seed", range(12))
def test_a_real_run_whose_records_are_cut_doubled_and_mixed_ends_in_a_verdict(seed: int) -> None:
    rng = random.Random(seed)
    lines = _lines(rng.choice(["cpu-pointwise_chain", "h200-two_breaks"]))
    kept = [line for line in lines if rng.random() > 0.3 for _ in range(1 + (rng.random() < 0.1))]
    if seed % 3 == 0:
        rng.shuffle(kept)
    spoiled = [line[: rng.randrange(len(line))] if rng.random() < 0.05 else line for line in kept]
    events = []
    for line in spoiled:
        try:
            event = decode_event(line)
        except BadRecordError:
            continue
        if event is not None:
            events.append(replace(event, process=rng.randrange(5)) if rng.random() < 0.05 else event)
    _read(events)
