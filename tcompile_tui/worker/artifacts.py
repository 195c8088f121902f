"""What was compiled, as one file for other machines: torch's portable compile caches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from ..core.events import ArtifactCount, ArtifactsMoved
from .failures import StageError


def save_artifacts(file: str) -> ArtifactsMoved:
    """Write what this process compiled as one file that another process can load. Raises StageError."""
    started = perf_counter()
    saved = _artifact_function("save_cache_artifacts")()
    if saved is None:
        raise StageError("torch kept nothing that can be exported: nothing was compiled, or its caches are off")
    content, info = saved
    Path(file).write_bytes(content)
    return ArtifactsMoved(saved=True, seconds=perf_counter() - started, bytes=len(content), counts=_counts_of(info))


def load_artifacts(file: str) -> ArtifactsMoved:
    """Put what such a file holds into this process's caches. Raises StageError."""
    load, started = _artifact_function("load_cache_artifacts"), perf_counter()
    content = Path(file).read_bytes()
    try:
        info = load(content)
    except Exception as error:
        raise StageError(f"{file} holds no compile caches that this torch can read ({type(error).__name__})") from error
    if info is None:
        raise StageError(f"{file} holds no compile caches that torch {torch.__version__} can read")
    return ArtifactsMoved(saved=False, seconds=perf_counter() - started, bytes=len(content), counts=_counts_of(info))


def _artifact_function(name: str) -> Callable[..., Any]:
    function = getattr(torch.compiler, name, None)
    if function is None:
        text = (
            f"torch {torch.__version__} has no portable compile caches (torch.compiler.{name}): use torch 2.7 or newer"
        )
        raise StageError(text, fault="environment")
    return function  # type: ignore[no-any-return]


def _counts_of(info: Any) -> tuple[ArtifactCount, ...]:
    """Some versions keep one list of keys by kind, others an attribute `KIND_artifacts` for each."""
    by_attribute = {name: keys for name, keys in vars(info).items() if name.endswith("_artifacts") and keys}
    kinds = getattr(info, "artifacts", by_attribute)
    return tuple(ArtifactCount(kind.removesuffix("_artifacts"), len(keys)) for kind, keys in sorted(kinds.items()))
