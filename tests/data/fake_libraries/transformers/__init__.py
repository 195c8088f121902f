"""As much of transformers as a source uses."""

import types
from types import MappingProxyType

import torch


class Config:
    def __init__(self, **fields):
        vars(self).update({name: getattr(type(self), name) for name in self.fields})
        vars(self).update(fields)

    @classmethod
    def from_dict(cls, body):
        return cls(**body)


class GPTConfig(Config):
    fields = ("hidden", "vocab_size", "n_positions", "use_cache", "is_encoder_decoder")
    hidden, vocab_size, n_positions, use_cache, is_encoder_decoder = 4, 50, 16, True, False


class EarConfig(Config):
    fields = ("num_mel_bins", "max_source_positions", "vocab_size", "is_encoder_decoder")
    num_mel_bins, max_source_positions, vocab_size, is_encoder_decoder = 3, 10, 20, True


class PairConfig(Config):
    fields = ("text_config", "vision_config")
    text_config, vision_config = GPTConfig(), types.SimpleNamespace(image_size=8, num_channels=1)


class OddConfig(Config):
    fields = ()


class Model(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.scale = torch.nn.Parameter(torch.ones(1))

    def answer(self, x, labels=None):
        logits = x.float() * self.scale
        return types.SimpleNamespace(
            logits=logits, loss=None if labels is None else logits.mean() + labels.float().mean()
        )


class GPTForCausalLM(Model):
    config_class = GPTConfig

    def forward(self, input_ids, attention_mask=None, labels=None, use_cache=None):
        assert not self.config.use_cache
        return self.answer(input_ids * attention_mask, labels)


class EarForConditionalGeneration(Model):
    config_class = EarConfig

    def forward(self, input_features, decoder_input_ids=None, labels=None):
        return self.answer(input_features, labels)


class PairModel(Model):
    config_class = PairConfig

    def forward(self, input_ids, pixel_values, attention_mask=None, return_loss=None):
        return self.answer(pixel_values)


class OddModel(Model):
    config_class = OddConfig

    def forward(self, past_values):
        return self.answer(past_values)


class _Auto:
    @classmethod
    def from_config(cls, config):
        return cls._model_mapping[type(config)](config)


class AutoModelForCausalLM(_Auto):
    _model_mapping = MappingProxyType({GPTConfig: GPTForCausalLM})


class AutoModelForSpeechSeq2Seq(_Auto):
    _model_mapping = MappingProxyType({EarConfig: EarForConditionalGeneration})


class AutoModel(_Auto):
    _model_mapping = MappingProxyType({PairConfig: PairModel, OddConfig: OddModel})


CONFIG_MAPPING = {"gpt": GPTConfig, "ear": EarConfig, "pair": PairConfig, "odd": OddConfig}
