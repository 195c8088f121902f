"""From a target to the one model it names, by the file's syntax tree: nothing is imported, nothing is run."""

from __future__ import annotations

import ast
import difflib
import os
import sys
import tokenize
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tcompile_tui.core.candidates import (
    MAKE_MODEL,
    Candidate,
    CandidateKind,
    FileHooks,
    ModuleNames,
    Parameter,
    signature_text,
)
from tcompile_tui.core.spec import Source, SpecError, Target

__all__ = [
    "Candidate",
    "CandidateKind",
    "FileHooks",
    "Resolved",
    "find_batch_file",
    "find_candidates",
    "find_hooks",
    "resolve",
]

_PYTHON = f"Python {sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Resolved:
    """Where a target lies, as absolute paths.

    `module` is the dotted name to import `path` by, with `import_root` first on sys.path; None for a file
    outside any package, which is loaded by its path. Without `path` only the worker's interpreter can find it: an
    installed module, or a library's architecture, which has no `module` either.
    """

    path: str | None
    module: str | None
    qualified_name: str
    import_root: str
    candidate: Candidate


# ---------------------------------------------------------------- the public functions


def resolve(target: Target, cwd: Path, given: Collection[str] = ()) -> Resolved:
    """Find the file of a target and the model in it; `given` are the names of constructor arguments that have a
    value. Raises SpecError with one line that says what to do."""
    if target.source is not None:
        return _architecture(target.name or "", target.source, cwd)
    if target.path is not None:
        path = _locate(target.path, cwd)
        root, module = _package_of(path)
    else:
        found = _locate_module(target.module or "", cwd)
        if found is None:
            return _installed(target.module or "", target.name or "", cwd)
        path, root, module = found
    shown = target.path or str(path)
    names = _names_in(path, shown)
    candidate = _named(target.name, names, shown, given) if target.name else _choose(names.candidates(), shown, given)
    return Resolved(str(path), module, candidate.name, str(root), candidate)


def find_batch_file(place: str, cwd: Path) -> Path:
    """The file of `--inputs`, of a batch or of the function that makes one. Raises SpecError."""
    file, _, _ = place.rpartition(":")
    written = file if file.endswith(".py") else place
    path = cwd / Path(written).expanduser()
    if not path.is_file():
        raise SpecError(f"there is no file {written} for --inputs: looked in {path.parent}")
    return path


def find_candidates(path: Path) -> list[Candidate]:
    """What in the file may be the model, in file order, if anything. Raises SpecError if it is not Python."""
    return _names_in(_locate(str(path), Path.cwd()), str(path)).candidates()


def find_hooks(path: Path) -> FileHooks:
    """Which hooks the file defines. Raises SpecError if it cannot be read."""
    return _names_in(_locate(str(path), Path.cwd()), str(path)).hooks()


# ---------------------------------------------------------------- which candidate


def _choose(candidates: list[Candidate], shown: str, given: Collection[str]) -> Candidate:
    """`make_model`; else the one class without note and missing arguments; else the one such factory. Those that
    take what is given come before those that do not."""
    for candidate in candidates:
        if candidate.name == MAKE_MODEL:
            return _with_arguments(candidate, given)
    picked = [candidate for candidate in candidates if candidate.note is None]
    takers = [each for each in picked if given and set(given) <= {p.name for p in each.parameters}]
    for kind in (CandidateKind.CLASS, CandidateKind.FACTORY):
        usable = [each for each in takers or picked if each.kind is kind and not _missing(each, given)]
        if len(usable) == 1:
            return usable[0]
        if usable:
            raise SpecError(f"{shown} has several models, {_listed(usable)}: {_ask(shown, usable[0])}")
    raise SpecError(_why_none(candidates, picked, shown, given))


