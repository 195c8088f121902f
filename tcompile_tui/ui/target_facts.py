"""What the form needs to know of a target. Reads files, so it runs in a thread; nothing is imported or run."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tcompile_tui.core.candidates import Candidate, CandidateKind, FileHooks, signature_text
from tcompile_tui.core.discover import find_candidates, find_hooks, resolve
from tcompile_tui.core.spec import SpecError, parse_target
from tcompile_tui.ui.model_files import written_path


@dataclass(frozen=True)
class TargetFacts:
    """`path` is None while no file is found; `problem` says why the target cannot be run as it is written.
    `bases` are the base classes as written, by class. `chosen` is the model that the target names."""

    text: str
    path: Path | None = None
    candidates: tuple[Candidate, ...] = ()
    bases: Mapping[str, str] = field(default_factory=dict)
    chosen: Candidate | None = None
    hooks: FileHooks = field(default_factory=FileHooks)
    problem: str | None = None

    def target_for(self, candidate: Candidate) -> str:
        """The target that names `candidate` in this file."""
        try:
            target = parse_target(self.text)
        except SpecError:
            return self.text
        return str(replace(target, name=candidate.name))


def look_at(text: str, cwd: Path) -> TargetFacts:
    """Never raises because of what the file holds."""
    try:
        target = parse_target(text)
    except SpecError as error:
        return TargetFacts(text, problem=str(error))
    chosen: Candidate | None = None
    problem: str | None = None
    path = written_path(target.path, cwd) if target.path else None
    try:
        resolved = resolve(target, cwd)
        if resolved.path is None:  # only the worker's interpreter can look into it
            hooks = FileHooks(example_inputs=target.source is not None)
            return TargetFacts(text, None, (resolved.candidate,), chosen=resolved.candidate, hooks=hooks)
        chosen, path = resolved.candidate, Path(resolved.path)
    except SpecError as error:
        problem = str(error)
    try:
        if path is None:
            raise SpecError(problem or f"cannot find {text}")
        candidates, hooks = tuple(find_candidates(path)), find_hooks(path)
    except SpecError as error:
        return TargetFacts(text, problem=problem or str(error))
    needy = _needs_arguments(candidates, target.name) if chosen is None else None
    if needy is not None:  # the form has a field for them
        chosen, problem = needy, None
    if problem and target.name is None and _several_are_usable(candidates):
        problem = f"{path.name} has several models: choose one"
    return TargetFacts(text, path, candidates, _bases_in(path), chosen, hooks, problem)


def call_text(candidate: Candidate) -> str:
    """`Net(width: int, depth: int = 2)`; a model already built is only its name."""
    if candidate.kind is CandidateKind.VALUE:
        return candidate.name
    return f"{candidate.name}({signature_text(candidate.parameters)})"


def origin_text(candidate: Candidate, bases: Mapping[str, str]) -> str:
    """`nn.Module, line 38`, and why it is not taken unasked."""
    what = bases.get(candidate.name) if candidate.kind is CandidateKind.CLASS else candidate.kind.value
    words = [what or "class", f"line {candidate.line}" if candidate.line else None, candidate.note]
    return ", ".join(word for word in words if word)


def _needs_arguments(candidates: tuple[Candidate, ...], name: str | None) -> Candidate | None:
    """The one model that is meant, if all that it lacks is values for its constructor."""
    named = [each for each in candidates if each.name == name]
    meant = named or [each for each in candidates if each.note is None and each.kind is CandidateKind.CLASS]
    return meant[0] if len(meant) == 1 and meant[0].required else None


def _several_are_usable(candidates: tuple[Candidate, ...]) -> bool:
    return sum(candidate.note is None and not candidate.required for candidate in candidates) > 1


def _bases_in(path: Path) -> dict[str, str]:
    try:
        with tokenize.open(path) as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {node.name: ", ".join(map(ast.unparse, node.bases)) for node in classes}
