"""Causes in the compiled program: what the compiler left out, compiled again, or could not capture."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tcompile_tui.core.compile_log import BreakSite, CompileLog
from tcompile_tui.core.compile_options import Regions
from tcompile_tui.core.events import Recompiled
from tcompile_tui.core.failure_words import failure_advice
from tcompile_tui.core.findings import Finding, Rule, Severity
from tcompile_tui.core.mode_status import ModeStatus
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Arm, Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import percent, plural

_MAX_WARNINGS = 3
_DIED = (
    "its last lines in log.txt of the run folder may say why; with --device cpu, or another mode, it may get through"
)
_GUARDS_MATTER = 0.05
_HOST_BOUND_SHARE = 0.9
# In Dynamo's reasons: breaks that the user's code asks for, and those at a value that leaves the device.
_ASKED_FOR = ("torch.compiler.disable", "torch._dynamo.disable", "torch._dynamo.graph_break")
_READS_A_VALUE = ("Tensor.item()", "Data-dependent branching", "Data dependent operator")


def _logs(state: RunState) -> Iterator[CompileLog]:
    """The compiler's log of every cold process: there each cause is told once."""
    return (process.compile for process in state.processes.values() if process.phase is Phase.COLD)


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
                advice=_advice_without_result(state, result),
            )


