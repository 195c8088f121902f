"""What ends the program from outside: SIGTERM, and SIGHUP when the terminal is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from textual.app import App

# How long leaving in good order may take. A lost terminal takes no more writes, and Textual would wait for ever.
_MOST_S = {signal.SIGHUP: 1.0, signal.SIGTERM: 5.0}


def leave_on_signals(app: App[Any]) -> None:
    """From now on SIGHUP and SIGTERM end `app`, with the terminal as it was; a run goes on. Call it on the app's loop.

    Not the loop's own handlers: these would wait with the loop while the terminal takes nothing."""
    loop = asyncio.get_running_loop()

    def leave(number: int, _frame: FrameType | None) -> None:
        status = 128 + number
        backstop = threading.Timer(_MOST_S[signal.Signals(number)], os._exit, (status,))
        backstop.daemon = True
        backstop.start()
        with suppress(RuntimeError):  # the loop is closed: it leaves already
            loop.call_soon_threadsafe(partial(app.exit, return_code=status))

    for number in _MOST_S:
        signal.signal(number, leave)
