"""torchvision's ResNet-50, a batch of 32 images, float32."""

import torch
import torchvision


def make_model() -> torch.nn.Module:
    return torchvision.models.resnet50(weights=None)


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(32, 3, 224, 224),)
