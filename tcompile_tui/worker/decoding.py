"""Decoding with a causal language model: a prompt at once, then token by token with a cache of keys and values."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from ..core.compile_options import KeyValueCache
from ..core.spec import Arm, Job
from .failures import StageError
from .inputs import Batch, walk_tensors

_Guard: TypeAlias = Callable[[], contextlib.AbstractContextManager[Any]]
# transformers calls it so from 5.2x on, and so before.
_CACHE_NAMES = ("cache", "past_key_values")


def decode_cache(job: Job, arm: Arm) -> KeyValueCache:
    """Eager's grows, as a library's own generation has it; that of a compiled arm is static if nothing is said."""
    if arm is Arm.EAGER or job.mode is None:
        return KeyValueCache.GROWING
    return job.mode.options.cache or KeyValueCache.STATIC


@dataclass(frozen=True)
class Generated:
    """What a generation leaves behind: the logits after its last token."""

    logits: torch.Tensor


class Decoding:
    """One generation for each call. The tokens are given, not the likeliest ones: both arms do the same work whatever
    rounding does; the likeliest one is still looked for, as in a loop of one's own. Raises StageError for a model that
    keeps no cache."""

    def __init__(
        self,
        model: torch.nn.Module,
        batches: list[Batch],
        new_tokens: int,
        cache: KeyValueCache,
        begin: Callable[[], None],
        autocast: _Guard,
    ) -> None:
        self._model, self._begin, self._autocast = model, begin, autocast
        self.new_tokens = new_tokens
        self._original = original = getattr(model, "_orig_mod", model)
        self._parameters = inspect.signature(original.forward).parameters
        self._cache_name = next((name for name in _CACHE_NAMES if name in self._parameters), "")
        if "input_ids" not in self._parameters or not self._cache_name:
            raise StageError(
                f"--task decode needs a causal language model: forward({', '.join(self._parameters)}) of"
                f" {type(original).__name__} takes no input_ids with a cache (past_key_values)"
            )
        self._config = getattr(original, "config", None)
        if getattr(self._config, "is_encoder_decoder", False):
            raise StageError(f"--task decode is for models without an encoder, and {type(original).__name__} has one")
        self._prompts = [_prompt(batch) for batch in batches]
        self._tokens = [[p[:, i % p.size(1)].unsqueeze(1).clone() for i in range(new_tokens)] for p in self._prompts]
        self._static = self._open_static() if cache is KeyValueCache.STATIC else None

    @property
    def sequences(self) -> int:
        return int(self._prompts[0].size(0))

    @property
    def prompt_tokens(self) -> int:
        return int(self._prompts[0].size(1))

    def __call__(self, index: int) -> Generated:
        return self._generate(index, self.new_tokens)

    def prefill(self, index: int) -> Generated:
        """A generation up to where its first token comes from."""
        return self._generate(index, 0)

    def _generate(self, index: int, new_tokens: int) -> Generated:
        number = index % len(self._prompts)
        prompt, tokens, cache = self._prompts[number], self._tokens[number], self._new_cache()
        with torch.no_grad(), self._autocast():
            logits, cache = self._forward(prompt, cache, 0)
            for done in range(new_tokens):
                logits.argmax(-1)
                logits, cache = self._forward(tokens[done], cache, prompt.size(1) + done)
        return Generated(logits)

    def _forward(self, token_ids: torch.Tensor, cache: Any, seen: int) -> tuple[torch.Tensor, Any]:
        self._begin()
        further: dict[str, Any] = {} if cache is None else {self._cache_name: cache}
        if "cache_position" in self._parameters:
            further["cache_position"] = torch.arange(seen, seen + token_ids.size(1), device=token_ids.device)
        output = self._model(input_ids=token_ids, use_cache=True, **further)
        cache = getattr(output, self._cache_name, None)
        if cache is None:
            raise StageError(
                f"{type(self._original).__name__} returned no {self._cache_name}, though use_cache=True asks"
            )
        return output.logits[:, -1], cache

    # ------------------------------------------------------------ caches

    def _new_cache(self) -> Any:
        """None where the model makes its own."""
        if self._static is not None:
            self._static.reset()
            return self._static
        library = self._library()
        if library is None:
            return None
        try:
            return library.DynamicCache(config=self._config)
        except TypeError:  # before transformers 4.56
            return library.DynamicCache()

    def _open_static(self) -> Any:
        """With room for the longest generation. Its tensors are made by a first token outside of any compile, which
        would not mark them as ones that stay where they are."""
        library = self._library()
        if library is None:
            raise StageError(
                "a static cache is known for models of transformers only: compare --arm cache=growing", fault="model"
            )
        room = max(prompt.size(1) for prompt in self._prompts) + self.new_tokens
        prompt = self._prompts[0]
        try:
            cache = library.StaticCache(config=self._config, max_cache_len=room)
        except TypeError:  # before transformers 4.56
            dtype = next(tensor.dtype for tensor in self._model.parameters() if tensor.is_floating_point())
            cache = library.StaticCache(
                self._config, max_batch_size=prompt.size(0), max_cache_len=room, device=prompt.device, dtype=dtype
            )
        with torch.no_grad(), self._autocast(), _uncompiled():
            self._forward(prompt[:, :1], cache, 0)
        return cache

    def _library(self) -> Any:
        is_its = any(kind.__module__.startswith("transformers.") for kind in type(self._original).__mro__)
        return importlib.import_module("transformers") if is_its and self._config is not None else None


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    with torch.compiler.set_stance("force_eager"):
        yield


def _prompt(batch: Batch) -> torch.Tensor:
    """The token ids of a batch: `input_ids`, or the first whole numbers of two dimensions."""
    named = batch.kwargs.get("input_ids")
    found = [t for _, t in walk_tensors((batch.args, batch.kwargs)) if not t.is_floating_point() and t.dim() == 2]
    if isinstance(named, torch.Tensor) and named.dim() == 2:
        return named
    if not found:
        raise StageError("--task decode needs a prompt: give --input 'input_ids=int64[1,128]<0,VOCABULARY>'")
    return found[0]
