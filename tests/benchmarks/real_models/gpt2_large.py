"""`gpt2` with a batch of 16 sequences: the device is busy all the time."""

import torch

from tests.benchmarks.real_models.gpt2 import make_model as make_model


def example_inputs() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(0, 50257, (16, 512))}
