"""Reading a Python file's syntax tree for the models it defines: nothing is imported, nothing is run."""

from __future__ import annotations

import ast
import enum
import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tcompile_tui.core.spec import SpecError

MAKE_MODEL = "make_model"
_HOOKS = ("example_inputs", MAKE_MODEL, "loss", "more_inputs", "make_optimizer")  # in the order of FileHooks
_NOT_MODELS = {
    "torch",
    "enum",
    "abc",
    "typing",
    "collections",
    "dataclasses",
    "unittest",
}  # their classes are not modules
_DOTTED = re.compile(r"^[A-Za-z_][\w.]*$")
_FACTORY_NAME = re.compile(r"^(build|make|create|get)_\w")
_MODEL_NAME = re.compile(r"(?i)model|net|module")
_LOSS_NAME = re.compile(r"(Loss|Criterion)$")
_ROOT_NAME = re.compile(r"(^|^torch\.nn\.(\w+\.)*)Module$|(^|\.)(LightningModule|PreTrainedModel)$")
_LIBRARY_NAME = re.compile(
    r"^torch\.nn\.(?!Parameter$|Buffer$|Uninitialized)(\w+\.)*[A-Z]\w*$|^torch\.jit\.ScriptModule$"
    r"|^torchvision\.models\.(\w+\.)*[A-Z]\w*$|^transformers\.(\w+\.)*[A-Z]\w*(Model|For[A-Z]\w*)$"
)


class CandidateKind(str, enum.Enum):
    CLASS = "class"
    FACTORY = "factory"  # a function that returns a model
    INSTANCE = "instance"  # a model that the file has already built, at module level


@dataclass(frozen=True)
class Parameter:
    """One parameter of a constructor, a factory or `forward`; texts as written. `*args` and `**kwargs` are left out."""

    name: str
    annotation: str | None = None
    default: str | None = None
    keyword_only: bool = False

    def __str__(self) -> str:
        written = f"{self.name}: {self.annotation}" if self.annotation else self.name
        if self.default is None:
            return written
        return f"{written} = {self.default}" if self.annotation else f"{written}={self.default}"


def signature_text(parameters: Iterable[Parameter]) -> str:
    """`in_dim, hidden: int, *, act: str`: with the star in front of the first keyword-only parameter."""
    words: list[str] = []
    for parameter in parameters:
        if parameter.keyword_only and "*" not in words:
            words.append("*")
        words.append(str(parameter))
    return ", ".join(words)


@dataclass(frozen=True)
class Candidate:
    """Something in a file that may be the model.

    `base` is the class's bases, the factory's return annotation or the instance's right-hand side. `call` lists
    what calling it takes, `forward` what the model takes; `forward` is None where the file does not show it.
    `demoted` says why it is hardly the model itself.
    """

    name: str
    line: int
    kind: CandidateKind
    base: str = ""
    call: tuple[Parameter, ...] = ()
    forward: tuple[Parameter, ...] | None = None
    summary: str = ""
    demoted: str | None = None

    @property
    def signature(self) -> str:
        return signature_text(self.call)

    @property
    def required(self) -> tuple[Parameter, ...]:
        """The parameters that have no default."""
        return tuple(parameter for parameter in self.call if parameter.default is None)

    @property
    def reason(self) -> str | None:
        """Why it is not chosen unasked; None if it may be."""
        return self.demoted or (f"needs {signature_text(self.required)}" if self.required else None)

    def __str__(self) -> str:
        return f"{self.name} (line {self.line})"


@dataclass(frozen=True)
class FileHooks:
    """What else the file defines for a run. `train` and `eval` are None unless TRAIN or EVAL is a literal bool."""

    example_inputs: bool = False
    make_model: bool = False
    loss: bool = False
    more_inputs: bool = False
    make_optimizer: bool = False
    train: bool | None = None
    eval: bool | None = None


