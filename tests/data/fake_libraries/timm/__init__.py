"""As much of timm as a source uses."""

import torch


def list_models():
    return ["resnet18", "vit_tiny"]


def is_model(name):
    return name in list_models()


class Net(torch.nn.Module):
    def __init__(self, in_chans=3, num_classes=10, img_size=None):
        super().__init__()
        self.pretrained_cfg = {"input_size": (3, 32, 48)}
        self.head = torch.nn.Linear(in_chans, num_classes)

    def forward(self, x):
        return self.head(x.mean((2, 3)))


def create_model(name, pretrained=True, **arguments):
    assert not pretrained
    return Net(**arguments)
