"""The models that a Python file defines, read from its syntax tree: nothing is imported, nothing is run."""

from __future__ import annotations

import ast
import builtins
import enum
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAKE_MODEL = "make_model"
_HOOKS = (MAKE_MODEL, "example_inputs", "loss", "more_inputs")
_FACTORY_NAME = re.compile(r"^(build|make|create|get)_\w*(model|net|network|module)\d*$")
_LOSS_NAME = re.compile(r"(Loss|Criterion)$")
# Bases that bring no forward of their own.
_ROOT = re.compile(r"^torch\.nn\.(modules\.)?(module\.)?Module$|(^|\.)(LightningModule|PreTrainedModel|ScriptModule)$")
_LIBRARY = re.compile(
    r"^torch\.nn\.(?!utils\.|Parameter$|Buffer$|Uninitialized)(\w+\.)*[A-Z]\w*$"
    r"|^torchvision\.models\.(?!.*_Weights)(\w+\.)*\w+$|^timm\.create_model$"
    r"|^transformers\.(\w+\.)*[A-Z]\w*(Model|For[A-Z]\w*)$"
)

_RETURN_SELF = {"eval", "train", "to", "cuda", "cpu", "half", "float", "double", "bfloat16", "requires_grad_"}


class CandidateKind(str, enum.Enum):
    CLASS = "class"
    FACTORY = "factory"  # a function that returns a model
    VALUE = "value"  # anything else that the file binds: a model already built, an imported class


