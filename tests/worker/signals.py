"""The contract: every signal of the compiler that the worker reads, with the program that provokes it.

`python -m tests.worker.signals cold|warm|disabled` runs the programs of one process on the CPU, under any Python with
torch and nothing else, and prints in JSON what each signal gave. `tests/worker/contract.py` runs all three.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from tcompile_tui.core import events as ev
from tcompile_tui.core.events import CacheKind, CacheOutcome, CompileStage
from tcompile_tui.worker import compiler

from . import programs as do
from .programs import Absent, Program, Told, listener, place_of, run

MARK = "compiler-signals:"
YES, NOT_AVAILABLE = "yes", "not available"


@dataclass(frozen=True)
class Signal:
    """One thing that a program makes the compiler tell: `read` gives it, `expected` is its value or a test of it.
    Torch has it since release `since`."""

    name: str
    program: Program
    read: Callable[[Told], Any]
    expected: Any
    since: tuple[int, int] = (2, 6)
    process: str = "cold"


def _some(value: Any) -> bool:
    return bool(value > 0)


def _stage(stage: CompileStage, since: tuple[int, int] = (2, 6), process: str = "cold") -> Signal:
    return Signal(f"stage: {stage.value}", do.train, lambda told: told.stage(stage), "paired", since, process)


def _frame(told: Told, **fields: Any) -> Any:
    return told.first(ev.FrameCompiled, **{"backward": False, **fields})


def _at(event: Any) -> tuple[str, int] | None:
    return None if event.file is None and event.line is None else (event.file, event.line)


def _outcomes(told: Told, cache: CacheKind) -> set[str] | None:
    return {lookup.outcome.value for lookup in told.all_of(ev.CacheLookup, cache=cache)} or None


def _guard(told: Told) -> Any:
    """The guard of the first recompile."""
    return next(iter(told.first(ev.Recompiled).failures or ()), Absent())


_SIZE_GUARD = "size mismatch at index 0. expected 4, actual 5"

SIGNALS: tuple[Signal, ...] = (
    _stage(CompileStage.FRAME), _stage(CompileStage.DYNAMO, (2, 8)), _stage(CompileStage.GUARDS, (2, 8)),
    _stage(CompileStage.BACKEND), _stage(CompileStage.AOT), _stage(CompileStage.PARTITION, (2, 8)),
    _stage(CompileStage.FX_PASSES), _stage(CompileStage.INDUCTOR), _stage(CompileStage.LOWERING),
    _stage(CompileStage.SCHEDULING), _stage(CompileStage.CODEGEN), _stage(CompileStage.KERNELS),
    _stage(CompileStage.KERNEL_LOAD), _stage(CompileStage.BACKWARD),
    _stage(CompileStage.CACHE_LOAD, (2, 8), "warm"),
    Signal("stage: compile id", do.train, lambda told: told.first(ev.CompileSpan).compile_id, "0/0"),
    Signal("frame: compile id", do.train, lambda told: told.first(ev.FrameStarted).compile_id, "0/0"),
    Signal("frame: place", do.train, lambda told: _at(told.first(ev.FrameStarted)), place_of("training frame")),
    Signal("frame: function", do.train, lambda told: told.first(ev.FrameStarted).function, "forward"),
    Signal("graph: operations", do.train, lambda told: told.first(ev.GraphCaptured).ops, 3),
    Signal("step compiled", do.train, lambda told: told.activity, _some),
    Signal("silence once compiled", do.train, lambda told: told.answer, True),
    Signal("code: kernels", do.train, lambda told: told.first(ev.CodeGenerated).kernels, 1),
    Signal("code: kernel language", do.train, lambda told: told.first(ev.CodeGenerated).kernel_languages,
           ("cpp_pybinding",)),
    Signal("code: library calls", do.train, lambda told: told.first(ev.CodeGenerated).library_calls, ("addmm",)),
    Signal("code: fallback operators", do.fall_back, lambda told: told.first(ev.CodeGenerated).fallback_ops,
           ("aten.cumsum.default",)),
    Signal("metrics: compile id", do.train, lambda told: _frame(told).compile_id, "0/0"),
    Signal("metrics: place", do.train, lambda told: _at(_frame(told)), place_of("training frame")),
    Signal("metrics: function", do.train, lambda told: _frame(told).function, "forward"),
    Signal("metrics: operations", do.train, lambda told: _frame(told).ops, 3),
    Signal("metrics: guards", do.train, lambda told: _frame(told).guards, _some),
    Signal("metrics: whole time", do.train, lambda told: _frame(told).total_s, _some),
    Signal("metrics: backend time", do.train, lambda told: _frame(told).backend_s, _some),
    Signal("metrics: Inductor time", do.train, lambda told: _frame(told).inductor_s, _some),
    Signal("metrics: code generation time", do.train, lambda told: _frame(told).codegen_s, _some),
    Signal("metrics: cost of the trace", do.train, lambda told: _frame(told).logging_overhead_s, _some),
    Signal("metrics: backward", do.train, lambda told: told.first(ev.FrameCompiled, backward=True).compile_id, "0/0"),
    Signal("callback: begin and end", do.train,
           lambda told: [callback.begins for callback in told.all_of(ev.CompilerCallback)][:2], [True, False]),
    Signal("callback: trigger", do.train, lambda told: told.first(ev.CompilerCallback).trigger, "DYNAMO", (2, 8)),
    Signal("callback: compile id", do.train, lambda told: told.first(ev.CompilerCallback).compile_id, "0/0", (2, 8)),
    Signal("callback: backward", do.train,
           lambda told: told.first(ev.CompilerCallback, trigger="LAZY_BACKWARD").begins, True, (2, 8)),
    Signal("cache FX: miss", do.train, lambda told: _outcomes(told, CacheKind.FX), {"miss"}),
    Signal("cache FX: hit", do.train, lambda told: _outcomes(told, CacheKind.FX), {"hit"}, process="warm"),
    Signal("cache FX: bypass", do.bypass_caches, lambda told: _outcomes(told, CacheKind.FX), {"bypass"}),
    Signal("cache AOTAutograd: miss", do.train, lambda told: _outcomes(told, CacheKind.AOT_AUTOGRAD), {"miss"}, (2, 7)),
    Signal("cache AOTAutograd: hit", do.train, lambda told: _outcomes(told, CacheKind.AOT_AUTOGRAD), {"hit"}, (2, 7),
           "warm"),
    Signal("cache AOTAutograd: time saved", do.train,
           lambda told: told.first(ev.CacheLookup, outcome=CacheOutcome.HIT, cache=CacheKind.AOT_AUTOGRAD).saved_ms,
           _some, (2, 7), "warm"),
    Signal("break: place", do.break_, lambda told: _at(told.first(ev.GraphBreak)), place_of("break")),
    Signal("break: function", do.break_, lambda told: told.first(ev.GraphBreak).function, "_says"),
    Signal("break: source line", do.break_, lambda told: told.first(ev.GraphBreak).source,
           'print("a graph break")  # break'),
    Signal("break: compile id", do.break_, lambda told: told.first(ev.GraphBreak).compile_id, "0/0"),
    Signal("break: reason", do.break_, lambda told: told.first(ev.GraphBreak).reason,
           lambda text: "builtin" in text),
    Signal("break: explanation", do.break_, lambda told: told.first(ev.GraphBreak).explanation,
           lambda text: "`print`" in text, (2, 7)),
    Signal("break: hints", do.break_, lambda told: told.first(ev.GraphBreak).hints, lambda hints: "print" in hints[0],
           (2, 7)),
    Signal("break: id", do.break_, lambda told: told.first(ev.GraphBreak).gb_id, "GB0059", (2, 9)),
    Signal("break: page", do.break_, lambda told: told.first(ev.GraphBreak).url,
           lambda url: url.endswith("/gb/gb0059.html"), (2, 9)),
    Signal("dropped frame: told", do.drop, lambda told: told.first(ev.GraphBreak).frame_dropped or None, True,
           (2, 11)),
    Signal("dropped frame: place", do.drop, lambda told: _at(told.first(ev.GraphBreak)), place_of("loop")),
    Signal("dropped frame: failure", do.drop, lambda told: _frame(told).fail_type,
           lambda name: name in ("Unsupported", "SkipFrame")),
    Signal("dropped frame: reason", do.drop, lambda told: _frame(told).fail_reason, lambda text: "builtin" in text),
    Signal("recompile: guard", do.grow, lambda told: _guard(told).guard, lambda text: text.endswith(_SIZE_GUARD)),
    Signal("recompile: entry", do.grow, lambda told: _guard(told).entry, "0/0"),
    Signal("recompile: compile id", do.grow, lambda told: told.first(ev.Recompiled).compile_id, "0/1"),
    Signal("recompile: once dynamic no more", do.grow, lambda told: len(told.all_of(ev.Recompiled)) or None, 1),
    Signal("recompile: place of the guard", do.exceed, lambda told: _guard(told).where,
           lambda text: text.endswith(f"programs.py:{place_of('changed')[1]} in forward"), (2, 9)),
    Signal("dynamic shape: name", do.grow, lambda told: told.first(ev.DynamicShape).name, "L['x']"),
    Signal("dynamic shape: sizes", do.grow,
           lambda told: (told.first(ev.DynamicShape).old, told.first(ev.DynamicShape).new),
           lambda sizes: "4" in sizes[0] and "5" in sizes[1]),
    Signal("recompile limit: guard", do.exceed, lambda told: told.first(ev.RecompileLimitHit).text,
           lambda text: ".name ==" in text),
    Signal("recompile limit: once", do.exceed, lambda told: len(told.all_of(ev.RecompileLimitHit)) or None, 1),
    Signal("recompile limit: warning", do.exceed, lambda told: told.first(ev.CompilerWarning).text,
           lambda text: "_limit" in text),
    Signal("error in tracing: fault", do.fail_to_trace, lambda told: told.answer.fault, "compiler"),
    Signal("error in tracing: type", do.fail_to_trace, lambda told: told.answer.error_type, "Unsupported"),
    Signal("error in the backend: fault", do.fail_to_compile, lambda told: told.answer.fault, "compiler"),
    Signal("error in the backend: type", do.fail_to_compile, lambda told: told.answer.error_type,
           "BackendCompilerFailed"),
    Signal("error in the backend: metrics", do.fail_to_compile, lambda told: _frame(told).fail_type,
           lambda name: "BackendCompilerFailed" in name),
    Signal("no C++ compiler: fault", do.lack_a_compiler, lambda told: told.answer.fault, "environment"),
    Signal("counters: frames", do.count, lambda told: told.answer, (1, 1)),
    Signal("counters: dropped frame", do.drop, lambda told: told.answer, (1, 0)),
    Signal("counters: graphs", do.train, lambda told: listener.summary().unique_graphs, _some),
    Signal("disabled: named", do.disable, lambda told: told.answer.disabled_by,
           "the environment variable TORCH_COMPILE_DISABLE", process="disabled"),
    Signal("disabled: nothing compiled", do.disable, lambda told: told.answer.frames_seen, 0, process="disabled"),
    Signal("cache folders", do.know_the_folders, lambda told: told.answer, "inside the private folder"),
    Signal("end of compile processes", do.stop_workers, lambda told: told.answer, True),
    Signal("every record understood", do.train, lambda told: listener.summary().handler_errors, 0),
)  # fmt: skip


def _outcome(signal: Signal, told: Told | str) -> str:
    if isinstance(told, str):
        return told
    try:
        found = signal.read(told)
        if _is_nothing(found):
            return NOT_AVAILABLE
        holds = signal.expected(found) if callable(signal.expected) else found == signal.expected
    except Exception as error:
        return f"differs: {type(error).__name__}: {error}"
    return YES if holds else f"differs: {found!r}"


def _is_nothing(found: object) -> bool:
    """Zero and False are values, and never stand for what a torch lacks."""
    return all(item is None for item in found) if isinstance(found, (tuple, list, str)) else found is None


def _told_or_error(program: Program) -> Told | str:
    try:
        return run(program)
    except Exception as error:
        traceback.print_exc()
        return f"differs: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def main(process: str) -> None:
    """Run the programs of one process and print what their signals gave."""
    compiler.import_compiler()
    capabilities = listener.attach()
    asked = [signal for signal in SIGNALS if signal.process == process]
    told = {program: _told_or_error(program) for program in dict.fromkeys(signal.program for signal in asked)}
    outcomes = {signal.name: _outcome(signal, told[signal.program]) for signal in asked}
    with suppress(Exception):
        compiler.stop_compile_workers()
    report = {
        "torch": torch.__version__, "python": sys.version.split()[0], "capabilities": capabilities,
        "outcomes": outcomes,
    }  # fmt: skip
    print(f"\n{MARK}{json.dumps(report)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
