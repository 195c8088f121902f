"""What the model prints, as it prints it."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import BinaryIO

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Log, Static

from tcompile_tui.ui.widgets.literal import printed_lines
from tcompile_tui.ui.widgets.live_panel import cut, name_pane

_TAIL_BYTES = 64_000
_MOST_BYTES_A_LOOK = 10_000
_MOST_LINE_CHARS = 1_000
_LINES_KEPT = 2_000


class LogTail:
    """Lines that were appended to a file since the last look, from near its end on; `pending` is the line that is
    still being written, for example a progress bar."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def pending(self) -> str:
        return printed_lines(self._rest)[0][:_MOST_LINE_CHARS]

    def read(self, most_bytes: int = _MOST_BYTES_A_LOOK) -> list[str]:
        """The next whole lines; none while the file does not exist."""
        try:
            if self._file is None:
                self._file = self._path.open("rb")
                self._file.seek(max(0, self._file.seek(0, 2) - _TAIL_BYTES))
            chunk = self._file.read(most_bytes)
        except OSError:
            return []
        *lines, rest = (self._rest + self._decoder.decode(chunk)).split("\n")
        # Of a line without an end (a progress bar that overwrites itself) the last state is enough.
        self._rest = rest[-_MOST_BYTES_A_LOOK:]
        return [printed_lines(line)[0][:_MOST_LINE_CHARS] for line in lines]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class LogPanel(Vertical):
    """The end of the run's log. `look` reads what is new."""

    DEFAULT_CSS = """
    LogPanel > Log { height: 1fr; background: $background; overflow: auto; scrollbar-size: 1 1; }
    LogPanel > Log:focus { background-tint: $foreground 0%; }
    LogPanel > Static { height: 1; display: none; text-wrap: nowrap; text-overflow: clip; }
    LogPanel > Static.-told { display: block; }
    LogPanel.-ascii > Log { scrollbar-size: 0 0; }
    """

    def __init__(
        self, path: Path, *, ascii_only: bool = False, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._tail = LogTail(path)
        self._ascii_only = ascii_only
        self._told = False
        self.set_class(ascii_only, "-ascii")

    def compose(self) -> ComposeResult:
        yield Log(max_lines=_LINES_KEPT)
        yield Static(markup=False)

    def on_unmount(self) -> None:
        self._tail.close()

    def look(self) -> None:
        """Show what was printed since the last look, a bounded part at a time."""
        name_pane(self, "what the model prints", self._ascii_only)
        lines = self._tail.read()
        if lines:
            self._told = True
            self.query_one(Log).write_lines([self._plain(line) for line in lines])
        pending = self._tail.pending
        text = self._plain(pending) if pending or self._told else "nothing yet"
        status = self.query_one(Static)
        status.set_class(bool(text), "-told")
        text = cut(text, status.size.width or 80, self._ascii_only)
        if text != str(status.content):
            status.update(text, layout=False)

    def _plain(self, text: str) -> str:
        return text.encode("ascii", "backslashreplace").decode("ascii") if self._ascii_only else text
