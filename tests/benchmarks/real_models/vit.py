"""timm's ViT-Small with patches of 16, a batch of 32 images, bfloat16."""

import timm
import torch


def make_model() -> torch.nn.Module:
    return timm.create_model("vit_small_patch16_224", pretrained=False).to(torch.bfloat16)


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(32, 3, 224, 224, dtype=torch.bfloat16),)
