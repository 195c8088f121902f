"""An exception as one record: what happened, where in the user's code, and whose fault it is."""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
import traceback
from types import TracebackType

from ..core.events import WorkerFailed

_MAX_MESSAGE_CHARS = 4_000
_MAX_TRACEBACK_CHARS = 60_000
_OWN_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - may lie in a zip
COMPILER_MODULES = ("torch._dynamo", "torch._inductor", "torch._functorch", "triton")
_MAX_CHAIN = 10
_OUT_OF_MEMORY = ("CUDA error: out of memory", "CUDA out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
_ENVIRONMENT_NAMES = (
    "InvalidCxxCompiler", "CppCompileError", "TritonMissing", "GPUTooOldForTriton", "No space left on device",
)  # fmt: skip


class StageError(Exception):
    """A failure that we found ourselves, in words for the user."""

    def __init__(self, message: str, fault: str = "input", file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.fault, self.file, self.line = fault, file, line


def describe_failure(error: BaseException, stage: str, compiled: bool, inputs_given: bool) -> WorkerFailed:
    """Turn `error` into a record. Never raises: user exceptions may have a broken __str__."""
    message = text_of(error)
    file, line = _user_location(error)
    if isinstance(error, StageError):
        error_type, fault = "", error.fault
        file, line = (error.file, error.line) if error.file else (file, line)
    else:
        error_type, fault = type(error).__name__, _fault(error, message, stage, compiled, inputs_given)
    return WorkerFailed(
        stage=stage,
        error_type=error_type,
        message=_memory_text(message) if fault == "memory" else message,
        file=file,
        line=line,
        source=_source_line(file, line),
        fault=fault,
        traceback=_traceback_text(error),
    )


def text_of(error: BaseException) -> str:
    """What the exception says, at most `_MAX_MESSAGE_CHARS` of it; in words where its own text is only a value."""
    try:
        if type(error).__str__ is KeyError.__str__ and error.args:
            return f"key {error.args[0]!r} not found"[:_MAX_MESSAGE_CHARS]
        if isinstance(error, SystemExit):
            return f"sys.exit({error.code!r}) was called"[:_MAX_MESSAGE_CHARS]
        return str(error)[:_MAX_MESSAGE_CHARS]
    except Exception as broken:
        return f"(its text cannot be shown: str() raised {type(broken).__name__})"


def _memory_text(message: str) -> str:
    """torch's own text for the CPU begins with a place in its source and counts in bytes."""
    asked = re.search(r"tried to allocate (\d+) bytes", message)
    amount = f" (asked for {int(asked[1]) / 2**30:,.1f} GiB at once)" if asked else ""
    return f"out of memory{amount}: use smaller inputs. {message}".rstrip()


def chain_of(error: BaseException) -> list[BaseException]:
    """It, and what it was raised from or while."""
    chain = [error]
    while len(chain) < _MAX_CHAIN and (link := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(link)
    return chain


def is_out_of_memory(error: BaseException) -> bool:
    """By its own word, or by that of what it was raised from; libraries have words of their own for it."""
    texts = [(link, text_of(link)) for link in chain_of(error)]
    return any(_names_memory(link, text) or any(word in text for word in _OUT_OF_MEMORY) for link, text in texts)


def _names_memory(error: BaseException, message: str) -> bool:
    names = {cls.__name__ for cls in type(error).__mro__}
    return isinstance(error, MemoryError) or "OutOfMemoryError" in names or "can't allocate memory" in message


def _fault(error: BaseException, message: str, stage: str, compiled: bool, inputs_given: bool) -> str:
    names = {cls.__name__ for cls in type(error).__mro__}
    if _names_memory(error, message):
        return "memory"
    if stage in ("import", "build", "inputs"):
        return "input"
    if any(name in message or name in names for name in _ENVIRONMENT_NAMES) or _is_about_caches(error):
        return "environment"
    if compiled and any(str(cls.__module__).startswith(COMPILER_MODULES) for cls in type(error).__mro__):
        return "compiler"
    if inputs_given and ("dtype" in message or "scalar type" in message):
        return "input"
    return "model"


def _is_about_caches(error: BaseException) -> bool:
    """A folder of the compiler's caches that is gone or cannot be written."""
    folders = (os.environ.get("TORCHINDUCTOR_CACHE_DIR"), os.environ.get("TRITON_CACHE_DIR"))
    place = str(error.filename) if isinstance(error, OSError) and error.filename else ""
    return any(folder and place.startswith(folder) for folder in folders)


def is_own_file(filename: str | None) -> bool:
    """Is it a part of this program?"""
    return filename is not None and filename.startswith(_OWN_ROOT + os.sep)


def _is_user_file(filename: str) -> bool:
    if filename.startswith("<"):
        return False
    generated = {os.environ.get("TORCHINDUCTOR_CACHE_DIR"), os.environ.get("TRITON_CACHE_DIR")}
    library_roots = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), _OWN_ROOT, *generated}
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        library_roots.add(os.path.dirname(torch.__file__))  # noqa: PTH120
    if "site-packages" in filename or "dist-packages" in filename:
        return False
    return not any(root and filename.startswith(root + os.sep) for root in library_roots)


def _user_location(error: BaseException) -> tuple[str | None, int | None]:
    """The innermost frame of the user's own files; for a SyntaxError the place that cannot be read."""
    if isinstance(error, SyntaxError) and error.filename and _is_user_file(error.filename):
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
