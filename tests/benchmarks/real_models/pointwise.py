"""A chain of elementwise operations over 16 million numbers, as activations and schedules are."""

import torch
from torch import nn


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(6):
            x = torch.sigmoid(x * self.scale) * torch.tanh(x) + 0.1 * x
        return x


def make_model() -> nn.Module:
    return Chain()


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(4096, 4096),)
