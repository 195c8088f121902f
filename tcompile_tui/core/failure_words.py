"""A failure in the words of one line, and what to do about it."""

from __future__ import annotations

import re

from tcompile_tui.core import events as ev

_MAX_CHARS = 300
_EXPLANATION = re.compile(r"^\s*Explanation: (.+)$", re.M)
# Where torch writes a stack into its message: a compiled frame of the user's is in no traceback.
_PLACE = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>[0-9]+), in ')
_LIBRARY = ("site-packages", "dist-packages")
_STACK = "Stack trace:"
_OVERWRITTEN = "overwritten by a subsequent run"


def failure_text(failure: ev.WorkerFailed) -> str:
    """One line: what, and where."""
    text = ": ".join(part for part in (failure.error_type, _reason(failure.message)) if part)
    place = failure_place(failure)
    words = (text or "failed without a message")[:_MAX_CHARS]
    return f"{words} ({place[0]}:{place[1]})" if place is not None and place[0] not in words else words


def failure_advice(failure: ev.WorkerFailed) -> str:
    """The next step of someone whose mode failed."""
    if _OVERWRITTEN in failure.message:
        return "clone what the model returns if you keep it beyond the next step, or use mode default"
    advice = {
        "memory": "use smaller inputs, or a mode without cudagraphs (default)",
        "environment": "run tcompile-tui doctor: it names what is missing here",
        "compiler": "try another mode, or keep what cannot be compiled out of it with torch.compiler.disable; the whole"
        " traceback is in tracebacks.txt of the run folder",
        "program": "this is a fault of tcompile-tui: report it with tracebacks.txt of the run folder",
    }
    return advice.get(failure.fault, "the whole traceback is in tracebacks.txt of the run folder")


def _reason(message: str) -> str:
    """The first line, without the stack that may follow in it; with torch's explanation where it gives one."""
    lines = message.strip().splitlines()
    first = lines[0].partition(_STACK)[0].strip() if lines else ""
    explanation = _EXPLANATION.search(message)
    return f"{first}: {explanation[1].strip()}" if explanation is not None and first else first


def failure_place(failure: ev.WorkerFailed) -> tuple[str, int] | None:
    """File and line of the user's code; 0 where the line is not known."""
    if failure.file:
        return (failure.file, failure.line or 0)
    found = [place for place in _PLACE.finditer(failure.message) if not any(word in place["file"] for word in _LIBRARY)]
    return (found[-1]["file"], int(found[-1]["line"])) if found else None
