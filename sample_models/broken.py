"""An image classifier that is fed larger images than its table of positions knows.

What tcompile-tui should find: the model fails before anything is compiled. The report shows eager's own
error with this file and the line of the `raise`, instead of whatever the compiler would make of it.
"""

import torch
from torch import nn

IMAGE_SIZE = 64
PATCH_SIZE = 8
PATCHES = (IMAGE_SIZE // PATCH_SIZE) ** 2
WIDTH = 64
CLASSES = 10


class PatchClassifier(nn.Module):
    """Cuts an image into patches, adds what is learned for each position, and averages."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH_SIZE, stride=PATCH_SIZE)
        self.positions = nn.Parameter(torch.zeros(PATCHES, WIDTH))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        patches = self.patches(images).flatten(2).transpose(1, 2)
        if patches.shape[1] != PATCHES:
            raise ValueError(f"expected {PATCHES} patches of an image, got {patches.shape[1]}")
        return self.head((patches + self.positions).relu().mean(dim=1))


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(4, 3, 96, 96),)  # the data moved from 64x64 to 96x96, the model did not
