"""The verdict as plain text for a terminal or a log."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from tcompile_tui.core.answer_time import first_answer_s
from tcompile_tui.core.breakeven import BreakEven
from tcompile_tui.core.compile_log import CompilePart
from tcompile_tui.core.decode_results import DecodeSpeed
from tcompile_tui.core.end_to_end import data_text
from tcompile_tui.core.energy import StepEnergy
from tcompile_tui.core.findings import Finding, Severity, speedup_text
from tcompile_tui.core.headroom import DeviceTimes, Headroom
from tcompile_tui.core.literal import literal
from tcompile_tui.core.projections import HORIZONS_HOURS
from tcompile_tui.core.results import ModeResult, StepProof, planned_gain
from tcompile_tui.core.serve_results import Serving
from tcompile_tui.core.shape_results import ShapeResults
from tcompile_tui.core.spec import Arm
from tcompile_tui.core.state import RunState
from tcompile_tui.core.step_spec import step_text
from tcompile_tui.core.units import MISSING, count, duration, joules, milliseconds, percent, plural, ratio, size
from tcompile_tui.core.verdict import JudgedMode, Verdict
from tcompile_tui.report.shape_table import shape_notes, shape_text

_MARKS = {Severity.BLOCKER: "!!", Severity.WARNING: "! ", Severity.ADVICE: "> ", Severity.NOTE: "- "}
_NO_BREAK = "\xa0"
_UNITS = "%|(?:[num]?s|min|h|days?|weeks?|years?|[KMGT]?i?B|MHz|W|million|billion|trillion|steps?|pairs?)\\b"
_BEFORE_UNIT = re.compile(rf"(?<=\d) (?={_UNITS})")
_FIGURES_INDENT = 13


def verdict_text(state: RunState, verdict: Verdict, folder: Path | None = None, width: int = 79) -> str:
    """The whole answer: decision, figures by mode, findings, and what to paste. Safe to print."""
    lines = [verdict.decision.value, *_wrap(verdict.headline, width, ""), ""]
    measured = [judged for judged in verdict.modes if judged.result.speedup is not None]
    for judged in measured:
        lines += [*_mode_lines(judged, width, verdict.usual_text)]
        if not judged.result.mode.is_plain:
            lines.append(f"  {'as code':<{_FIGURES_INDENT - 2}}{verdict.line_for(judged)}")
        lines.append("")
    if verdict.shapes is not None:
        lines += [*_shape_lines(verdict.shapes, width), ""]
    if verdict.findings:
        for finding in verdict.findings:
            lines += _finding_lines(finding, width)
        lines.append("")
    if verdict.paste_line is not None:
        lines += [f"paste: {verdict.paste_line}", ""]
    if state.run is not None:
        step = step_text(state.run.spec.step, state.run.spec.amp)
        lines += _wrap(f"step: {step}", width, "") if step else []
        lines.append(f"torch {state.run.torch_version} on {state.run.device_name}, Python at {state.run.python}")
    answered_s = first_answer_s(state, verdict)
    if answered_s is not None:
        lines.append(f"first safe answer after {duration(answered_s)}")
    if folder is not None:
        lines.append(f"run folder: {folder}")
    return literal("\n".join(lines)).rstrip() + "\n"


def _shape_lines(shapes: ShapeResults, width: int) -> Iterator[str]:
    first, *others = shape_notes(shapes)
    yield from _wrap(first, width, "")
    yield from (f"  {line}" for line in shape_text(shapes))
    for note in others:
        yield from _wrap(f"  {note}", width, "  ")


def _mode_lines(judged: JudgedMode, width: int, at: str) -> Iterator[str]:
    result = judged.result
    decision = judged.decision.value if judged.decision is not None else result.status.value
    yield from _wrap(
        f"{result.mode.value}{at}: {decision}" + (f" ({judged.reason})" if judged.reason else ""), width, "  "
    )
    for label, text in _figures(result):
        yield from _wrap(f"  {label:<{_FIGURES_INDENT - 2}}{text}", width, " " * _FIGURES_INDENT)


def _figures(result: ModeResult) -> Iterator[tuple[str, str]]:
    eager = milliseconds(result.eager_ms * 1e6 if result.eager_ms is not None else None)
    compiled = milliseconds(result.compiled_ms * 1e6 if result.compiled_ms is not None else None)
    pairs = f", {compared_text(result)}" if result.speedup is not None else ""
    yield "speedup", f"{speedup_text(result)}: {eager} eager, {compiled} compiled{pairs}"
    if result.data is not None and result.speedup is not None:
        yield "end to end", f"{speedup_text(result.end_to_end)} with {data_text(result.data)}"
    if result.device_times is not None and result.device_ratio_differs:
        yield "GPU alone", _device_text(result.device_times)
    if result.headroom is not None:
        yield "headroom", _headroom_text(result.headroom)
    if result.serving is not None:
        yield "first", _first_request_text(result.serving)
    if result.decode is not None:
        yield "decoding", _decode_text(result, result.decode)
    if result.latency:
        yield "latency", _latency_text(result)
    if result.energy is not None:
        yield "energy", _energy_text(result.energy)
    yield "cold start", _start_text(result, cold=True)
    yield "warm start", _start_text(result, cold=False)
    yield "saves", _horizons(result)
    counts = ((result.graphs, "graph"), (result.graph_breaks, "graph break"), (result.recompiles, "recompile"))
    yield (
        "compiler",
        ", ".join(plural(number, noun) if number is not None else f"{MISSING} {noun}s" for number, noun in counts),
    )
    for name, parts in (("compiling", result.forward_compile_s), ("backward", result.backward_compile_s)):
        if parts:
            yield name, _parts_text(parts)
    if result.proof is not None:
        yield "every step", _proof_text(result.proof)
    agreement = result.accuracy.agreement.value if result.accuracy is not None else MISSING
    detail = f": {result.accuracy.detail}" if result.accuracy is not None and result.accuracy.detail else ""
    yield "outputs", agreement + detail
    eager_peak, compiled_peak = size(result.eager_peak_memory_bytes), size(result.peak_memory_bytes)
    if result.fit is not None:
        yield (
            "batch",
            f"at most {result.fit.eager.text} eager, {result.fit.compiled.text} compiled: {result.fit.gain_text}",
        )
    yield "memory", f"{eager_peak} eager, {compiled_peak} compiled, at the peak"


def compared_text(result: ModeResult) -> str:
    """What the speedup rests on."""
    if result.apart is not None:
        return result.apart.text
    return plural(result.speedup.pairs, "pair") if result.speedup is not None else MISSING


def _device_text(times: DeviceTimes) -> str:
    eager, compiled = milliseconds(1e6 * times.eager_ms), milliseconds(1e6 * times.compiled_ms)
    return f"{ratio(times.ratio)} in the time that it computes: {eager} eager, {compiled} compiled"


def _headroom_text(found: Headroom) -> str:
    shares = f"the GPU waits {percent(found.idle_share)} of its step, {percent(found.fusible_share)} can be fused"
    return f"room for about {ratio(found.ratio)} here, by a profile of eager: {shares}"


def _energy_text(found: StepEnergy) -> str:
    """Of one step."""
    share = found.saved_share
    if share is None:
        return f"{MISSING}: {found.reason}"
    change = f"{percent(share)} less" if share >= 0 else f"{percent(-share)} more"
    condition = "" if found.others_known else ", if nothing else used the GPU"
    return f"{joules(found.eager_j)} eager, {joules(found.compiled_j)} compiled, {change} (to 5 %{condition})"


def _first_request_text(found: Serving) -> str:
    eager, cold, kept = map(duration, (found.first_eager_s, found.first_cold_s, found.first_warm_s))
    return f"request: {eager} eager, {cold} compiled, {kept} on kept caches"


def _decode_text(result: ModeResult, found: DecodeSpeed) -> str:
    sequences = plural(found.sequences, "sequence")
    words = f"{sequences}, a prompt of {count(found.prompt_tokens)} tokens, then {count(found.new_tokens)}"
    recompiled = f"; {plural(result.recompiles, 'recompile')} on the way" if result.recompiles else ""
    return f"{words}: {found.text(Arm.EAGER)} eager, {found.text(Arm.COMPILED)} compiled{recompiled}"


def _latency_text(result: ModeResult) -> str:
    """Of one step that is waited for."""

    def of(arm: Arm) -> str:
        found = result.latency.get(arm)
        half = milliseconds(found.p50_ms * 1e6 if found is not None else None)
        p99 = found.p99_ms * 1e6 if found is not None and found.p99_ms is not None else None
        return f"{half} (p99 {milliseconds(p99)})"

    return f"{of(Arm.EAGER)} eager, {of(Arm.COMPILED)} compiled, each step waited for"


def _parts_text(parts: Mapping[CompilePart, float]) -> str:
    """The seconds of a compile, without what nested stages took: the largest part first."""
    largest_first = sorted(parts.items(), key=lambda item: -item[1])
    return f"{duration(sum(parts.values()))}: " + ", ".join(f"{part.value} {duration(s)}" for part, s in largest_first)


def _proof_text(proof: StepProof) -> str:
    words = [plural(round(proof.program_calls), "compiled program")] if proof.program_calls is not None else []
    words += [f"guard checks {proof.guard_us:.0f} us"]
    if proof.graph_launches is not None:
        words.append(f"{plural(round(proof.graph_launches), 'cudagraph replay')}")
    if proof.kernels is not None:
        words.append(f"{plural(round(proof.kernels), 'kernel')}")
    return ", ".join(words)


def _start_text(result: ModeResult, cold: bool) -> str:
    start = result.cold_start if cold else result.warm_start
    found = result.break_even_cold if cold else result.break_even_warm
    return f"{duration(start.total_s if start is not None else None)}, {_break_even(found, result)}"


def _break_even(found: BreakEven | None, result: ModeResult) -> str:
    if found is None:
        return "break-even not known"
    if found.steps is None:
        return "never paid back"
    upper = count(found.hi) if found.hi is not None else "never"
    step_ms = result.end_to_end.eager_mean_ms
    wall = f" or {duration(found.steps * step_ms / 1e3)}" if step_ms is not None else ""
    return f"paid back after {count(found.steps)} steps ({count(found.lo)} to {upper}){wall}"


def _horizons(result: ModeResult) -> str:
    """The share of the time saved in runs of some usual lengths, one cold start paid in each."""
    step_ms = result.end_to_end.eager_mean_ms
    if not step_ms:
        return MISSING
    gains = [(name, planned_gain(result, hours * 3.6e6 / step_ms)) for name, hours in HORIZONS_HOURS.items()]
    if all(gain is not None and gain < 0 for _, gain in gains):
        (first, loss), *others = [(name, percent(-(gain or 0.0))) for name, gain in gains]
        return f"nothing: {loss} more time in {first}" + "".join(f", {loss} in {name}" for name, loss in others)
    return ", ".join(f"{percent(gain)} of {name}" for name, gain in gains)


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


def unbroken(text: str, blank: str = _NO_BREAK) -> str:
    """`blank` between every number and its unit, so that no line ends there."""
    return _BEFORE_UNIT.sub(blank, text)


def _wrap(text: str, width: int, indent: str) -> list[str]:
    lines = textwrap.wrap(
        unbroken(text), width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(_NO_BREAK, " ") for line in lines] or [""]
