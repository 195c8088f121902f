"""From a target to a module: import the user's file as `python file.py` would, and build the model."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import random
import sys
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..core.spec import Job, Task
from .arguments import constructor_arguments
from .failures import StageError
from .imports import ImportedTooLateError, watched_environment
from .own_code import NO_OWN_CODE, OwnCode, load_own_code

if TYPE_CHECKING:
    import torch  # here only in functions: a target may have to be imported before it

MODEL_SEED = 20_240_229


@dataclass(frozen=True)
class UserFile:
    """The imported target and the hooks it may define (see the README): all optional. `environment_changed` names
    what its import changed of the variables that torch reads when it is imported."""

    module: ModuleType
    entry: Any
    import_s: float = 0.0
    environment_changed: tuple[str, ...] = ()
    own: OwnCode = NO_OWN_CODE

    def hook(self, name: str) -> Callable[..., Any] | None:
        found = getattr(self.module, name, None)
        return found if callable(found) else None

    @property
    def loss(self) -> Callable[[Any], Any] | None:
        """The one asked for, else the file's `loss(output)`; one of the file's that needs a target too belongs to its
        own training loop."""
        import torch

        if self.own.loss is not None:
            return self.own.loss
        found = self.hook("loss")
        try:
            inspect.signature(found.forward if isinstance(found, torch.nn.Module) else found).bind(None)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return None
        return found

    def task(self, asked: Task | None) -> Task:
        """What the command line asks for, else what the file says (`TRAIN = True`), else inference; a step of the
        user's own trains unless it is said not to."""
        trains = self.own.step is not None or getattr(self.module, "TRAIN", False) is True
        return asked or (Task.TRAIN if trains else Task.INFER)

    def training_mode(self, task: Task) -> bool:
        """`EVAL = False` keeps an inference model in training mode."""
        return task is Task.TRAIN or getattr(self.module, "EVAL", True) is False


def import_user_file(job: Job) -> UserFile:
    """Import the target with its own folder first on sys.path and its own sys.argv. Raises StageError, and
    ImportedTooLateError where it should have been imported before torch."""
    if job.spec.target.source is not None:
        return _open_source(job)
    sys.path.insert(0, job.import_root)
    if job.source_path is not None:
        # Last, for scripts inside a package that import their neighbours by bare names.
        sys.path.append(str(Path(job.source_path).parent))
    sys.argv = [job.source_path or job.qualified_name, *job.argv]
    where = job.source_path or job.source_module or ""
    started = perf_counter()
    with watched_environment() as changed:
        try:
            module = _import_module(job)
            own = load_own_code(job.spec.step, load_file)
        except SystemExit as error:
            raise _left_at_import(error, where) from error
        except ModuleNotFoundError as error:
            raise _missing_module(error, job) from error
    import_s = perf_counter() - started
    if changed() and not job.target_first:
        raise ImportedTooLateError(changed())
    entry: Any = module
    for part in job.qualified_name.split("."):
        if not hasattr(entry, part):
            raise StageError(f"{where} has no '{job.qualified_name}'")
        entry = getattr(entry, part)
    return UserFile(module, entry, import_s, changed(), own)


def _open_source(job: Job) -> UserFile:
    """A library's model as if a file defined it: with a factory, its inputs and its loss."""
    from .sources import import_source

    started = perf_counter()
    with watched_environment() as changed:
        module = import_source(job.spec)
    import_s = perf_counter() - started
    if changed() and not job.target_first:
        raise ImportedTooLateError(changed())
    return UserFile(module, module.make_model, import_s, changed())


def _import_module(job: Job) -> ModuleType:
    if job.source_path is None or job.source_module is not None:
        return importlib.import_module(job.source_module or "")
    return load_file(job.source_path)


def load_file(path: str) -> ModuleType:
    """Import a file as a module of its own. Raises StageError, and whatever the file raises."""
    name = Path(path).stem
    if not name.isidentifier() or name in sys.modules or name in sys.stdlib_module_names:
        # A file called types.py must not become `types`. The same name in every process: caches may hold it.
        name = f"user_model_{zlib.crc32(os.fsencode(path)):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise StageError(f"{path} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _missing_module(error: ModuleNotFoundError, job: Job) -> StageError:
    """The target itself, or what it imports, is not there: where it was looked for, and where to install it."""
    missing, module = error.name or str(error), job.source_module or ""
    looked = f"in {job.import_root}, in PYTHONPATH or among the packages of {sys.executable}"
    if job.source_path is None and f"{module}.".startswith(f"{missing}."):
        return StageError(f"there is no module {module} {looked}: install {missing} there, or name the model's file")
    return StageError(
        f"the model needs the module '{missing}', which is not {looked}: install it there, "
        "or name the interpreter that has it with --python"
    )


def _left_at_import(error: SystemExit, where: str) -> StageError:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if os.path.realpath(frame.filename) == os.path.realpath(where)]
    line = own[-1].lineno if own else None
    why = "parses arguments" if any("argparse" in frame.filename for frame in frames) else "calls sys.exit"
    advice = "guard it with `if __name__ == '__main__':` or give the arguments after `--`"
    return StageError(f"{where} {why} when it is imported (line {line}): {advice}", file=where, line=line)


def seed_everything(seed: int) -> None:
    """The same random numbers for every process and both arms."""
    import torch

    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def build_model(user: UserFile, job: Job) -> torch.nn.Module:
    """Call the class or factory with the arguments of the command line, identically initialised in every process."""
    import torch

    seed_everything(MODEL_SEED)
    entry = user.entry
    if isinstance(entry, torch.nn.Module):
        if job.spec.arguments:
            raise StageError(f"'{job.qualified_name}' is a model that is built already: leave --arg out")
        return entry
    if not callable(entry):
        raise StageError(f"'{job.qualified_name}' is a {type(entry).__name__}, not an nn.Module class or a factory")
    model = entry(**constructor_arguments(entry, job.qualified_name, job.spec.arguments))
    if not isinstance(model, torch.nn.Module):
        raise StageError(f"{job.qualified_name}() returned a {type(model).__name__}, not an nn.Module")
    return model
