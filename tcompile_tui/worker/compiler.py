"""The only place that touches torch's compiler internals. Turns its signals into records.

Everything is read from one structured-trace logger (present since 2.4), the compile callbacks, two warning
loggers and a few counters. Each source is optional: what a torch version lacks is left out of `capabilities`,
and a private name that moved costs that signal, never the run.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any

import torch

from ..core.compile_options import DEFAULT_MODE, CompileOptions
from ..core.events import (
    CacheKind,
    CacheLookup,
    CacheOutcome,
    CompilerCallback,
    CompilerSummary,
    CompilerWarning,
    CompileSpan,
    CompileStage,
    CudagraphSkipped,
    DynamicShape,
    Event,
    Explained,
    ExplainedBreak,
    FrameCompiled,
    FrameStarted,
    FullgraphProbed,
    GraphCaptured,
    Recompiled,
    RecompileLimitHit,
)  # fmt: skip
from .failures import COMPILER_MODULES, StageError, is_own_file, text_of
from .trace_text import count_ops, parse_graph_break, parse_output_code, parse_recompile, stage_of

_loads = json.loads  # bound here: user code may patch the module
_TRACE_LOGGER = "torch.__trace"
_WARNING_LOGGERS = ("torch._dynamo", "torch._inductor", "torch._functorch")
_TORCH_ROOT = str(Path(torch.__file__).parent) + os.sep
_CPU = torch.autograd.DeviceType.CPU
_DISABLING_VARIABLES = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
# Stages that make the step in which they begin a compiling step.
_COMPILING_STAGES = {CompileStage.FRAME, CompileStage.BACKWARD, CompileStage.CUDAGRAPH, CompileStage.AUTOTUNE}


def import_compiler() -> float:
    """Import what a first torch.compile call would import; returns the seconds it took."""
    started = perf_counter()
    for name in ("torch._dynamo", "torch._inductor.compile_fx"):
        importlib.import_module(name)
    return perf_counter() - started


def is_imported() -> bool:
    """Is Inductor in this process? Asked without importing it."""
    return "torch._inductor.compile_fx" in sys.modules


def assert_private_caches(root: str) -> None:
    """Raise StageError if torch would read or write its caches outside `root`: the user's real caches are never
    touched by a measurement."""
    from torch._inductor.runtime.runtime_utils import cache_dir, default_cache_dir

    for folder in (cache_dir(), default_cache_dir()):
        if os.path.commonpath([os.path.realpath(root), os.path.realpath(folder)]) != os.path.realpath(root):
            raise StageError(f"torch's compile cache {folder} lies outside the private folder {root}", fault="program")


def compile_model(
    model: torch.nn.Module, options: CompileOptions, fullgraph: bool = False
) -> tuple[torch.nn.Module, bool]:
    """The compiled model, and whether it is a wrapper. In place where that works, which keeps the names of the
    state_dict. A forward that Dynamo skips (torch.nn.Sequential's, any of torch's own) needs the frame that the
    wrapper puts around it."""
    arguments = _arguments(options) | ({"fullgraph": True} if fullgraph else {})
    if _skips_forward(model):
        wrapper: torch.nn.Module = torch.compile(model, **arguments)
        return wrapper, True
    model.compile(**arguments)
    return model, False


def compile_function(function: Callable[..., Any], options: CompileOptions) -> Callable[..., Any]:
    """As `torch.compile(function, ...)`."""
    compiled: Callable[..., Any] = torch.compile(function, **_arguments(options))
    return compiled


def _arguments(options: CompileOptions) -> dict[str, Any]:
    """Those of torch.compile, which takes a mode or options: with further ones a mode's own are spelled out. Raises
    StageError for an option that this torch does not have."""
    arguments: dict[str, Any] = {} if options.dynamic is None else {"dynamic": options.dynamic}
    if options.inductor:
        from torch._inductor import config, list_mode_options

        unknown = [key for key, _ in options.inductor if key not in config.get_config_copy()]
        if unknown:
            raise StageError(f"Inductor of torch {torch.__version__} has no option '{unknown[0]}'", fault="model")
        of_mode = list_mode_options(options.mode, options.dynamic)
        arguments["options"] = {**of_mode, **dict(options.inductor)}
    elif options.mode != DEFAULT_MODE:
        arguments["mode"] = options.mode
    return arguments


def _skips_forward(model: torch.nn.Module) -> bool:
    try:
        from torch._dynamo import trace_rules

        return bool(trace_rules.check(model.forward))
    except Exception:
        return str(type(model).forward.__module__).startswith("torch.")


def disabled_by() -> str | None:
    """What switches torch.compile off in this process, if something does."""
    for variable in _DISABLING_VARIABLES:
        if os.environ.get(variable, "0") not in ("", "0"):
            return f"the environment variable {variable}"
    config = getattr(_dynamo(), "config", None)
    return "torch._dynamo.config.disable" if getattr(config, "disable", False) else None


def forget_programs() -> None:
    """Drop every compiled program of this process, and the memory that their cudagraphs hold."""
    torch.compiler.reset()
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    reset = getattr(trees, "reset_cudagraph_trees", None)
    if callable(reset):
        reset()


def stop_compile_workers() -> None:
    """End Inductor's pool of compile processes, so that whatever is left of this process's children is the user's."""
    try:
        from torch._inductor.async_compile import shutdown_compile_workers

        shutdown_compile_workers()
    except Exception:
        pass  # the guard ends what is left


