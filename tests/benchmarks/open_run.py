"""Opening a long run from the list of runs: `python -m tests.benchmarks.open_run [--megabytes N]`.

From the key to the Verdict on the screen (at most 2 s for 50 MB), and what the process then holds (at most 120 MB).
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import psutil

from tcompile_tui.core import events as ev
from tcompile_tui.core.events import encode_event
from tcompile_tui.core.spec import Arm
from tcompile_tui.ui.screens.runs import RunsScreen
from tcompile_tui.ui.screens.verdict import VerdictScreen
from tests.benchmarks.record import Figure, parser, publish, record, table
from tests.ui.recorded import CONVNET, recorded_run
from tests.ui.screen_app import ScreenApp

ROUNDS = 5
_OPEN_BAR_S, _HELD_BAR_MB = 2, 120
_BLOCK_STEPS = 200
_INDEX_FROM = 1_000_000


class RunsApp(ScreenApp):
    """Opens for real what it is asked to open."""

    def show_verdict(self, folder, state):  # type: ignore[no-untyped-def]
        self.push_screen(VerdictScreen(folder, state))


def write_long_run(folder: Path, megabytes: int) -> None:
    """A run recorded on an H200, made longer by pair blocks of its last process, as a slow comparison writes them."""
    path = recorded_run(CONVNET, folder).events
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(json.loads(line)["process"] for line in lines)
    cut = next(i for i, line in reversed(list(enumerate(lines))) if b'"pair"' in line and b'"block"' in line)
    rng = random.Random(1)
    with path.open("wb") as file:
        file.writelines(lines[: cut + 1])
        for number in range(10**9):
            if file.tell() > megabytes * 1_000_000:
                break
            for arm, level_ns in ((Arm.EAGER, 1.3e6), (Arm.COMPILED, 0.4e6)):
                steps = tuple(int(rng.gauss(level_ns, level_ns / 50)) for _ in range(_BLOCK_STEPS))
                block = ev.Block(
                    t_s=150 + number / 100, process=last, arm=arm, role=ev.BlockRole.PAIR, pair=1_000 + number, loop=9,
                    first_index=_INDEX_FROM + number * _BLOCK_STEPS, steps=_BLOCK_STEPS, step_ns=steps,
                    host_ns=tuple(step // 3 for step in steps), wall_ns=sum(steps),
                )  # fmt: skip
                file.write(encode_event(block) + b"\n")
        file.writelines(lines[cut + 1 :])


async def open_it(runs_dir: Path) -> tuple[float, float, float]:
    """Seconds until the Verdict is there, seconds of CPU, and MB that the process holds then."""
    app = RunsApp(RunsScreen, runs_dir)
    async with app.run_test(size=(120, 36)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        began, cpu = time.perf_counter(), time.process_time()
        await pilot.press("enter")
        while not isinstance(app.screen, VerdictScreen):
            await pilot.pause(0.01)
        await pilot.pause()
        return time.perf_counter() - began, time.process_time() - cpu, psutil.Process().memory_info().rss / 1e6


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(asyncio.run(open_it(Path(sys.argv[2])))))
        return
    options = parser(__doc__)
    options.add_argument("--megabytes", type=int, default=50)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_long_run(Path(name), asked.megabytes)
        command = [sys.executable, "-m", "tests.benchmarks.open_run", "--child", name]
        rounds = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(ROUNDS)
        ]
    seconds, cpu, held = zip(*rounds)
    opened_s = median(seconds)
    figures = [
        Figure(
            f"opening a run of {asked.megabytes} MB",
            f"{opened_s:.2f} s",
            f"<= {_OPEN_BAR_S} s",
            opened_s <= _OPEN_BAR_S,
        ),
        Figure(
            "what the screens' process holds then",
            f"{max(held):.0f} MB",
            f"<= {_HELD_BAR_MB} MB",
            max(held) <= _HELD_BAR_MB,
        ),
    ]
    cells = (f"{opened_s:.2f} s", f"{min(seconds):.2f} s", f"{median(cpu):.2f} s", f"{max(held):.0f} MB")
    shown = table(("opened", "median", "best", "CPU", "memory"), [(f"{asked.megabytes} MB", *cells)])
    publish(record("open_run", figures, [shown]), asked.json)


if __name__ == "__main__":
    main()
