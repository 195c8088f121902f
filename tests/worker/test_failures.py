"""An exception as one record: in words, with its place in the user's code and whose fault it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tcompile_tui.core.events import WorkerFailed, encode_event
from tcompile_tui.worker.failures import StageError, describe_failure

pytestmark = pytest.mark.xdist_group("torch")


class UglyError(Exception):
    def __str__(self) -> str:
        raise ValueError("no str for you")


class UglyKey:
    def __repr__(self) -> str:
        raise ValueError


class SpokenKeyError(KeyError):
    def __str__(self) -> str:
        return "the layer is not there"


class UnsupportedError(RuntimeError):
    """As torch's own: told by the module of its class."""

    __module__ = "torch._dynamo.exc"


class OutOfMemoryError(RuntimeError):
    pass


def _describe(
    error: BaseException, stage: str = "eager steps", compiled: bool = False, inputs_given: bool = False
) -> WorkerFailed:
    return describe_failure(error, stage, compiled, inputs_given)


def _failure_of(path: Path, code: str, **scope: Any) -> WorkerFailed:
    """Run `code` as the user's file `path` and describe what it raises."""
    path.write_text(code)
    try:
        exec(compile(code, str(path), "exec"), scope)
    except BaseException as error:
        return _describe(error)
    raise AssertionError("it did not fail")


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UglyError(), "(its text cannot be shown: str() raised ValueError)"),
        (KeyError(UglyKey()), "(its text cannot be shown: str() raised ValueError)"),
        (KeyError("layers.0"), "key 'layers.0' not found"),
        (SpokenKeyError("x"), "the layer is not there"),
        (KeyError(), ""),
        (SystemExit(3), "sys.exit(3) was called"),
        (KeyboardInterrupt(), ""),
    ],
)
def test_every_exception_has_a_message(error: BaseException, message: str) -> None:
    failure = _describe(error)
    assert (failure.message, failure.error_type) == (message, type(error).__name__)


def test_a_huge_text_is_cut_and_any_text_can_be_sent() -> None:
    failure = _describe(RuntimeError("[bold]\udcff" + "expected [2, 16] got [/x] " * 50_000))
    assert failure.message.startswith("[bold]\udcff") and len(failure.message) == 4_000
    assert len(failure.traceback) < 70_000
    assert rb"\udcff" in encode_event(failure)


def test_memory_that_ran_out_is_said_first() -> None:
    text = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to"
    failure = _describe(RuntimeError(f"{text} allocate 4398046511104 bytes. Error code 12 (Cannot allocate memory)"))
    assert failure.message.startswith("out of memory (asked for 4,096.0 GiB at once): use smaller inputs")
    assert _describe(MemoryError()).message == "out of memory: use smaller inputs."


# ---------------------------------------------------------------- places


def test_the_place_is_the_innermost_of_the_users_own_lines(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    failure = _failure_of(path, "import json\ndef forward():\n    return json.loads('{')\nforward()\n")
    assert (failure.file, failure.line, failure.source) == (str(path), 3, "return json.loads('{')")


def test_the_place_is_that_of_the_first_cause(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    code = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise RuntimeError('wrapped') from error\n"
    failure = _failure_of(path, code)
    assert (failure.line, failure.error_type) == (2, "RuntimeError")


def test_what_we_say_of_a_hook_has_the_hooks_place(tmp_path: Path) -> None:
    def say(error: Exception) -> None:
        raise StageError("example_inputs() failed") from error

    path = tmp_path / "net.py"
    failure = _failure_of(path, "try:\n    [][0]\nexcept IndexError as error:\n    say(error)\n", say=say)
    assert (failure.file, failure.line, failure.error_type, failure.fault) == (str(path), 2, "", "input")


def test_generated_code_is_not_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert _failure_of(tmp_path / "cabc.py", "1 / 0\n").file != str(tmp_path / "cabc.py")


def test_a_syntax_error_is_placed_where_it_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "helper.py"
    path.write_text("import torch\n%matplotlib inline\n")
    with pytest.raises(SyntaxError) as caught:
        compile(path.read_text(), str(path), "exec")
    failure = _describe(caught.value, stage="import")
    assert (failure.file, failure.line, failure.source) == (str(path), 2, "%matplotlib inline")
    evaluated = _failure_of(tmp_path / "net.py", "x = 1\nexec('1 +')\n")
    assert (evaluated.file, evaluated.line) == (str(tmp_path / "net.py"), 2)


def test_a_failure_without_torch_can_be_told() -> None:
    """Importing torch may be what fails."""
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from tcompile_tui.worker.failures import describe_failure\n"
        "try:\n    import torch\n"
        "except ImportError as error:\n    print(describe_failure(error, 'importing torch', False, False).error_type)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "ModuleNotFoundError"


# ---------------------------------------------------------------- whose fault


@pytest.mark.parametrize(
    ("error", "stage", "compiled", "inputs_given", "fault"),
    [
        (ValueError("x"), "import", False, False, "input"),
        (ValueError("x"), "build", False, False, "input"),
        (MemoryError(), "build", False, False, "memory"),
        (OutOfMemoryError("CUDA out of memory"), "compiled steps", True, False, "memory"),
        (ValueError("x"), "eager steps", False, False, "model"),
        (RuntimeError("expected scalar type Long"), "eager steps", False, True, "input"),
        (RuntimeError("expected scalar type Long"), "eager steps", False, False, "model"),
        (UnsupportedError("no"), "compiled steps", True, False, "compiler"),
        (UnsupportedError("no"), "accuracy check", False, False, "model"),
        (UnsupportedError("InvalidCxxCompiler: No working C++ compiler"), "compiled steps", True, False, "environment"),
        (StageError("x"), "eager steps", False, False, "input"),
        (StageError("x", fault="program"), "start", False, False, "program"),
    ],
)
def test_the_fault_is_the_one_who_can_mend_it(
    error: BaseException, stage: str, compiled: bool, inputs_given: bool, fault: str
) -> None:
    assert _describe(error, stage, compiled, inputs_given).fault == fault
