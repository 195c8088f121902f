"""A small causal language model: token ids, two pre-norm transformer blocks, logits.

What tcompile-tui should find: one graph without breaks. Attention stays a call of the library's fused
kernel; layer norm, GELU and residual sums are fused around the matrix products. The ids have a range, so
the inputs come from `example_inputs()`, here as keyword arguments.
"""

import torch
from torch import nn

BATCH = 4
LENGTH = 128
VOCABULARY = 1024
WIDTH = 256
HEADS = 4
BLOCKS = 2


class _Attention(nn.Module):
    """Causal self-attention over (batch, length, width)."""

    def __init__(self) -> None:
        super().__init__()
        self.project_in = nn.Linear(WIDTH, 3 * WIDTH)
        self.project_out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = self.project_in(x).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.project_out(mixed.transpose(1, 2).flatten(2))


class _Block(nn.Module):
    """Attention, then an MLP, each on a normalised copy and added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = _Attention()
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class LanguageModel(nn.Module):
    """Token ids (batch, length) to next-token logits (batch, length, vocabulary)."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(_Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(positions)
        return self.head(self.norm(self.blocks(x)))


def example_inputs() -> dict[str, torch.Tensor]:
    return {"ids": torch.randint(VOCABULARY, (BATCH, LENGTH))}
