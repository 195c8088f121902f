"""What comes from outside: the end of the program, the loss of its terminal, a pause."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from textual.app import App

# How long leaving in good order may take. A lost terminal takes no more writes, and Textual would wait for ever.
_MOST_S = {signal.SIGHUP: 1.0, signal.SIGTERM: 5.0}


class Signals:
    """SIGHUP and SIGTERM end `app` with the terminal as it was; SIGTSTP gives the terminal to the shell, and SIGCONT
    takes it back. A run that was started is in a session of its own, so none of them reaches it.

    Make it on the app's loop. The loop's own handlers would not do: they wait with the loop while the terminal takes
    nothing. Nor would Textual's: any SIGCONT makes it start its threads once more, and it then never ends."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._loop = asyncio.get_running_loop()
        self._leaving = False
        self._stopped = False
        for number in _MOST_S:
            signal.signal(number, self._leave)
        signal.signal(signal.SIGTSTP, self._stop)
        signal.signal(signal.SIGCONT, self._go_on)

    def _leave(self, number: int, _frame: FrameType | None) -> None:
        self._leaving = True
        status = 128 + number
        backstop = threading.Timer(_MOST_S[signal.Signals(number)], os._exit, (status,))
        backstop.daemon = True
        backstop.start()
        self._soon(lambda: self._app.exit(return_code=status))

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._soon(self._stop_here)

    def _stop_here(self) -> None:
        self._stopped = True
        with self._app.suspend():
            os.kill(os.getpid(), signal.SIGSTOP)
        self._stopped = False

    def _go_on(self, _number: int, _frame: FrameType | None) -> None:
        if not self._stopped and not self._leaving:
            self._soon(self._take_terminal_again)

    def _take_terminal_again(self) -> None:
        """It was stopped without a chance to leave the terminal; the shell may have changed it since."""
        with self._app.suspend():
            pass

    def _soon(self, action: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the program ends already
            self._loop.call_soon_threadsafe(action)
