"""One 8x8 layer: a step so short that the way into the compiled code costs more than the work.

What tcompile-tui should find: it compiles cleanly into one graph, and it is slower. Checking the guards and
calling the generated wrapper takes microseconds in every step, and there is nothing to fuse. The answer is
to stay eager, or to put more work into one step.
"""

import torch
from torch import nn


class TinyNet(nn.Module):
    """Eight numbers in, eight numbers out."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(1, 8),)
