"""A plain PyTorch file that measures the headline numbers again, without this program."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tcompile_tui.core.discover import Resolved, find_hooks, resolve
from tcompile_tui.core.events import ModelReady
from tcompile_tui.core.findings import speedup_text
from tcompile_tui.core.input_spec import InputSpec, TensorSpec
from tcompile_tui.core.reported_run import ReportedRun
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Mode, RunSpec, SpecError
from tcompile_tui.core.step_spec import USUAL_STEP
from tcompile_tui.core.units import duration
from tcompile_tui.report.script_parts import DEFAULT_LOSS, HEADERS, comparison, timer

# Those of the run: the same weights, and inputs of the same distribution.
_MODEL_SEED = 20_240_229
_INPUT_SEED = 7_040


@dataclass(frozen=True)
class _Facts:
    """What the pieces of the script are chosen by."""

    run: ReportedRun
    spec: RunSpec
    resolved: Resolved
    path: str
    model: ModelReady
    result: ModeResult
    cuda: bool
    own_loss: bool
    further_calls: bool
    training_mode: bool

    @property
    def autocast(self) -> str | None:
        if self.spec.amp is None:
            return None
        dtype = "bfloat16" if self.spec.amp == "bf16" else "float16"
        return f'torch.autocast("{"cuda" if self.cuda else "cpu"}", dtype=torch.{dtype})'


def script_text(run: ReportedRun) -> str:
    """The file. Raises SpecError with one line where the run says too little, or the model's file is gone."""
    facts = _facts(run)
    pieces = [
        _head(facts),
        _model(facts),
        _inputs(facts),
        _steps(facts),
        timer(facts.cuda),
        comparison(speedup_text(facts.result), facts.further_calls),
    ]
    return "\n\n\n".join(piece.strip("\n") for piece in pieces) + "\n"


def _facts(run: ReportedRun) -> _Facts:
    started, around, result = run.state.run, run.surroundings, run.shown_result
    model = next((p.model for p in run.state.processes.values() if p.model is not None), None)
    if started is None or around is None or model is None or result is None:
        raise SpecError(f"{run.name} did not get as far as a compiled step: there is nothing to reproduce")
    spec = started.spec
    resolved = resolve(spec.target, Path(around.cwd))
    beyond = _beyond_a_script(spec, resolved)
    if resolved.path is None or beyond is not None:
        raise SpecError(f"no script can be written for {beyond or 'a model of a library'} yet: --format json has all")
    hooks = find_hooks(Path(resolved.path))
    return _Facts(
        run=run,
        spec=spec,
        resolved=resolved,
        path=resolved.path,
        model=model,
        result=result,
        cuda=started.device != "cpu",
        own_loss=model.loss is not None and model.loss.startswith("the file's"),
        further_calls=hooks.more_inputs and not spec.inputs,
        training_mode=model.training or hooks.eval is False,
    )


def _beyond_a_script(spec: RunSpec, resolved: Resolved) -> str | None:
    """What of the run these pieces cannot say."""
    return next(
        (
            what
            for holds, what in (
                (bool(spec.arguments), "constructor arguments"),
                (replace(spec.step, accumulate=1) != USUAL_STEP, "what is said of the step"),
                (spec.inputs_from is not None, "--inputs"),
                (not all(_is_plain(each) for each in spec.inputs), "inputs that are not plain tensors"),
            )
            if holds
        ),
        None,
    )


def _is_plain(given: InputSpec) -> bool:
    """Normal values or integers in a range, of sizes in numbers, laid out as torch does."""
    if not isinstance(given, TensorSpec) or given.size_names:
        return False
    return given == TensorSpec(given.dtype, given.shape, given.name, given.low, given.high)


# ---------------------------------------------------------------- pieces, in the order of the file


