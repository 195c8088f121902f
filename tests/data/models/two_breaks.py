"""Two graph breaks on known lines, three batch sizes, matrix products large enough to be autotuned."""

import torch
from torch import nn


class TwoBreaks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(1024, 2048)
        self.second = nn.Linear(2048, 2048)
        self.third = nn.Linear(2048, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x).relu()
        print("after the first layer")
        x = self.second(x).relu()
        if x.sum().item() > 1e30:
            x = x / 2
        return self.third(x).softmax(dim=-1)


def example_inputs():
    return (torch.randn(64, 1024),)


def more_inputs():
    return [(torch.randn(size, 1024),) for size in (32, 128)]
