"""`resnet50` with a batch of 256 images: the device is busy all the time."""

import torch

from tests.benchmarks.real_models.resnet50 import make_model as make_model


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(256, 3, 224, 224),)