def _why_none(candidates: list[Candidate], picked: list[Candidate], shown: str, given: Collection[str]) -> str:
    built = next((candidate for candidate in picked if candidate.kind is CandidateKind.VALUE), None)
    other_way = f"{_ask(shown, built)} (line {built.line}), or " if built else ""
    add = f"{other_way}add `def {MAKE_MODEL}():` to the file"
    needy = [candidate for candidate in picked if _missing(candidate, given)]
    needy = [candidate for candidate in needy if candidate.kind is CandidateKind.CLASS] or needy
    if len(needy) == 1:
        return f"{_needs_values(needy[0], given)}, or {add}"
    if needy:
        return f"{_listed(needy)} in {shown} need values: {add}"
    if not candidates:
        return f"{shown} defines no nn.Module class and no function that returns one: {add}"
    if built:
        return f"{shown} has no class that is plainly the model: {add}"
    reasons = (f"{candidate} {candidate.note}" for candidate in candidates)
    return f"nothing in {shown} is plainly the model, {_listed(reasons)}: {_ask(shown, candidates[-1])}"


def _named(name: str, names: ModuleNames, shown: str, given: Collection[str]) -> Candidate:
    """The candidate of that name; what only the import can tell is let through."""
    if name.partition(".")[0] in names.lines:
        return _with_arguments(names.candidate(name), given)
    if names.star_imports:
        return Candidate(name, 1, CandidateKind.VALUE)
    by_lower_case = {known.lower(): known for known in names.lines}
    near = [by_lower_case[word] for word in difflib.get_close_matches(name.lower(), by_lower_case)]
    if near:
        advice = f": did you mean {_listed(f'{known} (line {names.lines[known]})' for known in near)}?"
    else:
        offered = _listed(names.candidates())
        advice = f": it has {offered}" if offered else f": add `def {MAKE_MODEL}():` to the file"
    raise SpecError(f"{shown} has no '{name}'{advice}")


def _with_arguments(candidate: Candidate, given: Collection[str]) -> Candidate:
    if not _missing(candidate, given):
        return candidate
    otherwise = (
        "give its parameters defaults" if candidate.name == MAKE_MODEL else f"add `def {MAKE_MODEL}():` to the file"
    )
    raise SpecError(f"{_needs_values(candidate, given)}, or {otherwise}")


def _missing(candidate: Candidate, given: Collection[str]) -> tuple[Parameter, ...]:
    return tuple(parameter for parameter in candidate.required if parameter.name not in given)


def _needs_values(candidate: Candidate, given: Collection[str]) -> str:
    missing = _missing(candidate, given)
    more = " and so on" if len(missing) > 1 else ""
    return f"{_call(candidate, given)} needs values: give --arg {missing[0].name}=VALUE{more}"


def _call(candidate: Candidate, given: Collection[str] = ()) -> str:
    return f"{candidate.name}({signature_text(_missing(candidate, given))})"


def _ask(shown: str, candidate: Candidate) -> str:
    return f"ask for one: {shown}:{candidate.name}"


def _listed(items: Iterable[object], most: int = 6) -> str:
    words = [str(item) for item in items]
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


# ---------------------------------------------------------------- where it lies


def _locate(written: str, cwd: Path) -> Path:
    """The absolute path of a Python file, links followed as Python does for a script."""
    try:
        path = (cwd / Path(written).expanduser()).resolve()
        if path.is_dir():
            inside = sorted(file.name for file in path.glob("*.py"))
            holds = f" ({_listed(inside)})" if inside else ""
            raise SpecError(f"{written} is a folder: name a Python file in it{holds}")
        if not path.exists():
            near = difflib.get_close_matches(path.name, [file.name for file in path.parent.glob("*.py")])
            raise SpecError(f"there is no file {written}: " + _or_near(near, f"looked in {path.parent}"))
    except SpecError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        raise SpecError(f"cannot open {written}: {_one_line(error)}: check the path") from None
    if path.suffix == ".ipynb":
        raise SpecError(_notebook(written))
    if path.suffix != ".py" or not path.is_file():
        raise SpecError(f"{written} is not a Python file: name one that ends in .py")
    return path


def _or_near(near: list[str], otherwise: str) -> str:
    return f"did you mean {_listed(near)}?" if near else otherwise


def _package_of(path: Path) -> tuple[Path, str | None]:
    """The folder above the top package and the file's dotted name in it; without a package its own folder."""
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    if folder == path.parent or not path.stem.isidentifier():
        return path.parent, None
    return folder, ".".join(parts)


