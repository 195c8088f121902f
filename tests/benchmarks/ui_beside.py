"""What the application costs a run that it follows: at most 0.3 % of a step (DESIGN.md, section 6).

    python -m tests.benchmarks.ui_beside [--device cpu] [--seconds N] [--threads N] [--control] [--json FILE]

Steps run here and are written down as a run does it, while the application follows that run on a terminal of its own.
It is held (SIGSTOP) and let go on (SIGCONT) for one block of steps after the other, in the order on off off on, and a
block's first part, in which it catches up, is left out. Neighbouring blocks are compared, so a clock that drifts is in
neither. With `--control` it is held all the time: what is found then is what this machine cannot tell from nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev

import msgspec
import psutil

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Arm
from tcompile_tui.host.event_log import EventLog
from tcompile_tui.host.run_folder import ProcessId
from tests.benchmarks.frame_cost import history, samples
from tests.core.streams import block
from tests.ui.recorded import write_run

BAR = 0.003
_SETTLE_S, _BLOCK_S = 0.4, 1.0
_RECORD_S = 0.1  # a run writes its blocks about so often
_SAMPLE_S = 0.2
_ORDER = (True, False, False, True)
_HISTORY_STEPS = 100_000
_START_S = 30.0


@dataclass(frozen=True)
class Found:
    """Of the step time, the part that the application adds: mean and 95 % interval. `app_cpu_share` is of one core."""

    device: str
    step_ms: float
    quadruples: int
    added: float
    lo: float
    hi: float
    app_cpu_share: float


class Steps:
    """A step of about a millisecond whose launches keep the host busy: what a busy neighbour would disturb most."""

    def __init__(self, device: str) -> None:
        import torch  # not in the application's own process

        self._torch = torch
        self.device = torch.device(device)
        size = 1024 if self.device.type == "cuda" else 192
        self._x = torch.randn(size, size, device=self.device)
        self._w = torch.randn(size, size, device=self.device) / math.sqrt(size)

    def run(self, number: int) -> float:
        """Nanoseconds a step."""
        began = time.perf_counter_ns()
        with self._torch.inference_mode():
            for _ in range(number):
                x = self._x
                for _ in range(8):
                    x = (x @ self._w).relu()
        if self.device.type == "cuda":
            self._torch.cuda.synchronize(self.device)
        return (time.perf_counter_ns() - began) / number


class Recorder:
    """Writes what a run writes: blocks of steps, and samples of the devices five times a second."""

    def __init__(self, folder: Path, from_index: int) -> None:
        self._log = EventLog(folder / "events.jsonl")
        self._index, self._pair = from_index, 0
        self._began = self._sampled = time.monotonic()

    def take(self, step_ns: float, number: int) -> None:
        self._pair += 1
        t_s = 100.0 + time.monotonic() - self._began
        for arm in (Arm.EAGER, Arm.COMPILED):
            steps = block(arm, ev.BlockRole.PAIR, self._index, [step_ns / 1e6] * number, pair=self._pair)
            self._log.append(ev.stamp(steps, t_s, 2))
        self._index += number
        if time.monotonic() - self._sampled > _SAMPLE_S:
            self._sampled = time.monotonic()
            for sample in samples(t_s, self._pair):
                self._log.append(sample)

    def close(self) -> None:
        self._log.close()


def measure(device: str, seconds: float, control: bool) -> Found:
    steps = Steps(device)
    steps.run(50)
    number = max(1, round(_RECORD_S * 1e9 / steps.run(50)))
    with tempfile.TemporaryDirectory() as name:
        own = json.loads(msgspec.json.encode(ProcessId.own()))
        folder = write_run(Path(name) / "run", history(_HISTORY_STEPS), supervisor=own, cwd=str(Path.cwd()))
        recorder = Recorder(folder.path, _HISTORY_STEPS)
        with following(folder.path) as app:
            app.wait_until_drawn()
            blocks: list[tuple[bool, float]] = []
            cpu_s, on_s = app.cpu_s, 0.0
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                for on in _ORDER:
                    app.let(on and not control)
                    _steps_for(_SETTLE_S, steps, number, recorder)
                    times = _steps_for(_BLOCK_S, steps, number, recorder)
                    blocks.append((on, fmean(times)))
                    on_s += (_SETTLE_S + _BLOCK_S) * on
            app.let(True)
            share = (app.cpu_s - cpu_s) / on_s
        recorder.close()
    return _found(device, blocks, share)


def _steps_for(seconds: float, steps: Steps, number: int, recorder: Recorder) -> list[float]:
    until, times = time.monotonic() + seconds, []
    while time.monotonic() < until:
        times.append(steps.run(number))
        recorder.take(times[-1], number)
    return times


def _found(device: str, blocks: list[tuple[bool, float]], share: float) -> Found:
    """The mean of log(on / off) over the quadruples; a quadruple's order takes a steady drift out."""
    logs = [
        sum(math.log(ns) * (1 if on else -1) for on, ns in blocks[first : first + 4]) / 2
        for first in range(0, len(blocks) - 3, 4)
    ]
    mean = fmean(logs)
    error = 1.96 * stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    lo, hi = (math.expm1(mean + sign * error) for sign in (-1, 1))
    return Found(device, fmean(ns for _, ns in blocks) / 1e6, len(logs), math.expm1(mean), lo, hi, share)