def _head(facts: _Facts) -> str:
    start = facts.result.cold_start
    text = f"""\
Eager against torch.compile in mode {facts.result.mode.value}, for {facts.spec.target}: plain PyTorch.

    python THIS_FILE                 the speedup, from neighbouring blocks of both arms
    python THIS_FILE --cold-start    and what a start on empty compile caches costs

The run {facts.run.name} found {speedup_text(facts.result)} and a cold start of
{duration(start.total_s if start is not None else None)}. It was: {_command(facts)}
"""
    imports = ["copy", "math", "os", "random", "shutil", "statistics", "subprocess", "sys", "tempfile", "time"]
    return f"""{_docstring(text)}

{chr(10).join(f"import {name}" for name in sorted([*imports, _importer(facts)]))}

{_environment(facts)}COLD_START = "--cold-start" in sys.argv
if COLD_START:
    # Before torch is imported, which remembers them.
    caches = tempfile.mkdtemp()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(caches, "inductor")
    os.environ["TRITON_CACHE_DIR"] = os.path.join(caches, "triton")
{"" if facts.cuda else HEADERS}

import torch

started = time.perf_counter()
import torch._inductor.compile_fx

IMPORT_S = time.perf_counter() - started
PAIRS = 40"""


def _importer(facts: _Facts) -> str:
    return "importlib" if facts.resolved.module is not None else "importlib.util"


def _model(facts: _Facts) -> str:
    around, resolved = facts.run.surroundings, facts.resolved
    assert around is not None
    argv = [facts.path, *around.argv]
    if resolved.module is not None:
        loading = f"module = importlib.import_module({_literal(resolved.module)})"
    else:
        name = Path(facts.path).stem
        loading = f"""\
found = importlib.util.spec_from_file_location({_literal(name if name.isidentifier() else "user_model")}, sys.argv[0])
module = importlib.util.module_from_spec(found)
sys.modules[found.name] = module
found.loader.exec_module(module)"""
    to = f"DEVICE, torch.{facts.spec.dtype}" if facts.spec.dtype else "DEVICE"
    return f"""\
# ---------------------------------------------------------------- the model

DEVICE = torch.device("{"cuda" if facts.cuda else "cpu"}")
os.chdir({_literal(around.cwd)})
sys.path.insert(0, {_literal(resolved.import_root)})
sys.argv = {_literal(argv)}
{loading}


def seed(number):
    random.seed(number)
    torch.manual_seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % 2**32)


def build():
    seed({_MODEL_SEED})
    made = module.{resolved.qualified_name}
    model = made if isinstance(made, torch.nn.Module) else made()
    return model.to({to}).train({facts.training_mode})


model = build()"""


def _inputs(facts: _Facts) -> str:
    spec = facts.spec
    floating = f", torch.{spec.dtype} if value.is_floating_point() else value.dtype" if spec.dtype else ""
    if spec.inputs:
        tensors = [each for each in spec.inputs if isinstance(each, TensorSpec)]
        args = ", ".join(_random(each) for each in tensors if not each.name)
        kwargs = ", ".join(f'"{each.name}": {_random(each)}' for each in tensors if each.name)
        making = f"    made = ({args}{',' if args else ''}), {{{kwargs}}}"
    else:
        making = "    made = as_call(module.example_inputs())"
    call = """
def as_call(made):
    if isinstance(made, (tuple, list)):
        return tuple(made), {}
    return ((), dict(made)) if hasattr(made, "keys") else ((made,), {})


"""
    return f"""\
# ---------------------------------------------------------------- its inputs


def place(value):
    if isinstance(value, torch.Tensor):
        return value.to(DEVICE{floating})
    if isinstance(value, (tuple, list)):
        items = [place(item) for item in value]
        return items if isinstance(value, list) else value._make(items) if hasattr(value, "_make") else tuple(items)
    return {{key: place(item) for key, item in value.items()}} if isinstance(value, dict) else value

{call if not spec.inputs or facts.further_calls else chr(10)}def make_batch():
{making}
    return place(made)


seed({_INPUT_SEED})
batches = [make_batch() for _ in range({facts.model.input_batches})]
if any(torch.nn.parameter.is_lazy(tensor) for tensor in model.parameters()):
    with torch.no_grad():
        model(*batches[0][0], **batches[0][1])"""


def _steps(facts: _Facts) -> str:
    body = _training(facts) if facts.model.training else _inference(facts)
    return f"""\
# ---------------------------------------------------------------- one step of each arm


{body.strip()}


{_second_copy(facts)}
{_compile_line(facts)}
eager, compiled = make_step(eager_model, batches), make_step(compiled_model, batches)"""