def _locate_module(module: str, cwd: Path) -> tuple[Path, Path, str | None] | None:
    """File, import root and dotted name of `package.module`, looked for in cwd, then in PYTHONPATH; None where
    neither has its package, so that it can only be an installed one."""
    stem = module.replace(".", "/")
    for folder in ("", *os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        root = (cwd / folder).resolve()
        for place in (f"{stem}/__init__.py", f"{stem}.py"):
            if (root / place).is_file():
                loaded_by_path = place == f"{module}.py"
                return root / place, root, None if loaded_by_path else module
        first = root / module.partition(".")[0]
        if first.is_dir() or first.with_suffix(".py").is_file():
            raise SpecError(
                f"there is no module {module} in {root}: name its file, "
                f"or write a file whose `{MAKE_MODEL}()` imports it"
            )
    return None


def _installed(module: str, name: str, cwd: Path) -> Resolved:
    """A module that only the worker's interpreter may have; what it holds is seen when it is imported there."""
    return Resolved(None, module, name, str(cwd), Candidate(name, 0, CandidateKind.VALUE))


def _architecture(name: str, source: Source, cwd: Path) -> Resolved:
    if name.endswith(".json") and not (cwd / Path(name).expanduser()).is_file():
        raise SpecError(f"there is no file {name}: looked in {cwd}, for a config as {source.value} saves it")
    return Resolved(None, None, name, str(cwd), Candidate(name, 0, CandidateKind.FACTORY))


# ---------------------------------------------------------------- what it holds


def _names_in(path: Path, shown: str) -> ModuleNames:
    """The file's names, by its syntax tree. Raises SpecError with what the file is instead of Python."""
    source = _read(path, shown)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in the user's strings are theirs to see
            tree = ast.parse(source)
        names = ModuleNames(tree)
    except SyntaxError as error:
        raise SpecError(_syntax_message(error, shown)) from None
    except (ValueError, RecursionError, MemoryError) as error:
        why = _one_line(error) or "nested too deeply"
        raise SpecError(f"{shown} cannot be read as {_PYTHON} ({why}): put the model in a file of its own") from None
    _refuse_ipython(tree, names, shown)
    return names


def _read(path: Path, shown: str) -> str:
    """The text, decoded as Python would: byte order mark, coding line, else UTF-8."""
    try:
        with tokenize.open(path) as file:
            source = file.read()
    except OSError as error:
        raise SpecError(f"cannot read {shown}: {error.strerror or error}: check the file") from None
    except (UnicodeDecodeError, SyntaxError, LookupError):  # SyntaxError: a bad coding line
        source = "\0"
    if "\0" in source:
        raise SpecError(f"{shown} is not UTF-8 text: is it Python? If so, save it as UTF-8")
    if not source.strip():
        raise SpecError(f"{shown} is empty: add `def {MAKE_MODEL}():` to it")
    if source.lstrip().startswith("{") and '"nbformat"' in source:
        raise SpecError(_notebook(shown))
    return source


def _notebook(shown: str) -> str:
    return f"{shown} is a notebook: export it first (jupyter nbconvert --to script {shown})"


def _syntax_message(error: SyntaxError, shown: str) -> str:
    text = _one_line(error.text or "")
    if text.startswith(("%", "!")):
        return f"{shown} line {error.lineno} is notebook syntax, not Python: remove '{text}'"
    return f"{shown} line {error.lineno} is not {_PYTHON} ({_one_line(error.msg)}): correct '{text}'"


def _refuse_ipython(tree: ast.Module, names: ModuleNames, shown: str) -> None:
    """nbconvert turns `%magic` into `get_ipython()...`: valid Python that fails when it is imported."""
    if "get_ipython" in names.lines or names.star_imports:
        return
    for statement in tree.body:
        if isinstance(statement, (ast.Expr, ast.Assign)) and any(
            isinstance(node, ast.Name) and node.id == "get_ipython" for node in ast.walk(statement)
        ):
            raise SpecError(f"{shown} line {statement.lineno} is left from a notebook: remove 'get_ipython()...'")


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:120]
