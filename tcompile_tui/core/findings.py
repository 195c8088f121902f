"""Causes and advice: what a person should know beside the figures, each with its evidence and its next step."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tcompile_tui.core import events as ev
from tcompile_tui.core.accuracy import Agreement
from tcompile_tui.core.compile_log import BreakSite, CompileLog
from tcompile_tui.core.results import ModeResult, ModeStatus
from tcompile_tui.core.spec import Mode, Phase, Preset
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import percent, plural, ratio, size

_MIN_BIG_GPU_SMS = 68  # torch._inductor.utils.is_big_gpu
_MEMORY_UP = 1.10
_THROTTLES = ("thermal", "slowdown", "brake")
_BUSY_OTHER_PERCENT = 2.0
_HOST_MOVED = 1.15
_MAX_WARNINGS = 3


class Severity(str, enum.Enum):
    """How much a finding matters, worst first. A BLOCKER keeps the decision from being ENABLE."""

    BLOCKER = "blocker"
    WARNING = "warning"
    ADVICE = "advice"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One cause. `id` is stable and names the kind; `file` and `line` are the user's own code.
    `mode` is set where only that mode's decision is touched."""

    id: str
    severity: Severity
    title: str
    evidence: str = ""
    advice: str = ""
    file: str | None = None
    line: int | None = None
    link: str | None = None
    mode: Mode | None = None


def find_causes(state: RunState, results: Sequence[ModeResult]) -> tuple[Finding, ...]:
    """All findings of a run, worst first, each cause once."""
    found = {
        (finding.id, finding.title, finding.evidence, finding.file, finding.line): finding
        for rule in _RULES
        for finding in rule(state, results)
    }
    order = list(Severity)
    return tuple(sorted(found.values(), key=lambda finding: order.index(finding.severity)))


def _logs(state: RunState) -> Iterator[CompileLog]:
    """The compiler's log of every cold process: there each cause is told once."""
    return (process.compile for process in state.processes.values() if process.phase is Phase.COLD)


# ---------------------------------------------------------------- the compiled program


