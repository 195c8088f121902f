"""What the compiler writes as text, read into records: graph breaks, recompile reasons, generated code.

Pure and without torch, so that every known wording is a test. The wordings of 2.6 to 2.14 are covered; a text
that is not understood keeps its first line as the reason.
"""

from __future__ import annotations

import json
import linecache
import re

from ..core.events import CodeGenerated, CompileStage, GraphBreak, GuardFailure

_STAGES = {
    "dynamo": CompileStage.FRAME, "_compile.compile_inner": CompileStage.FRAME,
    "entire_frame_compile": CompileStage.FRAME, "compile_inner": CompileStage.FRAME,
    "bytecode_tracing": CompileStage.DYNAMO, "build_guards": CompileStage.GUARDS,
    "backend_compile": CompileStage.BACKEND,
    "create_aot_dispatcher_function": CompileStage.AOT, "aot_collect_metadata": CompileStage.AOT,
    "aot_trace_joint_graph": CompileStage.AOT,
    "min_cut_rematerialization_partition": CompileStage.PARTITION,
    "AOTAutogradCache.inductor_load": CompileStage.CACHE_LOAD,
    "compile_fx.<locals>.fw_compiler_base": CompileStage.INDUCTOR,
    "compile_fx.<locals>.bw_compiler": CompileStage.INDUCTOR,
    "inductor_compile": CompileStage.INDUCTOR, "compile_fx_inner": CompileStage.INDUCTOR,
    "fx_codegen_and_compile": CompileStage.INDUCTOR,
    "entire_backward_compile": CompileStage.BACKWARD,
    "_recursive_pre_grad_passes": CompileStage.FX_PASSES, "_recursive_joint_graph_passes": CompileStage.FX_PASSES,
    "_recursive_post_grad_passes": CompileStage.FX_PASSES,
    "GraphLowering.run": CompileStage.LOWERING, "Scheduler.__init__": CompileStage.SCHEDULING,
    "Scheduler.codegen": CompileStage.CODEGEN, "code_gen": CompileStage.CODEGEN,
    "GraphLowering.codegen": CompileStage.CODEGEN,
    "PyCodeCache.load_by_key_path": CompileStage.KERNEL_LOAD,
    "async_compile.precompile": CompileStage.KERNELS, "async_compile.wait": CompileStage.KERNELS,
    "compile_file": CompileStage.KERNELS, "StaticAutotunerFuture.warm_precompile": CompileStage.KERNELS,
    "CachingAutotuner.slow_precompile_config": CompileStage.KERNELS,
    "CachingAutotuner.benchmark_all_configs": CompileStage.AUTOTUNE,
    "CachingAutotuner.coordinate_descent_tuning": CompileStage.AUTOTUNE,
    "pad_mm_benchmark": CompileStage.AUTOTUNE, "benchmark_fused_nodes": CompileStage.AUTOTUNE,
    "cudagraphify": CompileStage.CUDAGRAPH, "cudagraphify.get_container": CompileStage.CUDAGRAPH,
    "CUDAGraphNode.record": CompileStage.CUDAGRAPH,
}  # fmt: skip


def stage_of(name: str) -> CompileStage | None:
    """The stage behind torch's own name of a span; None for what is noise or unknown."""
    if name in _STAGES:
        return _STAGES[name]
    if name.endswith(("_template_autotuning", "_template_precompiling")):
        return CompileStage.AUTOTUNE
    return None


_BREAK_PLACE = re.compile(r"^Graph break in user code at (.+):(\d+)\s*$", re.M)
_BREAK_ID = re.compile(r"/gb/(gb\d+)")
_BREAK_URL = re.compile(r"https?://\S+/gb/gb\d+\.html")
_BREAK_REASON = re.compile(r"^(?:Graph Break )?Reason:", re.M)
_TRACEBACK_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+), in (.+)$', re.M)
_PREAMBLES = ("Encountered graph break", "Failed to handle graph break", "For more details", " For more")
_DROPPED = ("Skipping the function and falling back to eager", "results in a skip", "skip tracing the frame")


