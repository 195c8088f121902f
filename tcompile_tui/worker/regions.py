"""Compiling the block that a model repeats, and not the model: once for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import torch

from ..core.compile_options import CompiledBlocks, CompileOptions, Regions
from . import compiler
from .failures import StageError

_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)


def compile_as(model: torch.nn.Module, options: CompileOptions) -> tuple[torch.nn.Module, bool, CompiledBlocks | None]:
    """What to call in place of `model`, whether torch wrapped it (or each block), and the blocks if it is compiled in
    regions. Raises StageError where no block repeats."""
    if options.regions is None:
        compiled, wrapped = compiler.compile_model(model, options)
        return compiled, wrapped, None
    paths = find_blocks(model, options.block)
    blocks = CompiledBlocks(type(model.get_submodule(paths[0])).__name__, len(paths), _container(model, paths))
    if options.regions is Regions.NESTED:
        _mark_nested([model.get_submodule(path) for path in paths])
        compiled, wrapped = compiler.compile_model(model, options)
        return compiled, wrapped, blocks
    return model, _compile_each(model, paths, options), blocks


def repeated_block(model: torch.nn.Module) -> CompiledBlocks | None:
    """The block that `regional` would take, where it is most of the model."""
    try:
        paths = find_blocks(model, None)
    except StageError:
        return None
    if 2 * _parameters(model, paths) < _parameters(model, [""]):
        return None
    return CompiledBlocks(type(model.get_submodule(paths[0])).__name__, len(paths), _container(model, paths))


def find_blocks(model: torch.nn.Module, name: str | None) -> list[str]:
    """The paths of the blocks of class `name`, or else of the class that covers most parameters. A block has modules
    of its own, and occurs at least twice; of one within another of the same class only the outer one counts."""
    classes: dict[type[torch.nn.Module], list[str]] = defaultdict(list)
    for path, module in model.named_modules():
        is_block = path and next(module.children(), None) is not None and not isinstance(module, _CONTAINERS)
        if is_block and not any(path.startswith(f"{outer}.") for outer in classes[type(module)]):
            classes[type(module)].append(path)
    repeated = {kind: paths for kind, paths in classes.items() if len(paths) > 1}
    if name is not None:
        repeated = {kind: paths for kind, paths in repeated.items() if name in (kind.__name__, kind.__qualname__)}
    if not repeated:
        found = ", ".join(sorted(kind.__name__ for kind, paths in classes.items() if len(paths) > 1))
        what = (
            f"no block of class {name} repeats in this model" if name is not None else "no block of this model repeats"
        )
        others = f"; these do: {found}" if name is not None and found else ""
        raise StageError(f"{what}{others}: there is nothing to compile once for several", fault="model")
    return max(repeated.values(), key=lambda paths: (_parameters(model, paths), -len(paths)))


def _parameters(model: torch.nn.Module, paths: Iterable[str]) -> int:
    distinct = {id(p): p.numel() for path in paths for p in model.get_submodule(path).parameters()}
    return sum(distinct.values())


def _container(model: torch.nn.Module, paths: list[str]) -> str | None:
    """The path of the module that holds all of them and nothing else."""
    parents = {path.rpartition(".")[0] for path in paths}
    parent = next(iter(parents))
    return (
        parent if len(parents) == 1 and len(dict(model.get_submodule(parent).named_children())) == len(paths) else None
    )


def _compile_each(model: torch.nn.Module, paths: list[str], options: CompileOptions) -> bool:
    """In place, which keeps the names of the state_dict; else a wrapper takes the block's place."""
    wrapped = False
    for path in paths:
        parent, _, name = path.rpartition(".")
        compiled, wrapped = compiler.compile_model(model.get_submodule(path), options)
        if wrapped:
            setattr(model.get_submodule(parent), name, compiled)
    return wrapped


def _mark_nested(blocks: Sequence[torch.nn.Module]) -> None:
    """Compile the forward of these blocks, all of one class, once where a model that has them is compiled. They get a
    class of their own, since the eager arm's blocks are of the same. Raises StageError before torch 2.8."""
    mark = getattr(torch.compiler, "nested_compile_region", None)
    if mark is None:
        raise StageError(
            f"torch {torch.__version__} has no torch.compiler.nested_compile_region: 2.8 has", fault="model"
        )
    kind = type(blocks[0])
    marked = type(kind.__name__, (kind,), {"forward": mark(kind.forward), "__module__": kind.__module__})
    for block in blocks:
        block.__class__ = marked
