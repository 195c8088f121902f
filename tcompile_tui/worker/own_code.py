"""The user's own functions for a step: a loss, an optimizer, or all of it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from ..core.step_spec import FileFunction, StepSpec
from .failures import StageError

LoadFile: TypeAlias = Callable[[str], ModuleType]


@dataclass(frozen=True)
class OwnCode:
    """None where torch's or the model file's own is used."""

    loss: Callable[[Any], Any] | None = None
    optimizer: Callable[[Any], Any] | None = None
    step: Callable[..., Any] | None = None


NO_OWN_CODE = OwnCode()


def load_own_code(step: StepSpec, load_file: LoadFile) -> OwnCode:
    """Import the functions that `step` names, whose paths are absolute. Raises StageError, and whatever the user's
    file raises."""
    optimizer = step.optimizer if isinstance(step.optimizer, FileFunction) else None
    found = [
        load_function(function, load_file) if function is not None else None
        for function in (step.loss, optimizer, step.own)
    ]
    return OwnCode(*found)


def load_function(function: FileFunction, load_file: LoadFile) -> Callable[..., Any]:
    """The function by its name, whose path is absolute. Raises StageError, and whatever the user's file raises."""
    module = _imported(function.path) or _imported_in_its_package(function.path) or load_file(function.path)
    found: Callable[..., Any] | None = getattr(module, function.name, None)
    if not callable(found):
        what = f"has no '{function.name}'" if found is None else f"has a '{function.name}' that cannot be called"
        raise StageError(f"{function.path} {what}: name a function of it")
    return found


def _imported(path: str) -> ModuleType | None:
    """The module that was made from this file already: a second one would have classes of its own."""
    wanted = os.path.realpath(path)
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and os.path.realpath(file) == wanted:
            return module
    return None


def _imported_in_its_package(path: str) -> ModuleType | None:
    """Under its dotted name, so that relative imports work; None for a file outside any package."""
    parts, folder = [Path(path).stem], Path(path).parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if len(parts) == 1:
        sys.path.append(str(folder))  # for its neighbours, which it imports by bare names
        return None
    sys.path.append(str(folder))
    return importlib.import_module(".".join(parts))
