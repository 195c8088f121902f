"""A language model of the time before attention: embedding, two LSTM layers, norm and projection."""

import torch
from torch import nn

TOKENS = 10_000


class Recurrent(nn.Module):
    def __init__(self, width: int = 1024) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, TOKENS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        return self.head(nn.functional.gelu(self.norm(states)))


def make_model() -> nn.Module:
    return Recurrent()


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randint(0, TOKENS, (32, 128)),)
