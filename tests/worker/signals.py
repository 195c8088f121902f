"""The compiler's signals, each with a tiny program that provokes it: run by any Python with torch, nothing else.

`python -m tests.worker.signals cold|warm|disabled` compiles the programs on the CPU in this process and prints, in
JSON, what each signal of `SIGNALS` gave. `tests/worker/contract.py` runs all three in fresh processes.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from tcompile_tui.core import events as ev
from tcompile_tui.core.compile_options import CompileOptions
from tcompile_tui.core.events import CacheKind, CacheOutcome, CompileStage, Event
from tcompile_tui.worker import compiler
from tcompile_tui.worker.failures import describe_failure

MARK = "compiler-signals:"
_FILE = str(Path(__file__).resolve())
_LINES = Path(__file__).read_text(encoding="utf-8").splitlines()
_AnyEvent = TypeVar("_AnyEvent", bound=Event)
# A signal's value when the program gave none: this torch lacks it.
_NOTHING = (None, (), "")


def _place(comment: str) -> tuple[str, int]:
    """File and line of the line that ends in this comment."""
    return _FILE, 1 + next(i for i, line in enumerate(_LINES) if line.endswith(f"# {comment}"))


@dataclass(frozen=True)
class Told:
    """What one program made the compiler tell. `activity` counts what `take_activity_ns` gave, `answer` is the
    program's own result."""

    events: tuple[Event, ...]
    activity: int
    answer: Any = None

    def all_of(self, kind: type[_AnyEvent], **fields: Any) -> list[_AnyEvent]:
        """Records of a kind whose fields have these values."""
        found = [event for event in self.events if isinstance(event, kind)]
        return [event for event in found if all(getattr(event, name) == value for name, value in fields.items())]

    def first(self, kind: type[_AnyEvent], **fields: Any) -> Any:
        """The first such record; one in which every field is None where there is none."""
        return next(iter(self.all_of(kind, **fields)), _Absent())

    def stage(self, stage: CompileStage) -> str | None:
        """'paired' where every begin of the stage has its end."""
        begins, ends = (len(self.all_of(ev.CompileSpan, stage=stage, begins=begins)) for begins in (True, False))
        if not begins and not ends:
            return None
        return "paired" if begins == ends else f"{begins} begins, {ends} ends"


class _Absent:
    def __getattr__(self, name: str) -> None:
        return None


# ---------------------------------------------------------------- programs


class _Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # training frame
        out: torch.Tensor = self.fc(x).sin() * 2
        return out


