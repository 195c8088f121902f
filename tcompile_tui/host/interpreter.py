"""Which Python runs the worker: one whose environment has torch. torch is looked for without importing it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_OLDEST_PYTHON = (3, 10)
_OLDEST_TORCH = (2, 6)
_PROBE_TIMEOUT_S = 30
_MARK = "tcompile-tui-probe:"

# Runs under any Python, so that an old one can be told by name. The version that counts is that of the
# package that an import would find, which is not always the one the metadata speak of.
_PROBE = f"""
import json, os, re, sys
found = {{"executable": sys.executable,
         "prefix": sys.prefix, "base_prefix": getattr(sys, "base_prefix", sys.prefix),
         "python": list(sys.version_info[:2]), "python_text": sys.version.split()[0],
         "torch": False, "version": None, "cuda": None}}
if sys.version_info >= (3, 8):
    import importlib.util, importlib.metadata
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin:
        found["torch"] = True
        try:
            with open(os.path.join(os.path.dirname(spec.origin), "version.py")) as file:
                text = file.read()
            found["version"] = re.search("__version__.*?= *['\\"]([^'\\"]+)", text).group(1)
            cuda = re.search("^cuda.*?= *['\\"]([^'\\"]+)", text, re.MULTILINE)
            found["cuda"] = cuda.group(1) if cuda else None
        except Exception:
            try:
                found["version"] = importlib.metadata.version("torch")
            except Exception:
                pass
print("{_MARK}" + json.dumps(found))
"""


class InterpreterError(Exception):
    """No interpreter can run the worker; the message is one line for the user."""


@dataclass(frozen=True)
class Interpreter:
    """A Python with torch. `why` says how it was found; `torch_version` is None if its torch does not tell.
    `torch_cuda` is the CUDA version it is built for, None for a build without.
    `environment_updates` are the variables that activating its environment would set."""

    executable: str
    why: str
    torch_version: str | None
    python_version: str
    environment_updates: dict[str, str]
    torch_cuda: str | None = None


def find_interpreter(asked: str | None, environment: Mapping[str, str]) -> Interpreter:
    """The interpreter `asked` for; else the first with a usable torch of: our own, that of $VIRTUAL_ENV or
    $CONDA_PREFIX, `python` and `python3` on PATH. Runs each for a moment. Raises InterpreterError."""
    if asked is not None:
        executable = _asked_executable(asked, environment)
        return _usable(executable, "--python", environment)
    too_old: _UnusableError | None = None
    for executable, why in _candidates(environment):
        found = _try(executable, why, environment)
        if isinstance(found, Interpreter):
            return found
        if found.has_torch and too_old is None:
            too_old = found
    if too_old is not None:
        raise InterpreterError(f"{too_old}; upgrade it, or name another with --python /path/to/env/bin/python")
    raise InterpreterError(
        "no Python with torch found: install it here (pip install torch), "
        "or name one that has it with --python /path/to/env/bin/python"
    )


def release_of(version: str) -> tuple[int, int]:
    """Major and minor number, whatever follows: NGC's '2.6.0a0+df5bbc0' is a 2.6. Raises ValueError."""
    found = re.match(r"\s*v?(\d+)(?:\.(\d+))?", version)
    if found is None:
        raise ValueError(f"'{version}' is no version")
    return int(found[1]), int(found[2] or 0)


class _UnusableError(InterpreterError):
    def __init__(self, message: str, has_torch: bool = False) -> None:
        super().__init__(message)
        self.has_torch = has_torch


@dataclass(frozen=True)
class _Probed:
    """What an interpreter says of itself."""

    executable: str
    python: list[int]
    python_text: str
    prefix: str
    base_prefix: str
    torch: bool
    version: str | None
    cuda: str | None


def _asked_executable(asked: str, environment: Mapping[str, str]) -> str:
    """The absolute path, symbolic links kept: through its link a venv's python knows its venv."""
    if os.sep not in asked:
        found = shutil.which(asked, path=environment.get("PATH", ""))
        if found is not None:
            return str(Path(found).absolute())
    path = Path(asked).expanduser().absolute()
    if path.is_dir():
        inner = path / "bin" / "python"
        hint = f"; did you mean {inner}?" if inner.exists() else ""
        raise InterpreterError(f"--python {asked} is a folder, not an interpreter{hint}")
    if not path.exists():
        where = " here or on PATH" if os.sep not in asked else ""
        raise InterpreterError(f"--python {asked}: there is no such file{where}")
    if not os.access(path, os.X_OK):
        raise InterpreterError(f"--python {asked} is not executable")
    return str(path)


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Executables that exist, each once, and how they were found."""
    seen: set[str] = set()
    for executable, why in _places(environment):
        if executable and executable not in seen and os.access(executable, os.X_OK):
            seen.add(executable)
            yield executable, why


def _try(executable: str, why: str, environment: Mapping[str, str]) -> Interpreter | _UnusableError:
    try:
        return _usable(executable, why, environment)
    except _UnusableError as error:
        return error


def _places(environment: Mapping[str, str]) -> Iterator[tuple[str | None, str]]:
    yield sys.executable, "the Python that runs tcompile-tui"
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environment.get(variable):
            yield str(Path(environment[variable], "bin", "python")), f"${variable}"
    for name in ("python", "python3"):
        yield shutil.which(name, path=environment.get("PATH", "")), f"{name} on PATH"


def _usable(executable: str, why: str, environment: Mapping[str, str]) -> Interpreter:
    probed = _probe(executable, environment)
    if tuple(probed.python) < _OLDEST_PYTHON:
        raise _UnusableError(f"Python {probed.python_text} in {executable} is too old: 3.10 or newer is needed")
    if not probed.torch:
        raise _UnusableError(f"{executable} has no torch: install it with `{executable} -m pip install torch`")
    if _is_too_old(probed.version):
        raise _UnusableError(f"torch {probed.version} in {executable} is too old: 2.6 or newer is needed", True)
    if why.endswith("on PATH"):
        # What is found there may be a shim that picks an interpreter by the working directory.
        executable = probed.executable or executable
    return Interpreter(
        executable=executable,
        why=why,
        torch_version=probed.version,
        python_version=probed.python_text,
        environment_updates=_activation(probed, environment),
        torch_cuda=probed.cuda,
    )


def _is_too_old(version: str | None) -> bool:
    """A version that cannot be read passes: the worker will tell what is amiss."""
    try:
        return version is not None and release_of(version) < _OLDEST_TORCH
    except ValueError:
        return False


def _activation(probed: _Probed, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that activation would change. Nothing for an interpreter outside venv and conda."""
    if probed.prefix != probed.base_prefix:
        updates = {"VIRTUAL_ENV": probed.prefix}
    elif Path(probed.prefix, "conda-meta").is_dir():
        updates = {"CONDA_PREFIX": probed.prefix}
    else:
        return {}
    folder = str(Path(probed.prefix, "bin"))
    others = [entry for entry in environment.get("PATH", "").split(os.pathsep) if entry not in ("", folder)]
    updates["PATH"] = os.pathsep.join([folder, *others])
    return {name: value for name, value in updates.items() if environment.get(name) != value}


def _probe(executable: str, environment: Mapping[str, str]) -> _Probed:
    """Run it from '/', so that nothing in the working directory is found, but with the user's PYTHONPATH."""
    try:
        process = subprocess.Popen(
            [executable, "-c", _PROBE],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd="/", env=dict(environment), start_new_session=True, text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        raise _UnusableError(f"{executable} cannot be run: {error.strerror}") from error
    with process:
        try:
            output, errors = process.communicate(timeout=_PROBE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise _UnusableError(f"{executable} did not answer within {_PROBE_TIMEOUT_S} s") from None
    for line in output.splitlines():
        if line.startswith(_MARK):
            return _Probed(**json.loads(line.removeprefix(_MARK)))
    last = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "it printed nothing")
    raise _UnusableError(f"{executable} is no working Python (exit status {process.returncode}: {last[:200]})")
