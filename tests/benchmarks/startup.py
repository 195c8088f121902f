"""First paint: from exec to the frame that shows Setup's title, beside an empty Textual app, in turn.

    python -m tests.benchmarks.startup [--rounds N] [--beside TEXT COMMAND ...] [--json FILE]

What counts is the paired ratio (at most 1.3): the median of what each round's time is to the empty app's in the same
round. The absolute figure depends on how busy the machine is. `--beside` measures another program until it has written
TEXT.
"""

from __future__ import annotations

import argparse
import fcntl
import json
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

_EMPTY = """from textual.app import App
from textual.widgets import Static


class Empty(App):
    def compose(self):
        yield Static("Does torch.compile pay off?")


Empty().run()
"""
_TITLE = "torch.compile"
_TIMEOUT_S = 20.0


def first_paint_s(command: list[str], cwd: Path, text: str = _TITLE) -> float:
    """Seconds until `text` is among what the program wrote to its terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(slave)
    written = b""
    while text.encode() not in written and time.perf_counter() - started < _TIMEOUT_S:
        if select([master], [], [], 0.01)[0]:
            written += os.read(master, 1 << 16)
    elapsed = time.perf_counter() - started
    process.kill()
    process.wait()
    os.close(master)
    return elapsed


def main() -> None:
    asked = _arguments()
    samples = Path(__file__).parents[2] / "sample_models"
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name) / "empty.py"
        empty.write_text(_EMPTY)
        commands = {
            "empty Textual app": ([sys.executable, str(empty)], _TITLE),
            "tcompile-tui": ([sys.executable, "-m", "tcompile_tui"], _TITLE),
            "tcompile-tui convnet.py": ([sys.executable, "-m", "tcompile_tui", "convnet.py"], _TITLE),
            **{Path(shlex.split(command)[0]).name: (shlex.split(command), text) for text, command in asked.beside},
        }
        seconds: dict[str, list[float]] = {label: [] for label in commands}
        for _ in range(asked.rounds):
            for label, (command, text) in commands.items():
                seconds[label].append(first_paint_s(command, samples, text))
    base = seconds["empty Textual app"]
    for label, values in seconds.items():
        ratio = median(value / beside for value, beside in zip(values, base))
        print(f"{label:<26} median {1e3 * median(values):5.0f} ms, best {1e3 * min(values):5.0f} ms, {ratio:.2f}x")
    if asked.json:
        asked.json.write_text(json.dumps(seconds, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--beside", nargs=2, action="append", default=[], metavar=("TEXT", "COMMAND"))
    parser.add_argument("--json", type=Path, help="also write every round's seconds to this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
