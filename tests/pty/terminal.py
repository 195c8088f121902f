"""A real terminal for tests: the program on a pseudo-terminal, pyte as the emulator that a person would look at."""

from __future__ import annotations

import fcntl
import math
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from select import select

import psutil
import pyte

_KEYS = {"enter": "\r", "escape": "\x1b", "tab": "\t", "shift+tab": "\x1b[Z", "space": " "}
_KEYS |= {"down": "\x1b[B", "up": "\x1b[A", "right": "\x1b[C", "left": "\x1b[D"}
_KEYS |= {f"ctrl+{letter}": chr(ord(letter) - ord("a") + 1) for letter in "cpqz"}
# Between two keys: what follows an escape within 0.1 s is read as one key with it.
_KEY_S = {"escape": 0.15}
# The terminal of whoever runs the tests must not shine through.
_NOT_INHERITED = {
    "NO_COLOR", "COLORTERM", "COLUMNS", "LINES", "LC_ALL", "LC_CTYPE", "PYTHONIOENCODING", "PYTHONUTF8",
    "PYTHONCOERCECLOCALE", "TERM_PROGRAM",
}  # fmt: skip
# Private modes that must be off after the program: alternate screen, mouse, focus reports, bracketed paste.
_MODES_OFF = (1049, 1000, 1003, 1006, 1004, 2004)


class Terminal:
    """`tcompile-tui ARGUMENTS` in a terminal of `columns` x `lines`. Use it in a with statement."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        columns: int = 80,
        lines: int = 24,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self.received = b""
        self._master, self._slave = pty.openpty()
        self._set_size(columns, lines)
        self._attributes_before = termios.tcgetattr(self._slave)
        inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tcompile_tui", *arguments],
            stdin=self._slave, stdout=self._slave, stderr=self._slave, cwd=cwd, start_new_session=True,
            env={**inherited, "TERM": "xterm-256color", "LANG": "C.UTF-8", **(environment or {})},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )  # fmt: skip

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for fd in (self._slave, self._master):
            if fd >= 0:
                os.close(fd)

    # ------------------------------------------------------------ looking

    @property
    def text(self) -> str:
        """What is on the screen now."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def colours(self) -> set[str]:
        """Of all cells, text and ground."""
        cells = [self._screen.buffer[y][x] for y in range(self._screen.lines) for x in range(self._screen.columns)]
        return {colour for cell in cells for colour in (cell.fg, cell.bg)}

    def wait_for(self, condition: str | Callable[[str], bool], timeout_s: float = 20) -> None:
        """Until a text is on the screen, or the condition holds for it."""
        holds = condition if callable(condition) else lambda text: condition in text
        deadline = time.monotonic() + timeout_s
        while not holds(self.text):
            assert time.monotonic() < deadline, f"not seen in {timeout_s} s: {condition}\n{self.text}"
            assert self._take(0.2) or self.process.poll() is None, f"the program left\n{self.text}"

    def settle(self, quiet_s: float = 0.15, timeout_s: float = 5) -> bool:
        """Until nothing has been drawn for a moment; False if that never comes."""
        deadline = time.monotonic() + timeout_s
        while self._take(quiet_s):
            if time.monotonic() > deadline:
                return False
        return True

    def wait_for_end(self, timeout_s: float = 10) -> int:
        """The exit status, with everything read that the program wrote."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"still there after {timeout_s} s\n{self.text}"
            self._take(0.05)
        self.settle(0.05)
        return self.process.returncode

    def _take(self, wait_s: float) -> bool:
        """Take in what the program has written, after at most some time."""
        if not select([self._master], [], [], wait_s)[0]:
            return False
        try:
            chunk = os.read(self._master, 1 << 16)
        except OSError:
            return False
        self.received += chunk
        self._stream.feed(chunk.replace(b"\x1b[<u", b""))  # the end of the kitty protocol, which pyte would print
        return True

    # ------------------------------------------------------------ doing

    def press(self, *keys: str) -> None:
        """Named keys, single letters, or whole words to type."""
        for key in keys:
            os.write(self._master, _KEYS.get(key, key).encode())
            until = time.monotonic() + _KEY_S.get(key, 0.02)
            while (left := until - time.monotonic()) > 0:
                self._take(left)

    def resize(self, columns: int, lines: int) -> None:
        self._screen.resize(lines, columns)
        self._set_size(columns, lines)

    def draw_over(self) -> None:
        """What a shell does meanwhile: nothing of the program is left on the screen."""
        self._screen.reset()

    def hold_back(self, timeout_s: float = 30) -> None:
        """Read nothing and make the program draw, until it can do nothing but wait for this terminal."""
        program = psutil.Process(self.process.pid)
        columns, lines = self._screen.columns, self._screen.lines
        deadline = time.monotonic() + timeout_s
        used_s = math.inf
        while used_s > 0.01:
            assert time.monotonic() < deadline, f"it still draws after {timeout_s} s"
            before_s = sum(program.cpu_times()[:2])
            for size in ((columns - 1, lines), (columns, lines)):
                self._set_size(*size)
                time.sleep(0.25)
            used_s = sum(program.cpu_times()[:2]) - before_s

    def hang_up(self) -> None:
        """The connection is lost: the master side goes away, and the kernel tells the session."""
        os.close(self._slave)
        os.close(self._master)
        self._slave = self._master = -1

    def _set_size(self, columns: int, lines: int) -> None:
        """The kernel tells the program of it."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    # ------------------------------------------------------------ afterwards

    @property
    def is_restored(self) -> bool:
        """Line editing back, cursor shown, every mode off that was switched on."""
        last = self.received.rfind
        modes_off = all(last(b"\x1b[?%dl" % mode) >= last(b"\x1b[?%dh" % mode) for mode in _MODES_OFF)
        cursor_shown = last(b"\x1b[?25h") > last(b"\x1b[?25l")
        keyboard_plain = last(b"\x1b[<u") >= last(b"\x1b[>")
        attributes = termios.tcgetattr(self._slave)
        return modes_off and cursor_shown and keyboard_plain and attributes == self._attributes_before
