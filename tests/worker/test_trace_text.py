"""The compiler's texts, in the wordings of several torch versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tcompile_tui.core.events import CompileStage, GuardFailure
from tcompile_tui.worker.trace_text import count_ops, parse_graph_break, parse_output_code, parse_recompile, stage_of

_LIBRARY = "/env/site-packages/torch/"
_STACK = """User code traceback:
  File "/home/u/net.py", line 40, in forward
    return helper(x) * 2
           ^^^^^^^^^
  File "{model}", line 2, in helper
    print('x')
{inner}
Traceback (most recent call last):
  File "/env/site-packages/torch/_dynamo/symbolic_convert.py", line 1076, in wrapper
    return inner_fn(self, inst)
  File "/home/u/plugin.py", line 3, in not_to_blame
torch._dynamo.exc.Unsupported: Failed to trace builtin operator
"""
_CALL = """Graph break in user code at /home/u/elsewhere.py:9
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
  Hint: Avoid calling builtin `print`.
  Hint: Please report an issue to PyTorch.

  Developer debug context: builtin print [<class 'ConstantVariable'>] False

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html

"""
_LOOP = """Graph break in user code at /home/u/net.py:13
Graph Break Reason: Failed to handle graph break gracefully. Skipping the function and falling back to eager. \
Graph break encountered:

Unsupported Tensor.item() call with capture_scalar_outputs=False
  Explanation: Dynamo does not support tracing `Tensor.item()`.
  Hint: Set `torch._dynamo.config.capture_scalar_outputs = True`

*** While handling this graph break, another graph break occurred: ***

graph break in loop
  Explanation: torch.compile detected a graph break in a for/while loop.

Stack variable source attribution:
  File "/home/u/other.py", line 12
        for _ in range(2):

"""


def _model(folder: Path) -> Path:
    path = folder / "helper.py"
    path.write_text("def helper(x):\n    print('x')\n")
    return path


@pytest.mark.parametrize("inner", ["", '  File "/env/site-packages/torch/nn/functional.py", line 99, in relu\n'])
def test_a_break_is_placed_in_the_innermost_frame_outside_torch(tmp_path: Path, inner: str) -> None:
    model = _model(tmp_path)
    found = parse_graph_break(_CALL + _STACK.format(model=model, inner=inner), "0/0", _LIBRARY)
    assert (found.file, found.line, found.function, found.source) == (str(model), 2, "helper", "print('x')")
    assert found.reason == "Failed to trace builtin operator"
    assert found.explanation == "Dynamo does not know how to trace builtin operator `print`"
    assert found.hints == ("Avoid calling builtin `print`.", "Please report an issue to PyTorch.")
    assert found.gb_id == "GB0059" and found.url is not None and found.url.endswith("/gb/gb0059.html")
    assert not found.frame_dropped and found.compile_id == "0/0"


def test_a_break_in_a_loop_says_that_the_function_runs_eager(tmp_path: Path) -> None:
    found = parse_graph_break(_LOOP + _STACK.format(model=_model(tmp_path), inner=""), "4/0", _LIBRARY)
    assert found.frame_dropped
    assert found.reason == "Unsupported Tensor.item() call with capture_scalar_outputs=False", "the first, not the loop"
    assert found.function == "helper", "frames of the attribution are not the traceback"


def test_older_and_unknown_texts_keep_what_they_say() -> None:
    old = parse_graph_break(
        "Graph break in user code at /home/u/net.py:7\nReason: Unsupported: generic_jump\n", None, _LIBRARY
    )
    assert (old.file, old.line, old.reason, old.hints, old.gb_id) == ("/home/u/net.py", 7, "generic_jump", (), None)
    unknown = parse_graph_break("something new", None, _LIBRARY)
    assert (unknown.file, unknown.line, unknown.reason) == (None, None, "something new")
    assert parse_graph_break("", None, _LIBRARY).reason == "unknown reason"


_SIZE = "tensor 'x' size mismatch at index 0. expected 3, actual 4"
_STEP = (
    "0/1: self.step == 1          # self.step += 1  # home/u/net.py:11 in forward (HINT: torch.compile considers\n more"
)


@pytest.mark.parametrize(
    ("payload", "failures"),
    [
        (f"0/0: {_SIZE}", (GuardFailure(_SIZE, "0/0"),)),
        (json.dumps([f"0/0: {_SIZE}", "0/1: L['n'] == 3\nUser stack trace:\n  x"]),
         (GuardFailure(_SIZE, "0/0"), GuardFailure("L['n'] == 3", "0/1"))),
        (_STEP, (GuardFailure("self.step == 1", "0/1", "home/u/net.py:11 in forward"),)),
        ("a new wording", (GuardFailure("a new wording"),)),
    ],
)  # fmt: skip
def test_a_recompile_names_guard_entry_and_place(payload: str, failures: tuple[GuardFailure, ...]) -> None:
    assert parse_recompile(payload) == failures


def test_generated_code_is_counted_by_what_it_calls() -> None:
    code = (
        "k0 = async_compile.triton('k0', '''...''')\nk1 = async_compile.cpp_pybinding(['float*'], '''''')\n"
        "extern_kernels.addmm(b, x, w, out=buf0)\nbuf1 = torch.ops.aten.cumsum.default(buf0, 0)\n"
    )
    found = parse_output_code(code, "0/0")
    assert (found.kernels, found.kernel_languages) == (2, ("cpp_pybinding", "triton"))
    assert (found.library_calls, found.fallback_ops) == (("addmm",), ("aten.cumsum.default",))


def test_operations_of_a_printed_graph_are_counted_without_inputs_and_comments() -> None:
    graph = """class GraphModule(torch.nn.Module):
    def forward(self, s77: "Sym(s77)", L_x_: "f32[s77, 4][4, 1]cpu", L_s_buffers_b_: "f32[4][1]cpu"):
        l_x_ = L_x_
        l_s_buffers_b_ = L_s_buffers_b_

        # File: /home/u/net.py:16 in forward, code: y = x.sin() + s.b
        sin: "f32[s77, 4][4, 1]cpu" = l_x_.sin();  l_x_ = None
        y: "f32[s77, 4][4, 1]cpu" = sin + l_s_buffers_b_;  sin = l_s_buffers_b_ = None

        # File: /home/u/net.py:17 in forward, code: a, c = y.split(2, 1)
        split = y.split(2, 1)
        a: "f32[s77, 2][4, 1]cpu" = split[0];  split = None
        _tensor_constant0 = self._tensor_constant0
        return (a,)
"""
    assert count_ops(graph) == 4


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("entire_frame_compile", CompileStage.FRAME),
        ("mm_template_autotuning", CompileStage.AUTOTUNE),
        ("CUDAGraphNode.record", CompileStage.CUDAGRAPH),
        ("pass.remove_noop", None),
    ],
)
def test_spans_have_a_stage_or_are_noise(name: str, stage: CompileStage | None) -> None:
    assert stage_of(name) is stage
