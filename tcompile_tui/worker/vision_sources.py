"""Image models of timm and torchvision: their own image size, and the loss of their task."""

from __future__ import annotations

import inspect
from typing import Any

from .failures import StageError
from .sources import Sizes, first_of, unknown_name

_IMAGES = 8
_DETECTION_IMAGES = 2
_FRAMES = 16
_IMAGE_SIZE = 224


def classification_loss(output: Any) -> Any:
    """Cross-entropy against class 0, for images as for each of their points; the work of a step is the same."""
    import torch

    logits = first_of(output)
    if logits.dim() < 2 or not logits.is_floating_point():
        return logits.float().square().mean()
    target = torch.zeros(logits.shape[:1] + logits.shape[2:], dtype=torch.int64, device=logits.device)
    return torch.nn.functional.cross_entropy(logits.float(), target)


class TimmModel:
    """`timm.create_model(name)`."""

    def __init__(self, timm: Any, name: str, sizes: Sizes) -> None:
        self._timm, self._name, self._sizes = timm, name, sizes
        self._image: tuple[int, int, int] = (3, _IMAGE_SIZE, _IMAGE_SIZE)
        sizes.check(f"timm:{name}", ("B", "H", "W"))

    def make_model(self, **arguments: Any) -> Any:
        if not self._timm.is_model(self._name.partition(".")[0]):
            raise unknown_name("timm", self._name, self._timm.list_models())
        model = self._timm.create_model(self._name, pretrained=False, **arguments)
        config = getattr(model, "pretrained_cfg", None) or {}
        channels, height, width = config.get("input_size") or self._image
        size = arguments.get("img_size")
        height, width = (size, size) if isinstance(size, int) else size or (height, width)
        self._image = (
            arguments.get("in_chans", channels),
            self._sizes.get("H", height),
            self._sizes.get("W", width),
        )
        return model

    def example_inputs(self) -> Any:
        import torch

        return (torch.randn(self._sizes.get("B", _IMAGES), *self._image),)

    def loss(self, output: Any) -> Any:
        return classification_loss(output)


class TorchvisionModel:
    """`torchvision.models.get_model(name)`: classification, segmentation, detection, video, optical flow."""

    def __init__(self, torchvision: Any, name: str, sizes: Sizes, training: bool) -> None:
        self._models, self._name, self._sizes, self._training = torchvision.models, name, sizes, training
        self._image_size = (_IMAGE_SIZE, _IMAGE_SIZE)
        try:
            self._builder = self._models.get_model_builder(name)
        except ValueError as error:
            raise unknown_name("torchvision", name, self._models.list_models()) from error
        sizes.check(f"torchvision:{name}", ("B", "T", "H", "W") if self._is("video") else ("B", "H", "W"))

    def _is(self, family: str) -> bool:
        return f".{family}." in f"{self._builder.__module__}."

    def make_model(self, **arguments: Any) -> Any:
        known = inspect.signature(self._builder).parameters
        for weights in ("weights", "weights_backbone"):  # what is not said to be None may be downloaded
            if weights in known:
                arguments.setdefault(weights, None)
        if any(arguments.get(weights) for weights in ("weights", "weights_backbone")):
            raise StageError(f"torchvision:{self._name} is built with random weights: leave --arg weights out")
        model = self._builder(**arguments)
        self._image_size = self._natural_size(model, arguments)
        return model

    def example_inputs(self) -> Any:
        import torch

        height, width = self._sizes.get("H", self._image_size[0]), self._sizes.get("W", self._image_size[1])
        if self._is("detection"):
            return self._detection_inputs(self._sizes.get("B", _DETECTION_IMAGES), height, width)
        batch = self._sizes.get("B", _IMAGES)
        if self._is("video"):
            return (torch.randn(batch, 3, self._sizes.get("T", _FRAMES), height, width),)
        if self._is("optical_flow"):
            return (torch.rand(batch, 3, height, width) * 2 - 1, torch.rand(batch, 3, height, width) * 2 - 1)
        return (torch.randn(batch, 3, height, width),)

    def loss(self, output: Any) -> Any:
        if self._is("detection"):
            return sum(output.values())
        return classification_loss(output)

    def _natural_size(self, model: Any, arguments: dict[str, Any]) -> tuple[int, int]:
        """As the model is built, else as the weights of this name were trained."""
        size = arguments.get("image_size") or getattr(model, "image_size", None)
        transform = getattr(model, "transform", None)
        size = size or getattr(transform, "fixed_size", None) or getattr(transform, "min_size", None)
        size = size or self._size_of_weights()
        if isinstance(size, int):
            return size, size
        height, *further = size or self._image_size
        return height, further[0] if further else height

    def _size_of_weights(self) -> Any:
        try:
            weights = next(iter(self._models.get_model_weights(self._name)))
            options = weights.transforms.keywords
        except (AttributeError, ValueError, StopIteration):
            return (368, 496) if self._is("optical_flow") else None
        return options.get("crop_size") or options.get("resize_size")

    def _detection_inputs(self, batch: int, height: int, width: int) -> Any:
        import torch

        images = [torch.rand(3, height, width) for _ in range(batch)]
        if not self._training:
            return (images,)
        corners = torch.tensor([[0.1, 0.1, 0.6, 0.5], [0.3, 0.2, 0.9, 0.8]])
        boxes = corners * torch.tensor([width, height, width, height], dtype=torch.float32)
        return images, [{"boxes": boxes.clone(), "labels": torch.tensor([1, 2])} for _ in range(batch)]
