"""What to run: one grammar for the command line, the form and the recorded run.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import enum
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath

# What of these other modules read through this one is named twice.
from .argument_spec import Argument as Argument, parse_arguments as parse_arguments
from .compile_options import TORCH_MODES, CompileOptions, parse_arm as parse_arm
from .data_spec import DataSpec
from .input_spec import (
    DTYPE_ALIASES,
    DTYPES as DTYPES,
    FLOATING_DTYPES as FLOATING_DTYPES,
    INTEGER_DTYPES as INTEGER_DTYPES,
    Dim as Dim,
    InputSpec as InputSpec,
    TensorSpec as TensorSpec,
    check_sizes as check_sizes,
    parse_dims as parse_dims,
    parse_input as parse_input,
    parse_inputs as parse_inputs,
    parse_tensor as parse_tensor,
)
from .shape_spec import ShapeHandling, ShapeSequence
from .spec_error import SpecError as SpecError
from .step_spec import USUAL_STEP, StepSpec, step_words

ASSUMED_PLAN_HOURS = 24.0
USUAL_NEW_TOKENS = 32


class Task(str, enum.Enum):
    INFER = "infer"
    TRAIN = "train"
    DECODE = "decode"
    SERVE = "serve"


class Mode(str, enum.Enum):
    """One way to compile, by its name: a `mode` of torch.compile, or what `--arm` asks for.

    The members are torch's modes. `Mode("regional")` is the one value of that name, though no member; names are those
    of CompileOptions. ValueError for any other text.
    """

    DEFAULT = "default"
    REDUCE_OVERHEAD = "reduce-overhead"
    MAX_AUTOTUNE_NO_CUDAGRAPHS = "max-autotune-no-cudagraphs"
    MAX_AUTOTUNE = "max-autotune"

    @classmethod
    def _missing_(cls, value: object) -> Mode | None:
        try:
            name = parse_arm(value).label if isinstance(value, str) else ""
        except SpecError:
            return None
        if name in TORCH_MODES or not name:
            return cls(name) if name else None
        if name not in _FURTHER_MODES:
            mode = str.__new__(cls, name)
            mode._name_ = mode._value_ = name
            _FURTHER_MODES[name] = mode
        return _FURTHER_MODES[name]

    @property
    def options(self) -> CompileOptions:
        return parse_arm(self.value)

    @property
    def is_plain(self) -> bool:
        """Is it a mode of torch.compile and nothing else?"""
        return self.value in TORCH_MODES

    @property
    def cudagraphs(self) -> bool:
        """Are they asked for?"""
        return self.options.cudagraphs


_FURTHER_MODES: dict[str, Mode] = {}


class Phase(str, enum.Enum):
    """The parts of a run, and `inspect`, which is no part of one; each is a process of its own."""

    PREFLIGHT = "preflight"
    EAGER = "eager"
    REFERENCE = "reference"
    LOADER = "loader"
    COLD = "cold"
    WARM = "warm"
    APART = "apart"
    FIT = "fit"
    SHAPES = "shapes"
    FULLGRAPH = "fullgraph"
    EXPLAIN = "explain"
    INSPECT = "inspect"

    @property
    def compiles(self) -> bool:
        """Has the compiler a part in it?"""
        return self not in (Phase.EAGER, Phase.REFERENCE, Phase.LOADER, Phase.INSPECT)


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


class Source(str, enum.Enum):
    """A library that builds a model from the name of its architecture, with random weights."""

    TIMM = "timm"
    TORCHVISION = "torchvision"
    TRANSFORMERS = "transformers"


@dataclass(frozen=True)
class Target:
    """A model: `path/file.py[:Name]`, `package.module:Name` or `timm:resnet50`. Exactly one of `path`, `module` and
    `source` is set."""

    path: str | None
    module: str | None
    name: str | None
    source: Source | None = None

    def __str__(self) -> str:
        where = self.path or self.module or (self.source.value if self.source else "")
        return f"{where}:{self.name}" if self.name else where

    @property
    def label(self) -> str:
        """A short name for lists and folder names."""
        if self.source is not None:
            return PurePath((self.name or "").removesuffix(".json")).name
        stem = PurePath(self.path).stem if self.path else (self.module or "").rpartition(".")[2]
        return f"{stem}-{self.name}" if self.name and self.name != stem else stem


_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_ARCHITECTURE = re.compile(r"[\w.-]+")


def parse_target(text: str) -> Target:
    """Read TARGET. Raises SpecError; does not look at the disk."""
    text = text.strip()
    if not text:
        raise SpecError("no model given: write a file (model.py), file:Name, or package.module:Name")
    library, colon, architecture = text.partition(":")
    if colon and library in list(Source):
        return _parse_source(Source(library), architecture, text)
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


_SOURCE_EXAMPLES = {Source.TIMM: "resnet50", Source.TORCHVISION: "vit_b_16", Source.TRANSFORMERS: "gpt2"}


def _parse_source(source: Source, name: str, text: str) -> Target:
    is_config = source is Source.TRANSFORMERS and name.endswith(".json")
    if not is_config and not _ARCHITECTURE.fullmatch(name):
        files = ", or a config with its path: transformers:./config.json" if source is Source.TRANSFORMERS else ""
        raise SpecError(
            f"'{text}' names no model of {source.value}: write {source.value}:{_SOURCE_EXAMPLES[source]}{files}"
        )
    return Target(path=None, module=None, name=name, source=source)


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
    """Everything that decides what is measured. `task` None means: as the file says, else infer. `inputs_from` is a
    saved batch or `file.py:function`, `arguments` are those of the model's constructor. With `shapes`, `dims` has the
    most frequent of them. `data` is how fast the batches of the real run come; `fit_batch`: the largest batch of each
    arm is looked for. `new_tokens` are those of a generation, for DECODE; `slo_ms` is how long 99 of 100 requests may
    take, for SERVE."""

    target: Target
    inputs: tuple[InputSpec, ...] = ()
    task: Task | None = None
    modes: tuple[Mode, ...] = (Mode.DEFAULT,)
    device: str = "auto"
    dtype: str | None = None
    amp: str | None = None
    plan: Plan = Plan()
    preset: Preset = Preset.STANDARD
    budget_s: float = Preset.STANDARD.budget_s
    dims: tuple[Dim, ...] = ()
    inputs_from: str | None = None
    arguments: tuple[Argument, ...] = ()
    step: StepSpec = USUAL_STEP
    shapes: ShapeSequence | None = None
    new_tokens: int = USUAL_NEW_TOKENS
    slo_ms: float | None = None
    data: DataSpec | None = None
    fit_batch: bool = False

    def under(self, folder: str) -> RunSpec:
        """The same with the files of the user's functions named absolutely; `folder` is where relative ones are."""
        data = self.data.under(folder) if self.data is not None else None
        return replace(self, step=self.step.under(folder), data=data)


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


