"""Can torch.compile work here, and what would spoil a measurement? Seen from outside: torch is not imported.

A run's own preflight compiles for real; this says beforehand, in seconds, what it would stumble over and the fix.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tcompile_tui.core.units import count, plural, size
from tcompile_tui.host import machine
from tcompile_tui.host.cache_places import INDUCTOR_VARIABLE, file_system, temporary_folder
from tcompile_tui.host.check import Check, Level
from tcompile_tui.host.gpu_checks import gpu_checks, look_at_gpu
from tcompile_tui.host.interpreter import Interpreter, InterpreterError, find_interpreter

_LEAST_FREE_BYTES = 2 << 30
_LEAST_FREE_INODES = 50_000
_TIMEOUT_S = 60
_DRIVER_TIMEOUT_S = 10
_Value = TypeVar("_Value")

_PROBE = """
import importlib.util, importlib.metadata, json, sysconfig
found = {"include": sysconfig.get_paths()["include"], "triton": None}
if importlib.util.find_spec("triton") is not None:
    found["triton"] = "of an unknown version"
    for name in ("triton", "pytorch-triton", "triton-nightly"):
        try:
            found["triton"] = importlib.metadata.version(name)
            break
        except importlib.metadata.PackageNotFoundError:
            pass
print("tcompile-tui-probe:" + json.dumps(found))
"""
_PROGRAM = """
#include <Python.h>
#include <vector>
extern "C" int answer() { std::vector<int> v(1, 42); return v[0]; }
"""


def examine(environment: Mapping[str, str], python: str | None = None) -> Iterator[Check]:
    """Every check in the order in which a run would stumble; takes seconds. `python` is as for `run --python`."""
    interpreter: Interpreter | None = None
    try:
        interpreter = find_interpreter(python, environment)
    except InterpreterError as error:
        yield Check("torch", Level.BLOCKER, str(error), "pip install torch, or name a Python that has it with --python")
    if interpreter is not None:
        environment = {**environment, **interpreter.environment_updates}
        yield _torch(interpreter)
    gpu = _within(_DRIVER_TIMEOUT_S, lambda: look_at_gpu(environment))
    if gpu is None:
        text = f"the driver did not answer within {_DRIVER_TIMEOUT_S} s"
        yield Check("GPU", Level.BLOCKER, text, "look at nvidia-smi and dmesg; a reboot may be needed")
    else:
        yield from gpu_checks(gpu, interpreter.torch_cuda if interpreter is not None else None)
    if interpreter is not None:
        yield from _tool_chain(interpreter, environment, has_gpu=gpu is not None and gpu.info is not None)
    yield from switches(environment)
    yield from room(environment)
    yield _host()
    warning = machine.login_kill_warning(environment)
    if warning is not None:
        yield Check("login", Level.NOTE, warning)


# ---------------------------------------------------------------- torch and the compilers


def _torch(interpreter: Interpreter) -> Check:
    built = f"for CUDA {interpreter.torch_cuda}" if interpreter.torch_cuda else "without CUDA"
    text = f"{interpreter.torch_version or 'of an unknown version'}, built {built}"
    return Check("torch", Level.FINE, f"{text}; Python {interpreter.python_version} in {interpreter.executable}")


def _tool_chain(interpreter: Interpreter, environment: Mapping[str, str], has_gpu: bool) -> Iterator[Check]:
    probed = _probe(interpreter, environment)
    triton = probed.get("triton")
    if triton is not None:
        yield Check("Triton", Level.FINE, triton)
    elif has_gpu and interpreter.torch_cuda is not None:
        fix = f"{interpreter.executable} -m pip install triton, in the version that torch asks for"
        yield Check("Triton", Level.BLOCKER, "not installed: nothing can be compiled for the GPU", fix)
    else:
        yield Check("Triton", Level.FINE, "not installed, and not needed without a GPU")
    include = probed.get("include")
    if include is not None:
        yield cpp_compiler(interpreter.executable, Path(include), environment)


def cpp_compiler(executable: str, include: Path, environment: Mapping[str, str]) -> Check:
    """Compile, link and load a few lines, as Inductor does for CPU code and Triton for its launchers."""
    compiler = environment.get("CXX") or "g++"
    with tempfile.TemporaryDirectory(dir=temporary_folder(environment)) as folder:
        source, library = Path(folder, "probe.cpp"), Path(folder, "probe.so")
        source.write_text(_PROGRAM)
        words = [
            compiler, "-shared", "-fPIC", "-fopenmp", "-std=c++17", f"-I{include}", str(source), "-o", str(library)
        ]  # fmt: skip
        failure = _failure_of(words, environment)
        if failure is not None:
            return Check("C++", Level.BLOCKER, f"{compiler} does not work: {failure}", _compiler_fix(failure))
        load = [executable, "-I", "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]).answer()", str(library)]
        failure = _failure_of(load, environment)
        if failure is not None:
            fix = "set TMPDIR to a folder that is not mounted noexec"
            return Check("C++", Level.BLOCKER, f"what {compiler} built cannot be loaded: {failure}", fix)
    return Check("C++", Level.FINE, f"{compiler} compiles, links and loads, with Python's headers and OpenMP")


def _compiler_fix(failure: str) -> str:
    if "Python.h" in failure:
        return "install Python's headers: apt install python3-dev, or use a Python from conda, uv or pyenv"
    if "omp" in failure:
        return "install OpenMP's library: apt install libgomp1, or set CXX to a g++ that has it"
    return "install a compiler: apt install g++, conda install gxx, or set CXX to one"


def _failure_of(words: list[str], environment: Mapping[str, str]) -> str | None:
    """The line that says why a program failed; None if it did not."""
    try:
        done = subprocess.run(
            words, env=dict(environment), capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError:
        return "there is no such program"
    except OSError as error:
        return error.strerror or str(error)
    except subprocess.TimeoutExpired:
        return f"it did not end within {_TIMEOUT_S} s"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    telling = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else None)
    return telling[:200] if telling is not None else f"exit status {done.returncode}"


def _probe(interpreter: Interpreter, environment: Mapping[str, str]) -> dict[str, str | None]:
    """Empty if the interpreter does not answer."""
    try:
        done = subprocess.run(
            [interpreter.executable, "-c", _PROBE], env=dict(environment), cwd="/", capture_output=True, text=True,
            errors="replace", timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    mark = "tcompile-tui-probe:"
    told = next((line.removeprefix(mark) for line in done.stdout.splitlines() if line.startswith(mark)), "{}")
    found: dict[str, str | None] = json.loads(told)
    return found


# ---------------------------------------------------------------- environment and room


@dataclass(frozen=True)
class _Switch:
    """`needs` is the value that switches it on, None for any that is not empty, as torch reads it."""

    name: str
    needs: str | None
    level: Level
    effect: str


_SWITCHES = (
    _Switch("TORCH_COMPILE_DISABLE", "1", Level.BLOCKER, "torch.compile does nothing"),
    _Switch("TORCHDYNAMO_DISABLE", "1", Level.BLOCKER, "torch.compile does nothing"),
    _Switch("TORCHDYNAMO_SUPPRESS_ERRORS", None, Level.WARNING, "what fails to compile runs eager, without a word"),
    _Switch("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1", Level.WARNING, "every start is cold"),
    _Switch("CUDA_LAUNCH_BLOCKING", "1", Level.WARNING, "each kernel is waited for: step times mean nothing"),
)


def switches(environment: Mapping[str, str]) -> Iterator[Check]:
    """Variables that change what torch.compile does."""
    found = False
    for switch in _SWITCHES:
        value = environment.get(switch.name, "")
        if value and switch.needs in (None, value):
            found = True
            yield Check("environment", switch.level, f"{switch.name}={value}: {switch.effect}", f"unset {switch.name}")
    if not found:
        yield Check("environment", Level.FINE, "no variable switches torch.compile off")


def room(environment: Mapping[str, str]) -> Iterator[Check]:
    """Space and inodes where caches and temporary files go."""
    folders = [temporary_folder(environment)]
    if environment.get(INDUCTOR_VARIABLE):
        folders.append(Path(environment[INDUCTOR_VARIABLE]).expanduser())
    for folder in folders:
        facts = file_system(folder)
        free = f"{size(facts.free_bytes)} free"
        if facts.free_inodes is not None:
            free += f", {count(facts.free_inodes)} inodes"
        text = f"{folder} ({facts.kind or 'unknown file system'}): {free}"
        short = facts.free_bytes is not None and facts.free_bytes < _LEAST_FREE_BYTES
        if short or (facts.free_inodes is not None and facts.free_inodes < _LEAST_FREE_INODES):
            fix = "make room (tcompile-tui caches), or set TMPDIR and TORCHINDUCTOR_CACHE_DIR elsewhere"
            yield Check("disk", Level.WARNING, text, fix)
        elif facts.is_memory:
            fix = "to keep caches over a reboot set TORCHINDUCTOR_CACHE_DIR to a disk"
            yield Check("disk", Level.NOTE, f"{text}; it is RAM, and a reboot or a container's end loses it", fix)
        elif facts.is_network:
            fix = "set TMPDIR and TORCHINDUCTOR_CACHE_DIR to a local disk"
            yield Check("disk", Level.WARNING, f"{text}; a network is slow for many small files", fix)
        else:
            yield Check("disk", Level.FINE, text)


def _host() -> Check:
    facts, load = machine.facts(), os.getloadavg()[0]
    text = f"{plural(facts.cpu_count, 'CPU')} to use, load {load:.1f}, {size(facts.memory_total_bytes)} memory"
    if load > facts.cpu_count:
        return Check("host", Level.WARNING, text, "wait until the machine is idle: compile and step times depend on it")
    return Check("host", Level.FINE, text)


def _within(seconds: float, ask: Callable[[], _Value]) -> _Value | None:
    """The answer of something that may never come; None then."""
    answers: list[_Value] = []
    thread = threading.Thread(target=lambda: answers.append(ask()), daemon=True, name="preflight")
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None
