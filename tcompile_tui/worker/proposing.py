"""Inputs that a model's forward runs with: guessed, tried, and corrected by what the layers said."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from math import isqrt
from time import monotonic

import torch
from torch import nn

from ..core.spec import TensorSpec
from .dry_run import Refusal, Trial, try_forward
from .guesses import BATCH, DECODER_LENGTH, FIRST_SIZES, LENGTH, SIDE, Dims, Guess, Sizes, guesses_for
from .inputs import Batch, random_tensor
from .layer_needs import need_of

_MAX_TRIALS = 400
_LIMIT_S = 12.0
_SIDES = (224, 32, 28, 64, 128, 256, 96, 299, 384, 512, 84, 48, 16, 8)
_LENGTHS = (128, 64, 32, 16, 256, 512, 1024, 16_000, 50, 100, 10, 8)
_NEAR = 6
_MAX_REAL_SIZE = 256
_POSITION_WORDS = ("pos", "time", "mask", "frame")


@dataclass(frozen=True)
class Wanted:
    """A parameter of forward that takes a tensor. `by_name` is False where it can only be given by its position."""

    name: str
    annotation: str
    by_name: bool = True


@dataclass(frozen=True)
class Proposal:
    """Guesses for all wanted parameters, with one size for each open dimension."""

    guesses: tuple[tuple[Wanted, Guess], ...]
    sizes: Sizes

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple(guess.spec(self.sizes, wanted.name if wanted.by_name else None) for wanted, guess in self.guesses)

    def guess(self, name: str) -> Guess:
        return next(guess for wanted, guess in self.guesses if wanted.name == name)

    def with_guess(self, name: str, guess: Guess) -> Proposal:
        """The guess's own sizes hold where no other input has that dimension."""
        guess = guess.named(name)
        others = {dim for wanted, other in self.guesses if wanted.name != name for dim in other.dims}
        sizes = {**self.sizes, **{dim: size for dim, size in guess.preferred if dim not in others}}
        return Proposal(tuple((w, guess if w.name == name else g) for w, g in self.guesses), sizes)

    def with_size(self, dim: str, size: int) -> Proposal:
        return replace(self, sizes={**self.sizes, dim: size})

    def uses(self, dim: str) -> bool:
        return any(dim in guess.dims for _, guess in self.guesses)


@dataclass(frozen=True)
class Searched:
    """What a search came to: a proposal that runs, or the nearest that did not, and why."""

    proposal: Proposal
    refusal: Refusal | None


