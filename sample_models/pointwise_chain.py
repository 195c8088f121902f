"""A film look for photographs: a long chain of elementwise operations, the best case for a compiler.

What tcompile-tui should find: a clear win, and a short way to break-even. Eager mode reads and writes the
image once for each operation; the compiled step fuses the chain into very few passes over memory.
"""

import torch
from torch import nn

IMAGE_SIZE = 1024
LUMA = (0.2126, 0.7152, 0.0722)  # how much red, green and blue add to brightness (Rec. 709)


class FilmLook(nn.Module):
    """Linear RGB images (batch, 3, height, width) to graded ones in [0, 1]; every control can be trained."""

    def __init__(self) -> None:
        super().__init__()
        self.exposure = nn.Parameter(torch.tensor(1.4))
        self.white_balance = nn.Parameter(torch.tensor([1.05, 1.0, 0.92]).view(3, 1, 1))
        self.saturation = nn.Parameter(torch.tensor(1.15))
        self.contrast = nn.Parameter(torch.tensor(1.1))
        self.register_buffer("luma", torch.tensor(LUMA).view(3, 1, 1))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = image * self.exposure * self.white_balance
        x = (x * (2.51 * x + 0.03)) / (x * (2.43 * x + 0.59) + 0.14)  # filmic tone curve
        x = x.clamp(0, 1)
        grey = (x * self.luma).sum(dim=1, keepdim=True)
        x = grey + self.saturation * (x - grey)
        x = 0.5 + self.contrast * (x - 0.5)
        x = x.clamp(0, 1)
        x = x * x * (3 - 2 * x)  # lift the middle, keep black and white
        return (x + 1e-6).sqrt().clamp(0, 1)


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.rand(1, 3, IMAGE_SIZE, IMAGE_SIZE),)
