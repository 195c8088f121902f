"""One line for a failure, from what torch writes in many."""

from __future__ import annotations

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.failure_words import failure_advice, failure_text

OVERWRITTEN = (
    "Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. "
    'Stack trace:   File "/home/u/net.py", line 8, in forward\n    return self.fc(x). '
    "To prevent overwriting, clone the tensor outside of torch.compile() "
)
FAKE = """RuntimeError when making fake tensor call
  Explanation: Dynamo failed to run FX node: got RuntimeError("shape '[7, 13]' is invalid")
  Hint: Your code may result in an error when running in eager.

from user code:
   File "/home/u/net.py", line 6, in forward
    y = helper(y)
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 9, in helper
    y = y.reshape(7, 13)

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
"""


def failed(message: str, error_type: str = "RuntimeError", fault: str = "model", **place: object) -> ev.WorkerFailed:
    return ev.WorkerFailed(
        stage="compiled steps",
        error_type=error_type,
        message=message,
        fault=fault,
        **{"file": None, "line": None, **place},
    )  # type: ignore[arg-type]


def test_a_stack_in_the_message_becomes_its_place() -> None:
    text = failure_text(failed(OVERWRITTEN))
    assert text.endswith("has been overwritten by a subsequent run. (/home/u/net.py:8)")
    assert "Stack trace" not in text and text.count("net.py") == 1


def test_what_dynamo_explains_is_told_with_the_users_own_line() -> None:
    text = failure_text(failed(FAKE, "TorchRuntimeError"))
    assert text.startswith("TorchRuntimeError: RuntimeError when making fake tensor call: Dynamo failed to run FX node")
    assert text.endswith("(/home/u/net.py:6)") and "\n" not in text


def test_a_place_that_is_told_is_not_told_again() -> None:
    assert failure_text(failed("net.py cannot be read", "", file="net.py", line=3)) == "net.py cannot be read"
    assert failure_text(failed("boom", file="net.py", line=3)) == "RuntimeError: boom (net.py:3)"


def test_a_failure_without_words_is_one_too() -> None:
    assert failure_text(failed("", "")) == "failed without a message"
    assert len(failure_text(failed("x" * 5000))) <= 300


@pytest.mark.parametrize("fault", ["memory", "environment", "compiler", "program", "model"])
def test_every_failure_has_a_next_step(fault: str) -> None:
    assert failure_advice(failed("boom", fault=fault))


def test_outputs_that_cudagraphs_overwrite_are_to_be_cloned() -> None:
    assert failure_advice(failed(OVERWRITTEN)).startswith("clone what the model returns")
