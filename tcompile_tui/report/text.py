"""The verdict as plain text for a terminal or a log."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from tcompile_tui.core.breakeven import BreakEven
from tcompile_tui.core.findings import Finding, Severity, speedup_text
from tcompile_tui.core.results import ModeResult, planned_gain
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import count, duration, milliseconds, percent, size
from tcompile_tui.core.verdict import JudgedMode, Verdict

_MARKS = {Severity.BLOCKER: "!!", Severity.WARNING: "! ", Severity.ADVICE: "> ", Severity.NOTE: "- "}
_HORIZONS = (("1 h", 3_600.0), ("24 h", 86_400.0), ("1 week", 604_800.0))


def verdict_text(state: RunState, verdict: Verdict, folder: Path | None = None, width: int = 79) -> str:
    """The whole answer: decision, figures by mode, findings, and what to paste."""
    lines = [verdict.decision.value, *_wrap(verdict.headline, width, ""), ""]
    measured = [judged for judged in verdict.modes if judged.result.speedup is not None]
    for judged in measured:
        lines += [*_mode_lines(judged, width), ""]
    if verdict.findings:
        for finding in verdict.findings:
            lines += _finding_lines(finding, width)
        lines.append("")
    if verdict.paste_line is not None:
        lines += [f"paste: {verdict.paste_line}", ""]
    if state.run is not None:
        lines.append(f"torch {state.run.torch_version} on {state.run.device_name}, Python at {state.run.python}")
    if folder is not None:
        lines.append(f"run folder: {folder}")
    return "\n".join(lines).rstrip() + "\n"


def _mode_lines(judged: JudgedMode, width: int) -> Iterator[str]:
    result = judged.result
    decision = judged.decision.value if judged.decision is not None else result.status.value
    yield f"{result.mode.value}: {decision}" + (f" ({judged.reason})" if judged.reason else "")
    eager = milliseconds(result.eager_ms * 1e6 if result.eager_ms is not None else None)
    compiled = milliseconds(result.compiled_ms * 1e6 if result.compiled_ms is not None else None)
    pairs = f", {result.speedup.pairs} pairs" if result.speedup is not None else ""
    yield f"  speedup    {speedup_text(result)}: {eager} eager, {compiled} compiled{pairs}"
    yield f"  cold start {_start_line(result, cold=True)}"
    yield f"  warm start {_start_line(result, cold=False)}"
    yield f"  saves      {_horizons(result)}"
    yield (
        f"  compiler   {count(result.graphs)} graphs, {count(result.graph_breaks)} graph breaks,"
        f" {count(result.recompiles)} recompiles"
    )
    agreement = result.accuracy.agreement.value if result.accuracy is not None else "n/a"
    yield f"  outputs    {agreement}" + (
        f": {result.accuracy.detail}" if result.accuracy and result.accuracy.detail else ""
    )
    eager_peak, compiled_peak = size(result.eager_peak_memory_bytes), size(result.peak_memory_bytes)
    yield f"  memory     {eager_peak} eager, {compiled_peak} compiled, at the peak"


def _start_line(result: ModeResult, cold: bool) -> str:
    start = result.cold_start if cold else result.warm_start
    found = result.break_even_cold if cold else result.break_even_warm
    text = duration(start.total_s if start is not None else None)
    return f"{text}, paid back after {_break_even(found, result)}"


def _break_even(found: BreakEven | None, result: ModeResult) -> str:
    if found is None:
        return "n/a"
    if found.steps is None:
        return "no number of steps"
    upper = count(found.hi) if found.hi is not None else "never"
    wall = duration(found.steps * result.eager_mean_ms / 1e3) if result.eager_mean_ms is not None else "n/a"
    return f"{count(found.steps)} steps ({count(found.lo)} to {upper}; {wall} of eager steps)"


def _horizons(result: ModeResult) -> str:
    """The share of the time saved in runs of some usual lengths, one cold start paid in each."""
    if not result.eager_mean_ms:
        return "n/a"
    parts = [
        f"{percent(planned_gain(result, seconds * 1e3 / result.eager_mean_ms))} of {name}"
        for name, seconds in _HORIZONS
    ]
    return ", ".join(parts)


def _finding_lines(finding: Finding, width: int) -> Iterator[str]:
    mark = _MARKS[finding.severity]
    place = f" [{short_path(finding.file)}:{finding.line}]" if finding.file else ""
    yield from _wrap(f"{mark} {finding.title}{place}", width, "   ")
    for label, text in (("", finding.evidence), ("-> ", finding.advice), ("see ", finding.link or "")):
        if text:
            yield from _wrap(f"   {label}{text}", width, "   ")


def short_path(file: str) -> str:
    """Relative to the working directory where the file lies below it."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def _wrap(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]
