"""The sample models do what their docstrings promise, on the CPU and without code generation."""

from __future__ import annotations

import ast
import importlib.util
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tcompile_tui.core.discover import CandidateKind, resolve
from tcompile_tui.core.spec import parse_target

SAMPLES = Path(__file__).parents[1] / "sample_models"
MODELS = {
    "broken": "PatchClassifier",
    "convnet": "ResNet18",
    "dynamic_shape": "TextClassifier",
    "graph_break": "ChattyNet",
    "mlp": "MLP",
    "pointwise_chain": "FilmLook",
    "tiny_launch_bound": "TinyNet",
    "transformer_block": "LanguageModel",
}
WORKING = sorted(MODELS.keys() - {"broken"})

pytestmark = pytest.mark.xdist_group("sample_models")  # one process imports torch


def _source(name: str) -> str:
    return (SAMPLES / f"{name}.py").read_text(encoding="utf-8")


def _imported(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"sample_{name}", SAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _call(model: Any, inputs: Any) -> Any:
    import torch

    with torch.no_grad():
        return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


def _line_of(name: str, text: str) -> int:
    """The only line of the sample that holds `text`."""
    lines = [number for number, line in enumerate(_source(name).splitlines(), 1) if text in line]
    assert len(lines) == 1, f"{text!r} on lines {lines} of {name}.py"
    return lines[0]


@pytest.fixture
def graphs() -> Iterator[list[Any]]:
    """The graphs that the `collect` backend was given, with Dynamo's state reset around the test."""
    import torch

    torch._dynamo.reset()
    yield []
    torch._dynamo.reset()


def _collecting(graphs: list[Any]) -> Callable[[Any, Any], Any]:
    """A torch.compile backend that notes each graph and runs it as it is."""

    def backend(graph: Any, _inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    return backend


def test_every_file_is_listed_here() -> None:
    assert {path.stem for path in SAMPLES.glob("*.py")} == MODELS.keys()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_has_one_obvious_model_and_says_what_to_find(name: str) -> None:
    chosen = resolve(parse_target(f"{name}.py"), SAMPLES).candidate
    assert (chosen.name, chosen.kind, chosen.required) == (MODELS[name], CandidateKind.CLASS, ())
    assert "What tcompile-tui should find:" in (ast.get_docstring(ast.parse(_source(name))) or "")


@pytest.mark.parametrize("name", WORKING)
def test_runs_eager(name: str) -> None:
    import torch

    module = _imported(name)
    inputs = module.example_inputs()
    assert isinstance(inputs, (tuple, dict))
    output = _call(getattr(module, MODELS[name])().eval(), inputs)
    assert isinstance(output, torch.Tensor)
    assert output.isfinite().all()


def test_broken_raises_on_its_own_line() -> None:
    module = _imported("broken")
    with pytest.raises(ValueError, match="expected 64 patches of an image, got 144") as caught:
        _call(module.PatchClassifier(), module.example_inputs())
    innermost = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert Path(innermost.filename).name == "broken.py"
    assert innermost.lineno == _line_of("broken", "raise ValueError")


def test_graph_break_breaks_on_its_three_commented_lines() -> None:
    import torch

    module = _imported("graph_break")
    torch._dynamo.reset()
    with torch.no_grad():
        found = torch._dynamo.explain(module.ChattyNet().eval())(*module.example_inputs())
    lines = [reason.user_stack[-1].lineno for reason in found.break_reasons]
    assert lines == [_line_of("graph_break", f"# break {i}:") for i in (1, 2, 3)]
    assert found.graph_count == 4


def test_graph_break_does_not_recompile(graphs: list[Any]) -> None:
    import torch

    module = _imported("graph_break")
    compiled = torch.compile(module.ChattyNet().eval(), backend=_collecting(graphs))
    for _ in range(4):
        _call(compiled, module.example_inputs())
    assert len(graphs) == 4


def test_dynamic_shape_recompiles_exactly_once(graphs: list[Any]) -> None:
    import torch

    module = _imported("dynamic_shape")
    compiled = torch.compile(module.TextClassifier().eval(), backend=_collecting(graphs))
    _call(compiled, module.example_inputs())
    assert len(graphs) == 1
    for inputs in module.more_inputs():
        _call(compiled, inputs)
        assert len(graphs) == 2
