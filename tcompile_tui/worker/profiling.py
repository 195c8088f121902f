"""A few steady steps under torch's profiler: proof of what ran, after everything else was measured.

The compiler's records tell what was built. Only a profile tells what ran: compiled programs, replayed cudagraphs,
guard checks, and how busy the device was. The profiler slows steps down, so no step time is taken from here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter_ns

from torch.profiler import ProfilerActivity, profile

from ..core.events import Level, Notice, StepsProfiled
from ..core.spec import Arm
from . import compiler
from .bench import Bench
from .loop import Loop

_TARGET_NS = 200_000_000
_MIN_STEPS = 2
_MAX_STEPS = 10
_NO_KINETO_LOG = "99"
_REGION = "Torch-Compiled Region: "
_PROGRAM = "## Call CompiledFxGraph "
_LOOKUP = "TorchDynamo Cache Lookup"
_GRAPH_LAUNCHES = {"cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"}
# What a compiler replaces at best by another library kernel: matrix products, convolutions, attention, collectives.
_LIBRARY_KERNEL = re.compile(
    r"gemm|gemv|cutlass|cublas|cudnn|conv|xmma|wgrad|dgrad|flash|fmha|attention|nccl|splitk|triton_tem_", re.I
)
_LIBRARY_OPS = {
    "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::addmv", "aten::dot",
    "aten::mkldnn_convolution", "aten::convolution_backward", "aten::mkldnn_linear", "aten::mkldnn_rnn_layer",
    "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    "mkldnn::_linear_pointwise", "mkldnn::_convolution_pointwise",
}  # fmt: skip


@dataclass(frozen=True)
class Span:
    """One thing that the profiler saw."""

    name: str
    on_device: bool
    start_ns: int
    end_ns: int


def profile_steps(bench: Bench, loop: Loop) -> None:
    """Profile the loop's step and send what was seen. A profiler that does not work costs only its record."""
    steps = max(_MIN_STEPS, min(_MAX_STEPS, round(_TARGET_NS / loop.recent_step_ns)))
    on_gpu = bench.device.type == "cuda"
    os.environ.setdefault("KINETO_LOG_LEVEL", _NO_KINETO_LOG)  # it writes to stderr, which is the model's log
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    try:
        loop.run_untimed(1)
        with profile(activities=activities) as profiler:
            started_ns = perf_counter_ns()
            loop.run_untimed(steps)
            wall_ns = perf_counter_ns() - started_ns
        spans = [Span(*seen) for seen in compiler.profiled_spans(profiler)]
    except Exception as error:
        text = f"the profiler did not work ({type(error).__name__}: {error}): no proof of what ran, no guard cost"
        bench.channel.send(Notice(level=Level.INFO, code="no-profile", text=text))
        return
    bench.channel.send(read_spans(spans, loop.arm, steps, wall_ns, on_gpu))


def read_spans(spans: list[Span], arm: Arm, steps: int, wall_ns: int, on_gpu: bool) -> StepsProfiled:
    """Count what matters. On CUDA, a profile without a single kernel was not allowed to see the device."""
    host = [span for span in spans if not span.on_device]
    kernels = [span for span in spans if span.on_device]
    lookups = [span for span in host if span.name == _LOOKUP]
    saw_device = on_gpu and bool(kernels)
    regions = tuple(sorted({s.name.removeprefix(_REGION) for s in host if s.name.startswith(_REGION)}))
    program_calls = sum(span.name.startswith(_PROGRAM) for span in host)
    candidates, is_library = (kernels, _LIBRARY_KERNEL.search) if on_gpu else (host, _LIBRARY_OPS.__contains__)
    library = [span for span in candidates if is_library(span.name)]
    return StepsProfiled(
        arm=arm,
        steps=steps,
        wall_ns=wall_ns,
        lookups=len(lookups),
        lookup_ns=sum(span.end_ns - span.start_ns for span in lookups),
        regions=regions,
        program_calls=program_calls if program_calls or not regions else None,
        kernels=len(kernels) if saw_device else None,
        triton_kernels=sum(span.name.startswith("triton_") for span in kernels) if saw_device else None,
        graph_launches=sum(span.name in _GRAPH_LAUNCHES for span in host) if saw_device else None,
        device_busy_ns=covered_ns(kernels) if saw_device else None,
        library_ns=covered_ns(library) if saw_device or not on_gpu else None,
        fused_ns=longest_between_ns(kernels) if saw_device else None,
    )


def longest_between_ns(kernels: Iterable[Span]) -> int:
    """The longest kernel of each run of kernels between two library kernels, summed: what these runs would take as one
    kernel each, since a fused kernel reads and writes at least what its most expensive part does."""
    total = longest = 0
    for kernel in sorted(kernels, key=lambda span: span.start_ns):
        if _LIBRARY_KERNEL.search(kernel.name):
            total, longest = total + longest, 0
        else:
            longest = max(longest, kernel.end_ns - kernel.start_ns)
    return total + longest


def covered_ns(spans: Iterable[Span]) -> int:
    """Time covered by at least one of the spans: streams overlap, and operators nest."""
    total = last_end = 0
    for span in sorted(spans, key=lambda span: span.start_ns):
        total += max(0, span.end_ns - max(span.start_ns, last_end))
        last_end = max(last_end, span.end_ns)
    return total