def _start_outlasts_the_run(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for result in results:
        if result.status is ModeStatus.CANNOT_PAY:
            yield Finding(
                "start-outlasts-run",
                Severity.ADVICE,
                f"{result.mode.value}: its start alone outlasts the planned run, so its compile was stopped",
                evidence=result.reason,
                advice="for a speedup all the same, measure without --planned-steps and --planned-hours;"
                " if the caches outlive the run, plan for that: --starts cold=0,warm=1",
                mode=result.mode,
            )


def _advice_without_result(state: RunState, result: ModeResult) -> str:
    if result.status is ModeStatus.NOT_FINISHED:
        return "give it more time with --budget"
    if result.status is not ModeStatus.FAILED:
        return ""
    failures = [process.failure for process in state.processes.values() if process.mode is result.mode]
    failure = next((failure for failure in failures if failure is not None), None)
    return failure_advice(failure) if failure is not None else _DIED


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
    on_gpu = state.run is not None and state.run.device != "cpu"
    for log in _logs(state):
        for site in log.break_sites.values():
            yield _describe_break(site, on_gpu)


def _describe_break(site: BreakSite, on_gpu: bool) -> Finding:
    first = site.first
    reason = first.reason.strip().partition("\n")[0] or "no reason given"
    intended = any(words in reason for words in _ASKED_FOR)
    evidence = first.source or first.explanation or ""
    if on_gpu and any(words in reason for words in _READS_A_VALUE):
        evidence += ("; " if evidence else "") + "the value is read in every step, and the CPU waits for the GPU there"
    return Finding(
        "graph-break",
        Severity.NOTE if intended else Severity.ADVICE,
        f"graph break that your code asks for: {reason}" if intended else f"graph break: {reason}",
        evidence=evidence,
        advice="it is no fault; without it the code on both sides could be fused"
        if intended
        else (first.hints[0] if first.hints else ""),
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
            if _makes_optimizer_state(recompile, state):
                yield Finding(
                    "optimizer-compiled-twice",
                    Severity.NOTE,
                    "the optimizer's step was compiled twice: its first call makes the state that later ones find",
                    evidence="both are part of the start's cost",
                )
                continue
            failure = recompile.failures[0] if recompile.failures else None
            file, line = _place(failure.where if failure is not None else None, log)
            yield Finding(
                "recompiles",
                Severity.ADVICE,
                f"compiled again {plural(log.recompile_count, 'time')} because a guard failed",
                evidence=failure.guard if failure is not None else "no guard was named",
                advice="keep what the guard checks constant, or mark it dynamic (torch._dynamo.mark_dynamic)",
                file=file,
                line=line,
            )
        for dynamic in log.dynamic_shapes[:1]:
            yield Finding(
                "dynamic-shapes",
                Severity.NOTE,
                f"{dynamic.name} became a dynamic size ({dynamic.old or '?'} -> {dynamic.new or '?'})",
            )


def _makes_optimizer_state(recompile: Recompiled, state: RunState) -> bool:
    compiles_optimizer = state.run is not None and state.run.spec.step.compile_optimizer
    return compiles_optimizer and any("self.state" in failure.guard for failure in recompile.failures)


_PLACE = re.compile(r"(?P<file>.+):(?P<line>[0-9]+) in ")


def _place(where: str | None, log: CompileLog) -> tuple[str | None, int | None]:
    """A guard's origin, `file:line in function`. torch cuts long paths at their beginning, so the file is looked for
    among those of the frames."""
    match = _PLACE.match(where or "")
    if match is None:
        return None, None
    files = {frame.file for frame in log.frames.values() if frame.file and frame.file.endswith(match["file"])}
    return (min(files), int(match["line"])) if files else (None, None)


def _cudagraphs(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """What a mode with cudagraphs did not capture: told by the compiler, or seen from what ran."""
    for result in results:
        cold = state.process_of(Phase.COLD, result.mode)
        if cold is None or not result.mode.cudagraphs:
            continue
        for reason in cold.compile.cudagraph_skips:
            yield Finding(
                "cudagraphs-skipped",
                Severity.ADVICE,
                "no cudagraph for a part of the model",
                evidence=reason[:300],
            )
        if state.run is None or state.run.device == "cpu" or result.proof is None:
            continue
        programs, replays = result.proof.program_calls or 0.0, result.proof.graph_launches
        if programs and not result.cudagraph_recordings and not cold.compile.cudagraph_skips:
            yield Finding(
                "cudagraphs-not-captured",
                Severity.ADVICE,
                f"{result.mode.value}: cudagraphs were asked for, but none was recorded",
                evidence="the compiler gave no reason",
                advice="compare with the default mode: this one can gain nothing over it here",
            )
        elif replays is not None and replays < programs:
            yield Finding(
                "cudagraphs-partly",
                Severity.ADVICE,
                f"{result.mode.value}: {programs - replays:g} of {programs:g} compiled programs of a step run"
                " without a cudagraph",
                evidence=f"a profile of steady steps shows {replays:g} replays in each",
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


def _wrapper(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    model = next((p.model for p in state.processes.values() if p.model is not None), None)
    for result in results if model is not None else ():
        if not result.wrapped or model is None:
            continue
        by_block = result.mode.options.regions is Regions.REGIONAL and result.blocks is not None
        what, name = ("block", result.blocks.block) if by_block and result.blocks else ("model", model.class_name)
        yield Finding(
            "compile-wrapper",
            Severity.NOTE,
            f"{what}.compile() would compile nothing here: Dynamo skips the forward of torch's own {name}",
            evidence=f"torch.compile({what}) was measured in its place",
            advice="the keys of the wrapper's state_dict begin with _orig_mod.: save the inner model's"
            if not by_block
            else "the wrapped blocks' keys in the state_dict have _orig_mod. in them: take it out before saving",
        )


def _what_ran(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """Where a profile contradicts what the compiler said."""
    for result in results:
        cold = state.process_of(Phase.COLD, result.mode)
        if cold is None or result.proof is None:
            continue
        ran = result.proof.program_calls or result.proof.regions
        if cold.compile.compiled_anything and not ran:
            yield Finding(
                "compiled-but-not-running",
                Severity.WARNING,
                f"{result.mode.value}: programs were compiled, but steady steps run none of them",
                evidence="no call of a compiled program in a profile of steady steps",
                advice="look for the recompile limit, torch.compiler.disable or set_stance",
                mode=result.mode,
            )
        if ran and not cold.compile.compiled_anything:
            yield Finding(
                "compiled-elsewhere",
                Severity.WARNING,
                f"{result.mode.value}: a compiled program runs that was not compiled here",
                evidence="the compiler said nothing, a profile shows calls of a compiled program",
                advice="its compile time is not in these figures",
                mode=result.mode,
            )


def _guards(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    for result in results:
        warm = state.process_of(Phase.WARM, result.mode)
        if warm is None or result.proof is None or result.compiled_ms is None:
            continue
        share = result.proof.guard_us / (1e3 * result.compiled_ms)
        host_share = warm.arm(Arm.COMPILED).host_share
        hidden = host_share is not None and host_share < _HOST_BOUND_SHARE
        if share > _GUARDS_MATTER and not hidden:
            checks = plural(round(result.proof.guard_checks), "compiled frame")
            yield Finding(
                "guards-cost",
                Severity.ADVICE,
                # A profile that was disturbed may show more than the step.
                f"{result.mode.value}: guard checks take {percent(min(share, 1.0))} of every step",
                evidence=f"{result.proof.guard_us:.0f} us in {checks}, with the profiler's own share",
                advice="fewer graph breaks make fewer frames to check; larger steps make the check matter less",
            )


def _explained(state: RunState, results: Sequence[ModeResult]) -> Iterator[Finding]:
    """The second opinion, beside what the run itself saw."""
    process = state.process_of(Phase.EXPLAIN)
    if process is None or process.running:
        return
    if process.explained is None:
        why = process.failure.message.partition("\n")[0] if process.failure is not None else "it did not end"
        yield Finding("explain", Severity.NOTE, "torch._dynamo.explain failed", evidence=why)
        return
    told = process.explained
    theirs = {(end.file, end.line) for end in told.breaks}
    ours = {(site.first.file, site.first.line) for log in _logs(state) for site in log.break_sites.values()}
    differences = [
        f"only {who}: {', '.join(sorted(f'{file}:{line}' for file, line in places))}"
        for who, places in (("there", theirs - ours), ("in the run", ours - theirs))
        if places
    ]
    yield Finding(
        "explain",
        Severity.NOTE,
        f"torch._dynamo.explain: {plural(told.graphs, 'graph')} with {plural(told.ops, 'op')},"
        f" {plural(len(theirs), 'place')} where one ends",
        evidence="; ".join(differences) or "the run saw the same places",
    )


RULES: tuple[Rule, ...] = (
    _modes_without_result, _start_outlasts_the_run, _dropped_frames, _what_ran, _graph_breaks, _recompiles,
    _cudagraphs, _guards, _fallback_ops, _compiler_warnings, _wrapper, _explained,
)  # fmt: skip