def warm_pool_as_import_does() -> None:
    """Before torch 2.9 importing Inductor starts its pool of compile processes, so that it is up when it is needed.
    No fork inherits it; newer versions start it at the first compile."""
    try:
        from torch._inductor import async_compile

        if hasattr(async_compile, "maybe_warm_pool") or os.environ.get("TORCH_WARM_POOL", "1") != "1":
            return
        if os.environ.get("TORCH_TNT_IN_USE", "0") != "1" and async_compile.has_triton_package():
            async_compile.AsyncCompile.warm_pool()
    except Exception:
        pass  # then it starts with the first compile


def explain(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explained:
    """Dynamo's own account of one call. Runs the model and resets Dynamo, so a process that measures must not."""
    import torch._dynamo

    told = torch._dynamo.explain(model)(*args, **kwargs)
    ends = [reason for reason in told.break_reasons if getattr(reason, "graph_break", True)]
    places = {(_user_frame(end.user_stack), _first_line(str(end.reason))): None for end in ends}
    return Explained(
        graphs=told.graph_count,
        ops=told.op_count,
        breaks=tuple(ExplainedBreak(file, line, reason) for (file, line), reason in places),
    )


def probe_fullgraph(step: Callable[[], object]) -> FullgraphProbed:
    """What becomes of one step on a model that was compiled with fullgraph=True. Errors of the user's own are raised:
    they are no answer."""
    try:
        step()
    except Exception as error:
        if not type(error).__module__.startswith(COMPILER_MODULES):
            raise
        file, line = _user_frame(list(getattr(error, "real_stack", None) or ()))
        return FullgraphProbed(
            holds=False, error_type=type(error).__name__, message=text_of(error), file=file, line=line
        )
    return FullgraphProbed(holds=True)


def _user_frame(stack: list[Any]) -> tuple[str | None, int | None]:
    """The innermost frame outside torch."""
    outside = [frame for frame in stack if not frame.filename.startswith(_TORCH_ROOT)]
    return (outside[-1].filename, outside[-1].lineno) if outside else (None, None)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:400]


def profiled_spans(profiler: Any) -> Iterator[tuple[str, bool, int, int]]:
    """What a finished torch.profiler.profile saw: name, on the device or not, start and end in ns; without the ranges
    that code marks on the device's timeline, which are no work of their own. The raw list is read where there is
    one: the public one is built as a tree, which takes seconds for a large model."""
    raw = getattr(getattr(profiler, "profiler", None), "kineto_results", None)
    if raw is not None and hasattr(raw, "events"):
        for event in raw.events():
            on_device, start_ns = event.device_type() != _CPU, event.start_ns()
            if not (on_device and event.is_user_annotation()):
                yield event.name(), on_device, start_ns, start_ns + event.duration_ns()
        return
    for event in profiler.events():
        on_device = event.device_type != _CPU
        if not (on_device and event.is_user_annotation):
            yield event.name, on_device, round(1e3 * event.time_range.start), round(1e3 * event.time_range.end)


