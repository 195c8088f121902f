"""What one step does beside calling the model: loss, optimizer, clipping, memory format, or all of it in own code.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import enum
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import PurePath
from typing import Any, TypeAlias

from .spec_error import SpecError


class BuiltinOptimizer(str, enum.Enum):
    """Those of torch that are offered by name."""

    SGD = "sgd"
    ADAMW = "adamw"


@dataclass(frozen=True)
class FileFunction:
    """A function of the user's: `file.py:name`, the file relative to the folder that the run is started in."""

    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"


Optimizer: TypeAlias = BuiltinOptimizer | FileFunction


_NO_EPOCH = "none"


@dataclass(frozen=True)
class Epoch:
    """What an epoch has beside full batches: a last one of `last` samples, and `eval` batches of evaluation, each
    without gradients and in inference mode. None and 0: it has none. `train` is how many full batches it has, None
    where that is not said. With nothing at all it asks for full batches only."""

    last: int | None = None
    eval: int = 0
    train: int | None = None

    @property
    def has_unlike_batches(self) -> bool:
        """Is there anything but full batches?"""
        return self.last is not None or self.eval > 0

    @property
    def steps(self) -> int | None:
        """Training steps of one epoch."""
        return self.train + (self.last is not None) if self.train is not None else None

    def __str__(self) -> str:
        parts = (("train", self.train), ("last", self.last), ("eval", self.eval))
        return ",".join(f"{name}={number}" for name, number in parts if number) or _NO_EPOCH


@dataclass(frozen=True)
class StepSpec:
    """One step. `loss` None means: the file's own, else the mean square. A training step is one optimizer step over
    `accumulate` micro-batches, its gradients clipped to the norm `grad_clip`. `own` is a whole step in the user's
    code. `epoch` is run before the steps that are compared; None: training has the usual one, where the preset has
    time for it."""

    loss: FileFunction | None = None
    optimizer: Optimizer = BuiltinOptimizer.ADAMW
    compile_optimizer: bool = False
    grad_clip: float | None = None
    accumulate: int = 1
    channels_last: bool = False
    tf32: bool = False
    own: FileFunction | None = None
    epoch: Epoch | None = None

    @property
    def functions(self) -> tuple[FileFunction, ...]:
        """The user's functions that it needs."""
        named = (self.loss, self.optimizer, self.own)
        return tuple(function for function in named if isinstance(function, FileFunction))

    def under(self, folder: str) -> StepSpec:
        """The same with every file named absolutely; `folder` is where relative ones are."""

        def absolute(function: FileFunction) -> FileFunction:
            return FileFunction(str(PurePath(folder) / function.path), function.name)

        return replace(
            self,
            loss=absolute(self.loss) if self.loss is not None else None,
            optimizer=absolute(self.optimizer) if isinstance(self.optimizer, FileFunction) else self.optimizer,
            own=absolute(self.own) if self.own is not None else None,
        )


USUAL_STEP = StepSpec()


def parse_function(text: str, option: str) -> FileFunction:
    """Read `file.py:name`. Raises SpecError; does not look at the disk."""
    path, colon, name = text.strip().rpartition(":")
    if not (colon and path.endswith(".py") and name.isidentifier()):
        raise SpecError(f"{option} '{text}' names no function: write file.py:function")
    return FileFunction(path, name)


def parse_optimizer(text: str) -> Optimizer:
    """`sgd`, `adamw`, or `file.py:function`, which is called with the model."""
    written = text.strip().lower()
    if written in [builtin.value for builtin in BuiltinOptimizer]:
        return BuiltinOptimizer(written)
    try:
        return parse_function(text, "--optimizer")
    except SpecError:
        raise SpecError(f"unknown optimizer '{text}': sgd, adamw, or file.py:function") from None


def parse_grad_clip(text: str) -> float:
    """The largest norm that the gradients of a step may have."""
    try:
        norm = float(text)
    except ValueError:
        norm = math.nan
    if not 0.0 < norm < math.inf:
        raise SpecError(f"--grad-clip '{text}' is no norm: write a number above 0, usually 1")
    return norm


