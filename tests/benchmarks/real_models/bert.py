"""transformers' BERT, 64 sequences of 256 tokens with their mask, bfloat16."""

import torch
import transformers


def make_model() -> torch.nn.Module:
    return transformers.BertModel(transformers.BertConfig()).to(torch.bfloat16)


def example_inputs() -> dict[str, torch.Tensor]:
    ids = torch.randint(0, 30522, (64, 256))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