class CompileSignals(logging.Handler):
    """Listens to the compiler and sends what it says. Never raises into a compile."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        super().__init__(logging.DEBUG)
        self._send = send
        self._warnings = _WarningHandler(send)
        self._file_names: dict[int, str] = {}
        self._break_reasons: dict[str, str] = {}  # by compile id, of frames whose outcome is not told yet
        self._frames_dropped = 0
        self._last_guard: str | None = None
        self._activity_ns: list[int] = []
        self._spent_s = 0.0
        self._errors = 0
        self.heard_a_program = False

    # ------------------------------------------------------------ attaching

    def attach(self) -> tuple[str, ...]:
        """Start to listen; returns the capabilities found."""
        trace = logging.getLogger(_TRACE_LOGGER)
        # At index 0: torch's own lazy handler removes itself while it handles its first record, and the handler
        # that follows it then misses that record.
        trace.handlers.insert(0, self)
        trace.setLevel(logging.DEBUG)
        trace.propagate = False
        # logging.disable() in the user's code would switch this logger off with all others.
        trace.isEnabledFor = lambda level: True  # type: ignore[method-assign]
        for name in _WARNING_LOGGERS:
            logging.getLogger(name).addHandler(self._warnings)
        return ("trace", *(["callbacks"] if self.register_callbacks() else []))

    def register_callbacks(self) -> bool:
        """Again after every reset of Dynamo, which clears them. False where Dynamo is not imported or lacks them."""
        try:
            handler = _dynamo().callback.callback_handler
            if self._on_start not in handler.start_callbacks:
                handler.register_start_callback(self._on_start)
                handler.register_end_callback(self._on_end)
        except Exception:
            return False
        return True

    def take_activity_ns(self) -> list[int]:
        """When (perf_counter_ns) the compiler became active since the last call."""
        taken, self._activity_ns = self._activity_ns, []
        return taken

    def summary(self) -> CompilerSummary:
        """Counters as a second source beside the records."""
        frames, stats = _counters("frames"), _counters("stats")
        return CompilerSummary(
            frames_seen=frames.get("total", 0) if frames is not None else None,
            frames_compiled=max(0, frames.get("ok", 0) - self._frames_dropped) if frames is not None else None,
            unique_graphs=stats.get("unique_graphs", 0) if stats is not None else None,
            disabled_by=disabled_by(),
            handler_s=self._spent_s,
            handler_errors=self._errors + self._warnings.errors,
        )

    # ------------------------------------------------------------ sources

    def _on_start(self, *args: Any) -> None:
        self._callback(True, args)

    def _on_end(self, *args: Any) -> None:
        self._callback(False, args)

    def _callback(self, begins: bool, args: tuple[Any, ...]) -> None:
        """Called without arguments before torch 2.8, with CallbackArgs since."""
        try:
            if begins:
                self._activity_ns.append(perf_counter_ns())
            trigger = getattr(getattr(args[0], "callback_trigger", None), "name", None) if args else None
            compile_id = str(args[0].compile_id) if args and getattr(args[0], "compile_id", None) else None
            self._send(CompilerCallback(begins=begins, trigger=trigger, compile_id=compile_id))
        except Exception:
            self._errors += 1

    def handle(self, record: logging.LogRecord) -> bool:
        """In place of `emit`: no lock, filter or formatting, and an exception here would reach the compile."""
        started = perf_counter()
        try:
            metadata = getattr(record, "metadata", None)
            if metadata:
                self._read(metadata, getattr(record, "payload", None) or "")
        except Exception:
            self._errors += 1
        self._spent_s += perf_counter() - started
        return True

    def _read(self, metadata: dict[str, Any], payload: str) -> None:
        kind = next(iter(metadata))
        frame = metadata.get("frame_id")
        compile_id = f"{frame}/{metadata.get('frame_compile_id', 0)}" if frame is not None else None
        if kind == "chromium_event":
            self._read_span(_loads(payload), compile_id)
        elif kind == "str":
            name, index = metadata[kind]
            self._file_names[index] = name
        elif kind == "dynamo_start":
            self._read_frame(metadata[kind].get("stack") or [{}], compile_id or "?")
        elif kind == "dynamo_output_graph":
            self.heard_a_program = True
            self._send(GraphCaptured(compile_id=compile_id, ops=count_ops(payload)))
        elif kind == "inductor_output_code":
            self._send(parse_output_code(payload, compile_id))
        elif kind in ("compilation_metrics", "bwd_compilation_metrics"):
            self._read_metrics(metadata[kind], compile_id, backward=kind.startswith("bwd"))
        elif kind == "artifact":
            self._read_artifact(metadata[kind].get("name", ""), payload, compile_id)

    def _read_span(self, span: dict[str, Any], compile_id: str | None) -> None:
        name, args = span["name"], span.get("args") or {}
        if span["ph"] == "i":
            self._read_instant(name, args, compile_id)
            return
        stage = stage_of(name)
        if stage is None:
            return
        begins = span["ph"] == "B"
        if begins and stage in _COMPILING_STAGES:
            self._activity_ns.append(perf_counter_ns())
        own_id = args.get("compile_id")
        main = threading.current_thread() is threading.main_thread()
        self._send(
            CompileSpan(
                begins=begins,
                stage=stage,
                stage_name=name,
                compile_id=str(own_id) if own_id not in (None, "None") else compile_id,
                thread=0 if main else threading.get_ident(),
                detail=_worked_on(args),
            )
        )

    def _read_instant(self, name: str, args: dict[str, Any], compile_id: str | None) -> None:
        if name == "automatic_dynamic":
            old, new = args.get("cached"), args.get("new")
            self._send(
                DynamicShape(
                    compile_id=compile_id,
                    name=str(args.get("name")),
                    reason=args.get("reason"),
                    old=str(old) if old is not None else None,
                    new=str(new) if new is not None else None,
                )
            )
        elif name.startswith("autograd_cache_"):
            outcome = _cache_outcome(name)
            if outcome is not None:
                self._send(
                    CacheLookup(
                        cache=CacheKind.AOT_AUTOGRAD,
                        outcome=outcome,
                        compile_id=compile_id,
                        reason=args.get("cache_bypass_reason"),
                        saved_ms=args.get("time_saved_ms"),
                    )
                )

    def _read_frame(self, stack: list[dict[str, Any]], compile_id: str) -> None:
        self._activity_ns.append(perf_counter_ns())
        frame = stack[-1]
        index = frame.get("filename")
        file = self._file_names.get(index) if isinstance(index, int) else None
        self._send(FrameStarted(compile_id=compile_id, function=frame.get("name"), file=file, line=frame.get("line")))

    def _read_metrics(self, metrics: dict[str, Any], compile_id: str | None, backward: bool) -> None:
        get = metrics.get
        fail_type, fail_reason = get("fail_type"), get("fail_reason")
        break_reason = self._break_reasons.pop(compile_id or "", None)
        if break_reason and fail_type is None and get("guard_count") is None:
            # Before torch 2.11 a frame dropped at a graph break counts as compiled; it only never gets guards.
            self._frames_dropped += 1
            fail_type, fail_reason = "SkipFrame", break_reason
        overhead_us = get("structured_logging_overhead_us")
        self._send(
            FrameCompiled(
                compile_id=get("compile_id") or compile_id,
                backward=backward or get("is_forward") is False,
                function=get("co_name"),
                file=get("co_filename"),
                line=get("co_firstlineno"),
                ops=get("graph_op_count"),
                guards=get("guard_count"),
                fail_type=fail_type,
                fail_reason=str(fail_reason)[:4000] if fail_reason else None,
                fail_file=get("fail_user_frame_filename"),
                fail_line=get("fail_user_frame_lineno"),
                total_s=get("entire_frame_compile_time_s"),
                backend_s=get("backend_compile_time_s"),
                inductor_s=get("inductor_compile_time_s"),
                codegen_s=get("code_gen_time_s"),
                cudagraph_skip_reason=get("cudagraph_skip_reason"),
                logging_overhead_s=overhead_us / 1e6 if overhead_us is not None else None,
            )
        )
        limit_types = ("RecompileLimitExceeded", "CacheLimitExceeded")
        if "limit exceeded" in str(fail_reason) or get("fail_type") in limit_types:
            reason = get("recompile_reason")  # torch 2.6 has none; the recompile that failed was told just before
            text = parse_recompile(str(reason))[0].guard if reason else self._last_guard or str(fail_reason)
            self._send(RecompileLimitHit(compile_id=get("compile_id"), text=text))

    def _read_artifact(self, name: str, payload: str, compile_id: str | None) -> None:
        if name == "dynamo_graph_break_reason":
            graph_break = parse_graph_break(payload, compile_id, _TORCH_ROOT)
            self._break_reasons[compile_id or ""] = graph_break.reason
            if not is_own_file(graph_break.file):  # torch breaks optimizer.step on purpose: nobody can change that
                self._send(graph_break)
        elif name == "recompile_reasons":
            failures = parse_recompile(payload)
            self._last_guard = failures[0].guard
            self._send(Recompiled(compile_id=compile_id, failures=failures))
        elif name.startswith("fx_graph_cache_"):
            outcome = _cache_outcome(name)
            if outcome is not None:
                self._send(CacheLookup(cache=CacheKind.FX, outcome=outcome, compile_id=compile_id))


class _WarningHandler(logging.Handler):
    """What the compiler warns of; skipped cudagraphs are told nowhere else. The recompile limit has a record of its
    own, which names the guard."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        super().__init__(logging.WARNING)
        self._send = send
        self.errors = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()[:2000]
            if "cudagraph" in text.lower():
                self._send(CudagraphSkipped(reason=text))
            else:
                self._send(CompilerWarning(logger=record.name, text=text))
        except Exception:
            self.errors += 1


def _dynamo() -> Any:
    """torch._dynamo if something has imported it, else None. As an attribute of torch it would be imported here and
    now, and those seconds belong to no eager process."""
    return sys.modules.get("torch._dynamo")


def _worked_on(args: dict[str, Any]) -> str | None:
    detail = args.get("autotune_shape_hinted") or args.get("autotune_shape") or args.get("kernel_name")
    return str(detail)[:200] if detail else None


def _cache_outcome(name: str) -> CacheOutcome | None:
    try:
        return CacheOutcome(name.rsplit("_", 1)[1])
    except ValueError:
        return None


def _counters(name: str) -> dict[str, int] | None:
    try:
        return dict(_dynamo().utils.counters[name])
    except Exception:
        return None