def parse_accumulate(text: str) -> int:
    """Micro-batches of one optimizer step."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and int(text) > 0):
        raise SpecError(f"--accumulate '{text}': a step has at least one micro-batch, write a whole number")
    return int(text)


def parse_epoch(text: str) -> Epoch:
    """Read `train=500,last=37,eval=2`, where what is left out does not happen, or `none`."""
    if text.strip() == _NO_EPOCH:
        return Epoch()
    counts: dict[str, int] = {}
    for part in text.split(","):
        name, _, written = (word.strip() for word in part.partition("="))
        valid = name in ("train", "last", "eval") and name not in counts and written.isascii() and written.isdigit()
        if not valid or len(written) > _MAX_DIGITS or int(written) == 0:
            raise SpecError(
                f"cannot read --epoch '{text}': write last=37,eval=2 (size of the last batch, evaluations),"
                " with train=500 before it for the number of full batches; or none"
            )
        counts[name] = int(written)
    return Epoch(counts.get("last"), counts.get("eval", 0), counts.get("train"))


_MAX_DIGITS = 6
_FLAGS = {"--compile-optimizer": "compile_optimizer", "--channels-last": "channels_last", "--tf32": "tf32"}
_VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--loss": ("loss", lambda text: parse_function(text, "--loss")),
    "--optimizer": ("optimizer", parse_optimizer),
    "--grad-clip": ("grad_clip", parse_grad_clip),
    "--accumulate": ("accumulate", parse_accumulate),
    "--epoch": ("epoch", parse_epoch),
    "--step": ("own", lambda text: parse_function(text, "--step")),
}


def parse_step(words: Sequence[str]) -> StepSpec:
    """Read the options of a step as they stand on the command line. Raises SpecError with the part that is wrong."""
    found: dict[str, Any] = {}
    rest = list(words)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option in _FLAGS and not equals:
            found[_FLAGS[option]] = True
        elif option in _VALUES:
            if not equals and not rest:
                raise SpecError(f"{option} needs a value")
            field, read = _VALUES[option]
            found[field] = read(value if equals else rest.pop(0))
        else:
            raise SpecError(f"'{option}' is no option of a step: one of {', '.join([*_VALUES, *_FLAGS])}")
    return StepSpec(**found)


def split_step(text: str) -> list[str]:
    """The words of one line, quoted as in a shell. Raises SpecError."""
    try:
        return shlex.split(text)
    except ValueError:
        raise SpecError("a quote is not closed") from None


def step_words(step: StepSpec) -> list[str]:
    """The options that a person would type, with nothing that is a default."""
    words: list[str] = []
    for option, (name, _) in _VALUES.items():
        value = getattr(step, name)
        if value != getattr(USUAL_STEP, name):
            words += [option, _written(value)]
    return words + [option for option, name in _FLAGS.items() if getattr(step, name)]


def _written(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def check_step(step: StepSpec, infers: bool, amp: str | None) -> StepSpec:
    """Do the options fit each other, and a task that only infers? Raises SpecError."""
    of_training = _given(step, "loss", "optimizer", "compile_optimizer", "grad_clip", "accumulate", "epoch")
    if infers and of_training:
        raise SpecError(f"{of_training[0]} is for training: leave it out, or use --task train")
    if step.own is not None:
        replaced = [*_given(step, "loss", "grad_clip", "accumulate"), *(["--amp"] if amp is not None else [])]
        if replaced:
            raise SpecError(f"{replaced[0]} and --step: the step of your own does that itself, leave one of them out")
    return step


def _given(step: StepSpec, *names: str) -> list[str]:
    """The options behind those of `names` that are not as usual."""
    options = {name: option for option, (name, _) in _VALUES.items()} | {name: o for o, name in _FLAGS.items()}
    return [options[name] for name in names if getattr(step, name) != getattr(USUAL_STEP, name)]


def step_text(step: StepSpec, amp: str | None) -> str:
    """What both arms did beside the usual, in a few words; empty if nothing."""
    words = [f"your own step {step.own}"] if step.own is not None else []
    if step.loss is not None:
        words.append(f"loss {step.loss}")
    if step.optimizer is not BuiltinOptimizer.ADAMW:
        name = "SGD with momentum" if step.optimizer is BuiltinOptimizer.SGD else str(step.optimizer)
        words.append(f"optimizer {name}")
    if step.accumulate > 1:
        words.append(f"{step.accumulate} micro-batches a step")
    if step.grad_clip is not None:
        words.append(f"gradients clipped to {_written(step.grad_clip)}")
    if amp is not None:
        words.append(f"autocast to {amp}")
    if step.epoch is not None:
        words.append("full batches only" if step.epoch == Epoch() else f"an epoch with {step.epoch}")
    words += ["channels_last"] if step.channels_last else []
    words += ["TF32"] if step.tf32 else []
    return ", ".join(words)


def step_from_json(body: Mapping[str, Any]) -> StepSpec:
    """Build it from its JSON object, which msgspec wrote. Raises KeyError or ValueError."""

    def function(value: Any) -> FileFunction | None:
        return FileFunction(**value) if value is not None else None

    optimizer = body["optimizer"]
    values = {field.name: body[field.name] for field in fields(StepSpec)}
    return StepSpec(
        **{
            **values,
            "loss": function(body["loss"]),
            "own": function(body["own"]),
            "epoch": Epoch(**body["epoch"]) if body["epoch"] is not None else None,
            "optimizer": BuiltinOptimizer(optimizer) if isinstance(optimizer, str) else FileFunction(**optimizer),
        }
    )
