"""Models by the name of their architecture, from a library in the worker's environment: random weights, natural inputs.

A source stands in for a user's file: a module with `make_model`, `example_inputs` and `loss`. Nothing is downloaded.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Protocol

from ..core.spec import Dim, RunSpec, Source, Task
from .failures import StageError, text_of


class SourceModel(Protocol):
    """What a library's part offers. The inputs are asked for after the model is made, of which they take their
    sizes."""

    def make_model(self, **arguments: Any) -> Any: ...

    def example_inputs(self) -> Any: ...

    def loss(self, output: Any) -> Any: ...


class Sizes:
    """What `--dim` says of the natural inputs, beside their own sizes."""

    def __init__(self, dims: Iterable[Dim]) -> None:
        self._given: dict[str, int] = {}
        self.set(dims)

    def set(self, dims: Iterable[Dim]) -> None:
        """Other sizes from here on."""
        self._given = {dim.name: dim.size for dim in dims}

    def check(self, model: str, known: Iterable[str]) -> None:
        """Refuse a size that no input has."""
        names = tuple(known)
        for name in self._given:
            if name not in names:
                raise StageError(f"{model} has no input with a size {name}: --dim takes {', '.join(names)}")

    def get(self, name: str, natural: int) -> int:
        return self._given.get(name, natural)

    def given(self, name: str) -> int | None:
        return self._given.get(name)


def import_source(spec: RunSpec) -> ModuleType:
    """Import the library. Raises StageError with what to install, or why its import fails."""
    source, name = spec.target.source, spec.target.name or ""
    assert source is not None
    os.environ["HF_HUB_OFFLINE"] = "1"  # architectures alone: nothing is to be looked up, let alone fetched
    library = _import_library(source)
    module = ModuleType(source.value)
    sizes = Sizes(spec.dims)
    model = _open(source, library, name, sizes, spec.task is Task.TRAIN)
    hooks = {"make_model": model.make_model, "example_inputs": model.example_inputs, "loss": model.loss}
    vars(module).update(hooks, set_sizes=sizes.set)
    return module


def unknown_name(library: str, name: str, known: Iterable[str]) -> StageError:
    """That the library has no such model, with those of a similar name."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return StageError(f"{library} has no model '{name}'" + (f": did you mean {', '.join(near)}?" if near else ""))


def _import_library(source: Source) -> ModuleType:
    name = source.value
    try:
        return importlib.import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            text = f"{name} is not installed where the model runs: {sys.executable} -m pip install {name}"
            raise StageError(text) from error
        torch_version = getattr(sys.modules.get("torch"), "__version__", "?")
        raise StageError(
            f"{name} cannot be imported in {sys.executable} ({type(error).__name__}: {text_of(error)}): "
            f"install the version of it that is made for torch {torch_version}",
        ) from error


def _open(source: Source, library: ModuleType, name: str, sizes: Sizes, training: bool) -> SourceModel:
    if source is Source.TRANSFORMERS:
        from .transformers_source import TransformersModel

        return TransformersModel(library, name, sizes, training)
    from .vision_sources import TimmModel, TorchvisionModel

    if source is Source.TIMM:
        return TimmModel(library, name, sizes)
    return TorchvisionModel(library, name, sizes, training)


def first_of(output: Any) -> Any:
    """The main tensor of an output: itself, or the first item of a mapping or tuple."""
    while not hasattr(output, "shape"):
        if isinstance(output, Mapping):
            output = next(iter(output.values()))
        elif isinstance(output, (tuple, list)):
            output = output[0]
        else:
            raise StageError(
                f"the model returns a {type(output).__name__}, which has no natural loss: use --task infer"
            )
    return output