def parse_graph_break(text: str, compile_id: str | None, library_root: str) -> GraphBreak:
    """Read the artifact `dynamo_graph_break_reason`. Frames below `library_root` (torch's own folder) are never
    blamed: the innermost frame outside it is the place."""
    head, _, tail = text.partition("User code traceback:")
    frames = _TRACEBACK_FRAME.findall((tail or text).split("\nTraceback (most recent call last)")[0])
    place, function = _user_place(text, frames, library_root)
    body = _BREAK_REASON.split(head, maxsplit=1)[-1].strip()
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith(_PREAMBLES)]
    gb_id, url = _BREAK_ID.search(text), _BREAK_URL.search(text)
    file, line = place
    return GraphBreak(
        compile_id=compile_id,
        file=file,
        line=line,
        function=function,
        source=linecache.getline(file, line).strip()[:400] or None if file and line else None,
        reason=(reasons or lines or ["unknown reason"])[0].removeprefix("Unsupported: "),  # the class, in torch 2.6
        explanation=next((x.removeprefix("Explanation:").strip() for x in lines if x.startswith("Explanation:")), None),
        hints=tuple(x.removeprefix("Hint:").strip() for x in lines if x.startswith("Hint:")),
        gb_id=gb_id.group(1).upper() if gb_id else None,
        url=url.group(0) if url else None,
        frame_dropped=any(words in body for words in _DROPPED),
    )


def _user_place(
    text: str, frames: list[tuple[str, str, str]], library_root: str
) -> tuple[tuple[str | None, int | None], str | None]:
    for file, line, function in reversed(frames):
        if not file.startswith((library_root, "<")):
            return (file, int(line)), function
    named = _BREAK_PLACE.search(text)
    return ((named.group(1), int(named.group(2))) if named else (None, None)), None


def parse_recompile(payload: str) -> tuple[GuardFailure, ...]:
    """Read `recompile_reasons`: one text or a JSON list of texts such as
    "0/1: tensor 'x' size mismatch at index 0. expected 4, actual 6"."""
    try:
        loaded = json.loads(payload)
    except ValueError:
        loaded = payload
    texts = [str(text) for text in loaded] if isinstance(loaded, list) else [str(loaded)]
    return tuple(_guard_failure(text.split("\nUser stack trace:")[0]) for text in texts)


def _guard_failure(text: str) -> GuardFailure:
    match = re.match(r"^(\d+/\d+): (.*)$", text, re.S)
    entry, rest = (match.group(1), match.group(2)) if match else (None, text)
    # "guard   # source line  # file:line in fn (HINT: ...)"
    parts = [part.strip() for part in re.split(r"\s{2,}# ", rest.partition(" (HINT: ")[0])]
    return GuardFailure(guard=parts[0], entry=entry, where=parts[-1] if len(parts) > 1 else None)


_KERNEL = re.compile(
    r"async_compile\.(triton|cpp_pybinding|cpp|cutedsl|pallas|metal|halide|cuda|rocm|nv_universal_gemm)\("
)
_LIBRARY_CALL = re.compile(r"\bextern_kernels\.(\w+)\(")
_FALLBACK = re.compile(r"\btorch\.ops\.(\w+\.\w+(?:\.\w+)?)\(")


def parse_output_code(code: str, compile_id: str | None) -> CodeGenerated:
    """Count what Inductor's generated Python module will compile and call."""
    kernels = _KERNEL.findall(code)
    return CodeGenerated(
        compile_id=compile_id,
        kernels=len(kernels),
        kernel_languages=tuple(sorted(set(kernels))),
        library_calls=tuple(_LIBRARY_CALL.findall(code)),
        fallback_ops=tuple(_FALLBACK.findall(code)),
    )


_ASSIGNMENT = re.compile(r'^\s*\w+(?:: "[^"]*")? = ([^;\n]*)', re.M)
_PLAIN_NAME = re.compile(r"[\w.]+\s*")


def count_ops(graph_text: str) -> int:
    """Operations in a printed Dynamo graph: assignments, without those that only give an input or attribute a name."""
    return sum(not _PLAIN_NAME.fullmatch(value) for value in _ASSIGNMENT.findall(graph_text))
