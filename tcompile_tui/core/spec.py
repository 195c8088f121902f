"""What to run: one grammar for the command line, the form and the recorded run.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import enum
import re
import shlex
from dataclasses import dataclass
from pathlib import PurePath

from .spec_error import SpecError as SpecError
from .step_spec import USUAL_STEP, StepSpec, step_words

INTEGER_DTYPES = ("int8", "int16", "int32", "int64", "uint8")
FLOATING_DTYPES = ("float16", "bfloat16", "float32", "float64")
COMPLEX_DTYPES = ("complex64", "complex128")
DTYPES = (*FLOATING_DTYPES, *INTEGER_DTYPES, "bool", *COMPLEX_DTYPES)
DTYPE_ALIASES = {
    "half": "float16", "float": "float32", "double": "float64",
    "short": "int16", "int": "int32", "long": "int64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
    "fp16": "float16", "fp32": "float32",
}  # fmt: skip

ASSUMED_PLAN_HOURS = 24.0


class Task(str, enum.Enum):
    INFER = "infer"
    TRAIN = "train"


class Mode(str, enum.Enum):
    """The `mode` of torch.compile."""

    DEFAULT = "default"
    REDUCE_OVERHEAD = "reduce-overhead"
    MAX_AUTOTUNE_NO_CUDAGRAPHS = "max-autotune-no-cudagraphs"
    MAX_AUTOTUNE = "max-autotune"


class Phase(str, enum.Enum):
    """The parts of a run; each is a process of its own."""

    PREFLIGHT = "preflight"
    EAGER = "eager"
    REFERENCE = "reference"
    COLD = "cold"
    WARM = "warm"
    EXPLAIN = "explain"

    @property
    def compiles(self) -> bool:
        """Has the compiler a part in it?"""
        return self not in (Phase.EAGER, Phase.REFERENCE)


class Arm(str, enum.Enum):
    """One side of the comparison."""

    EAGER = "eager"
    COMPILED = "compiled"


class Preset(str, enum.Enum):
    """How much time a run may take, and with it how sure it can be."""

    SMOKE = "smoke"
    QUICK = "quick"
    STANDARD = "standard"
    THOROUGH = "thorough"

    @property
    def budget_s(self) -> float:
        return {"smoke": 120.0, "quick": 300.0, "standard": 900.0, "thorough": 3600.0}[self.value]


@dataclass(frozen=True)
class Target:
    """A model: `path/file.py[:Name]` or `package.module:Name`. Exactly one of `path` and `module` is set."""

    path: str | None
    module: str | None
    name: str | None

    def __str__(self) -> str:
        where = self.path or self.module or ""
        return f"{where}:{self.name}" if self.name else where

    @property
    def label(self) -> str:
        """A short name for lists and folder names."""
        stem = PurePath(self.path).stem if self.path else (self.module or "").rpartition(".")[2]
        return f"{stem}-{self.name}" if self.name and self.name != stem else stem


_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def parse_target(text: str) -> Target:
    """Read TARGET. Raises SpecError; does not look at the disk."""
    text = text.strip()
    if not text:
        raise SpecError("no model given: write a file (model.py), file:Name, or package.module:Name")
    where, colon, name = text.rpartition(":")
    if not colon or "/" in name or name.endswith((".py", ".ipynb")):
        where, name = text, ""
    if colon and where != text and not _DOTTED.fullmatch(name):
        raise SpecError(f"'{name}' in '{text}' is not a name: write {where}:ClassOrFunction")
    if where.endswith(".ipynb"):
        raise SpecError(f"{where} is a notebook: export it first (jupyter nbconvert --to script {where})")
    if where.endswith(".py") or "/" in where:
        return Target(path=where, module=None, name=name or None)
    if _DOTTED.fullmatch(where):
        if not name:
            raise SpecError(f"'{where}' names no model: write {where}:ClassOrFunction, or a path that ends in .py")
        return Target(path=None, module=where, name=name)
    raise SpecError(f"'{text}' is neither a Python file nor package.module:Name")


@dataclass(frozen=True)
class TensorSpec:
    """One input tensor: dtype, shape and, for integers, the half-open range its values are drawn from."""

    dtype: str
    shape: tuple[int, ...]
    name: str | None = None
    low: int | None = None
    high: int | None = None

    def __str__(self) -> str:
        values = "" if self.low is None else f"<{self.low},{self.high}>"
        return f"{self.name + '=' if self.name else ''}{self.dtype}[{','.join(map(str, self.shape))}]{values}"


_TENSOR = re.compile(
    r"^\s*(?:(?P<name>[^=\[\]<>]*?)\s*=)?\s*(?P<dtype>[A-Za-z_][\w.]*)\s*\[(?P<shape>[^\]]*)\]\s*(?:<(?P<range>[^>]*)>)?\s*$"
)
_MAX_SIZE_DIGITS = 18  # a size is an int64
_MAX_BOUND = 2**63 - 1  # torch.randint takes its bounds as int64, the excluded upper one too


def parse_tensor(text: str) -> TensorSpec:
    """Read one `--input`: `[name=]dtype[shape][<low,high>]`, for example `ids=int64[4,512]<0,50257>`.

    Raises SpecError with the part that is wrong.
    """
    match = _TENSOR.match(text)
    if match is None:
        raise SpecError(f"cannot read the input '{text}': write name=float32[4,3,224,224] or ids=int64[4,512]<0,50257>")
    name = match["name"].strip() if match["name"] is not None else None
    if name is not None and not name.isidentifier():
        raise SpecError(f"'{name}' in '{text}' is not a parameter name")
    written = match["dtype"].removeprefix("torch.")
    dtype = DTYPE_ALIASES.get(written, written)
    if dtype not in DTYPES:
        raise SpecError(f"unknown dtype '{written}' in '{text}': one of {', '.join(DTYPES)}")
    sizes = match["shape"].split(",") if match["shape"].strip() else []
    shape = tuple(_parse_size(size, text) for size in sizes)
    low, high = _parse_range(match["range"], dtype, text)
    return TensorSpec(dtype, shape, name, low, high)


def _parse_size(size: str, text: str) -> int:
    size = size.strip()
    if not (size.isascii() and size.isdigit() and len(size) <= _MAX_SIZE_DIGITS):
        raise SpecError(f"'{size}' in '{text}' is not a size: sizes are whole numbers from 0 up")
    return int(size)


def _parse_range(written: str | None, dtype: str, text: str) -> tuple[int | None, int | None]:
    if written is None:
        return None, None
    if dtype not in INTEGER_DTYPES:
        raise SpecError(f"a range in '{text}' needs an integer dtype, not {dtype}")
    try:
        low, high = (int(bound) for bound in written.split(","))
    except ValueError:
        raise SpecError(f"cannot read the range '<{written}>' in '{text}': write <0,50257>") from None
    bits = int(re.sub(r"\D", "", dtype))
    smallest = 0 if dtype.startswith("u") else -(2 ** (bits - 1))
    largest = smallest + 2**bits - 1
    if low >= high:
        raise SpecError(f"the range <{low},{high}> in '{text}' is empty: the upper bound is not included")
    if low < smallest or high > min(largest + 1, _MAX_BOUND):
        raise SpecError(f"the range <{low},{high}> in '{text}' does not fit into {dtype}")
    return low, high


def parse_inputs(texts: list[str] | tuple[str, ...]) -> tuple[TensorSpec, ...]:
    """Read every `--input`; positional ones come before named ones, a name comes once."""
    specs = tuple(parse_tensor(text) for text in texts)
    names = [spec.name for spec in specs if spec.name]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"the input '{name}' is given twice")
    first_named = next((i for i, spec in enumerate(specs) if spec.name), len(specs))
    for spec in specs[first_named:]:
        if not spec.name:
            raise SpecError(f"the input '{spec}' has no name but follows one that has: put it first")
    return specs


@dataclass(frozen=True)
class Starts:
    """How often the planned work is started: with empty compile caches, and with those of an earlier start."""

    cold: int = 1
    warm: int = 0

    def __str__(self) -> str:
        return f"cold={self.cold},warm={self.warm}"


ONE_COLD_START = Starts()
_MAX_STARTS = 10**9


def parse_starts(text: str) -> Starts:
    """Read `--starts`: `cold=1,warm=20`; a kind that is left out does not happen. Raises SpecError."""
    counts: dict[str, int] = {}
    for part in text.split(","):
        kind, _, written = (word.strip() for word in part.partition("="))
        valid = kind in ("cold", "warm") and kind not in counts and written.isascii() and written.isdigit()
        if not valid or len(written) > len(str(_MAX_STARTS)) or int(written) > _MAX_STARTS:
            raise SpecError(f"cannot read the starts '{text}': write cold=1,warm=20")
        counts[kind] = int(written)
    if not any(counts.values()):
        raise SpecError(f"no start in '{text}': the planned work is started at least once")
    return Starts(cold=counts.get("cold", 0), warm=counts.get("warm", 0))


@dataclass(frozen=True)
class Plan:
    """The work the user means to do: a number of steps, or hours of eager running; in all, over all `starts`.

    With neither given, the decision is for ASSUMED_PLAN_HOURS of eager steps and says so.
    """

    steps: int | None = None
    hours: float | None = None
    starts: Starts = ONE_COLD_START

    @property
    def assumed(self) -> bool:
        return self.steps is None and self.hours is None

    def steps_at(self, eager_step_s: float) -> float:
        """Planned steps, given the eager time of one step in seconds."""
        if self.steps is not None:
            return float(self.steps)
        return (self.hours if self.hours is not None else ASSUMED_PLAN_HOURS) * 3600.0 / eager_step_s


@dataclass(frozen=True)
class RunSpec:
    """Everything that decides what is measured. `task` None means: as the file says, else infer."""

    target: Target
    inputs: tuple[TensorSpec, ...] = ()
    task: Task | None = None
    modes: tuple[Mode, ...] = (Mode.DEFAULT,)
    device: str = "auto"
    dtype: str | None = None
    amp: str | None = None
    plan: Plan = Plan()
    preset: Preset = Preset.STANDARD
    budget_s: float = Preset.STANDARD.budget_s
    step: StepSpec = USUAL_STEP


_DEVICE = re.compile(r"auto|cpu|cuda|cuda:[0-9]+")


def parse_device(text: str) -> str:
    """`cpu`, `cuda`, `cuda:N`; `auto` picks CUDA where there is one."""
    if not _DEVICE.fullmatch(text):
        raise SpecError(f"unknown device '{text}': cpu, cuda or cuda:N")
    return text


def parse_dtype(text: str) -> str:
    """The dtype for parameters and floating inputs."""
    dtype = DTYPE_ALIASES.get(text, text)
    if dtype not in FLOATING_DTYPES:
        raise SpecError(f"unknown dtype '{text}' for the model: one of {', '.join(FLOATING_DTYPES)}")
    return dtype


def order_modes(modes: list[Mode] | tuple[Mode, ...]) -> tuple[Mode, ...]:
    """Each mode once, cheapest to compile first, so that an early answer exists before the slow ones."""
    return tuple(mode for mode in Mode if mode in modes) or (Mode.DEFAULT,)


def command_line(spec: RunSpec) -> str:
    """The `tcompile-tui run ...` that a person would type for `spec`, with nothing that is a default."""
    words = ["tcompile-tui", "run", str(spec.target)]
    for tensor in spec.inputs:
        words += ["--input", str(tensor)]
    if spec.task is not None:
        words += ["--task", spec.task.value]
    if spec.modes != (Mode.DEFAULT,):
        for mode in spec.modes:
            words += ["--mode", mode.value]
    if spec.device != "auto":
        words += ["--device", spec.device]
    if spec.dtype is not None:
        words += ["--dtype", spec.dtype]
    if spec.amp is not None:
        words += ["--amp", spec.amp]
    words += step_words(spec.step)
    if spec.plan.steps is not None:
        words += ["--planned-steps", str(spec.plan.steps)]
    if spec.plan.hours is not None:
        words += ["--planned-hours", _shortest(spec.plan.hours)]
    if spec.plan.starts != ONE_COLD_START:
        words += ["--starts", str(spec.plan.starts)]
    if spec.preset is not Preset.STANDARD:
        words += ["--preset", spec.preset.value]
    if spec.budget_s != spec.preset.budget_s:
        words += ["--budget", _shortest(spec.budget_s)]
    return shlex.join(words)


def _shortest(number: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(float(number)).removesuffix(".0")


@dataclass(frozen=True)
class Job:
    """What one worker process has to do; the first frame it reads.

    `source_path` or `source_module` is what to import, `qualified_name` what to take from it, `import_root`
    the folder that goes first on sys.path. `run_start_ns` is the run's start on the monotonic clock, so that
    every process counts the same seconds. `cache_root` is the private folder that the compiler's caches must
    lie in. `eager_peak_bytes` is None where it is not known, `reference_file` where the outputs in higher precision
    are kept, None in a run without them. `target_first`: the target changes variables that torch reads when it is
    imported, so it comes first.
    """

    phase: Phase
    mode: Mode | None
    spec: RunSpec
    process: int
    run_start_ns: int
    source_path: str | None
    source_module: str | None
    qualified_name: str
    import_root: str
    argv: tuple[str, ...]
    cache_root: str
    warmup_budget_s: float
    pair_budget_s: float
    max_pairs: int
    eager_peak_bytes: int | None = None
    target_first: bool = False
    reference_file: str | None = None


@dataclass(frozen=True)
class FinishLoop:
    """The supervisor has seen enough: end loop number `loop` after the block in hand; EVERY_LOOP ends all."""

    loop: int


EVERY_LOOP = -1
