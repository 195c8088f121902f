"""Which models a Python file offers, read from its syntax tree: nothing is imported, nothing is run."""

from __future__ import annotations

import difflib
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tcompile_tui.core.candidates import (
    MAKE_MODEL,
    Candidate,
    CandidateKind,
    FileHooks,
    ModuleNames,
    Parameter,
    one_line,
    parse_source,
    signature_text,
)
from tcompile_tui.core.spec import SpecError, Target

__all__ = [
    "Candidate",
    "CandidateKind",
    "ChoiceNeeded",
    "FileHooks",
    "Parameter",
    "Resolved",
    "choose",
    "find_candidates",
    "find_hooks",
    "package_root",
    "resolve",
]


class ChoiceNeeded(SpecError):  # noqa: N818  (a question more than an error)
    """Which model is meant is not clear; `candidates` are those that remain."""

    def __init__(self, message: str, candidates: tuple[Candidate, ...]) -> None:
        super().__init__(message)
        self.candidates = candidates


@dataclass(frozen=True)
class Resolved:
    """Where a target lies. `path` is None for a module that is not under the working directory: only importing
    it can tell. `candidate` is None where the syntax tree does not show what the name is."""

    path: Path | None
    module: str
    qualified_name: str
    import_root: Path
    candidate: Candidate | None = None


# ---------------------------------------------------------------- the public functions


def find_candidates(source: str, filename: str) -> tuple[Candidate, ...]:
    """Every class, factory and instance that may be a model, in file order. Raises SpecError if there is none."""
    candidates = ModuleNames(parse_source(source, filename)).candidates()
    if not candidates:
        raise SpecError(f"no nn.Module class and no factory in {filename}")
    return candidates


def find_hooks(source: str, filename: str) -> FileHooks:
    """Which hooks the file defines. Raises SpecError if it is not Python."""
    return ModuleNames(parse_source(source, filename)).hooks()


def choose(candidates: tuple[Candidate, ...], filename: str = "the file") -> Candidate:
    """`make_model`; else the one class that no other model in the file uses and that needs no arguments; else the
    one such factory; else the one instance. Raises ChoiceNeeded if several remain, SpecError if none does."""
    for candidate in candidates:
        if candidate.name == MAKE_MODEL:
            return _without_arguments(candidate)
    for kind in CandidateKind:
        usable = tuple(c for c in candidates if c.kind is kind and c.reason is None)
        if len(usable) > 1:
            raise ChoiceNeeded(
                f"{filename} has several models: {_listed(usable)}: write {filename}:{usable[0].name}", usable
            )
        if usable:
            return usable[0]
    in_want = tuple(c for c in candidates if c.demoted is None)
    if len(in_want) == 1:
        return _without_arguments(in_want[0])
    if in_want:
        calls = [f"{c.name}({signature_text(c.required)})" for c in in_want]
        raise ChoiceNeeded(
            f"every model in {filename} needs values: {_listed(calls)}: add `def {MAKE_MODEL}():` that gives them",
            in_want,
        )
    reasons = [f"{c} {c.reason}" for c in candidates]
    raise ChoiceNeeded(
        f"nothing in {filename} is plainly the model: {_listed(reasons)}: write {filename}:Name", candidates
    )


def package_root(path: Path) -> tuple[Path, str]:
    """The folder that belongs on sys.path and the module's dotted name, so that relative imports work."""
    folder = path.parent
    parts = [] if path.name == "__init__.py" else [path.stem]
    while (folder / "__init__.py").is_file() and "." not in folder.name and folder != folder.parent:
        parts.insert(0, folder.name)
        folder = folder.parent
    if not parts or "." in path.stem:  # such a file can be loaded by its path only
        return path.parent, path.stem.replace(".", "_")
    return folder, ".".join(parts)


def resolve(target: Target, cwd: Path) -> Resolved:
    """Find and check a target on disk. Raises SpecError (ChoiceNeeded if the file holds several models)."""
    if target.path is None:
        return _resolve_module(target, cwd)
    path, source = _read(target.path, cwd)
    candidate, name = _pick(source, target.path, target.name)
    root, module = package_root(path)
    return Resolved(path, module, name, root, candidate)


def _resolve_module(target: Target, cwd: Path) -> Resolved:
    assert target.module is not None and target.name is not None
    stem = target.module.replace(".", "/")
    for place in (f"{stem}/__init__.py", f"{stem}.py"):
        if (cwd / place).is_file():
            path, source = _read(place, cwd)
            candidate, name = _pick(source, place, target.name)
            return Resolved(path, target.module, name, cwd, candidate)
    return Resolved(None, target.module, target.name, cwd)


def _pick(source: str, filename: str, name: str | None) -> tuple[Candidate | None, str]:
    """The candidate and its name; a name that the file binds in some other way is left to the import."""
    if name is None:
        chosen = choose(find_candidates(source, filename), filename)
        return chosen, chosen.name
    names = ModuleNames(parse_source(source, filename))
    for candidate in names.candidates():
        if candidate.name == name:
            return _without_arguments(candidate), name
    if name.partition(".")[0] in names.lines or names.has_star_import:
        return None, name
    near = difflib.get_close_matches(name, names.lines, n=3, cutoff=0.6)
    offered = [f"{other} (line {names.lines[other]})" for other in near] or [
        str(c) for c in names.candidates()
    ]
    advice = (
        f"; {'did you mean' if near else 'it has'} {_listed(offered)}{'?' if near else ''}" if offered else ""
    )
    raise SpecError(f"{filename} has no '{name}'{advice}")


def _without_arguments(candidate: Candidate) -> Candidate:
    if not candidate.required:
        return candidate
    call = f"{candidate.name}({signature_text(candidate.required)})"
    if candidate.name == MAKE_MODEL:
        raise SpecError(f"{call} needs values: give its parameters defaults")
    raise SpecError(f"{call} needs values: add `def {MAKE_MODEL}():` to the file that gives them")


def _listed(items: Iterable[object], most: int = 6) -> str:
    words = [str(item) for item in items]
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


# ---------------------------------------------------------------- reading


def _read(written: str, cwd: Path) -> tuple[Path, str]:
    """The real path and the text of a source file, decoded as Python would (byte order mark, coding line)."""
    try:
        path = (cwd / Path(written).expanduser()).resolve()
        if path.is_dir():
            raise SpecError(f"{written} is a folder: name a Python file in it")
        if not path.exists():
            near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.py")], n=3)
            raise SpecError(
                f"there is no file {written}" + (f"; did you mean {_listed(near)}?" if near else "")
            )
        if path.suffix != ".py" or not path.is_file():
            raise SpecError(f"{written} is not a Python file: its name must end in .py")
        with tokenize.open(path) as file:
            return path, file.read()
    except (UnicodeDecodeError, SyntaxError) as error:  # SyntaxError: an unknown coding line
        raise SpecError(f"{written} is not readable as text: {one_line(error)}; save it as UTF-8") from None
    except OSError as error:
        raise SpecError(f"cannot read {written}: {error.strerror or error}") from None
    except (ValueError, RuntimeError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(f"cannot read {written}: {one_line(error)}") from None