class _Changing(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.name = ""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.name += "a"  # changed
        return x + len(self.name)


def _says(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print("a graph break")  # break
    return y.cos()


def _says_inside(x: torch.Tensor) -> torch.Tensor:
    return _says(x) + 1


def _says_in_a_loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = x.sin()
        print("a dropped frame")  # loop
    return x


def _sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def _product(x: torch.Tensor) -> torch.Tensor:
    return x @ x


def _sums(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x @ x, 0)


def _train() -> bool:
    """Forward and backward, twice. True if the second time the compiler kept silent."""
    torch.manual_seed(0)
    net = _Net()
    net.compile()
    net(torch.ones(4, 8)).sum().backward()
    before = len(_heard)
    net(torch.ones(4, 8)).sum().backward()
    return len(_heard) == before


def _break() -> None:
    torch.compile(_says_inside, backend="eager")(torch.ones(4))


def _drop() -> None:
    torch.compile(_says_in_a_loop, backend="eager")(torch.ones(4))


def _grow() -> None:
    compiled = torch.compile(_sine, backend="eager")
    for size in (4, 5, 6):
        compiled(torch.ones(size, 3))


def _exceed() -> None:
    net = _Changing()
    net.compile(backend="eager")
    with _recompile_limit(2):
        for _ in range(4):
            net(torch.ones(4))


def _recompile_limit(limit: int) -> Any:
    config = torch._dynamo.config
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    return config.patch(**{name: limit})


def _fall_back() -> None:
    with torch.no_grad():
        torch.compile(_sums)(torch.ones(4, 4))


def _bypass_caches() -> None:
    """A pass that has no key for the caches."""
    with torch._inductor.config.patch(post_grad_custom_post_pass=lambda graph: None), torch.no_grad():
        torch.compile(_product)(torch.ones(5, 5))


def _fail_to_trace() -> ev.WorkerFailed | None:
    return _failure(lambda: torch.compile(_says_inside, backend="eager", fullgraph=True)(torch.ones(4)))


def _fail_to_compile() -> ev.WorkerFailed | None:
    def backend(graph: Any, inputs: Any) -> Any:
        raise ValueError("this backend takes nothing")

    return _failure(lambda: torch.compile(_sine, backend=backend)(torch.ones(4)))


def _lack_a_compiler() -> ev.WorkerFailed | None:
    with torch._inductor.config.patch({"cpp.cxx": ("/there/is/no/compiler",), "force_disable_caches": True}):
        return _failure(lambda: torch.compile(_sine)(torch.ones(7)))


def _failure(run: Callable[[], object]) -> ev.WorkerFailed | None:
    try:
        run()
    except Exception as error:
        return describe_failure(error, "first call", compiled=True, inputs_given=False)
    return None


def _count() -> ev.CompilerSummary:
    """Counters of a process in which one frame was compiled, since the last reset."""
    torch._dynamo.utils.counters.clear()
    torch.compile(_sine, backend="eager")(torch.ones(4))
    return _signals.summary()


def _disable() -> ev.CompilerSummary:
    torch.compile(_sine)(torch.ones(4))
    return _signals.summary()


def _know_the_folders() -> str:
    compiler.assert_private_caches(os.environ["TCOMPILE_TUI_CONTRACT_ROOT"])
    return "inside the private folder"


def _stop_workers() -> bool:
    from torch._inductor.async_compile import shutdown_compile_workers

    compiler.stop_compile_workers()
    return callable(shutdown_compile_workers)


def _profile() -> set[str]:
    """What a profile of a compiled training step shows."""
    net = _Net()
    net.compile()
    net(torch.ones(4, 8)).sum().backward()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        net(torch.ones(4, 8)).sum().backward()
    return {name for name, on_device, start_ns, end_ns in compiler.profiled_spans(profiler) if end_ns > start_ns}


def _wrap() -> bool:
    compiled, wrapped = compiler.compile_model(torch.nn.Sequential(torch.nn.Tanh()), CompileOptions())
    compiled(torch.ones(4))
    return wrapped


def _leave_in_place() -> bool:
    compiled, wrapped = compiler.compile_model(_Net(), CompileOptions())
    compiled(torch.ones(4, 8))
    return not wrapped


def _explain() -> ev.Explained:
    class Breaking(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _says(x)

    return compiler.explain(Breaking(), (torch.ones(4),), {})


def _named(start: str) -> Callable[[Told], bool | None]:
    """Is there a span with such a name?"""
    return lambda told: any(name.startswith(start) for name in told.answer) or None


# ---------------------------------------------------------------- the contract


@dataclass(frozen=True)
class Signal:
    """One thing that a program makes the compiler tell: `read` gives it, `expected` is its value or a test of it.
    Torch has it since release `since`."""

    name: str
    program: Callable[[], Any]
    read: Callable[[Told], Any]
    expected: Any
    since: tuple[int, int] = (2, 6)
    process: str = "cold"


def _some(value: Any) -> bool:
    return bool(value > 0)


def _stage(stage: CompileStage, since: tuple[int, int] = (2, 6), process: str = "cold") -> Signal:
    return Signal(f"stage: {stage.value}", _train, lambda told: told.stage(stage), "paired", since, process)


def _frame(told: Told, **fields: Any) -> Any:
    return told.first(ev.FrameCompiled, **{"backward": False, **fields})


def _at(event: Any) -> tuple[str, int] | None:
    return None if event.file is None and event.line is None else (event.file, event.line)


def _outcomes(told: Told, cache: CacheKind) -> set[str] | None:
    return {lookup.outcome.value for lookup in told.all_of(ev.CacheLookup, cache=cache)} or None


def _guard(told: Told) -> Any:
    """The guard of the first recompile."""
    return next(iter(told.first(ev.Recompiled).failures or ()), _Absent())


_SIZE_GUARD = "size mismatch at index 0. expected 4, actual 5"

SIGNALS: tuple[Signal, ...] = (
    _stage(CompileStage.FRAME), _stage(CompileStage.DYNAMO, (2, 8)), _stage(CompileStage.GUARDS, (2, 8)),
    _stage(CompileStage.BACKEND), _stage(CompileStage.AOT), _stage(CompileStage.PARTITION, (2, 8)),
    _stage(CompileStage.FX_PASSES), _stage(CompileStage.INDUCTOR), _stage(CompileStage.LOWERING),
    _stage(CompileStage.SCHEDULING), _stage(CompileStage.CODEGEN), _stage(CompileStage.KERNELS),
    _stage(CompileStage.KERNEL_LOAD), _stage(CompileStage.BACKWARD),
    _stage(CompileStage.CACHE_LOAD, (2, 8), "warm"),
    Signal("stage: compile id", _train, lambda told: told.first(ev.CompileSpan).compile_id, "0/0"),
    Signal("frame: compile id", _train, lambda told: told.first(ev.FrameStarted).compile_id, "0/0"),
    Signal("frame: place", _train, lambda told: _at(told.first(ev.FrameStarted)), _place("training frame")),
    Signal("frame: function", _train, lambda told: told.first(ev.FrameStarted).function, "forward"),
    Signal("graph: operations", _train, lambda told: told.first(ev.GraphCaptured).ops, 3),
    Signal("step compiled", _train, lambda told: told.activity, _some),
    Signal("silence once compiled", _train, lambda told: told.answer, True),
    Signal("code: kernels", _train, lambda told: told.first(ev.CodeGenerated).kernels, 1),
    Signal("code: kernel language", _train, lambda told: told.first(ev.CodeGenerated).kernel_languages,
           ("cpp_pybinding",)),
    Signal("code: library calls", _train, lambda told: told.first(ev.CodeGenerated).library_calls, ("addmm",)),
    Signal("code: fallback operators", _fall_back, lambda told: told.first(ev.CodeGenerated).fallback_ops,
           ("aten.cumsum.default",)),
    Signal("metrics: compile id", _train, lambda told: _frame(told).compile_id, "0/0"),
    Signal("metrics: place", _train, lambda told: _at(_frame(told)), _place("training frame")),
    Signal("metrics: function", _train, lambda told: _frame(told).function, "forward"),
    Signal("metrics: operations", _train, lambda told: _frame(told).ops, 3),
    Signal("metrics: guards", _train, lambda told: _frame(told).guards, _some),
    Signal("metrics: whole time", _train, lambda told: _frame(told).total_s, _some),
    Signal("metrics: backend time", _train, lambda told: _frame(told).backend_s, _some),
    Signal("metrics: Inductor time", _train, lambda told: _frame(told).inductor_s, _some),
    Signal("metrics: code generation time", _train, lambda told: _frame(told).codegen_s, _some),
    Signal("metrics: cost of the trace", _train, lambda told: _frame(told).logging_overhead_s, _some),
    Signal("metrics: backward", _train, lambda told: told.first(ev.FrameCompiled, backward=True).compile_id, "0/0"),
    Signal("callback: begin and end", _train,
           lambda told: [callback.begins for callback in told.all_of(ev.CompilerCallback)][:2], [True, False]),
    Signal("callback: trigger", _train, lambda told: told.first(ev.CompilerCallback).trigger, "DYNAMO", (2, 8)),
    Signal("callback: compile id", _train, lambda told: told.first(ev.CompilerCallback).compile_id, "0/0", (2, 8)),
    Signal("callback: backward", _train,
           lambda told: told.first(ev.CompilerCallback, trigger="LAZY_BACKWARD").begins, True, (2, 8)),
    Signal("cache FX: miss", _train, lambda told: _outcomes(told, CacheKind.FX), {"miss"}),
    Signal("cache FX: hit", _train, lambda told: _outcomes(told, CacheKind.FX), {"hit"}, process="warm"),
    Signal("cache FX: bypass", _bypass_caches, lambda told: _outcomes(told, CacheKind.FX), {"bypass"}),
    Signal("cache AOTAutograd: miss", _train, lambda told: _outcomes(told, CacheKind.AOT_AUTOGRAD), {"miss"}, (2, 7)),
    Signal("cache AOTAutograd: hit", _train, lambda told: _outcomes(told, CacheKind.AOT_AUTOGRAD), {"hit"}, (2, 7),
           "warm"),
    Signal("cache AOTAutograd: time saved", _train,
           lambda told: told.first(ev.CacheLookup, outcome=CacheOutcome.HIT, cache=CacheKind.AOT_AUTOGRAD).saved_ms,
           _some, (2, 7), "warm"),
    Signal("break: place", _break, lambda told: _at(told.first(ev.GraphBreak)), _place("break")),
    Signal("break: function", _break, lambda told: told.first(ev.GraphBreak).function, "_says"),
    Signal("break: source line", _break, lambda told: told.first(ev.GraphBreak).source,
           'print("a graph break")  # break'),
    Signal("break: compile id", _break, lambda told: told.first(ev.GraphBreak).compile_id, "0/0"),
    Signal("break: reason", _break, lambda told: told.first(ev.GraphBreak).reason,
           lambda text: "builtin" in text),
    Signal("break: explanation", _break, lambda told: told.first(ev.GraphBreak).explanation,
           lambda text: "`print`" in text, (2, 7)),
    Signal("break: hints", _break, lambda told: told.first(ev.GraphBreak).hints, lambda hints: "print" in hints[0],
           (2, 7)),
    Signal("break: id", _break, lambda told: told.first(ev.GraphBreak).gb_id, "GB0059", (2, 9)),
    Signal("break: page", _break, lambda told: told.first(ev.GraphBreak).url,
           lambda url: url.endswith("/gb/gb0059.html"), (2, 9)),
    Signal("dropped frame: told", _drop, lambda told: told.first(ev.GraphBreak).frame_dropped or None, True,
           (2, 11)),
    Signal("dropped frame: place", _drop, lambda told: _at(told.first(ev.GraphBreak)), _place("loop")),
    Signal("dropped frame: failure", _drop, lambda told: _frame(told).fail_type,
           lambda name: name in ("Unsupported", "SkipFrame")),
    Signal("dropped frame: reason", _drop, lambda told: _frame(told).fail_reason, lambda text: "builtin" in text),
    Signal("recompile: guard", _grow, lambda told: _guard(told).guard, lambda text: text.endswith(_SIZE_GUARD)),
    Signal("recompile: entry", _grow, lambda told: _guard(told).entry, "0/0"),
    Signal("recompile: compile id", _grow, lambda told: told.first(ev.Recompiled).compile_id, "0/1"),
    Signal("recompile: once dynamic no more", _grow, lambda told: len(told.all_of(ev.Recompiled)) or None, 1),
    Signal("recompile: place of the guard", _exceed, lambda told: _guard(told).where,
           lambda text: text.endswith(f"signals.py:{_place('changed')[1]} in forward"), (2, 9)),
    Signal("dynamic shape: name", _grow, lambda told: told.first(ev.DynamicShape).name, "L['x']"),
    Signal("dynamic shape: sizes", _grow,
           lambda told: (told.first(ev.DynamicShape).old, told.first(ev.DynamicShape).new),
           lambda sizes: "4" in sizes[0] and "5" in sizes[1]),
    Signal("recompile limit: guard", _exceed, lambda told: told.first(ev.RecompileLimitHit).text,
           lambda text: ".name ==" in text),
    Signal("recompile limit: once", _exceed, lambda told: len(told.all_of(ev.RecompileLimitHit)) or None, 1),
    Signal("recompile limit: warning", _exceed, lambda told: told.first(ev.CompilerWarning).text,
           lambda text: "_limit" in text),
    Signal("error in tracing: fault", _fail_to_trace, lambda told: told.answer.fault, "compiler"),
    Signal("error in tracing: type", _fail_to_trace, lambda told: told.answer.error_type, "Unsupported"),
    Signal("error in the backend: fault", _fail_to_compile, lambda told: told.answer.fault, "compiler"),
    Signal("error in the backend: type", _fail_to_compile, lambda told: told.answer.error_type,
           "BackendCompilerFailed"),
    Signal("error in the backend: metrics", _fail_to_compile, lambda told: _frame(told).fail_type,
           lambda name: "BackendCompilerFailed" in name),
    Signal("no C++ compiler: fault", _lack_a_compiler, lambda told: told.answer.fault, "environment"),
    Signal("counters: frames", _count, lambda told: (told.answer.frames_seen, told.answer.frames_compiled), (1, 1)),
    Signal("counters: graphs", _count, lambda told: told.answer.unique_graphs, 1),
    Signal("disabled: named", _disable, lambda told: told.answer.disabled_by,
           "the environment variable TORCH_COMPILE_DISABLE", process="disabled"),
    Signal("disabled: nothing compiled", _disable, lambda told: told.answer.frames_seen, 0, process="disabled"),
    Signal("cache folders", _know_the_folders, lambda told: told.answer, "inside the private folder"),
    Signal("end of compile processes", _stop_workers, lambda told: told.answer, True),
    Signal("profile: compiled programs", _profile, _named("## Call CompiledFxGraph "), True, (2, 9)),
    Signal("profile: compiled frames", _profile, _named("Torch-Compiled Region: "), True),
    Signal("profile: guard checks", _profile, _named("TorchDynamo Cache Lookup"), True),
    Signal("torch's own module: wrapped", _wrap, lambda told: told.answer, True),
    Signal("torch's own module: compiled", _wrap, lambda told: len(told.all_of(ev.GraphCaptured)) or None, 1),
    Signal("own module: in place", _leave_in_place, lambda told: told.answer, True),
    Signal("explain: graphs", _explain, lambda told: told.answer.graphs, 2),
    Signal("explain: place", _explain, lambda told: _at(told.answer.breaks[0]), _place("break")),
    Signal("every record understood", _train, lambda told: _signals.summary().handler_errors, 0),
)  # fmt: skip


# ---------------------------------------------------------------- running it

_heard: list[Event] = []
_signals = compiler.CompileSignals(_heard.append)


def _run(program: Callable[[], Any]) -> Told:
    """Run one program on a compiler that remembers none before it."""
    torch._dynamo.reset()
    _signals.register_callbacks()
    _heard.clear()
    _signals.take_activity_ns()
    answer = program()
    return Told(tuple(_heard), len(_signals.take_activity_ns()), answer)


def _outcome(signal: Signal, told: Told | str) -> str:
    """'yes', 'not available', or what was found instead."""
    if isinstance(told, str):
        return told
    try:
        found = signal.read(told)
        if found in _NOTHING or found == []:
            return "not available"
        holds = signal.expected(found) if callable(signal.expected) else found == signal.expected
    except Exception as error:
        return f"differs: {type(error).__name__}: {error}"
    return "yes" if holds else f"differs: {found!r}"


def _told_or_error(program: Callable[[], Any]) -> Told | str:
    try:
        return _run(program)
    except Exception as error:
        traceback.print_exc()
        return f"differs: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def main(process: str) -> None:
    """Run the programs of one process and print what their signals gave."""
    compiler.import_compiler()
    capabilities = _signals.attach()
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