def _inference(facts: _Facts) -> str:
    contexts = ", ".join(["torch.no_grad()", *([facts.autocast] if facts.autocast else [])])
    return f"""\
def make_step(model, batches):
    def step(index):
{_mark(facts, 8)}\
        args, kwargs = batches[index % len(batches)]
        with {contexts}:
            return model(*args, **kwargs)

    return step"""


def _training(facts: _Facts) -> str:
    count, scaled = facts.spec.step.accumulate, facts.spec.amp == "fp16" and facts.cuda
    loss = "loss_of(model(*args, **kwargs))"
    if facts.autocast:
        forward = f"            with {facts.autocast}:\n                loss = {loss}"
    else:
        forward = f"            loss = {loss}"
    scaler = '    scaler = torch.amp.GradScaler("cuda")\n' if scaled else ""
    shared = "loss" if count == 1 else f"(loss / {count})"
    backward = f"scaler.scale({shared.strip('()')}).backward()" if scaled else f"{shared}.backward()"
    update = "scaler.step(optimizer)\n        scaler.update()" if scaled else "optimizer.step()"
    return f"""\
{"loss_of = module.loss" if facts.own_loss else DEFAULT_LOSS}


def make_step(model, batches):
    # Learning rate 0: the work of a step without its drift.
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.0)
{scaler}
    def step(index):
        optimizer.zero_grad(set_to_none=True)
        for micro in range(index * {count}, (index + 1) * {count}):
{_mark(facts, 12)}\
            args, kwargs = batches[micro % len(batches)]
{forward}
            {backward}
        {update}

    return step"""


def _compile_line(facts: _Facts) -> str:
    mode = facts.result.mode
    option = "" if mode is Mode.DEFAULT else f'mode="{mode.value}"'
    if facts.result.wrapped:
        return f"compiled_model = torch.compile({', '.join(filter(None, ['model', option]))})"
    return f"model.compile({option})\ncompiled_model = model"


def _second_copy(facts: _Facts) -> str:
    """As the run got it."""
    how = next((notice.text for notice in facts.run.state.notices if notice.code == "second-copy"), "")
    if "built again" in how:
        return "eager_model = build()\neager_model.load_state_dict(model.state_dict())"
    if "share one set" in how:
        shared = "{id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}"
        return f"# Both share every tensor, because memory is short.\neager_model = copy.deepcopy(model, {shared})"
    return "eager_model = copy.deepcopy(model)"


def _mark(facts: _Facts, indent: int) -> str:
    return f"{' ' * indent}torch.compiler.cudagraph_mark_step_begin()\n" if facts.cuda else ""


# ---------------------------------------------------------------- literals


def _random(spec: TensorSpec) -> str:
    shape, dtype = _literal(spec.shape), f"torch.{spec.dtype}"
    if spec.dtype == "bool":
        return f"torch.randint(0, 2, {shape}, dtype=torch.bool)"
    if "float" in spec.dtype or "complex" in spec.dtype:
        return f"torch.randn({shape}, dtype={dtype})"
    low, high = (spec.low, spec.high) if spec.low is not None else (0, 2)
    return f"torch.randint({low}, {high}, {shape}, dtype={dtype})"


def _command(facts: _Facts) -> str:
    around = facts.run.surroundings
    return around.command if around is not None else ""


def _environment(facts: _Facts) -> str:
    """The variables that the run was given with --env."""
    words = shlex.split(_command(facts))
    words = words[: words.index("--")] if "--" in words else words
    given = [after for word, after in pairwise(words) if word == "--env"]
    given += [word.removeprefix("--env=") for word in words if word.startswith("--env=")]
    pairs = [text.partition("=") for text in given]
    return "".join(f"os.environ[{_literal(name)}] = {_literal(value)}\n" for name, _, value in pairs)


def _literal(value: object) -> str:
    return ascii(value)


def _docstring(text: str) -> str:
    """A command or a path may hold quotes and backslashes."""
    safe = "".join(c if c == "\n" or " " <= c <= "~" else ascii(c)[1:-1] for c in text.replace("\\", "\\\\"))
    return '"""' + safe.replace('"""', '\\"\\"\\"').rstrip() + '\n"""'
