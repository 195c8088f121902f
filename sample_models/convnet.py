"""ResNet-18, written out: convolutions, batch norm and residual sums.

What tcompile-tui should find: one graph without breaks. Batch norm, residual sum and ReLU are fused into
single passes over memory, the convolutions stay library calls. On a CPU these take nearly all of the time,
so the gain is a few percent and the break-even, after a long compile, is far away. On a GPU the gain is
clear. `--task train` adds the backward pass.
"""

import torch
from torch import nn

BATCH = 8
IMAGE_SIZE = 128
CLASSES = 1000


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    """A convolution that keeps the image size (but for the stride), and its batch norm."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class _Residual(nn.Module):
    """Two 3x3 convolutions around a shortcut, which is projected where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.first = _convolution(inputs, outputs, 3, stride)
        self.second = _convolution(outputs, outputs, 3)
        same_shape = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same_shape else _convolution(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.second(self.first(x).relu())
        return (inner + self.shortcut(x)).relu()


class ResNet18(nn.Module):
    """RGB images to class scores."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1))
        self.stages = nn.Sequential(
            _Residual(64, 64),
            _Residual(64, 64),
            _Residual(64, 128, 2),
            _Residual(128, 128),
            _Residual(128, 256, 2),
            _Residual(256, 256),
            _Residual(256, 512, 2),
            _Residual(512, 512),
        )
        self.head = nn.Linear(512, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.stages(self.stem(images))
        return self.head(features.mean((2, 3)))


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(BATCH, 3, IMAGE_SIZE, IMAGE_SIZE),)
