"""A text classifier that sees another sequence length in every batch.

What tcompile-tui should find: the first length is compiled as a constant; the second fails the guard on the
size of `ids` and is compiled again with a symbol in its place; all further lengths run on that second
graph. So exactly one recompile and no breaks. `model.compile(dynamic=True)` would save it.
"""

from collections.abc import Iterator

import torch
from torch import nn

BATCH = 32
VOCABULARY = 2048
WIDTH = 256
CLASSES = 5
FIRST_LENGTH = 40
MORE_LENGTHS = (64, 100, 180, 256)


class TextClassifier(nn.Module):
    """Token ids (batch, any length) to class scores, by a weighted mean over the tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.mix = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH))
        self.importance = nn.Linear(WIDTH, 1)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.mix(self.tokens(ids))
        weights = self.importance(x).softmax(dim=1)
        return self.head((weights * x).sum(dim=1))


def _ids(length: int) -> torch.Tensor:
    return torch.randint(VOCABULARY, (BATCH, length))


def example_inputs() -> tuple[torch.Tensor]:
    return (_ids(FIRST_LENGTH),)


def more_inputs() -> Iterator[tuple[torch.Tensor]]:
    for length in MORE_LENGTHS:
        yield (_ids(length),)
