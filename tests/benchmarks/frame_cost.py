"""The Run screen beside a fast run, on a real terminal: `python -m tests.benchmarks.frame_cost [--steps N]`.

CPU time of the whole program for each beat of five a second (at most 15 ms) and bytes written to the terminal for each
(at most 8 kB at 80x24), with N steps of each arm behind it (1,000,000) and fifty new ones an arm in each beat.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from select import select
from statistics import median

from tcompile_tui.core import events as ev
from tcompile_tui.core.events import Event
from tcompile_tui.core.spec import Arm, Mode, Phase, RunSpec, parse_target
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui.app import TCompileApp
from tcompile_tui.ui.screens.run import RunScreen
from tests.benchmarks.record import Figure, parser, publish, record, table
from tests.core.streams import block, eager_process, started
from tests.ui.screen_app import ScreenApp

SIZES = ((80, 24), (120, 36))
BEATS = 50
_CPU_BAR_MS, _WRITTEN_BAR_KB = 15, 8
_NEW_STEPS = 50
_HISTORY_BLOCK = 10_000
_LIMIT_S = 240.0


class GrowingFeed:
    """A run with a long past that gives a pair of blocks and samples of the devices at every look."""

    live = True
    lost: str | None = None
    ended = False

    def __init__(self, steps: int, folder: Path) -> None:
        self.folder = RunFolder(folder)
        self._past = list(_past(steps))
        self._steps, self._looks = steps, 0

    def poll(self) -> list[Event]:
        if self._past:
            taken, self._past = self._past[:20], self._past[20:]
            return taken
        if self._looks % 2:
            self._looks += 1
            return []  # nothing more before the next beat
        self._looks += 1
        return list(_beat(self._looks, self._steps))

    def now_s(self) -> float:
        return 100.0 + self._looks / 10

    def close(self) -> None:
        pass


def _past(steps: int) -> Iterator[Event]:
    spec = RunSpec(parse_target("net.py"), device="cuda")
    yield ev.RunStarted(run_id="r", spec=spec, python="", torch_version="2.13.0", device="cuda", device_name="H200")
    for event in eager_process(5.0):
        yield ev.stamp(event, 1.0, 1)
    for event in (started(Phase.WARM, Mode.DEFAULT), ev.ImportsDone(torch_s=1.0)):
        yield ev.stamp(event, 10.0, 2)
    for first in range(0, steps, _HISTORY_BLOCK):
        for arm, level_ms in ((Arm.EAGER, 5.0), (Arm.COMPILED, 3.0)):
            times = [level_ms * (1 + 0.1 * (index % 7) / 7) for index in range(_HISTORY_BLOCK)]
            yield ev.stamp(block(arm, ev.BlockRole.WARMUP, first, times), 20.0, 2)


def _beat(look: int, steps: int) -> Iterator[Event]:
    t_s = 100.0 + look / 10
    for arm, level_ms in ((Arm.EAGER, 5.0), (Arm.COMPILED, 3.0)):
        times = [level_ms * (1 + 0.2 * ((index * look) % 11) / 11) for index in range(_NEW_STEPS)]
        yield ev.stamp(block(arm, ev.BlockRole.PAIR, steps + look * _NEW_STEPS, times, pair=look), t_s, 2)
    yield ev.GpuSample(
        t_s=t_s, utilisation_percent=50.0 + look % 40, memory_used_bytes=20 << 30, memory_total_bytes=140 << 30,
        sm_clock_mhz=1900.0 + look % 80, power_w=400.0 + look % 200, power_limit_w=700.0, temperature_c=50.0,
    )  # fmt: skip
    yield ev.HostSample(
        t_s=t_s, cpu_percent=10.0 + look % 30, memory_used_bytes=20 << 30, memory_total_bytes=128 << 30,
        worker_cpu_percent=99.0, worker_rss_bytes=3 << 30,
    )  # fmt: skip


class MeasuredApp(TCompileApp):
    """Notes the program's CPU time at each beat once the past is taken in, and leaves after BEATS of them."""

    CSS_PATH = ScreenApp.CSS_PATH

    def __init__(self, steps: int, folder: Path) -> None:
        super().__init__(folder, feed=GrowingFeed(steps, folder), ascii_only=False)
        self._steps = steps
        self._result = folder / "result.json"
        self.cpu_ns: list[int] = []

    def on_mount(self) -> None:  # beside the application's own, which Textual calls too
        self.set_interval(0.2, self._note)

    def _note(self) -> None:
        screen = self.screen
        if not isinstance(screen, RunScreen) or not screen.state.processes.get(2):
            return
        if len(screen.state.processes[2].arm(Arm.COMPILED).series) <= self._steps + _NEW_STEPS:
            return
        self.cpu_ns.append(time.process_time_ns())
        if len(self.cpu_ns) == 1:
            os.write(1, b"measured from here")  # the pipe to the parent: Textual has taken sys.stdout
        if len(self.cpu_ns) > BEATS:
            self._result.write_text(json.dumps(self.cpu_ns))
            self.exit()


def measure(steps: int, size: tuple[int, int]) -> tuple[list[float], float]:
    """CPU ms of each beat, and bytes to the terminal a beat."""
    with tempfile.TemporaryDirectory() as name:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.frame_cost", "--child", str(steps), name],
            stdin=slave, stdout=subprocess.PIPE, stderr=slave, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )  # fmt: skip
        os.close(slave)
        assert process.stdout is not None
        written, began, until = 0, False, time.monotonic() + _LIMIT_S
        while process.poll() is None:
            if time.monotonic() > until:
                process.kill()
                raise RuntimeError(f"the Run screen came to no end in {_LIMIT_S:.0f} s")
            ready = select([master, process.stdout], [], [], 0.5)[0]
            if process.stdout in ready and os.read(process.stdout.fileno(), 1 << 12):
                began = True
            if master in ready:
                with suppress(OSError):  # it has left
                    written += len(os.read(master, 1 << 16)) * began
        os.close(master)
        marks = json.loads((Path(name) / "result.json").read_text())
    return [(after - before) / 1e6 for before, after in pairwise(marks)], written / BEATS


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        MeasuredApp(int(sys.argv[2]), Path(sys.argv[3])).run()
        return
    options = parser(__doc__)
    options.add_argument("--steps", type=int, default=1_000_000)
    asked = options.parse_args()
    figures, cells = [], []
    for columns, lines in SIZES:
        beats, written = measure(asked.steps, (columns, lines))
        size, typical_ms = f"{columns}x{lines}", median(beats)
        cells.append(
            (size, f"{asked.steps:,}", f"{typical_ms:.1f} ms", f"{max(beats):.1f} ms", f"{written / 1e3:.1f} kB")
        )
        name = f"{{}} a beat of the Run screen, {size}, {asked.steps:,} steps an arm"
        cpu = Figure(name.format("CPU"), f"{typical_ms:.1f} ms", f"<= {_CPU_BAR_MS} ms", typical_ms <= _CPU_BAR_MS)
        bar_kb = _WRITTEN_BAR_KB if (columns, lines) == SIZES[0] else None
        met = written <= 1e3 * bar_kb if bar_kb is not None else None
        bar = f"<= {bar_kb} kB" if bar_kb is not None else ""
        figures += [cpu, Figure(name.format("bytes to the terminal"), f"{written / 1e3:.1f} kB", bar, met)]
    shown = table(("size", "steps", "CPU a beat", "worst", "written a beat"), cells)
    publish(record("frame_cost", figures, [shown]), asked.json)


if __name__ == "__main__":
    main()
