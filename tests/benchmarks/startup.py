"""First paint: from exec to the frame that shows Setup's title, beside an empty Textual app, in turn.

    python -m tests.benchmarks.startup [--rounds N] [--beside WORD=COMMAND ...]

What counts is the paired ratio (at most 1.3): the median of what each round's time is to the empty app's in the same
round. The absolute figure depends on how busy the machine is. `--beside` times other programs too, until they have
written WORD: `--beside 'Processes=/other/venv/bin/nvitop'`. Besides: what `--help` takes, beside an empty interpreter.
"""

from __future__ import annotations

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from select import select
from statistics import median

from tests.benchmarks.record import Figure, parser, publish, record, table

_EMPTY = """from textual.app import App
from textual.widgets import Static


class Empty(App):
    def compose(self):
        yield Static("Does torch.compile pay off?")


Empty().run()
"""
_TITLE = b"torch.compile"
_TIMEOUT_S = 20.0
_BASE = "empty Textual app"
_RATIO_BAR, _PAINT_BAR_S, _HELP_BAR_S = 1.3, 0.5, 0.2


def first_paint_s(command: list[str], cwd: Path, word: bytes) -> float:
    """Seconds until `word` is among what the program wrote to its terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(slave)
    written = b""
    while word not in written and time.perf_counter() - started < _TIMEOUT_S:
        if select([master], [], [], 0.01)[0]:
            written += os.read(master, 1 << 16)
    elapsed = time.perf_counter() - started
    process.kill()
    process.wait()
    os.close(master)
    return elapsed


def help_s(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--beside", action="append", default=[], metavar="WORD=COMMAND")
    asked = options.parse_args()
    rounds = asked.rounds
    samples = Path(__file__).parents[2] / "sample_models"
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name) / "empty.py"
        empty.write_text(_EMPTY)
        commands = {
            _BASE: (_TITLE, [sys.executable, str(empty)]),
            "tcompile-tui": (_TITLE, [sys.executable, "-m", "tcompile_tui"]),
            "tcompile-tui convnet.py": (_TITLE, [sys.executable, "-m", "tcompile_tui", "convnet.py"]),
        }
        for word, _, command in (text.partition("=") for text in asked.beside):
            commands[Path(shlex.split(command)[0]).name] = (word.encode(), shlex.split(command))
        seconds: dict[str, list[float]] = {label: [] for label in commands}
        for _ in range(rounds):
            for label, (word, command) in commands.items():
                seconds[label].append(first_paint_s(command, samples, word))
        help_times = [help_s([sys.executable, "-m", "tcompile_tui", "--help"]) for _ in range(rounds)]
    ratios = {
        label: median(value / beside for value, beside in zip(values, seconds[_BASE]))
        for label, values in seconds.items()
    }
    cells = [
        (label, f"{1e3 * median(values):.0f} ms", f"{1e3 * min(values):.0f} ms", f"{ratios[label]:.2f}")
        for label, values in seconds.items()
    ]
    own = [label for label in seconds if label.startswith("tcompile-tui")]
    figures = [
        *(Figure(f"first paint / that of an empty Textual app: {label}", f"{ratios[label]:.2f}", f"<= {_RATIO_BAR}",
                 ratios[label] <= _RATIO_BAR) for label in own),
        *(_absolute(f"first paint: {label}", seconds[label], _PAINT_BAR_S) for label in own),
        _absolute("--help", help_times, _HELP_BAR_S),
    ]  # fmt: skip
    heads = ("first paint of", "median", "best", "/ empty app, same round")
    publish(record("startup", figures, [table(heads, cells)]), asked.json)


def _absolute(name: str, seconds: list[float], bar_s: float) -> Figure:
    """By the best, since the bar is that of an idle host."""
    found = f"{1e3 * min(seconds):.0f} ms (best), {1e3 * median(seconds):.0f} ms (median)"
    return Figure(name, found, f"<= {1e3 * bar_s:.0f} ms, idle host", min(seconds) <= bar_s)


if __name__ == "__main__":
    main()
