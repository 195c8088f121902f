"""What is read from a profile."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tcompile_tui.core.spec import Arm
from tcompile_tui.worker.profiling import Span, covered_ns, longest_between_ns, read_spans

_REGION = "Torch-Compiled Region: 0/0"


def _host(name: str, start_ns: int = 0, end_ns: int = 1) -> Span:
    return Span(name, False, start_ns, end_ns)


def _device(name: str, start_ns: int = 0, end_ns: int = 1) -> Span:
    return Span(name, True, start_ns, end_ns)


def test_a_step_with_a_replayed_cudagraph() -> None:
    spans = [
        _host("TorchDynamo Cache Lookup", 0, 30), _host(_REGION, 30, 90),
        _host("## Call CompiledFxGraph fabc ##", 40, 80), _host("cudaGraphLaunch", 50, 60),
        # Inductor marks each launch with its kernel's name.
        _host("triton_poi_fused_gelu_0", 48, 49), _device("triton_poi_fused_gelu_0", 60, 100),
        _device("sm90_xmma_gemm_f32f32", 90, 150), _device("Memset (Device)", 160, 170),
    ]  # fmt: skip
    seen = read_spans(spans, Arm.COMPILED, steps=1, wall_ns=200, on_gpu=True)
    assert (seen.lookups, seen.lookup_ns, seen.regions, seen.program_calls) == (1, 30, ("0/0",), 1)
    assert (seen.kernels, seen.triton_kernels, seen.graph_launches) == (3, 1, 1)
    assert (seen.device_busy_ns, seen.library_ns, seen.fused_ns) == (100, 60, 40 + 10)


def test_a_profiler_that_may_not_see_the_device_says_nothing_of_it() -> None:
    seen = read_spans([_host("cudaLaunchKernel"), _host(_REGION)], Arm.COMPILED, steps=1, wall_ns=9, on_gpu=True)
    assert seen.regions == ("0/0",)
    assert (seen.kernels, seen.graph_launches, seen.device_busy_ns, seen.library_ns) == (None, None, None, None)


def test_on_cpu_library_time_is_that_of_the_operators() -> None:
    spans = [_host("aten::linear", 0, 50), _host("aten::addmm", 10, 45), _host("aten::relu", 50, 60)]
    seen = read_spans(spans, Arm.EAGER, steps=1, wall_ns=100, on_gpu=False)
    assert (seen.library_ns, seen.kernels, seen.device_busy_ns) == (35, None, None)


def test_kernels_between_library_calls_become_one_as_long_as_their_longest() -> None:
    kernels = [
        _device("add", 0, 5), _device("mul", 5, 12), _device("ampere_sgemm_64x64", 20, 40), _device("relu", 41, 44),
        _device("cutlass_conv", 50, 60), _device("layer_norm", 60, 61),
    ]  # fmt: skip
    assert longest_between_ns(reversed(kernels)) == 7 + 3 + 1
    assert longest_between_ns([]) == 0


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20))))
def test_covered_time_counts_each_moment_once(starts_and_lengths: list[tuple[int, int]]) -> None:
    spans = [_device("kernel", start, start + length) for start, length in starts_and_lengths]
    moments = {moment for start, length in starts_and_lengths for moment in range(start, start + length)}
    assert covered_ns(spans) == len(moments)


def test_a_torch_that_does_not_mark_its_programs_leaves_their_number_open() -> None:
    seen = read_spans([_host(_REGION)], Arm.COMPILED, steps=1, wall_ns=9, on_gpu=False)
    assert (seen.regions, seen.program_calls) == (("0/0",), None)
    assert read_spans([_host("aten::add")], Arm.COMPILED, steps=1, wall_ns=9, on_gpu=False).program_calls == 0
