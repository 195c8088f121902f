"""The piece that builds the model: from the user's file, an installed module, or a library by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcompile_tui.core.argument_spec import Argument, read_value
from tcompile_tui.core.spec import Source
from tcompile_tui.report.script.facts import MODEL_SEED, Facts, literal

_AS_ANNOTATED = '''\
def as_annotated(value, annotation):
    """A dict becomes the dataclass that its parameter or field is annotated with."""
    choices = (annotation, *typing.get_args(annotation))
    wanted = next((each for each in choices if dataclasses.is_dataclass(each)), None)
    if wanted is None or not isinstance(value, dict):
        return value
    hints = typing.get_type_hints(wanted)
    return wanted(**{name: as_annotated(item, hints.get(name)) for name, item in value.items()})


'''


def model_piece(facts: Facts) -> str:
    layout = ".to(memory_format=torch.channels_last)" if facts.spec.step.channels_last else ""
    to = f"DEVICE, torch.{facts.spec.dtype}" if facts.spec.dtype else "DEVICE"
    tf32 = ""
    if facts.spec.step.tf32:
        tf32 = '\ntorch.set_float32_matmul_precision("high")\ntorch.backends.cudnn.allow_tf32 = True'
    typed = facts.source is None and any(map(_may_be_a_dict, facts.spec.arguments))
    return f"""\
# ---------------------------------------------------------------- the model

DEVICE = torch.device("{facts.device}")
os.chdir({literal(facts.cwd)})
{_loading(facts)}{tf32}


{_AS_ANNOTATED if typed else ""}{_FUNCTION_OF if _calls_files(facts) else ""}\
def seed(number):
    random.seed(number)
    torch.manual_seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % 2**32)


{_arguments(facts.spec.arguments)}\
def build():
    seed({MODEL_SEED})
{_building(facts, typed)}
    return model.to({to}){layout}.train({facts.training_mode})


model = build()"""


def load_function(path: str, name: str, cwd: str) -> str:
    """An expression for a function of a file that may be the model's own."""
    return f"function_of({literal(str(Path(cwd) / Path(path).expanduser()))}, {literal(name)})"


_FUNCTION_OF = '''\
def function_of(path, name):
    """From the module that was made of this file already, else from a new one."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and os.path.realpath(file) == os.path.realpath(path):
            return getattr(module, name)
    sys.path.append(os.path.dirname(path))
    found = importlib.util.spec_from_file_location("own_" + os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return getattr(module, name)


'''


def _calls_files(facts: Facts) -> bool:
    """Are there functions of the user's beside the model's own?"""
    return bool(facts.spec.step.functions) or ".py:" in (facts.spec.inputs_from or "")


# ---------------------------------------------------------------- where it comes from


def _loading(facts: Facts) -> str:
    resolved = facts.resolved
    if facts.source is not None:
        return f"import {facts.source.value}"
    lines = [f"sys.path.insert(0, {literal(resolved.import_root)})"]
    if resolved.path is not None:
        lines += [f"sys.path.append({literal(str(Path(resolved.path).parent))})"]
    lines += [f"sys.argv = {literal([resolved.path or resolved.qualified_name, *facts.argv])}"]
    if resolved.module is not None:
        return "\n".join([*lines, f"module = importlib.import_module({literal(resolved.module)})"])
    assert resolved.path is not None
    name = Path(resolved.path).stem
    name = name if name.isidentifier() else "user_model"
    return "\n".join(
        [
            *lines,
            f"found = importlib.util.spec_from_file_location({literal(name)}, sys.argv[0])",
            "module = importlib.util.module_from_spec(found)",
            "sys.modules[found.name] = module",
            "found.loader.exec_module(module)",
        ]
    )


def _building(facts: Facts, typed: bool) -> str:
    given = "**ARGUMENTS" if facts.spec.arguments else ""
    if facts.source is not None:
        return _BUILDERS[facts.source](facts)
    entry = f"module.{facts.resolved.qualified_name}"
    if typed:
        return f"""\
    made = {entry}
    hints = typing.get_type_hints(made.__init__ if isinstance(made, type) else made)
    model = made(**{{name: as_annotated(value, hints.get(name)) for name, value in ARGUMENTS.items()}})"""
    if given:
        return f"    model = {entry}({given})"
    return f"    made = {entry}\n    model = made if isinstance(made, torch.nn.Module) else made()"


def _timm(facts: Facts) -> str:
    given = ", **ARGUMENTS" if facts.spec.arguments else ""
    return f"    model = timm.create_model({literal(facts.spec.target.name)}, pretrained=False{given})"


def _torchvision(facts: Facts) -> str:
    given = ", **ARGUMENTS" if facts.spec.arguments else ""
    return f"""\
    builder = torchvision.models.get_model_builder({literal(facts.spec.target.name)})
    known = inspect.signature(builder).parameters
    random_weights = {{name: None for name in ("weights", "weights_backbone") if name in known}}
    model = builder(**random_weights{given})"""


def _transformers(facts: Facts) -> str:
    """From a config: the class is the one that the run built."""
    name, given = facts.spec.target.name or "", "ARGUMENTS" if facts.spec.arguments else "{}"
    if name.endswith(".json"):
        config = f"config_class.from_dict({{**json.load(open({literal(str(Path(name).expanduser()))})), **{given}}})"
    else:
        config = "config_class(**ARGUMENTS)" if facts.spec.arguments else "config_class()"
    cached = any(argument.name == "use_cache" for argument in facts.spec.arguments)
    without_cache = """
    for part in (config, getattr(config, "text_config", None)):
        if getattr(part, "use_cache", None):  # a cache is for generating
            part.use_cache = False"""
    return f"""\
    config_class = transformers.{facts.model.class_name}.config_class
    config = {config}{"" if cached else without_cache}
    model = transformers.{facts.model.class_name}(config)"""


_BUILDERS = {Source.TIMM: _timm, Source.TORCHVISION: _torchvision, Source.TRANSFORMERS: _transformers}


# ---------------------------------------------------------------- its arguments


def _arguments(arguments: tuple[Argument, ...]) -> str:
    """One line each, in their order: a dotted name goes into the dict before the dots."""
    if not arguments:
        return ""
    lines = ["ARGUMENTS = {}"]
    for argument in arguments:
        *path, last = argument.name.split(".")
        inner = "".join(f".setdefault({literal(part)}, {{}})" for part in path)
        lines.append(f"ARGUMENTS{inner}[{literal(last)}] = {_value(argument)}")
    return "\n".join(lines) + "\n\n\n"


def _value(argument: Argument) -> str:
    if argument.file is not None:
        return f"json.load(open({literal(str(Path(argument.file).expanduser()))}))"
    return literal(read_value(argument))


def _may_be_a_dict(argument: Argument) -> bool:
    value: Any = read_value(argument) if argument.file is None else {}
    return "." in argument.name or isinstance(value, dict)
