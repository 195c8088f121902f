import functools

import torch


class Weights:
    def __init__(self, **options):
        self.transforms = functools.partial(dict, **options)


class Net(torch.nn.Module):
    def __init__(self, weights, classes=5, dimensions=2):
        super().__init__()
        assert weights is None
        self.dimensions = dimensions
        self.head = torch.nn.Linear(3, classes)

    def forward(self, x):
        return self.head(x.flatten(2).mean(2))


class Detector(Net):
    def __init__(self, weights, weights_backbone):
        super().__init__(weights)
        assert weights_backbone is None
        self.transform = type("Transform", (), {"min_size": (40,)})()

    def forward(self, images, targets=None):
        output = self.head(torch.stack([image.mean((1, 2)) for image in images]))
        if targets is None:
            return [{"scores": scores} for scores in output]
        return {"box": output.square().mean(), "label": targets[0]["boxes"].mean() + output.mean()}


def image_net(*, weights="DEFAULT", **options):
    return Net(weights, **options)


def video_net(*, weights="DEFAULT"):
    return Net(weights)


def detector(*, weights="DEFAULT", weights_backbone="DEFAULT"):
    return Detector(weights, weights_backbone)


video_net.__module__ = "torchvision.models.video.resnet"
detector.__module__ = "torchvision.models.detection.ssd"
_BUILDERS = {"image_net": image_net, "video_net": video_net, "detector": detector}
_WEIGHTS = {"image_net": [Weights(crop_size=[24])], "video_net": [Weights(crop_size=(12, 14))], "detector": []}


def list_models():
    return list(_BUILDERS)


def get_model_builder(name):
    if name not in _BUILDERS:
        raise ValueError(name)
    return _BUILDERS[name]


def get_model_weights(name):
    return _WEIGHTS[name]
