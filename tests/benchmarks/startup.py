"""First paint: from exec to the frame that shows Setup's title, beside an empty Textual app, in turn.

    python -m tests.benchmarks.startup [ROUNDS]

What counts is the paired ratio (at most 1.3): the median of what each round's time is to the empty app's in the same
round. The absolute figure depends on how busy the machine is.
"""

from __future__ import annotations

import fcntl
import os
import pty
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
_TITLE = b"torch.compile"
_TIMEOUT_S = 20.0


def first_paint_s(command: list[str], cwd: Path) -> float:
    """Seconds until the title is among what the program wrote to its terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(slave)
    written = b""
    while _TITLE not in written and time.perf_counter() - started < _TIMEOUT_S:
        if select([master], [], [], 0.01)[0]:
            written += os.read(master, 1 << 16)
    elapsed = time.perf_counter() - started
    process.kill()
    process.wait()
    os.close(master)
    return elapsed


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    samples = Path(__file__).parents[2] / "sample_models"
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name) / "empty.py"
        empty.write_text(_EMPTY)
        commands = {
            "empty Textual app": [sys.executable, str(empty)],
            "tcompile-tui": [sys.executable, "-m", "tcompile_tui"],
            "tcompile-tui convnet.py": [sys.executable, "-m", "tcompile_tui", "convnet.py"],
        }
        seconds: dict[str, list[float]] = {label: [] for label in commands}
        for _ in range(rounds):
            for label, command in commands.items():
                seconds[label].append(first_paint_s(command, samples))
    base = seconds["empty Textual app"]
    for label, values in seconds.items():
        ratio = median(value / beside for value, beside in zip(values, base))
        print(f"{label:<26} median {1e3 * median(values):5.0f} ms, best {1e3 * min(values):5.0f} ms, {ratio:.2f}x")


if __name__ == "__main__":
    main()