@dataclass(frozen=True)
class Parameter:
    """One parameter of a constructor, a factory or `forward`, its texts as written."""

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

    `parameters` is what calling it takes and `forward` what the model takes, both without `self`, `*args` and
    `**kwargs`; `forward` is None where the file does not show it. `note` says why it is not picked unasked.
    """

    name: str
    line: int
    kind: CandidateKind
    parameters: tuple[Parameter, ...] = ()
    forward: tuple[Parameter, ...] | None = None
    note: str | None = None

    @property
    def required(self) -> tuple[Parameter, ...]:
        """The parameters that have no default."""
        return tuple(parameter for parameter in self.parameters if parameter.default is None)

    def __str__(self) -> str:
        return f"{self.name} (line {self.line})"


@dataclass(frozen=True)
class FileHooks:
    """Which hooks a file defines. `train` and `eval` are None unless TRAIN or EVAL is a literal bool."""

    make_model: bool = False
    example_inputs: bool = False
    loss: bool = False
    more_inputs: bool = False
    train: bool | None = None
    eval: bool | None = None


class ModuleNames:
    """The names that importing a file binds, and which of them may be models.

    `lines` maps each name to the line that binds it last.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.lines: dict[str, int] = {}
        self.star_imports: list[str] = []
        self._origins: dict[str, str] = {}  # imported names and plain aliases, with what they stand for
        self._classes: dict[str, ast.ClassDef] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        self._values: dict[str, ast.expr] = {}
        for statement in _run_on_import(tree.body):
            self._bind(statement)
        self._models = {name: node for name, node in self._classes.items() if self._is_model(node)}
        self._made: dict[str, str] = {}
        self._learn_what_functions_make()

    def candidates(self) -> list[Candidate]:
        """Every public class, factory and ready-built value that may be a model, in file order."""
        names = {*self._models, *filter(self._is_factory, self._functions), MAKE_MODEL} & self.lines.keys()
        names |= {name for name, value in self._values.items() if self._made_by(value)}
        found = [self.candidate(name) for name in names if not name.startswith("_")]
        return sorted(found, key=lambda candidate: (candidate.line, candidate.name))

    def candidate(self, name: str) -> Candidate:
        """What the file shows of one of its names, be it a model or not."""
        line, note = self.lines[name.partition(".")[0]], self._note(name)
        if name in self._classes:
            constructor = self._method(self._classes[name], "__init__")
            parameters = _parameters(constructor)[1:] if constructor else ()
            return Candidate(name, line, CandidateKind.CLASS, parameters, self._forward(name), note)
        forward = self._forward(self._made.get(name) or self._made_by(self._values.get(name)))
        function = self._functions.get(name)
        kind = CandidateKind.FACTORY if function or name == MAKE_MODEL else CandidateKind.VALUE
        return Candidate(name, line, kind, _parameters(function) if function else (), forward, note)

    def hooks(self) -> FileHooks:
        constants = {name: node.value for name, node in self._values.items() if isinstance(node, ast.Constant)}
        defined = (name in self.lines and name not in constants for name in _HOOKS)
        flags = (constants.get(name) for name in ("TRAIN", "EVAL"))
        return FileHooks(*defined, *(flag if isinstance(flag, bool) else None for flag in flags))

    # ------------------------------------------------------------ names

    def _bind(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self._bind_imports(statement)
        elif isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            self.lines[statement.name] = statement.lineno
            if isinstance(statement, ast.ClassDef):
                self._classes[statement.name] = statement
            elif isinstance(statement, ast.FunctionDef):
                self._functions[statement.name] = statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                self._bind_target(target, statement.value)

    def _bind_imports(self, statement: ast.Import | ast.ImportFrom) -> None:
        origin = ""
        if isinstance(statement, ast.ImportFrom):
            origin = "." * statement.level + (f"{statement.module}." if statement.module else "")
        for alias in statement.names:
            if alias.name == "*":
                self.star_imports.append(origin)
                continue
            name = alias.asname or (alias.name if origin else alias.name.partition(".")[0])
            self.lines[name] = statement.lineno
            self._origins[name] = origin + (alias.name if alias.asname or origin else name)

    def _bind_target(self, target: ast.expr, value: ast.expr) -> None:
        names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        for name in names:
            if name in self._classes or name in self._functions:
                continue  # `Net = torch.compile(Net)` is still about the class
            self.lines[name] = target.lineno
            if isinstance(target, ast.Name):
                self._values[name] = value
                if isinstance(value, (ast.Name, ast.Attribute)) and self._full_name(value):
                    self._origins[name] = self._full_name(value)

    def _full_name(self, expression: ast.expr | None) -> str:
        """`nn.Module` as `torch.nn.Module`, through the file's imports; "" for what is no dotted name."""
        if isinstance(expression, ast.Subscript):  # Base[T]
            expression = expression.value
        written = ""
        if isinstance(expression, ast.Constant) and isinstance(expression.value, str):  # -> "nn.Module"
            written = expression.value
        elif isinstance(expression, (ast.Name, ast.Attribute)):
            written = ast.unparse(expression)
        first, dot, rest = written.partition(".")
        if not all(part.isidentifier() for part in written.split(".")):
            return ""
        if first in self._classes:
            return written
        if first in self.lines or hasattr(builtins, first) or not self.star_imports:
            return self._origins.get(first, first) + dot + rest
        return ("torch.nn." if "torch.nn." in self.star_imports else self.star_imports[-1]) + written

    # ------------------------------------------------------------ classes

    def _lineage(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """The class and its bases in this file, nearest first."""
        line = [node]
        for member in line:  # grows while it is read
            parents = (self._classes.get(self._full_name(base)) for base in member.bases)
            line += [parent for parent in parents if parent is not None and parent not in line]
        return line

    def _outer_bases(self, node: ast.ClassDef) -> list[str]:
        """Full names of the bases from other files that may be modules."""
        names = [self._full_name(base) for member in self._lineage(node) for base in member.bases]
        return [name for name in names if name not in self._classes and _may_be_module(name)]

    def _is_model(self, node: ast.ClassDef) -> bool:
        """Its bases lead to nn.Module, or out of this file while it has a forward method."""
        bases = self._outer_bases(node)
        return any(map(_is_module, bases)) or (bool(bases) and self._has_forward(node))

    def _method(self, node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
        for member in self._lineage(node):
            for statement in reversed(member.body):  # the last one stands, after any @overload
                if isinstance(statement, ast.FunctionDef) and statement.name == name:
                    return statement
        return None

    def _has_forward(self, node: ast.ClassDef) -> bool:
        assigned = (s for member in self._lineage(node) for s in member.body if isinstance(s, ast.Assign))
        names = (target.id for s in assigned for target in s.targets if isinstance(target, ast.Name))
        return self._method(node, "forward") is not None or "forward" in names

    def _can_run(self, node: ast.ClassDef) -> bool:
        """It has a forward method, or may have one from a base in another file."""
        return self._has_forward(node) or not all(map(_ROOT.search, self._outer_bases(node)))

    def _forward(self, class_name: str) -> tuple[Parameter, ...] | None:
        node = self._models.get(class_name)
        method = self._method(node, "forward") if node else None
        return _parameters(method)[1:] if method else None

    # ------------------------------------------------------------ factories

    def _made_by(self, value: ast.expr | None, local: dict[str, str] | None = None) -> str:
        """The class that `Net(...)`, `Net.load(...)`, `build(...)` or `Net(...).eval()` gives, or ""."""
        while isinstance(value, ast.Call):
            owner = value.func.value if isinstance(value.func, ast.Attribute) else None
            called = self._full_name(value.func)
            for name in (called, self._made.get(called, ""), self._full_name(owner)):
                if name in self._models or _is_module(name):
                    return name
            value = owner if isinstance(value.func, ast.Attribute) and value.func.attr in _RETURN_SELF else None
        return (local or {}).get(value.id, "") if isinstance(value, ast.Name) else ""

    def _learn_what_functions_make(self) -> None:
        for _ in self._functions:  # a function may call one that stands below it, hence the rounds
            found = {name: self._made_by_function(node) for name, node in self._functions.items()}
            if found == self._made:
                return
            self._made = found

    def _made_by_function(self, function: ast.FunctionDef) -> str:
        local: dict[str, str] = {}
        for node in _own_nodes(function):
            if isinstance(node, ast.Assign) and (made := self._made_by(node.value, local)):
                local |= {target.id: made for target in node.targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.Return) and (made := self._made_by(node.value, local)):
                return made
        annotated = self._full_name(function.returns)
        return annotated if annotated in self._models or _is_module(annotated) else ""

    def _is_factory(self, name: str) -> bool:
        """It makes a model, or is named as if it did while its annotation does not tell."""
        function = self._functions[name]
        guessed = _FACTORY_NAME.match(name) is not None and function.returns is None
        returns = any(isinstance(node, ast.Return) and node.value for node in _own_nodes(function))
        return name not in _HOOKS and (self._made.get(name, "") != "" or (guessed and returns))

    # ------------------------------------------------------------ why not

    def _note(self, name: str) -> str | None:
        """Why it is hardly the model that is meant, or None."""
        node = self._classes.get(name)
        users: dict[str, ast.AST] = {user: other for user, other in self._models.items() if self._can_run(other)}
        if node is None:
            users |= {user: self._functions[user] for user in filter(self._is_factory, self._functions)}
            bases = [self._made.get(name) or self._made_by(self._values.get(name))]
        else:
            bases = self._outer_bases(node)
            for heir, other in self._models.items():
                if heir != name and node in self._lineage(other):
                    return f"is the base of {heir}"
        for user, owner in users.items():
            if user != name and name in _names_read(owner):
                return f"is used by {user}"
        if node is not None and not self._can_run(node):
            return "has no forward"
        return "looks like a loss" if any(map(_LOSS_NAME.search, [name, *bases])) else None


def _is_module(full_name: str) -> bool:
    return bool(_ROOT.search(full_name) or _LIBRARY.match(full_name))


def _may_be_module(full_name: str) -> bool:
    """Not so the classes of Python itself and of the rest of torch (Dataset, autograd.Function)."""
    package = full_name.partition(".")[0]
    foreign = full_name != "" and package not in sys.stdlib_module_names and not hasattr(builtins, full_name)
    return _is_module(full_name) or (foreign and package != "torch")


def _run_on_import(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that importing runs: through if, try and with, not behind `__name__ == "__main__"`."""
    for statement in statements:
        yield statement
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test):
            continue
        for branch in (statement, *getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            for block in ("body", "orelse", "finalbody"):
                yield from _run_on_import(getattr(branch, block, []))


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function in the order of the text, without those of functions inside it."""
    pending: list[ast.AST] = [*reversed(function.body)]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending += list(ast.iter_child_nodes(node))[::-1]


def _names_read(owner: ast.AST) -> set[str]:
    """Names that the code reads, but for those in isinstance(...): asking for a type is not using it."""
    read: set[str] = set()
    pending = [owner]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            continue
        if isinstance(node, ast.Name):
            read.add(node.id)
        pending += ast.iter_child_nodes(node)
    return read


def _parameters(function: ast.FunctionDef) -> tuple[Parameter, ...]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return (
        *(_parameter(node, default) for node, default in zip(positional, defaults, strict=True)),
        *(_parameter(node, default, keyword_only=True) for node, default in keywords),
    )


def _parameter(node: ast.arg, default: ast.expr | None, *, keyword_only: bool = False) -> Parameter:
    annotation = ast.unparse(node.annotation) if node.annotation else None
    return Parameter(node.arg, annotation, ast.unparse(default) if default else None, keyword_only)