class Search:
    """Looks for inputs of `model` on `device`. On the meta device a forward that asks for values ends the search, since
    no other input will help it there."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self._model = model
        self._device = device
        # For real, a size that is far too large can take all memory.
        most = _MAX_REAL_SIZE if device.type != "meta" else max(_LENGTHS)
        self._lengths = [size for size in dict.fromkeys([*_learned_lengths(model), *_LENGTHS]) if size <= most]
        self._sides = [side for side in _SIDES if side <= most]

    def run(self, first: Proposal) -> Searched:
        """The proposal that got through most layers goes on first."""
        until, order, tried = monotonic() + _LIMIT_S, count(), set[tuple[TensorSpec, ...]]()
        queue: list[tuple[int, int, Proposal]] = [(0, next(order), first)]
        nearest: tuple[int, Searched] | None = None
        while queue and len(tried) < _MAX_TRIALS and monotonic() < until:
            _, _, proposal = heapq.heappop(queue)
            if proposal.specs in tried:
                continue
            tried.add(proposal.specs)
            trial = self._try(proposal)
            searched = Searched(_as_reached(proposal, trial), trial.refusal)
            if trial.refusal is None:
                bounded = _bounded(searched.proposal, trial.bounds)
                return Searched(bounded, None)
            if trial.refusal.without_values and self._device.type == "meta":
                return searched
            if nearest is None or trial.progress > nearest[0]:
                nearest = trial.progress, searched
            for other in self._others(proposal, trial, trial.refusal):
                heapq.heappush(queue, (-trial.progress, next(order), other))
        assert nearest is not None
        return nearest[1]

    def _try(self, proposal: Proposal) -> Trial:
        tensors = [self._tensor(spec) for spec in proposal.specs]
        named = {wanted.name: tensor for (wanted, _), tensor in zip(proposal.guesses, tensors, strict=True)}
        by_name = {wanted.name for wanted, _ in proposal.guesses if wanted.by_name}
        args = tuple(tensor for name, tensor in named.items() if name not in by_name)
        return try_forward(self._model, Batch(args, {name: named[name] for name in named if name in by_name}), named)

    def _tensor(self, spec: TensorSpec) -> torch.Tensor:
        if self._device.type == "meta":
            return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=self._device)
        return random_tensor(spec)

    # ------------------------------------------------------------ what to try next

    def _others(self, proposal: Proposal, trial: Trial, refusal: Refusal) -> Iterator[Proposal]:
        """Likeliest first. Inputs that a layer has taken as they are keep their form, but for open sizes."""
        yield _bounded(proposal, trial.bounds)
        names = [wanted.name for wanted, _ in proposal.guesses]
        suspects = [name for name in names if name in refusal.inputs and name not in trial.reached]
        if refusal.need is not None and refusal.unchanged:
            yield from _with_guesses(proposal, refusal.inputs, refusal.need.guesses(refusal.need.shapes))
        yield from _solved_sizes(proposal, refusal)
        yield from _mentioned_sizes(proposal, refusal)
        if refusal.need is not None:
            yield from _scaled(proposal, suspects, refusal)
            shapes = (*refusal.need.shapes, *refusal.need.before)
            yield from _with_guesses(proposal, suspects, refusal.need.guesses(shapes))
        yield from _hinted(proposal, suspects, refusal)
        for name in suspects:
            yield from self._variants(proposal, name)
        for name in refusal.inputs & trial.reached.keys():
            yield from _with_guesses(proposal, [name], trial.reached[name].guesses(trial.reached[name].shapes))
        yield from self._resized(proposal)
        for name in names:
            if name not in trial.reached:
                yield from self._variants(proposal, name)

    def _variants(self, proposal: Proposal, name: str) -> Iterator[Proposal]:
        wanted = next(each for each, _ in proposal.guesses if each.name == name)
        return _with_guesses(proposal, [name], guesses_for(name, wanted.annotation, _dtype(self._model)))

    def _resized(self, proposal: Proposal) -> Iterator[Proposal]:
        for dim, offered in ((SIDE, self._sides), (LENGTH, self._lengths), (DECODER_LENGTH, self._lengths)):
            if proposal.uses(dim):
                yield from (proposal.with_size(dim, size) for size in offered)


def first_proposal(model: nn.Module, wanted: Iterable[Wanted]) -> Proposal:
    """By names and annotations; what they leave open by the first layer that asks for something."""
    dtype = _dtype(model)
    proposal = Proposal(
        tuple((each, guesses_for(each.name, each.annotation, dtype)[0]) for each in wanted), FIRST_SIZES
    )
    for each, guess in proposal.guesses:
        proposal = proposal.with_guess(each.name, guess)
    need = next((need for module in model.modules() if (need := need_of(module, 0)) is not None), None)
    for each, guess in proposal.guesses:
        if need is not None and guess.how == "assumed":
            proposal = proposal.with_guess(each.name, need.guesses(need.shapes)[0])
            break
    return proposal


def _as_reached(proposal: Proposal, trial: Trial) -> Proposal:
    """What a layer took as it is was found from that layer, whatever it was guessed from."""
    for name, need in trial.reached.items():
        guess = proposal.guess(name)
        proposal = replace(
            proposal,
            guesses=tuple(
                (w, replace(guess, how=f"from {need.layer}") if w.name == name else g) for w, g in proposal.guesses
            ),
        )
    return proposal


def _bounded(proposal: Proposal, bounds: Mapping[str, int]) -> Proposal:
    """Integers within the smallest vocabulary that they are looked up in."""
    guesses = ((w, replace(g, high=bounds[w.name]) if w.name in bounds else g) for w, g in proposal.guesses)
    return replace(proposal, guesses=tuple(guesses))


def _with_guesses(proposal: Proposal, names: Iterable[str], guesses: Iterable[Guess]) -> Iterator[Proposal]:
    offered = list(guesses)
    for name in names:
        for guess in offered:
            yield proposal.with_guess(name, guess)


def _solved_sizes(proposal: Proposal, refusal: Refusal) -> Iterator[Proposal]:
    """Open sizes that would give the features which the layer wants: one is the size itself, or stands in a product
    with others, as behind a flatten. Strides and paddings make that inexact, so its neighbours follow."""
    if refusal.need is not None and refusal.need.high is not None and not refusal.inputs:
        yield proposal.with_size(LENGTH, refusal.need.high)  # all the places that there are
    wanted = dict(refusal.need.sizes).get(-1) if refusal.need is not None else None
    if not refusal.shape or wanted is None or refusal.shape[-1] == 0:
        return
    got, sizes = refusal.shape[-1], proposal.sizes
    if proposal.uses(LENGTH):
        if got == sizes[LENGTH]:
            yield proposal.with_size(LENGTH, wanted)
        if sizes[LENGTH] * wanted % got == 0:
            yield proposal.with_size(LENGTH, sizes[LENGTH] * wanted // got)
    if proposal.uses(SIDE):
        if got == sizes[SIDE]:
            yield proposal.with_size(SIDE, wanted)
        near = max(1, isqrt(sizes[SIDE] ** 2 * wanted // got))
        close = range(max(1, near - _NEAR), near + _NEAR + 1)
        yield from (proposal.with_size(SIDE, size) for size in (*(s for s in _SIDES if s in close), near, *close))


def _mentioned_sizes(proposal: Proposal, refusal: Refusal) -> Iterator[Proposal]:
    """Models that check their inputs say what they expect."""
    if refusal.need is not None:
        return
    for number in dict.fromkeys(map(int, re.findall(r"\b[1-9]\d{0,4}\b", refusal.text))):
        yield from (proposal.with_size(dim, number) for dim in (LENGTH, SIDE) if proposal.uses(dim))


def _scaled(proposal: Proposal, suspects: list[str], refusal: Refusal) -> Iterator[Proposal]:
    """Last sizes that would give the features which the layer wants, if the model multiplies, joins or adds them."""
    need = refusal.need
    wanted = dict(need.sizes).get(-1) if need is not None else None
    if need is None or wanted is None or not refusal.shape or refusal.shape[-1] == 0:
        return
    got = refusal.shape[-1]
    for name in suspects:
        guess = proposal.guess(name)
        if not guess.dims or not isinstance(guess.dims[-1], int) or guess.is_integer:
            continue
        own = guess.dims[-1]
        scaled = [own * wanted // got] if own * wanted % got == 0 else []
        for size in (*scaled, own + wanted - got):
            if size > 0:
                yield proposal.with_guess(name, replace(guess, dims=(*guess.dims[:-1], size), how=f"from {need.layer}"))
    if len(suspects) > 1:
        yield _shared(proposal, suspects, wanted, f"from {need.layer}")


def _shared(proposal: Proposal, suspects: list[str], features: int, how: str) -> Proposal:
    """The features of a joined tensor in equal parts."""
    for i, name in enumerate(suspects):
        guess = proposal.guess(name)
        part = features * (i + 1) // len(suspects) - features * i // len(suspects)
        dims: Dims = (*guess.dims[:-1], part) if len(guess.dims) > 1 else (BATCH, part)
        proposal = proposal.with_guess(name, replace(guess, dims=dims, how=how))
    return proposal


def _hinted(proposal: Proposal, suspects: list[str], refusal: Refusal) -> Iterator[Proposal]:
    """Shapes that go with those of the other tensors of the operation which refused: parameters, most of the time."""
    for shape in refusal.others:
        if not shape:
            continue
        features = list(dict.fromkeys((shape[-1], shape[0], *shape[1:-1])))
        offered: list[Dims] = [(BATCH, *shape[1:])] if len(shape) > 2 else []
        offered += [dims for size in features for dims in ((BATCH, size), (BATCH, LENGTH, size))]
        text = f"from a tensor of {list(shape)} in the model"
        for name in suspects:
            guess = proposal.guess(name)
            yield from (proposal.with_guess(name, replace(guess, dims=dims, how=text)) for dims in offered)


def _learned_lengths(model: nn.Module) -> Iterator[int]:
    """Sequence lengths that the model has places for."""
    is_position: Callable[[str], bool] = lambda name: any(word in name.lower() for word in _POSITION_WORDS)  # noqa: E731
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and is_position(name.rpartition(".")[2]):
            yield module.num_embeddings
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if is_position(name) and not nn.parameter.is_lazy(tensor) and tensor.ndim >= 2:
            yield from (size for size in tensor.shape[-2:] if size > 1)


def _dtype(model: nn.Module) -> str:
    """The floating type of the model's first parameter."""
    dtypes = (parameter.dtype for parameter in model.parameters() if parameter.is_floating_point())
    return str(next(dtypes, torch.get_default_dtype())).removeprefix("torch.")
