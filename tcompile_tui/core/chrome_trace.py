"""The compiler's stages as a Chrome trace, which Perfetto and chrome://tracing open.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format), JSON
object form, times in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tcompile_tui.core import events as ev

_MICROSECONDS = 1e6


def chrome_trace(events: Iterable[ev.Event]) -> dict[str, Any]:
    """One trace process for each worker, one trace thread for each of its threads; breaks and recompiles are marks."""
    entries: list[dict[str, Any]] = []
    open_spans: dict[tuple[int, int], list[dict[str, Any]]] = {}
    last_s: dict[int, float] = {}
    for event in events:
        last_s[event.process] = event.t_s
        if isinstance(event, ev.PhaseStarted):
            name = f"{event.phase.value} {event.mode.value if event.mode else ''}".strip()
            entries.append({"ph": "M", "name": "process_name", "pid": event.process, "tid": 0, "args": {"name": name}})
        elif isinstance(event, ev.CompileSpan):
            _span(event, entries, open_spans.setdefault((event.process, event.thread), []))
        elif isinstance(event, (ev.GraphBreak, ev.Recompiled, ev.GraphCaptured, ev.CacheLookup)):
            entries.append(_mark(event))
    for (process, _), stack in open_spans.items():  # a process that was killed leaves its stages open
        for entry in stack:
            _close(entry, last_s[process])
    return {"traceEvents": entries, "displayTimeUnit": "ms"}


def _span(event: ev.CompileSpan, entries: list[dict[str, Any]], stack: list[dict[str, Any]]) -> None:
    if event.begins:
        entry = {
            "ph": "X",
            "name": event.stage_name,
            "cat": event.stage.value,
            "pid": event.process,
            "tid": event.thread,
            "ts": event.t_s * _MICROSECONDS,
            "args": {"compile_id": event.compile_id or "", "stage": event.stage.value},
        }
        entries.append(entry)
        stack.append(entry)
        return
    for depth in range(len(stack) - 1, -1, -1):
        if stack[depth]["name"] == event.stage_name:
            for entry in stack[depth:]:
                _close(entry, event.t_s)
            del stack[depth:]
            return


def _close(entry: dict[str, Any], t_s: float) -> None:
    entry["dur"] = max(0.0, t_s * _MICROSECONDS - entry["ts"])


def _mark(event: ev.GraphBreak | ev.Recompiled | ev.GraphCaptured | ev.CacheLookup) -> dict[str, Any]:
    if isinstance(event, ev.GraphBreak):
        name, details = f"graph break {event.file}:{event.line}", {"reason": event.reason}
    elif isinstance(event, ev.Recompiled):
        name, details = "recompile", {"guards": "; ".join(failure.guard for failure in event.failures)}
    elif isinstance(event, ev.GraphCaptured):
        name, details = "graph captured", {"ops": str(event.ops)}
    else:
        name, details = f"{event.cache.value} cache {event.outcome.value}", {"reason": event.reason or ""}
    place = {"pid": event.process, "tid": 0, "ts": event.t_s * _MICROSECONDS}
    return {"ph": "i", "s": "p", "name": name, "cat": event.kind, **place, "args": details}
