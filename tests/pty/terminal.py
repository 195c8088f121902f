"""A real terminal for tests: the program on a pseudo-terminal, pyte as the emulator that a person would look at."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from select import select

import pyte

_KEYS = {"enter": "\r", "escape": "\x1b", "tab": "\t", "space": " "}
_KEYS |= {"down": "\x1b[B", "up": "\x1b[A", "right": "\x1b[C", "left": "\x1b[D"}


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
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.attributes_before = termios.tcgetattr(slave)
        self._slave = slave
        inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tcompile_tui", *arguments],
            stdin=slave, stdout=slave, stderr=slave, cwd=cwd, start_new_session=True,
            env={**inherited, "TERM": "xterm-256color", "LANG": "C.UTF-8", **(environment or {})},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )  # fmt: skip

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for fd in (self._slave, self._master):
            if fd >= 0:
                os.close(fd)

    @property
    def text(self) -> str:
        """What is on the screen now."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def read(self, seconds: float) -> None:
        """Take in what the program writes for some time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select([self._master], [], [], left)[0]:
                return
            try:
                chunk = os.read(self._master, 1 << 16)
            except OSError:
                return
            self.received += chunk
            self._stream.feed(chunk)

    def press(self, *keys: str) -> None:
        """Named keys, single letters, or whole words to type."""
        for key in keys:
            os.write(self._master, _KEYS.get(key, key).encode())
            self.read(0.1)

    def wait_for(self, condition: str | Callable[[str], bool], timeout_s: float = 20) -> None:
        """Until a text is on the screen, or the condition holds for it."""
        holds = condition if callable(condition) else lambda text: condition in text
        deadline = time.monotonic() + timeout_s
        while not holds(self.text):
            assert time.monotonic() < deadline, f"not seen in {timeout_s} s: {condition}\n{self.text}"
            assert self.process.poll() is None or holds(self.text), f"the program left\n{self.text}"
            self.read(0.2)

    def resize(self, columns: int, lines: int) -> None:
        self._screen.resize(lines, columns)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def hang_up(self) -> None:
        """The connection is lost: the master side goes away, and the kernel tells the session."""
        os.close(self._slave)
        os.close(self._master)
        self._slave = self._master = -1

    def is_restored(self) -> bool:
        """Alternate screen left, cursor shown, line editing back."""
        attributes = termios.tcgetattr(self._slave)
        last_screen = self.received.rfind(b"\x1b[?1049l") > self.received.rfind(b"\x1b[?1049h")
        return last_screen and attributes[3] == self.attributes_before[3]
