"""A lock, a generator and a lambda among the attributes: neither pickle nor copy.deepcopy takes them."""

import threading

import torch
from torch import nn


class Locked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.lock = threading.Lock()
        self.numbers = (n for n in range(3))
        self.act = lambda x: x.relu()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.linear(x))


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(8, 16),)
