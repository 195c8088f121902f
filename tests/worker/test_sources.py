"""Models of a library by name, against small stand-ins for the libraries: what is built, on which inputs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tcompile_tui.core.spec import Job, Phase, RunSpec, Task, parse_arguments, parse_dims, parse_target
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.inputs import describe_inputs, make_batches
from tcompile_tui.worker.loading import build_model, import_user_file
from tcompile_tui.worker.stepping import Trained, make_step

pytestmark = pytest.mark.xdist_group("torch")

LIBRARIES = Path(__file__).parent.parent / "data" / "fake_libraries"
NAMES = ("timm", "torchvision", "transformers")
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(LIBRARIES))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    _forget()
    yield
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in NAMES]:
        del sys.modules[name]


def _step(target: str, *options: str, task: Task | None = None) -> tuple[dict[str, tuple[int, ...]], Any]:
    """Shapes of the inputs by path, and what one step gives. An option without a dot is `--dim`, else `--arg`."""
    dims = parse_dims([text for text in options if text[0].isupper()])
    arguments = parse_arguments([text for text in options if not text[0].isupper()])
    spec = RunSpec(parse_target(target), dims=dims, arguments=arguments, task=task)
    job = Job(
        phase=Phase.EAGER, mode=None, spec=spec, process=1, run_start_ns=0, source_path=None, source_module=None,
        qualified_name=spec.target.name or "", import_root="/", argv=(), cache_root="", warmup_budget_s=1,
        pair_budget_s=1, max_pairs=1,
    )  # fmt: skip
    user = import_user_file(job)
    model = build_model(user, job)
    batches = make_batches(user, model, spec, CPU)
    result = make_step(user, model, batches, spec, user.task(task), CPU)(0)
    return {info.path: info.shape for info in describe_inputs(batches[0])}, result


def _refusal(target: str, *options: str) -> str:
    with pytest.raises(StageError) as caught:
        _step(target, *options)
    assert caught.value.fault == "input" and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("target", "options", "shapes"),
    [
        ("timm:resnet18", (), {"args[0]": (8, 3, 32, 48)}),
        ("timm:resnet18", ("B=2", "W=16", "in_chans=1"), {"args[0]": (2, 1, 32, 16)}),
        ("timm:vit_tiny", ("img_size=20",), {"args[0]": (8, 3, 20, 20)}),
        ("torchvision:image_net", ("B=1",), {"args[0]": (1, 3, 24, 24)}),
        ("torchvision:video_net", ("T=2",), {"args[0]": (8, 3, 2, 12, 14)}),
        ("torchvision:detector", (), {"args[0][0]": (3, 40, 40), "args[0][1]": (3, 40, 40)}),
        ("transformers:gpt", (), {"input_ids": (8, 16), "attention_mask": (8, 16)}),
        ("transformers:GPTForCausalLM", ("T=4", "B=2"), {"input_ids": (2, 4), "attention_mask": (2, 4)}),
        ("transformers:ear", ("T=4", "num_mel_bins=5"), {"input_features": (8, 5, 20), "decoder_input_ids": (8, 4)}),
        ("transformers:pair", ("B=2",), {"input_ids": (2, 16), "attention_mask": (2, 16), "pixel_values": (2, 1, 8, 8)}),  # noqa: E501
    ],
)  # fmt: skip
def test_models_bring_their_inputs(target: str, options: tuple[str, ...], shapes: dict[str, tuple[int, ...]]) -> None:
    assert _step(target, *options)[0] == shapes


@pytest.mark.parametrize(
    "target", ["timm:resnet18", "torchvision:image_net", "torchvision:detector", "transformers:gpt", "transformers:ear"]
)
def test_models_train_on_the_loss_of_their_task(target: str) -> None:
    shapes, trained = _step(target, task=Task.TRAIN)
    assert isinstance(trained, Trained) and bool(trained.loss.isfinite())
    assert ("labels" in shapes) == target.startswith("transformers")
    if target.startswith("transformers"):
        assert torch.equal(trained.loss, trained.output.loss), "the model's own loss, from labels"


def test_token_ids_lie_in_the_vocabulary_and_labels_are_the_ids() -> None:
    spec = RunSpec(parse_target("transformers:gpt"), arguments=parse_arguments(["vocab_size=3"]), task=Task.TRAIN)
    from tcompile_tui.worker.sources import import_source

    source = import_source(spec)
    source.make_model(vocab_size=3)
    inputs = source.example_inputs()
    assert set(inputs["input_ids"].unique().tolist()) == {0, 1, 2}
    assert torch.equal(inputs["labels"], inputs["input_ids"])


def test_a_config_file_names_the_model_and_its_sizes(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    body = {"model_type": "gpt", "architectures": ["GPTForCausalLM"], "n_positions": 6, "extra": {"a": 1}}
    file.write_text(json.dumps(body))
    assert _step(f"transformers:{file}")[0]["input_ids"] == (8, 6)
    assert _step(f"transformers:{file}", "n_positions=5")[0]["input_ids"] == (8, 5)
    file.write_text("[]")
    assert "is no config of a model" in _refusal(f"transformers:{file}")
    file.write_text('{"model_type": "gptt"}')
    assert "transformers has no model 'gptt': did you mean gpt?" in _refusal(f"transformers:{file}")


@pytest.mark.parametrize(
    ("target", "options", "told"),
    [
        ("timm:resnet8", (), "timm has no model 'resnet8': did you mean resnet18?"),
        ("torchvision:imagenet", (), "did you mean image_net"),
        ("transformers:zzz", (), "transformers has no model 'zzz'"),
        ("timm:resnet18", ("T=3",), "timm:resnet18 has no input with a size T: --dim takes B, H, W"),
        ("torchvision:image_net", ("weights=DEFAULT",), "random weights"),
        ("transformers:gpt", ("hiden=3",), "GPTConfig has no field 'hiden': did you mean hidden?"),
        ("transformers:gpt", ("T=17",), "T=17 is more than the 16 positions of GPTConfig"),
        ("transformers:odd", (), "no natural inputs are known for OddModel"),
    ],
)
def test_what_a_library_does_not_have_is_said(target: str, options: tuple[str, ...], told: str) -> None:
    assert told in _refusal(target, *options)


def test_a_library_that_is_not_there_or_does_not_fit_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "timm"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise RuntimeError('operator does not exist')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    told = _refusal("timm:resnet18")
    assert "timm cannot be imported in" in told and "made for torch" in told
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in (str(tmp_path), str(LIBRARIES))])
    monkeypatch.setitem(sys.modules, "timm", None)
    assert _refusal("timm:resnet18").endswith(f"{sys.executable} -m pip install timm")


def test_nothing_is_looked_up_in_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    _step("timm:resnet18")
    assert os.environ["HF_HUB_OFFLINE"] == "1"
