"""The values that a constructor is called with, from `--arg`: literals, files, and dataclasses made of either."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.argument_spec import Argument, read_value
from ..core.spec_error import SpecError
from .failures import StageError


def constructor_arguments(entry: Any, name: str, arguments: Sequence[Argument]) -> dict[str, Any]:
    """By parameter, with dataclasses where `entry` is annotated with one. Raises StageError for what it does not take
    and for what it needs."""
    given = collected(arguments)
    try:
        signature = inspect.signature(entry)
    except (TypeError, ValueError):
        return given
    _refuse_unknown(signature, name, given)
    missing = [p for p in signature.parameters.values() if _is_required(p) and p.name not in given]
    if missing:
        first = missing[0].name
        raise StageError(
            f"{name}({', '.join(map(_as_written, missing))}) needs values: give --arg {first}=VALUE"
            f"{' and so on' if len(missing) > 1 else ''}, or add `def make_model():` to the file"
        )
    hints = _hints(entry)
    return {parameter: _typed(value, hints.get(parameter), parameter) for parameter, value in given.items()}


def collected(arguments: Sequence[Argument]) -> dict[str, Any]:
    """The values as plain data: those with a dotted name are laid into the dict before the dots."""
    values: dict[str, Any] = {}
    for argument in arguments:
        *path, last = argument.name.split(".")
        place = values
        for part in path:
            inner = place.setdefault(part, {})
            if not isinstance(inner, dict):
                raise StageError(f"--arg {argument}: {part} is {inner!r}, which has no fields")
            place = inner
        place[last] = _value(argument)
    return values


def read_json(path: Path) -> Any:
    """What a JSON file holds. Raises StageError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StageError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise StageError(f"{path} is not JSON: {error}") from error


def _value(argument: Argument) -> Any:
    try:
        return read_value(argument) if argument.file is None else _from_file(Path(argument.file).expanduser())
    except SpecError as error:
        raise StageError(str(error)) from error


def _from_file(path: Path) -> Any:
    if path.suffix not in (".yaml", ".yml"):
        return read_json(path)
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise StageError(f"{path} needs PyYAML beside the model: install it there, or write it as JSON") from error
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StageError(f"cannot read {path}: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise StageError(f"{path} is not YAML: {' '.join(str(error).split())}") from error


def _refuse_unknown(signature: inspect.Signature, name: str, given: Mapping[str, Any]) -> None:
    parameters = signature.parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for argument in given:
        if argument not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise StageError(f"{name} has no parameter '{argument}': {takes}")


def _is_required(parameter: inspect.Parameter) -> bool:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in variadic


def _as_written(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return parameter.name
    # A text where the file has `from __future__ import annotations`.
    return f"{parameter.name}: {annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)}"


def _hints(entry: Any) -> dict[str, Any]:
    """Annotations as classes; none where one of them cannot be evaluated."""
    try:
        return typing.get_type_hints(entry.__init__ if inspect.isclass(entry) else entry)
    except Exception:
        return {}


def _typed(value: Any, annotation: Any, where: str) -> Any:
    """A dict becomes the dataclass that the annotation names (`Config`, `Config | None`), field by field."""
    choices = (annotation, *typing.get_args(annotation))
    wanted = next((each for each in choices if inspect.isclass(each) and dataclasses.is_dataclass(each)), None)
    if wanted is None or not isinstance(value, Mapping):
        return value
    fields = {field.name: field for field in dataclasses.fields(wanted) if field.init}
    for key in value:
        if key not in fields:
            raise StageError(f"{wanted.__name__} has no field '{key}': it has {', '.join(fields)}")
    missing = [
        f"{field.name}: {field.type if isinstance(field.type, str) else inspect.formatannotation(field.type)}"
        for field in fields.values()
        if field.name not in value and field.default is field.default_factory is dataclasses.MISSING
    ]
    if missing:
        first = missing[0].partition(":")[0]
        raise StageError(f"{wanted.__name__}({', '.join(missing)}) needs values: give --arg {where}.{first}=VALUE")
    hints = _hints(wanted)
    return wanted(**{key: _typed(item, hints.get(key), f"{where}.{key}") for key, item in value.items()})
