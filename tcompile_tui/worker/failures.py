"""An exception as one record: what happened, where in the user's code, and whose fault it is."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import traceback
from types import TracebackType

from ..core.events import WorkerFailed

_MAX_MESSAGE_CHARS = 4_000
_MAX_TRACEBACK_CHARS = 60_000
_OWN_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - may lie in a zip
_COMPILER_MODULES = ("torch._dynamo", "torch._inductor", "torch._functorch", "triton")
_ENVIRONMENT_NAMES = ("InvalidCxxCompiler", "CppCompileError", "TritonMissing", "GPUTooOldForTriton")


class StageError(Exception):
    """A failure that we found ourselves, in words for the user."""

    def __init__(self, message: str, fault: str = "input", file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.fault, self.file, self.line = fault, file, line


def describe_failure(error: BaseException, stage: str, compiled: bool, inputs_given: bool) -> WorkerFailed:
    """Turn `error` into a record. Never raises: user exceptions may have a broken __str__."""
    message = _text_of(error)
    if isinstance(error, StageError):
        return WorkerFailed(
            stage=stage, error_type="", message=message, file=error.file, line=error.line, fault=error.fault,
            source=_source_line(error.file, error.line), traceback=_traceback_text(error),
        )  # fmt: skip
    file, line = _user_location(error)
    return WorkerFailed(
        stage=stage,
        error_type=type(error).__name__,
        message=message,
        file=file,
        line=line,
        source=_source_line(file, line),
        fault=_fault(error, message, stage, compiled, inputs_given),
        traceback=_traceback_text(error),
    )


def _text_of(error: BaseException) -> str:
    if isinstance(error, KeyError) and error.args:
        return f"key {error.args[0]!r} not found"[:_MAX_MESSAGE_CHARS]
    try:
        return str(error)[:_MAX_MESSAGE_CHARS]
    except Exception as broken:
        return f"(its text cannot be shown: str() raised {type(broken).__name__})"


def _fault(error: BaseException, message: str, stage: str, compiled: bool, inputs_given: bool) -> str:
    names = {cls.__name__ for cls in type(error).__mro__}
    if isinstance(error, MemoryError) or "OutOfMemoryError" in names or "can't allocate memory" in message:
        return "memory"
    if stage in ("import", "build", "inputs"):
        return "input"
    if any(name in message or name in names for name in _ENVIRONMENT_NAMES):
        return "environment"
    if compiled and any(cls.__module__.startswith(_COMPILER_MODULES) for cls in type(error).__mro__):
        return "compiler"
    if inputs_given and ("dtype" in message or "scalar type" in message):
        return "input"
    return "model"


def _is_user_file(filename: str) -> bool:
    if filename.startswith("<"):
        return False
    library_roots = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), _OWN_ROOT}
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        library_roots.add(os.path.dirname(torch.__file__))  # noqa: PTH120
    if "site-packages" in filename or "dist-packages" in filename:
        return False
    return not any(root and filename.startswith(root + os.sep) for root in library_roots)


def _user_location(error: BaseException) -> tuple[str | None, int | None]:
    """The innermost frame of the user's own files; for a SyntaxError the place that cannot be read."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None and len(chain) < 10:
        chain.append(chain[-1].__cause__)
    for link in reversed(chain):
        place = _innermost_user_frame(link.__traceback__)
        if place is not None:
            return place
    return None, None


def _innermost_user_frame(trace: TracebackType | None) -> tuple[str, int] | None:
    place = None
    for frame, line in traceback.walk_tb(trace):
        if _is_user_file(frame.f_code.co_filename):
            place = (frame.f_code.co_filename, line)
    return place


def _source_line(file: str | None, line: int | None) -> str | None:
    return linecache.getline(file, line).strip()[:400] or None if file and line else None


def _traceback_text(error: BaseException) -> str:
    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:
        text = "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
    half = _MAX_TRACEBACK_CHARS // 2
    return text if len(text) <= _MAX_TRACEBACK_CHARS else f"{text[:half]}\n[...]\n{text[-half:]}"
