"""Parts of the Run screen's panels that need no screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcompile_tui.core.spec import Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.ui.widgets.gpu_panel import throttle_text
from tcompile_tui.ui.widgets.history import History, bars
from tcompile_tui.ui.widgets.live_panel import cut, ticking
from tcompile_tui.ui.widgets.log_panel import LogTail
from tcompile_tui.ui.widgets.run_title import clock, processes_planned
from tests.core.streams import Compiled, both, eager_process, replay, started, warm_process

from .recorded import CONVNET
from .replaying import recorded_events


def test_a_history_holds_means_of_fixed_intervals() -> None:
    history = History(interval_s=2.0)
    for t_s, value in ((0.1, 10.0), (1.9, 30.0), (2.0, 50.0), (6.5, 70.0)):
        history.add(t_s, value)
    assert history.last(4) == [20.0, 50.0, None, 70.0]
    assert history.last(6)[:2] == [None, None]
    assert history.last(0) == []


def test_a_sample_without_a_value_is_no_zero() -> None:
    history = History()
    history.add(1.0, None)
    assert history.latest is None and history.highest is None and history.last(3) == [None] * 3
    history.add(2.0, float("nan"))
    assert history.highest is None


def test_bars_go_from_nothing_to_the_top() -> None:
    assert bars([0.0, None, 50.0, 100.0, 1e9], 100.0) == "▁ ▅██"
    assert bars([0.0, None, 50.0, 100.0], 100.0, ascii_only=True) == "_ =#"
    assert bars([5.0], 0.0) == "▁"


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1.0, "0.0 s"), (6.14, "6.1 s"), (59.9, "59.9 s"), (125.0, "2 min 05 s")]
)
def test_ticking_seconds(seconds: float, text: str) -> None:
    assert ticking(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (200.9, "3:20"), (3_725, "1:02:05")])
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("reasons", "shown"),
    [
        (None, ("n/a", False)),
        ((), ("none", False)),
        (("idle",), ("none, idle", False)),
        (("idle", "power cap"), ("power cap", True)),
    ],
)
def test_an_idle_gpu_is_not_throttled(reasons: tuple[str, ...] | None, shown: tuple[str, bool]) -> None:
    assert throttle_text(reasons) == shown


def test_text_that_is_too_long_says_so() -> None:
    assert cut("model.py", 8) == "model.py"
    assert cut("model.py", 5) == "mode…" and cut("model.py", 5, ascii_only=True) == "mode~"
    assert cut("model.py", 0) == ""


def test_the_number_of_processes_is_known_ahead() -> None:
    state = RunState()
    planned = set()
    for event in recorded_events(CONVNET):
        state.apply(event)
        planned.add(processes_planned(state))
    assert planned == {5}


def test_further_processes_are_counted_as_they_come() -> None:
    """A second cold start, of a thorough run, has no warm one after it."""
    run = Compiled()
    planned = []
    for count in range(2, 6):
        processes = [eager_process(), *both(run), warm_process(run), [started(Phase.COLD, run.mode)]][:count]
        planned.append(processes_planned(replay(*processes)))
    assert planned == [3, 3, 4, 5]


def test_a_log_is_read_on_in_bounded_parts(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    tail = LogTail(path)
    assert tail.read() == [] and tail.pending == ""
    path.write_bytes(b"first\nsec")
    assert tail.read() == ["first"] and tail.pending == "sec"
    with path.open("ab") as file:
        file.write(b"ond \x1b[31mred\x1b[0m\n" + b"x\n" * 20_000)
    assert tail.read()[0] == "second red"
    assert len(tail.read(100)) == 50
    tail.close()


def test_a_long_log_is_begun_near_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"old line\n" * 100_000 + b"new line\n")
    tail, lines = LogTail(path), []
    while more := tail.read():
        lines += more
    assert lines[-1] == "new line" and len(lines) < 10_000


def test_of_a_progress_bar_the_last_state_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"\r 10 %\r 20 %")
    tail = LogTail(path)
    assert tail.read() == [] and tail.pending == " 20 %"


def test_a_character_that_comes_in_two_parts_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes("é\n".encode())
    tail = LogTail(path)
    assert tail.read(1) == [] and tail.read(10) == ["é"]
