"""`--inputs batch.pt` and `--inputs file.py:make_batch`: a batch that was saved, or that a function makes."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path
from typing import Any

import torch

from .failures import StageError, text_of


def load_inputs(place: str) -> Any:
    """What the file holds, or what its function returns. Raises StageError."""
    file, _, function = place.rpartition(":")
    if file.endswith(".py"):
        return _call(Path(file).expanduser(), function)
    return _load_tensors(Path(place).expanduser())


def _load_tensors(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise StageError(f"cannot read --inputs {path}: {error.strerror or error}") from error
    except pickle.UnpicklingError as error:
        if "operand" in str(error):  # bytes that are no pickle at all
            raise _not_saved(path, "torch.save did not write it") from error
        raise StageError(
            f"--inputs {path} holds objects beside tensors, whose code would run when they are loaded: save a "
            f"tuple or dict of tensors, or give a function (--inputs file.py:make_batch)"
        ) from error
    except Exception as error:
        raise _not_saved(path, f"{type(error).__name__}: {' '.join(text_of(error).split())[:200]}") from error


def _not_saved(path: Path, reason: str) -> StageError:
    return StageError(
        f"cannot load --inputs {path} ({reason}): save a batch with torch.save, or give file.py:make_batch"
    )


def _call(path: Path, name: str) -> Any:
    module_name = f"user_inputs_{path.stem}"
    module = sys.modules.get(module_name)
    if module is None:
        spec = importlib.util.spec_from_file_location(module_name, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise StageError(f"there is no file {path} for --inputs")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        sys.path.append(str(path.resolve().parent))
        spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise StageError(f"{path} has no function '{name}' for --inputs")
    try:
        return function()
    except Exception as error:
        raise StageError(f"{name}() of {path} failed: {type(error).__name__}: {text_of(error)}") from error
