"""What a process imports before it measures, what that costs, and the variables that are read only then.

Standard library only until `import_torch` is called: a target may have to be imported before torch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .loading import UserFile

# torch and what it stands on read these while they are imported, or once soon after.
_READ_AT_IMPORT = ("CUDA", "PYTORCH", "TORCH", "TRITON", "OMP", "MKL", "NCCL")
# The run has set these, and what it set stands: private caches, and the device under test.
_SET_BY_RUN = ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_VISIBLE_DEVICES")


@dataclass(frozen=True)
class Imports:
    """What is imported already, and the seconds it took. `torch_s` None: the target imported torch, so that it is part
    of the target's seconds. `compiler_s` None: the compiler is not imported yet."""

    torch_s: float | None
    compiler_s: float | None = None
    target: UserFile | None = None


class ImportedTooLateError(Exception):
    """The target changed variables that torch had read before: another configuration would be measured."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(f"importing the target changes {', '.join(names)}, which torch reads when it is imported")
        self.names = names


def import_torch() -> Imports:
    started = perf_counter()
    import torch  # noqa: F401

    return Imports(perf_counter() - started)


def import_torch_and_compiler() -> Imports:
    """What a process that compiles imports before the user's code, our own modules included."""
    imports = import_torch()
    from . import compiler, phases  # noqa: F401

    return Imports(imports.torch_s, compiler.import_compiler())


def complete_imports() -> None:
    """What these imports do in a process and no process inherits from the one it was forked from."""
    from . import compiler

    compiler.warm_pool_as_import_does()


@contextmanager
def watched_environment() -> Iterator[Callable[[], tuple[str, ...]]]:
    """Around the import of a target. What the run has set is set again at the end; the function it yields then names
    the other variables that were changed and that torch reads while it is imported."""
    before = dict(os.environ)
    changed: list[str] = []
    try:
        yield lambda: tuple(changed)
    finally:
        for name in _SET_BY_RUN:
            if name in before and os.environ.get(name) != before[name]:
                os.environ[name] = before[name]
                if name == "TMPDIR":
                    tempfile.tempdir = None
        names = {name for name in {**before, **os.environ} if name.startswith(_READ_AT_IMPORT)}
        changed += sorted(n for n in names - {*_SET_BY_RUN} if os.environ.get(n) != before.get(n))
