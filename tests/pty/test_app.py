"""The program in a terminal, from its first screen to its exit status, also when the terminal misbehaves."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from tests.host.fake_run import FakeRun

from .conftest import wait_until
from .terminal import Terminal

SETUP = "Does torch.compile pay off?"
DEMO_OVER = "ended: ENABLE"
STOPPED = "ended before the answer"


def attach(terminal: Terminal) -> None:
    """From Setup by the list of runs to the newest one, which goes on."""
    terminal.wait_for("History")
    terminal.press("h")
    terminal.wait_for("1 run, 1 running")
    terminal.press("enter")
    terminal.wait_for(lambda text: "cold default (2 of 3)" in text and "kernel compile" in text)


def go_to_field(terminal: Terminal, detail: str) -> None:
    """Back through the form until the field that explains itself so has the keys."""
    for _ in range(20):
        if detail in terminal.text:
            return
        terminal.press("shift+tab")
        terminal.settle()
    raise AssertionError(f"no field says: {detail}\n{terminal.text}")


@pytest.mark.xdist_group("real-runs")
@pytest.mark.timeout(280)
def test_from_the_files_to_a_verdict_by_keys_alone(tmp_path: Path, sample_models: Path) -> None:
    folder = tmp_path / "models"
    shutil.copytree(sample_models, folder, ignore=shutil.ignore_patterns("__pycache__"))
    place = sorted(path.name for path in folder.glob("*.py")).index("pointwise_chain.py")
    with Terminal(cwd=folder) as terminal:
        terminal.wait_for("transformer_bl")
        terminal.press(*["down"] * place, "enter")
        terminal.wait_for(lambda text: re.search(r"File +pointwise_chain\.py", text) is not None)
        go_to_field(terminal, "standard: at most 15 min")
        terminal.press("left")
        terminal.wait_for("quick: at most 5 min")
        go_to_field(terminal, "auto: least busy GPU, else CPU")
        terminal.press("right")
        terminal.wait_for("--device cpu --preset quick")
        terminal.press("r")
        terminal.wait_for("eager (1 of 3)", timeout_s=30)
        terminal.wait_for("cold default (2 of 3): compiling", timeout_s=90)
        terminal.wait_for(" Verdict  pointwise_chain.py", timeout_s=150)
        terminal.settle()
        contended = "other work on this machine" in terminal.text
        assert "it pays off" in terminal.text or (contended and "not sure: test it" in terminal.text), terminal.text
        terminal.press("q")
        terminal.wait_for("--device cpu --preset quick")  # as it was set up
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        assert terminal.is_restored


def test_the_demo_comes_to_a_verdict_in_seconds(tmp_path: Path) -> None:
    with Terminal("demo", cwd=tmp_path) as terminal:
        terminal.wait_for("REPLAY x4", timeout_s=10)
        terminal.press("e")
        terminal.wait_for(DEMO_OVER, timeout_s=5)
        terminal.press("v")
        terminal.wait_for("it pays off here", timeout_s=5)
        terminal.wait_for('model.compile(mode="reduce-overhead")')


def test_q_leaves_a_replay_without_a_question(tmp_path: Path) -> None:
    with Terminal("demo", cwd=tmp_path) as terminal:
        terminal.wait_for("REPLAY x4")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert terminal.is_restored


def test_palette_and_help_name_what_the_screen_can_do(tmp_path: Path) -> None:
    with Terminal("demo", "--speed", "1000", cwd=tmp_path, lines=40) as terminal:
        terminal.wait_for(DEMO_OVER)
        terminal.press("?")
        terminal.wait_for("Double the speed of the replay")
        assert "eager step time over compiled step time" in terminal.text
        terminal.press("escape")
        terminal.wait_for(lambda text: "Double the speed" not in text)
        terminal.press("ctrl+p")
        terminal.wait_for("Double the speed of the replay")
        assert "Pause\n" in terminal.text and "Jump to the end of the replay" in terminal.text
        assert "End the measuring now" not in terminal.text, "a replay has no measuring to end"
        terminal.press("so far")
        terminal.wait_for(lambda text: "Double the speed" not in text)
        terminal.press("enter")
        terminal.wait_for("it pays off here")


def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_brings_the_screen_back(tmp_path: Path) -> None:
    with Terminal("demo", "--speed", "1000", cwd=tmp_path) as terminal:
        terminal.wait_for(DEMO_OVER)
        program = psutil.Process(terminal.process.pid)
        terminal.press("ctrl+z")
        wait_until(lambda: program.status() == psutil.STATUS_STOPPED)
        terminal.settle()
        assert terminal.is_restored
        terminal.draw_over()
        program.send_signal(signal.SIGCONT)
        terminal.wait_for(DEMO_OVER)
        terminal.wait_for("reduce-overhead measured")
        terminal.press("v")
        terminal.wait_for("it pays off here")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        assert terminal.is_restored


def test_a_pause_without_warning_is_survived(tmp_path: Path) -> None:
    with Terminal("demo", "--speed", "1000", cwd=tmp_path) as terminal:
        terminal.wait_for(DEMO_OVER)
        program = psutil.Process(terminal.process.pid)
        terminal.settle()
        terminal.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: program.status() == psutil.STATUS_STOPPED)
        terminal.draw_over()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for("reduce-overhead measured")
        terminal.press("v")
        terminal.wait_for("it pays off here")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        assert terminal.is_restored


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_the_program_and_leaves_terminal_and_run_as_they_were(
    compiling: FakeRun, tmp_path: Path, number: signal.Signals
) -> None:
    with Terminal(cwd=tmp_path) as terminal:
        attach(terminal)
        terminal.process.send_signal(number)
        assert terminal.wait_for_end() == 128 + number
        assert terminal.is_restored
    assert compiling.process.poll() is None


def test_leaving_a_run_asks_and_keeps_it_if_told(compiling: FakeRun, tmp_path: Path) -> None:
    with Terminal(cwd=tmp_path) as terminal:
        attach(terminal)
        terminal.press("q")
        terminal.wait_for("keep it running and leave")
        terminal.press("k")
        assert terminal.wait_for_end() == 0
        assert terminal.is_restored
    assert compiling.process.poll() is None


@pytest.mark.parametrize("stuck", [False, True], ids=["idle", "stuck"])
def test_a_lost_connection_ends_the_program_and_not_the_run(compiling: FakeRun, tmp_path: Path, stuck: bool) -> None:
    with Terminal(cwd=tmp_path) as terminal:
        attach(terminal)
        if stuck:
            terminal.hold_back()
        terminal.hang_up()
        assert terminal.process.wait(timeout=3) == 128 + signal.SIGHUP
    assert compiling.process.poll() is None
    with Terminal(cwd=tmp_path) as terminal:
        attach(terminal)
        compiling.process.send_signal(signal.SIGTERM)
        terminal.wait_for(STOPPED)
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0


def test_a_terminal_that_takes_nothing_holds_up_no_verdict(compiling: FakeRun, tmp_path: Path) -> None:
    with Terminal(cwd=tmp_path) as terminal:
        attach(terminal)
        terminal.hold_back()
        compiling.process.send_signal(signal.SIGINT)
        assert compiling.process.wait(timeout=25) == 5  # it gives the compiler ten seconds to come to an end
        assert compiling.verdict["decision"] == "STOPPED"
        terminal.wait_for(STOPPED)
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        assert terminal.is_restored
