"""transformers' GPT-2, four sequences of 512 tokens, bfloat16."""

import torch
import transformers


def make_model() -> torch.nn.Module:
    config = transformers.GPT2Config(use_cache=False)
    return transformers.GPT2LMHeadModel(config).to(torch.bfloat16)


def example_inputs() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(0, 50257, (4, 512))}
