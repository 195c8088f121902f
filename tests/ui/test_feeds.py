"""The clock of a run that is followed: it ticks while nothing is recorded, and believes no other host's clock."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.host.run_folder import ProcessId
from tcompile_tui.ui.feeds import LiveFeed
from tests.core.streams import started
from tests.ui.recorded import write_run

OWN: dict[str, Any] = json.loads(msgspec.json.encode(ProcessId.own()))
SILENT = [ev.stamp(started(ev.Phase.COLD), 20.0, 1)]


@pytest.fixture
def feeds() -> Iterator[list[LiveFeed]]:
    opened: list[LiveFeed] = []
    yield opened
    for feed in opened:
        feed.close()


def attached(path: Path, feeds: list[LiveFeed], ago_s: float, **supervisor: Any) -> LiveFeed:
    """A feed that has read the records of a run that began so long ago."""
    began = (datetime.now().astimezone() - timedelta(seconds=ago_s)).isoformat(timespec="seconds")
    feed = LiveFeed(write_run(path / "run", SILENT, supervisor=OWN | supervisor, started_at=began).path)
    feeds.append(feed)
    until = time.monotonic() + 5
    while not feed.poll() and time.monotonic() < until:
        time.sleep(0.01)
    return feed


def test_attaching_to_a_silent_run_shows_how_long_it_has_run(tmp_path: Path, feeds: list[LiveFeed]) -> None:
    now_s = attached(tmp_path, feeds, ago_s=60).now_s()
    assert 58 <= now_s <= 62


def test_the_clock_goes_on_between_records(tmp_path: Path, feeds: list[LiveFeed]) -> None:
    feed = attached(tmp_path, feeds, ago_s=60)
    before = feed.now_s()
    time.sleep(0.05)
    assert 0.04 <= feed.now_s() - before <= 2


@pytest.mark.parametrize("ago_s", [3600, -3600])
def test_the_clock_of_another_host_is_not_believed(ago_s: float, tmp_path: Path, feeds: list[LiveFeed]) -> None:
    assert 20 <= attached(tmp_path, feeds, ago_s, host="elsewhere").now_s() < 25


def test_a_start_in_the_future_is_no_step_back(tmp_path: Path, feeds: list[LiveFeed]) -> None:
    assert 20 <= attached(tmp_path, feeds, ago_s=-3600).now_s() < 25


def test_a_start_that_cannot_be_read_is_none(tmp_path: Path, feeds: list[LiveFeed]) -> None:
    path = write_run(tmp_path / "run", SILENT, supervisor=OWN, started_at="yesterday").path
    feed = LiveFeed(path)
    feeds.append(feed)
    until = time.monotonic() + 5
    while not feed.poll() and time.monotonic() < until:
        time.sleep(0.01)
    assert 20 <= feed.now_s() < 25
