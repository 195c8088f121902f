"""A generation: what is called, with which tokens and caches, and models that cannot be decoded with."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tcompile_tui.core import events as ev
from tcompile_tui.core.compile_options import KeyValueCache
from tcompile_tui.core.spec import Arm, Mode, Phase, Task, parse_input
from tcompile_tui.worker.decoding import Decoding
from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.inputs import Batch

from .driver import run_phase

PROMPT = torch.tensor([[3, 1, 4], [1, 5, 9]])
STATIC, GROWING = KeyValueCache

pytestmark = pytest.mark.xdist_group("torch")


class Decoder(torch.nn.Module):
    """A running sum for a cache: the logits depend on every token so far."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[list[int]]] = []

    def forward(self, input_ids: torch.Tensor, past_key_values: Any = None, use_cache: bool = False) -> Any:
        self.calls.append(input_ids.tolist())
        summed = torch.cat([past_key_values, input_ids], 1) if past_key_values is not None else input_ids
        logits = torch.nn.functional.one_hot(summed.sum(1) % 10, 10).float()[:, None].expand(-1, input_ids.size(1), -1)
        return SimpleNamespace(logits=logits, past_key_values=summed if use_cache else None)


class Cache:
    """As transformers has it: an object that the model puts keys into."""

    def __init__(self, config: Any = None, max_cache_len: int | None = None) -> None:
        self.room, self.seen, self.resets = max_cache_len, 0, 0

    def reset(self) -> None:
        self.seen, self.resets = 0, self.resets + 1


class Hugging(torch.nn.Module):
    config = SimpleNamespace(is_encoder_decoder=False)

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, Cache]] = []

    def forward(self, input_ids: torch.Tensor, cache: Cache, cache_position: torch.Tensor, use_cache: bool) -> Any:
        assert cache_position.tolist() == list(range(cache.seen, cache.seen + input_ids.size(1)))
        cache.seen += input_ids.size(1)
        assert cache.room is None or cache.seen <= cache.room
        self.seen.append((input_ids.size(1), cache))
        return SimpleNamespace(logits=torch.zeros(2, input_ids.size(1), 5), cache=cache)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hugging, "__module__", "transformers.models.hugging")
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(DynamicCache=Cache, StaticCache=Cache))


def decoding(model: torch.nn.Module, cache: KeyValueCache = GROWING, batch: Batch | None = None) -> Decoding:
    batches = [batch or Batch((), {"input_ids": PROMPT})]
    return Decoding(model, batches, 2, cache, lambda: None, contextlib.nullcontext)


def test_a_generation_is_a_prompt_and_then_a_token_at_a_time() -> None:
    model = Decoder()
    step = decoding(model)
    assert (step.sequences, step.prompt_tokens) == (2, 3)
    logits = step(0).logits
    assert model.calls == [PROMPT.tolist(), [[3], [1]], [[1], [5]]]
    assert logits.argmax(-1).tolist() == [(8 + 4) % 10, (15 + 6) % 10]
    step.prefill(1)
    assert model.calls[3:] == [PROMPT.tolist()]


def test_the_prompt_of_unnamed_inputs_is_their_whole_numbers() -> None:
    batch = Batch((torch.rand(2, 3), PROMPT), {})
    assert decoding(Decoder(), batch=batch).prompt_tokens == 3
    with pytest.raises(StageError, match="needs a prompt"):
        decoding(Decoder(), batch=Batch((torch.rand(2, 3),), {}))


@pytest.mark.usefixtures("library")
def test_a_growing_cache_is_a_new_one_for_each_generation() -> None:
    model = Hugging()
    step = decoding(model)
    step(0), step(1)
    assert [tokens for tokens, _ in model.seen] == [3, 1, 1] * 2
    assert len({id(cache) for _, cache in model.seen}) == 2


@pytest.mark.usefixtures("library")
def test_a_static_cache_has_room_for_it_all_and_is_emptied_in_place() -> None:
    model = Hugging()
    step = decoding(model, STATIC)
    step(0), step(1)
    (first, cache), *others = model.seen
    assert first == 1, "a first token makes its tensors, outside of any compile"
    assert all(other is cache for _, other in others) and (cache.room, cache.resets) == (5, 2)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (torch.nn.Linear(2, 2), r"forward\(input\) of Linear takes no input_ids with a cache"),
        (Decoder(), "a static cache is known for models of transformers only"),
    ],
)
def test_what_cannot_be_decoded_with_is_told(model: torch.nn.Module, reason: str) -> None:
    with pytest.raises(StageError, match=reason):
        decoding(model, STATIC)


def test_a_model_with_an_encoder_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hugging, "config", SimpleNamespace(is_encoder_decoder=True))
    with pytest.raises(StageError, match="Hugging has one"):
        decoding(Hugging())


_DECODER = """import torch
from dataclasses import dataclass

@dataclass
class Output:
    logits: torch.Tensor
    past_key_values: torch.Tensor

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 10)

    def forward(self, input_ids, past_key_values=None, use_cache=False):
        keys = self.table(input_ids)
        if past_key_values is not None:
            keys = torch.cat([past_key_values, keys], 1)
        return Output(keys.cumsum(1)[:, -input_ids.size(1):], keys)
"""


def test_a_process_times_generations_and_their_prefills(tmp_path: Path) -> None:
    """Nothing is compiled: what is called when does not hang on that."""
    model = tmp_path / "net.py"
    model.write_text(_DECODER)
    run = run_phase(
        model, tmp_path, Phase.WARM, Mode("cache=growing"), environment={"TORCHDYNAMO_DISABLE": "1"}, warmup_s=0.05,
        task=Task.DECODE, new_tokens=3, inputs=(parse_input("input_ids=int64[2,5]<0,10>"),),
    )  # fmt: skip
    assert run.process.done, run.process.failure
    assert run.process.pairs and set(run.process.prefills) == set(Arm)
    timed = run.process.prefills[Arm.COMPILED]
    assert (timed.sequences, timed.prompt_tokens, timed.new_tokens) == (2, 5, 3) and len(timed.step_ns) == 32
    compared = run.process.comparisons[ev.ComparisonKind.COMPILED]
    assert [leaf.path for leaf in compared.leaves] == ["output.logits"]
