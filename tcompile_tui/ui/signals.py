"""What comes from outside: the end of the program, the loss of its terminal, a pause."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from textual.app import App

# How long leaving in good order may take. A lost terminal takes no more writes, and Textual would wait for ever.
_MOST_S = {signal.SIGHUP: 1.0, signal.SIGTERM: 5.0}
_TAKEN = (*_MOST_S, signal.SIGTSTP, signal.SIGCONT)


class Signals:
    """SIGHUP and SIGTERM end `app` with the terminal as it was; SIGTSTP gives the terminal to the shell, and SIGCONT
    takes it back. A run that was started is in a session of its own, so none of them reaches it.

    Make it on the app's loop. A thread hears the signals, since the main thread hears none while it waits for a
    terminal that takes nothing. Textual's own handlers would not do: any SIGCONT makes it start its threads once
    more, and it then never ends."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._loop = asyncio.get_running_loop()
        self._stopped_itself = False
        heard, told = os.pipe()
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        for number in _TAKEN:
            signal.signal(number, _nothing)
        threading.Thread(target=self._hear, args=(heard,), daemon=True, name="signals").start()

    def _hear(self, heard: int) -> None:
        while True:
            for number in os.read(heard, 64):
                if number in _MOST_S:
                    self._leave(signal.Signals(number))
                elif number == signal.SIGTSTP:
                    self._on_loop(self._stop)
                elif number == signal.SIGCONT and self._stopped_itself:
                    self._stopped_itself = False
                elif number == signal.SIGCONT:
                    self._on_loop(self._take_terminal_again)

    def _leave(self, number: signal.Signals) -> None:
        status = 128 + number
        self._on_loop(lambda: self._app.exit(return_code=status))
        time.sleep(_MOST_S[number])
        os._exit(status)

    def _stop(self) -> None:
        with self._app.suspend():
            self._stopped_itself = True
            os.kill(os.getpid(), signal.SIGSTOP)

    def _take_terminal_again(self) -> None:
        """It was stopped without a chance to leave the terminal; the shell may have changed it since."""
        with self._app.suspend():
            pass

    def _on_loop(self, action: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the program ends already
            self._loop.call_soon_threadsafe(action)


def _nothing(*_: object) -> None:
    """The signal is heard elsewhere; the default action shall not be taken."""
