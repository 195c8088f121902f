"""What a layer asks of the tensor that it is called with: channels, features, vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import torch
from torch import nn

from .guesses import BATCH, LENGTH, SIDE, Dims, Guess

_COLOURS = 3
_FRAMES = 16


@dataclass(frozen=True)
class Need:
    """`sizes` are those that the layer fixes, by axis; `ranks` the numbers of dimensions that it takes, any if empty.
    `shapes` are inputs for it, `before` also those that a model may bring into such a shape itself. `high` is None
    for a layer that takes floating numbers, else the bound of the integers that it takes."""

    layer: str
    dtype: str
    shapes: tuple[Dims, ...]
    before: tuple[Dims, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()
    ranks: tuple[int, ...] = ()
    high: int | None = None
    preferred: tuple[tuple[str, int], ...] = ()

    def is_met(self, tensor: torch.Tensor) -> bool:
        takes_it = tensor.is_floating_point() if self.high is None else _is_index(tensor)
        if not takes_it or (self.ranks and tensor.ndim not in self.ranks):
            return False
        return all(-tensor.ndim <= axis < tensor.ndim and tensor.shape[axis] == size for axis, size in self.sizes)

    def guesses(self, shapes: tuple[Dims, ...]) -> list[Guess]:
        return [Guess(self.dtype, dims, f"from {self.layer}", self.high, preferred=self.preferred) for dims in shapes]


def need_of(module: nn.Module, position: int) -> Need | None:
    """What `module` asks of the tensor at `position` among its arguments; None if nothing is known."""
    if isinstance(module, nn.MultiheadAttention) and position < 3:
        features = (module.embed_dim, module.kdim, module.vdim)[position]
        return _sequence(module, features, module.batch_first)
    if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)) and position < 2:
        return _sequence(module, module.self_attn.embed_dim, module.self_attn.batch_first)
    if isinstance(module, nn.Transformer) and position < 2:
        return _sequence(module, module.d_model, module.batch_first)
    if isinstance(module, nn.Bilinear) and position < 2:
        return _features(module, (module.in1_features, module.in2_features)[position])
    return _need_of_first(module) if position == 0 else None


def _need_of_first(module: nn.Module) -> Need | None:
    if isinstance(module, nn.modules.conv._ConvNd):
        return _convolution(module)
    if isinstance(module, nn.Linear):
        return _features(module, module.in_features)
    if isinstance(module, nn.EmbeddingBag) or (isinstance(module, nn.Embedding) and _looks_up(module)):
        return _vocabulary(module)
    if isinstance(module, nn.RNNBase):
        return _recurrent(module)
    if isinstance(module, nn.RNNCellBase):
        return _need(module, module.input_size, ((BATCH, module.input_size),), sizes=((-1, module.input_size),))
    if isinstance(module, nn.LayerNorm):
        return _layer_norm(module)
    if isinstance(module, (nn.modules.batchnorm._NormBase, nn.GroupNorm)):
        return _channel_norm(module)
    return None


def _convolution(module: nn.modules.conv._ConvNd) -> Need:
    """A lazy one takes any number of channels."""
    spatial, channels = len(module.kernel_size), module.in_channels or _COLOURS
    sizes = ((-spatial - 1, channels),) if module.in_channels else ()
    space: Dims = {1: (LENGTH,), 2: (SIDE, SIDE), 3: (_FRAMES, SIDE, SIDE)}[spatial]
    before: list[Dims] = [(BATCH, *space, channels), (BATCH, LENGTH, channels, *space)]
    if channels == 1:
        before.insert(0, (BATCH, *space))
    side = 64 if spatial == 3 else {1: 28, _COLOURS: 224}.get(channels, 32)
    return _need(
        module, channels, ((BATCH, channels, *space),), tuple(before), sizes,
        ranks=(spatial + 1, spatial + 2), preferred=((SIDE, side),),
    )  # fmt: skip


def _features(module: nn.Module, features: int) -> Need | None:
    if features == 0:
        return None
    images: list[Dims] = []
    for channels in (1, _COLOURS):
        side = isqrt(features // channels)
        if side > 3 and channels * side * side == features:
            images.append((BATCH, channels, side, side))
    before = (*images, (BATCH, features, LENGTH), (BATCH, LENGTH, LENGTH, features))
    return _need(module, features, ((BATCH, features), (BATCH, LENGTH, features)), before, ((-1, features),))


def _vocabulary(module: nn.Embedding | nn.EmbeddingBag) -> Need:
    text = f"{type(module).__name__}({module.num_embeddings}, {module.embedding_dim})"
    return Need(text, "int64", ((BATCH, LENGTH), (BATCH,)), ((BATCH, LENGTH, LENGTH),), high=module.num_embeddings)


def _looks_up(module: nn.Embedding) -> bool:
    """Tables of positions are often embeddings that use only the shape of what they are called with."""
    return type(module).forward is nn.Embedding.forward


def _recurrent(module: nn.RNNBase) -> Need:
    features = module.input_size
    first, other = ((BATCH, LENGTH), (LENGTH, BATCH)) if module.batch_first else ((LENGTH, BATCH), (BATCH, LENGTH))
    before: list[Dims] = [(*other, features), (BATCH, features)]
    if features == 1:
        before.insert(0, (BATCH, LENGTH))
    return _need(module, features, ((*first, features),), tuple(before), ((-1, features),), ranks=(2, 3))


def _sequence(module: nn.Module, features: int, batch_first: bool) -> Need:
    dims: Dims = (BATCH, LENGTH, features) if batch_first else (LENGTH, BATCH, features)
    return _need(module, features, (dims,), (), ((-1, features),), ranks=(2, 3))


def _layer_norm(module: nn.LayerNorm) -> Need:
    shape = tuple(module.normalized_shape)
    shapes: tuple[Dims, ...] = ((BATCH, LENGTH, *shape), (BATCH, *shape))
    sizes = tuple((axis - len(shape), size) for axis, size in enumerate(shape))
    return _need(module, shape[0], shapes if len(shape) == 1 else shapes[::-1], (), sizes)


def _channel_norm(module: nn.modules.batchnorm._NormBase | nn.GroupNorm) -> Need | None:
    channels = module.num_channels if isinstance(module, nn.GroupNorm) else module.num_features
    every: dict[str, Dims] = {
        "1d": (BATCH, channels),
        "2d": (BATCH, channels, SIDE, SIDE),
        "3d": (BATCH, channels, _FRAMES, SIDE, SIDE),
    }
    kind = type(module).__name__[-2:]
    shapes = (every[kind],) if kind in every else tuple(every.values())
    if channels == 0:
        return None
    ranks = {"1d": (2, 3), "2d": (4,), "3d": (5,)}.get(kind, ())
    before = ((BATCH, channels, LENGTH),)
    return _need(module, channels, shapes, before, ((1, channels),), ranks, preferred=((SIDE, 32),))


def _need(
    module: nn.Module,
    size: int,
    shapes: tuple[Dims, ...],
    before: tuple[Dims, ...] = (),
    sizes: tuple[tuple[int, int], ...] = (),
    ranks: tuple[int, ...] = (),
    preferred: tuple[tuple[str, int], ...] = (),
) -> Need:
    return Need(_layer_text(module, size), _dtype_of(module), shapes, before, sizes, ranks, None, preferred)


def _layer_text(module: nn.Module, size: int) -> str:
    """`Conv2d(3, 64)`."""
    out = next(
        (getattr(module, n) for n in ("out_channels", "out_features", "hidden_size") if hasattr(module, n)), None
    )
    return f"{type(module).__name__}({size}{f', {out}' if isinstance(out, int) else ''})"


def _dtype_of(module: nn.Module) -> str:
    dtypes = (parameter.dtype for parameter in module.parameters() if parameter.is_floating_point())
    return str(next(dtypes, torch.get_default_dtype())).removeprefix("torch.")


def _is_index(tensor: torch.Tensor) -> bool:
    return tensor.dtype in (torch.int32, torch.int64)
