"""A four-layer MLP: one graph without breaks, in which matrix products do nearly all of the work.

What tcompile-tui should find: everything compiles, and next to nothing is gained on a CPU. The products go
to the same library as in eager mode; only bias and activation can be fused. The interval is likely to
include 1, and then the honest answer is that no gain can be told. On a fast GPU the host decides: `default`
adds more overhead than it saves, `reduce-overhead` wins.
"""

import torch
from torch import nn

BATCH = 256
FEATURES = 512
HIDDEN = 1024
CLASSES = 10


class MLP(nn.Module):
    """Flat features to class scores."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(FEATURES, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, CLASSES),
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.layers(features)


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(BATCH, FEATURES),)