# ---------------------------------------------------------------- the application, on a terminal of its own


class FollowingApp:
    """The terminal is served by a process between: nothing of it is the work of the process that is measured."""

    def __init__(self, terminal: subprocess.Popen[bytes], drawn: Path) -> None:
        self._drawn = drawn
        self._terminal = psutil.Process(terminal.pid)

    @property
    def _processes(self) -> list[psutil.Process]:
        return [self._terminal, *self._terminal.children(recursive=True)]

    @property
    def cpu_s(self) -> float:
        """Of the application alone."""
        return sum(sum(each.cpu_times()[:2]) for each in self._processes[1:])

    def wait_until_drawn(self) -> None:
        until = time.monotonic() + _START_S
        while not self._drawn.stat().st_size > 10_000:
            if time.monotonic() > until:
                raise SystemExit(f"the application drew nothing in {_START_S:g} s: see {self._drawn}")
            time.sleep(0.05)
        time.sleep(1)

    def let(self, go_on: bool) -> None:
        for each in self._processes:
            each.send_signal(signal.SIGCONT if go_on else signal.SIGSTOP)


@contextmanager
def following(run_folder: Path) -> Iterator[FollowingApp]:
    drawn = run_folder.parent / "terminal.bin"
    with drawn.open("wb") as output:
        terminal = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.ui_beside", "--terminal", str(run_folder)],
            stdin=subprocess.DEVNULL, stdout=output, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
        )  # fmt: skip
        app = FollowingApp(terminal, drawn)
        try:
            yield app
        finally:
            app.let(True)
            for each in app._processes:
                each.kill()
            terminal.wait()


def serve_terminal(run_folder: str) -> None:
    pty.spawn([sys.executable, "-m", "tests.benchmarks.ui_beside", "--app", run_folder])


def show(run_folder: str) -> None:
    from tcompile_tui.ui.app import TCompileApp
    from tcompile_tui.ui.feeds import LiveFeed
    from tests.ui.screen_app import ScreenApp

    class App(TCompileApp):
        CSS_PATH = ScreenApp.CSS_PATH

    App(Path(run_folder).parent, feed=LiveFeed(Path(run_folder)), ascii_only=False).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--threads", type=int, help="torch's CPU threads: leave a core to the application")
    parser.add_argument("--control", action="store_true", help="hold the application all the time")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--terminal", help=argparse.SUPPRESS)
    parser.add_argument("--app", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.terminal or asked.app:
        return serve_terminal(asked.terminal) if asked.terminal else show(asked.app)
    if asked.threads:
        os.environ["OMP_NUM_THREADS"] = str(asked.threads)
    found = measure(asked.device, asked.seconds, asked.control)
    what = "held all the time" if asked.control else "following"
    print(f"{found.device}, steps of {found.step_ms:.3f} ms, {found.quadruples} times on off off on, the app {what}")
    added, lo, hi = (f"{100 * value:+.2f}" for value in (found.added, found.lo, found.hi))
    print(f"the app adds {added} % ({lo} to {hi}); bar {100 * BAR:.1f} %")
    print(f"it used {100 * found.app_cpu_share:.1f} % of one core while it was on")
    if asked.json:
        asked.json.write_text(json.dumps(asdict(found), indent=1))
    return None


if __name__ == "__main__":
    main()