def parse_source(source: str, filename: str) -> ast.Module:
    """The syntax tree. Raises SpecError with one line that tells what the file is instead of Python."""
    if not source.strip():
        raise SpecError(f"{filename} is empty")
    if _is_notebook(source):
        raise SpecError(
            f"{filename} holds a notebook: export it first (jupyter nbconvert --to script {filename})"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user's own escapes are not our business
            return ast.parse(source)
    except SyntaxError as error:
        raise SpecError(_syntax_message(error, source, filename)) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SpecError(
            f"{filename} cannot be read as Python: {one_line(error) or 'nested too deeply'}"
        ) from None


def _is_notebook(source: str) -> bool:
    if not source.lstrip().startswith("{"):
        return False
    try:
        content = json.loads(source)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and "cells" in content


def _syntax_message(error: SyntaxError, source: str, filename: str) -> str:
    number = error.lineno or 1
    lines = source.splitlines()
    text = one_line(error.text or (lines[number - 1] if number <= len(lines) else ""))
    if text.startswith(("%", "!")):
        return f"{filename}: line {number} is notebook syntax: '{text}': remove it, or export with nbconvert --to script"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"{filename}: line {number} is not Python (read as {version}): {error.msg}: '{text}'"


def one_line(text: object) -> str:
    """At most 120 characters, on one line, for a message."""
    return " ".join(str(text).split())[:120]


def _module_level(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that importing runs, through if, try and with, but not behind `__name__ == "__main__"`."""
    for statement in statements:
        yield statement
        if isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test):
            continue
        if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for block in ("body", "orelse", "finalbody"):
                yield from _module_level(getattr(statement, block, []))
            for handler in getattr(statement, "handlers", []):
                yield from _module_level(handler.body)


class ModuleNames:
    """The names that a module binds at its top level, and which of them may be models.

    `lines` maps each name to the line that binds it last.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.lines: dict[str, int] = {}
        self.has_star_import = False
        self._imports: dict[str, str] = {}
        self._classes: dict[str, ast.ClassDef] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        self._values: dict[str, ast.expr] = {}
        for statement in _module_level(tree.body):
            self._bind(statement)

    def candidates(self) -> tuple[Candidate, ...]:
        """Every class, factory and instance that may be a model, in file order."""
        found = [self._class_candidate(node) for node in self._models().values()]
        found += [c for c in map(self._factory_candidate, self._functions.values()) if c]
        found += [c for c in map(self._instance_candidate, self._values) if c]
        if (
            MAKE_MODEL in self.lines and MAKE_MODEL not in self._functions
        ):  # imported, or bound to some callable
            found.append(Candidate(MAKE_MODEL, self.lines[MAKE_MODEL], CandidateKind.FACTORY))
        return tuple(sorted(found, key=lambda candidate: candidate.line))

    def hooks(self) -> FileHooks:
        train, evaluate = (self._literal_bool(name) for name in ("TRAIN", "EVAL"))
        return FileHooks(*(hook in self.lines for hook in _HOOKS), train, evaluate)

    def _bind(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self._bind_imports(statement)
        elif isinstance(statement, ast.ClassDef):
            self._classes[statement.name] = statement
            self.lines[statement.name] = statement.lineno
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if isinstance(statement, ast.FunctionDef):
                self._functions[statement.name] = statement
            self.lines[statement.name] = statement.lineno
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for name in (
                node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
            ):
                self.lines[name.id] = statement.lineno
                if statement.value is not None and name in targets:
                    self._values[name.id] = statement.value

    def _bind_imports(self, statement: ast.Import | ast.ImportFrom) -> None:
        origin = ""
        if isinstance(statement, ast.ImportFrom):
            origin = "." * statement.level + (f"{statement.module}." if statement.module else "")
        for alias in statement.names:
            self.has_star_import |= alias.name == "*"
            name = alias.asname or (alias.name if origin else alias.name.partition(".")[0])
            self._imports[name] = origin + (alias.name if alias.asname or origin else name)
            self.lines[name] = statement.lineno

    def _literal_bool(self, name: str) -> bool | None:
        value = self._values.get(name)
        return value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None

    # ------------------------------------------------------------ what is a model

    def _full_name(self, expression: ast.expr | None) -> str:
        """`nn.Module` as `torch.nn.Module`, through the file's imports; "" for what is no dotted name."""
        if isinstance(expression, ast.Subscript):  # Base[T]
            expression = expression.value
        if isinstance(expression, ast.Constant) and isinstance(expression.value, str):  # -> "nn.Module"
            return self._expand(expression.value) if _DOTTED.match(expression.value) else ""
        if not isinstance(expression, (ast.Name, ast.Attribute)):
            return ""
        written = ast.unparse(expression)
        return self._expand(written) if _DOTTED.match(written) else ""

    def _expand(self, dotted: str) -> str:
        first, dot, rest = dotted.partition(".")
        return self._imports.get(first, first) + dot + rest

    def _lineage(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """The class and its bases in this file, nearest first."""
        line = [node]
        for member in line:  # grows while it is read
            parents = (self._classes.get(self._full_name(base)) for base in member.bases)
            line += [parent for parent in parents if parent is not None and parent not in line]
        return line

    def _outer_bases(self, node: ast.ClassDef) -> list[str]:
        """Full names of the bases that come from other files."""
        names = [self._full_name(base) for member in self._lineage(node) for base in member.bases]
        return [name for name in names if name and name not in self._classes]

    def _models(self) -> dict[str, ast.ClassDef]:
        return {name: node for name, node in self._classes.items() if self._is_model(node)}

    def _is_model(self, node: ast.ClassDef) -> bool:
        """Its bases lead to nn.Module, or into another file of the user's, and it has a forward method."""
        bases = self._outer_bases(node)
        if any(_ROOT_NAME.search(name) or _LIBRARY_NAME.match(name) for name in bases):
            return True
        own = [
            name
            for name in bases
            if name.partition(".")[0] not in _NOT_MODELS and name in self._imports.values()
        ]
        forward = self._method(node, "forward")
        return bool(own) and forward is not None and not forward.decorator_list

    def _method(self, node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
        for member in self._lineage(node):
            for statement in member.body:
                if isinstance(statement, ast.FunctionDef) and statement.name == name:
                    return statement
        return None

    def _returned_model(self, function: ast.FunctionDef) -> str | None:
        """The full name of the model class that the annotation or a return statement names."""
        returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        calls = [value.func for value in returns if isinstance(value, ast.Call)]
        for name in map(self._full_name, [function.returns, *calls]):
            if name in self._models() or _ROOT_NAME.search(name) or _LIBRARY_NAME.match(name):
                return name
        return None

    # ------------------------------------------------------------ candidates

    def _class_candidate(self, node: ast.ClassDef) -> Candidate:
        constructor = self._method(node, "__init__")
        return Candidate(
            node.name,
            node.lineno,
            CandidateKind.CLASS,
            base=", ".join(map(ast.unparse, node.bases)),
            call=_parameters(constructor, method=True) if constructor else (),
            forward=self._forward(node.name),
            summary=_summary(node),
            demoted=self._why_demoted(node),
        )

    def _forward(self, class_name: str | None) -> tuple[Parameter, ...] | None:
        node = self._classes.get(class_name or "")
        method = self._method(node, "forward") if node else None
        return _parameters(method, method=True) if method else None

    def _why_demoted(self, node: ast.ClassDef) -> str | None:
        if node.name.startswith("_"):
            return "is private"
        for name, other in self._models().items():
            if other is not node and node in self._lineage(other):
                return f"is the base of {name}"
            if other is not node and node.name in _names_used(other):
                return f"is used by {name}"
        outer = self._outer_bases(node)
        if self._method(node, "forward") is None and all(map(_ROOT_NAME.search, outer)):
            return "has no forward"
        if _LOSS_NAME.search(node.name) or any(map(_LOSS_NAME.search, outer)):
            return "is a loss"
        return None

    def _factory_candidate(self, function: ast.FunctionDef) -> Candidate | None:
        """make_model; a function annotated to return a module; one named build_..., of which it may be guessed."""
        model = self._returned_model(function)
        named = (
            _FACTORY_NAME.match(function.name) and function.returns is None and function.name not in _HOOKS
        )
        annotated = function.returns is not None and self._full_name(function.returns) == model
        if function.name != MAKE_MODEL and not named and not (annotated and model):
            return None
        demoted = "is private" if function.name.startswith("_") else None
        if not model and not _MODEL_NAME.search(function.name):
            demoted = "does not say that it returns a model"
        return Candidate(
            function.name,
            function.lineno,
            CandidateKind.FACTORY,
            base=ast.unparse(function.returns) if function.returns else "",
            call=_parameters(function, method=False),
            forward=self._forward(model),
            summary=_summary(function),
            demoted=demoted,
        )

    def _instance_candidate(self, name: str) -> Candidate | None:
        value = self._values[name]
        made_by = self._full_name(value.func) if isinstance(value, ast.Call) else ""
        if made_by not in self._models() and not (made_by and _LIBRARY_NAME.match(made_by)):
            return None
        demoted = (
            "is private" if name.startswith("_") else "is a loss" if _LOSS_NAME.search(made_by) else None
        )
        written = " ".join(ast.unparse(value).split())
        forward = self._forward(made_by)
        return Candidate(
            name, self.lines[name], CandidateKind.INSTANCE, written, forward=forward, demoted=demoted
        )


def _names_used(node: ast.ClassDef) -> set[str]:
    """Names that the class's body reads, but for those in isinstance(...): asking for a type is not using it."""
    used: set[str] = set()
    pending: list[ast.AST] = list(node.body)
    while pending:
        item = pending.pop()
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and item.func.id == "isinstance":
            continue
        if isinstance(item, ast.Name):
            used.add(item.id)
        pending += ast.iter_child_nodes(item)
    return used


def _parameters(function: ast.FunctionDef, *, method: bool) -> tuple[Parameter, ...]:
    """The parameters as written, without `self`, `*args` and `**kwargs`."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    first = 1 if method else 0
    found = [_parameter(name, default) for name, default in zip(positional, defaults, strict=True)][first:]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return (*found, *(_parameter(name, default, keyword_only=True) for name, default in keywords))


def _parameter(node: ast.arg, default: ast.expr | None, *, keyword_only: bool = False) -> Parameter:
    annotation = ast.unparse(node.annotation) if node.annotation else None
    return Parameter(node.arg, annotation, ast.unparse(default) if default else None, keyword_only)


def _summary(node: ast.ClassDef | ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]