def _modes_without_result(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    titles = {
        ModeStatus.FAILED: "failed",
        ModeStatus.NOT_FINISHED: "was not finished",
        ModeStatus.NOT_RUN: "was not run",
        ModeStatus.RAN_EAGER: "compiled nothing",
    }
    for result in results:
        if result.status in titles:
            yield Finding(
                f"mode-{result.status.name.lower().replace('_', '-')}",
                Severity.NOTE if result.status is ModeStatus.NOT_RUN else Severity.WARNING,
                f"{result.mode.value} {titles[result.status]}",
                evidence=result.reason,
                advice="give it more time with --budget" if result.status is ModeStatus.NOT_FINISHED else "",
            )


def _dropped_frames(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for log in _logs(state):
        for frame in log.dropped_frames:
            yield Finding(
                "frame-runs-eager",
                Severity.WARNING,
                f"{frame.function or 'a function'} was not compiled at all and runs eager",
                evidence=(frame.fail_reason or "").strip().partition("\n")[0],
                advice="remove what Dynamo cannot trace, or move it out of this function",
                file=frame.file,
                line=frame.line,
            )


def _graph_breaks(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for log in _logs(state):
        for site in log.break_sites.values():
            yield _describe_break(site)


def _describe_break(site: BreakSite) -> Finding:
    first = site.first
    return Finding(
        "graph-break",
        Severity.ADVICE,
        f"graph break: {first.reason.strip().partition(chr(10))[0] or 'no reason given'}",
        evidence=first.source or first.explanation or "",
        advice=first.hints[0] if first.hints else "",
        file=first.file,
        line=first.line,
        link=first.url,
    )


def _recompiles(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for log in _logs(state):
        for hit in log.limit_hits:
            yield Finding(
                "recompile-limit",
                Severity.WARNING,
                "the recompile limit was hit: what is not compiled yet runs eager from now on",
                evidence=hit.text.strip().partition("\n")[0],
                advice="make the value that changes a tensor, or mark the size dynamic",
            )
        for recompile in log.recompiles[:1] if log.recompile_count else ():
            guard = recompile.failures[0].guard if recompile.failures else "no guard was named"
            yield Finding(
                "recompiles",
                Severity.ADVICE,
                f"compiled again {plural(log.recompile_count, 'time')} because a guard failed",
                evidence=guard,
                advice="keep what the guard checks constant, or mark it dynamic (torch._dynamo.mark_dynamic)",
            )
        for dynamic in log.dynamic_shapes[:1]:
            yield Finding(
                "dynamic-shapes",
                Severity.NOTE,
                f"{dynamic.name} became a dynamic size ({dynamic.old or '?'} -> {dynamic.new or '?'})",
            )


def _cudagraphs(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for process in state.processes.values():
        wants_graphs = process.mode in (Mode.REDUCE_OVERHEAD, Mode.MAX_AUTOTUNE)
        if process.phase is not Phase.COLD or not wants_graphs:
            continue
        for reason in process.compile.cudagraph_skips:
            yield Finding(
                "cudagraphs-skipped",
                Severity.ADVICE,
                "no cudagraph for a part of the model",
                evidence=reason[:300],
            )


def _fallback_ops(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for log in _logs(state):
        if log.fallback_ops:
            names = ", ".join(sorted(log.fallback_ops)[:6])
            yield Finding("fallback-ops", Severity.NOTE, f"operators that Inductor does not fuse: {names}")


def _compiler_warnings(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    warnings = [warning.text.strip() for log in _logs(state) for warning in log.warnings]
    # The recompile limit has a finding of its own.
    texts = dict.fromkeys(text.partition("\n")[0][:300] for text in warnings if "recompile_limit" not in text)
    for text in list(texts)[:_MAX_WARNINGS]:
        yield Finding("compiler-warning", Severity.NOTE, f"the compiler warns: {text}")


def _accuracy(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    severity = {
        Agreement.DIFFERENT: Severity.BLOCKER,
        Agreement.UNCERTAIN: Severity.WARNING,
        Agreement.RANDOM: Severity.NOTE,
    }
    for result in results:
        accuracy = result.accuracy
        if accuracy is not None and accuracy.agreement in severity:
            yield Finding(
                f"outputs-{accuracy.agreement.name.lower()}",
                severity[accuracy.agreement],
                f"{result.mode.value}: {accuracy.path or 'the output'} is {accuracy.agreement.value}",
                evidence=accuracy.detail,
                advice="compare the model's metric with and without compile before you rely on it",
                mode=result.mode,
            )


def _memory(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    on_gpu = any(p.memory and any(m.steady_reserved_bytes for m in p.memory.values()) for p in state.processes.values())
    for result in results:
        compiled, eager = result.peak_memory_bytes, result.eager_peak_memory_bytes
        if on_gpu and compiled and eager and compiled > _MEMORY_UP * eager:
            yield Finding(
                "memory-up",
                Severity.WARNING,
                f"{result.mode.value} needs {size(compiled - eager)} more GPU memory at its peak",
                evidence=f"{size(eager)} eager, {size(compiled)} compiled",
            )


# ---------------------------------------------------------------- the measurement


def _noise(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    compared = [result for result in results if result.speedup is not None]
    for result in compared:
        if result.host_contended:
            yield Finding(
                "host-contended",
                Severity.WARNING,
                f"{result.mode.value}: other work on this machine disturbed most of the comparison",
                evidence="the timing thread was kept from running for more than 3 % of the time in most pairs",
                advice="measure again on an idle machine",
            )
        if result.steadiness is ev.Steadiness.NOISE_LIMITED:
            yield Finding(
                "noise-limited",
                Severity.NOTE,
                f"{result.mode.value}: step times never settled; the comparison rests on neighbouring blocks alone",
            )
        if result.ratio_drifted:
            yield Finding(
                "ratio-drifted",
                Severity.WARNING,
                f"{result.mode.value}: the speedup itself moved while it was measured",
                advice="measure longer (--preset thorough)",
            )
        if result.compiles_while_measuring:
            yield Finding(
                "compiled-while-measuring",
                Severity.WARNING,
                f"{result.mode.value}: the compiler worked while its steps were measured",
                evidence=f"in {plural(result.compiles_while_measuring, 'step')}; their pairs were left out",
            )
        if result.warm_cache_hits == 0 and result.warm_cache_misses:
            yield Finding(
                "warm-start-was-cold",
                Severity.NOTE,
                f"{result.mode.value}: the second start found nothing in the compile caches",
                evidence=f"{plural(result.warm_cache_misses, 'miss')}, no hit",
            )
    if compared and state.run is not None and state.run.spec.preset in (Preset.QUICK, Preset.SMOKE):
        yield Finding(
            "one-process",
            Severity.NOTE,
            "one process was measured: another process of the same program may differ by about 1 %",
            advice="use --preset thorough for small gains",
        )


def _host_speed(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for result in results:
        host = result.host_dependence
        if host is not None and host.slowest_eager_ms > _HOST_MOVED * host.fastest_eager_ms:
            fastest, slowest = host.fastest_eager_ms, host.slowest_eager_ms
            yield Finding(
                "host-speed-moved",
                Severity.WARNING,
                f"{result.mode.value}: the speedup hangs on how fast this machine's CPU is, and that moved",
                evidence=f"eager waits for the CPU and took {fastest:.3g} to {slowest:.3g} ms a step in this run;"
                f" at its fastest the speedup is about {ratio(host.speedup_at_fastest)}",
                advice="count on the smaller figure, or measure again on an idle machine",
                mode=result.mode,
            )


def _gpu(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    samples = list(state.gpu)
    throttled = [
        s for s in samples if s.throttle_reasons and any(w in r for r in s.throttle_reasons for w in _THROTTLES)
    ]
    if throttled:
        yield Finding(
            "gpu-throttled",
            Severity.WARNING,
            f"the GPU was throttled in {percent(len(throttled) / len(samples))} of the samples",
            evidence=", ".join(sorted({reason for s in throttled for reason in s.throttle_reasons or ()})),
            advice="check cooling and power, then measure again",
        )
    busy = [s.other_utilisation_percent for s in samples if s.other_utilisation_percent is not None]
    if busy and median(busy) > _BUSY_OTHER_PERCENT:
        yield Finding(
            "gpu-shared",
            Severity.BLOCKER,
            "another process computed on this GPU during the measurement",
            evidence=f"{median(busy):.0f} % of its time in the median",
            advice="measure on a free GPU (--device cuda:N)",
        )
    held = [s.other_memory_bytes for s in samples if s.other_memory_bytes]
    if held:
        yield Finding("gpu-memory-held", Severity.NOTE, f"other processes hold {size(max(held))} of this GPU's memory")


# ---------------------------------------------------------------- settings


def _settings(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    facts = next((p.facts for p in reversed(state.processes.values()) if p.facts is not None), None)
    model = next((p.model for p in reversed(state.processes.values()) if p.model is not None), None)
    if facts is None or facts.sm_count is None:
        return
    spec = state.run.spec if state.run is not None else None
    in_float32 = spec is not None and spec.amp is None and spec.dtype in (None, "float32")
    halves = model is not None and any(tensor.dtype in ("float16", "bfloat16") for tensor in model.inputs)
    if in_float32 and not halves and facts.matmul_precision == "highest":
        yield Finding(
            "tf32-off",
            Severity.ADVICE,
            "float32 matrix products run without tensor cores, in both arms",
            evidence="torch.get_float32_matmul_precision() is 'highest'",
            advice="torch.set_float32_matmul_precision('high') if your model allows TF32; then measure again",
        )
    autotuned = any(result.mode.value.startswith("max-autotune") for result in results)
    if autotuned and facts.sm_count < _MIN_BIG_GPU_SMS:
        yield Finding(
            "too-few-sms",
            Severity.NOTE,
            f"max-autotune does not tune matrix products on this GPU ({facts.sm_count} of {_MIN_BIG_GPU_SMS} SMs)",
        )


def _partly_compiled(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    eager = state.process_of(Phase.EAGER)
    if eager is not None and eager.compile.compiler_active:
        yield Finding(
            "already-compiled",
            Severity.WARNING,
            "the model already compiles a part of itself: the eager arm is your current code (partly compiled)",
            advice="take torch.compile out of the model file to compare with plain eager",
        )


def _left_behind(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    left = sum(p.ended.reclaimed for p in state.processes.values() if p.ended is not None)
    killed = [p for p in state.processes.values() if p.ended is not None and "had to be killed" in p.ended.detail]
    if left or killed:
        yield Finding(
            "process-left-behind",
            Severity.NOTE,
            f"the model's processes did not end by themselves: {plural(left + len(killed), 'process')} killed",
        )


def speedup_text(result: ModeResult) -> str:
    """`1.71x (1.69x to 1.73x)`."""
    if result.speedup is None:
        return ratio(None)
    return f"{ratio(result.speedup.value)} ({ratio(result.speedup.lo)} to {ratio(result.speedup.hi)})"


_Rule = Callable[[RunState, Sequence[ModeResult]], Iterator[Finding]]
_RULES: tuple[_Rule, ...] = (
    _accuracy, _modes_without_result, _dropped_frames, _graph_breaks, _recompiles, _cudagraphs, _fallback_ops,
    _compiler_warnings, _memory, _noise, _host_speed, _gpu, _settings, _partly_compiled, _left_behind,
)  # fmt: skip