def check_inputs(spec: RunSpec) -> None:
    """What is said of the inputs fits together. Raises SpecError."""
    if spec.inputs and spec.inputs_from is not None:
        raise SpecError("give --input or --inputs, not both")
    if spec.inputs_from is not None and spec.inputs_from.endswith(".py"):
        raise SpecError(f"--inputs {spec.inputs_from} names no function: write {spec.inputs_from}:make_batch")
    if spec.inputs_from is not None and spec.dims:
        raise SpecError(f"--dim has no use with --inputs {spec.inputs_from}, which says its sizes itself: leave it out")
    if spec.inputs or spec.target.source is None:
        check_sizes(spec.inputs, spec.dims)


def order_modes(modes: Iterable[Mode]) -> tuple[Mode, ...]:
    """Each mode once, cheapest to compile first, so that an early answer exists before the slow ones; then what `--arm`
    asks for, which is compared with a plain mode."""
    asked = tuple(dict.fromkeys(modes))
    plain = tuple(mode for mode in Mode if mode in asked) or (Mode.DEFAULT,)
    return (*plain, *(mode for mode in asked if not mode.is_plain))


def command_line(spec: RunSpec) -> str:
    """The `tcompile-tui run ...` that a person would type for `spec`, with nothing that is a default."""
    words = ["tcompile-tui", "run", str(spec.target)]
    for argument in spec.arguments:
        words += ["--arg", str(argument)]
    for each in spec.inputs:
        words += ["--input", str(each)]
    for dim in spec.dims:
        if spec.shapes is None or dim.name not in spec.shapes.names:
            words += ["--dim", str(dim)]
    words += spec.shapes.words if spec.shapes is not None else ()
    if spec.inputs_from is not None:
        words += ["--inputs", spec.inputs_from]
    if spec.task is not None:
        words += ["--task", spec.task.value]
    if spec.new_tokens != USUAL_NEW_TOKENS:
        words += ["--new-tokens", str(spec.new_tokens)]
    plain = [mode for mode in spec.modes if mode.is_plain]
    if plain != [Mode.DEFAULT]:
        for mode in plain:
            words += ["--mode", mode.value]
    for mode in spec.modes:
        words += ["--arm", mode.value] if not mode.is_plain else ()
    if spec.slo_ms is not None:
        words += ["--slo-ms", _shortest(spec.slo_ms)]
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
    words += spec.data.words if spec.data is not None else ()
    words += ["--fit-batch"] if spec.fit_batch else []
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
    are kept, None in a run without them. `artifacts_from` is a file of torch's portable caches to load before the
    compile, `artifacts_to` where to write them after it. `target_first`: the target changes variables that torch
    reads when it is imported, so it comes first. `measure_energy`: each arm also runs alone for some seconds.
    `handling` is what a replay of shapes does about them, `arm` the one that runs apart from the other;
    `memory_limit_bytes` what it may take of the GPU's memory, where its largest batch is looked for.
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
    artifacts_from: str | None = None
    artifacts_to: str | None = None
    measure_energy: bool = False
    handling: ShapeHandling | None = None
    arm: Arm | None = None
    memory_limit_bytes: int | None = None


@dataclass(frozen=True)
class FinishLoop:
    """The supervisor has seen enough: end loop number `loop` after the block in hand; EVERY_LOOP ends all."""

    loop: int


EVERY_LOOP = -1
