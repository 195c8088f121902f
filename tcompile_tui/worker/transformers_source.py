"""Models of transformers from a config: of a model type's own, or from a JSON file; random weights."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .arguments import read_json
from .failures import StageError
from .sources import Sizes, unknown_name

# Which task a model type is for, where several have it: the first one that does.
_AUTO_CLASSES = (
    "AutoModelForSpeechSeq2Seq", "AutoModelForImageTextToText", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM",
    "AutoModelForCausalLM", "AutoModelForCTC", "AutoModelForObjectDetection", "AutoModelForSemanticSegmentation",
    "AutoModelForImageClassification", "AutoModelForAudioClassification",
)  # fmt: skip
_SEQUENCES, _TOKENS, _IMAGES, _SAMPLES = 8, 128, 8, 16_000
_IMAGE_SIZE, _DETECTION_SIZE = 224, 512
_POSITIONS = ("max_position_embeddings", "n_positions", "max_target_positions", "max_sequence_length")
_SAMPLES_A_LETTER = 1_000


class TransformersModel:
    """`transformers:gpt2`, `transformers:GPT2LMHeadModel` or `transformers:./config.json`."""

    def __init__(self, transformers: Any, name: str, sizes: Sizes, training: bool) -> None:
        self._library, self._name, self._sizes, self._training = transformers, name, sizes, training
        self._config: Any = None
        self._class_name = ""
        self._parameters: frozenset[str] = frozenset()
        sizes.check(f"transformers:{name}", ("B", "T", "H", "W", "L"))

    # ------------------------------------------------------------ the model

    def make_model(self, **arguments: Any) -> Any:
        config, model_class = self._configured(arguments)
        self._without_cache(config, arguments)
        model = model_class(config) if model_class is not None else self._auto_class(config).from_config(config)
        self._config, self._class_name = model.config, type(model).__name__
        self._parameters = frozenset(inspect.signature(model.forward).parameters)
        return model

    def _configured(self, arguments: dict[str, Any]) -> tuple[Any, Any]:
        """The config, and the model's class where the name or the file says it."""
        if self._name.endswith(".json"):
            body = read_json(Path(self._name).expanduser())
            if not isinstance(body, dict) or "model_type" not in body:
                raise StageError(f'{self._name} is no config of a model: it has no "model_type"')
            config_class = self._config_class(body["model_type"])
            self._refuse_unknown(config_class, arguments)
            named = (body.get("architectures") or [None])[0]
            return config_class.from_dict(_merged(body, arguments)), named and self._model_class(named)
        if self._name in self._library.CONFIG_MAPPING:
            config_class = self._config_class(self._name)
            self._refuse_unknown(config_class, arguments)
            return config_class(**arguments), None
        model_class = self._model_class(self._name)
        self._refuse_unknown(model_class.config_class, arguments)
        return model_class.config_class(**arguments), model_class

    def _config_class(self, model_type: str) -> Any:
        if model_type not in self._library.CONFIG_MAPPING:
            raise unknown_name("transformers", model_type, self._library.CONFIG_MAPPING)
        return self._library.CONFIG_MAPPING[model_type]

    def _model_class(self, name: str) -> Any:
        found = getattr(self._library, name, None)
        if getattr(found, "config_class", None) is None:
            raise unknown_name("transformers", name, self._library.CONFIG_MAPPING)
        return found

    def _refuse_unknown(self, config_class: Any, arguments: Mapping[str, Any]) -> None:
        """A config takes any field silently, so that a misspelt one would change nothing."""
        plain = config_class()
        for name in arguments:
            if not hasattr(plain, name):
                near = difflib.get_close_matches(name, list(vars(plain)), n=3)
                advice = f": did you mean {', '.join(near)}?" if near else ""
                raise StageError(f"{config_class.__name__} has no field '{name}'{advice}")

    def _auto_class(self, config: Any) -> Any:
        if not (hasattr(config, "text_config") and hasattr(config, "vision_config") and not _image_token(config)):
            for name in _AUTO_CLASSES:
                auto = getattr(self._library, name, None)
                if auto is not None and type(config) in auto._model_mapping:
                    return auto
        return self._library.AutoModel

    @staticmethod
    def _without_cache(config: Any, arguments: Mapping[str, Any]) -> None:
        """A cache is for generating; a forward pass over whole sequences, or a training step, makes none."""
        for part in (config, getattr(config, "text_config", None)):
            if part is not None and getattr(part, "use_cache", None) and "use_cache" not in arguments:
                part.use_cache = False

    # ------------------------------------------------------------ its inputs

    def example_inputs(self) -> dict[str, Any]:
        inputs = {**self._text(), **self._images(), **self._sound()}
        if not inputs:
            raise StageError(
                f"no natural inputs are known for {self._class_name}: give them with --input name=float32[...], "
                f"for forward({', '.join(sorted(self._parameters - {'kwargs', 'args'}))[:200]})"
            )
        if "decoder_input_ids" in self._parameters and self._config.is_encoder_decoder:
            inputs["decoder_input_ids"] = self._token_ids()
        if self._training:
            inputs |= self._labels(inputs)
        return inputs

    def loss(self, output: Any) -> Any:
        """The model's own, from labels where its inputs have some."""
        from .stepping import mean_square

        loss = getattr(output, "loss", None)
        return loss if loss is not None else mean_square(output)

    def _text(self) -> dict[str, Any]:
        import torch

        if "input_ids" not in self._parameters or not hasattr(self._text_config, "vocab_size"):
            return {}
        ids = self._token_ids()
        return {
            "input_ids": ids,
            **({"attention_mask": torch.ones_like(ids)} if "attention_mask" in self._parameters else {}),
        }

    @property
    def _text_config(self) -> Any:
        return getattr(self._config, "text_config", None) or self._config

    def _token_ids(self) -> Any:
        import torch

        config = self._text_config
        positions = next((n for n in (getattr(config, each, None) for each in _POSITIONS) if isinstance(n, int)), None)
        tokens = self._sizes.given("T")
        if tokens is not None and positions is not None and tokens > positions > 0:
            raise StageError(
                f"T={tokens} is more than the {positions} positions of {type(config).__name__}: "
                f"give a smaller --dim T, or --arg max_position_embeddings={tokens}"
            )
        if tokens is None:
            tokens = min(_TOKENS, positions) if positions is not None and positions > 0 else _TOKENS
        token_of_images = _image_token(self._config)
        high = min(config.vocab_size, token_of_images) if token_of_images else config.vocab_size
        return torch.randint(0, high, (self._sizes.get("B", _SEQUENCES), tokens))

    def _images(self) -> dict[str, Any]:
        import torch

        # Where images stand for tokens among the text, text alone is a call too.
        if "pixel_values" not in self._parameters or _image_token(self._config):
            return {}
        config = getattr(self._config, "vision_config", None) or self._config
        natural = _DETECTION_SIZE if self._class_name.endswith("ForObjectDetection") else _IMAGE_SIZE
        size = getattr(config, "image_size", None) or natural
        height, width = (size, size) if isinstance(size, int) else size
        shape = [
            self._sizes.get("B", _IMAGES),
            getattr(config, "num_channels", None) or 3,
            self._sizes.get("H", height),
            self._sizes.get("W", width),
        ]
        if hasattr(config, "num_frames"):
            shape.insert(1, config.num_frames)
        return {"pixel_values": torch.randn(shape)}

    def _sound(self) -> dict[str, Any]:
        import torch

        config, batch = self._config, self._sizes.get("B", _SEQUENCES)
        mels = getattr(config, "num_mel_bins", None)
        if "input_features" in self._parameters and mels and hasattr(config, "max_source_positions"):
            return {"input_features": torch.randn(batch, mels, 2 * config.max_source_positions)}
        if "input_values" not in self._parameters:
            return {}
        if mels and hasattr(config, "max_length"):
            return {"input_values": torch.randn(batch, config.max_length, mels)}
        return {"input_values": torch.randn(batch, self._sizes.get("L", _SAMPLES))}

    def _labels(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """What training needs beside the inputs; the default loss where nothing is known."""
        import torch

        if "labels" not in self._parameters:
            return {"return_loss": True} if "return_loss" in self._parameters else {}
        name, batch = self._class_name, next(iter(inputs.values())).shape[0]
        if name.endswith(("ForImageClassification", "ForSequenceClassification", "ForAudioClassification")):
            return {"labels": torch.randint(0, self._config.num_labels, (batch,))}
        if name.endswith("ForCTC"):
            letters = max(1, inputs["input_values"].shape[-1] // _SAMPLES_A_LETTER) if "input_values" in inputs else 1
            return {"labels": torch.randint(1, self._config.vocab_size, (batch, letters))}
        if name.endswith("ForSemanticSegmentation"):
            return {"labels": torch.zeros(batch, *inputs["pixel_values"].shape[-2:], dtype=torch.int64)}
        if name.endswith(("LM", "LMHeadModel", "ForConditionalGeneration")):
            whole = not self._config.is_encoder_decoder and "input_ids" in inputs
            return {"labels": inputs["input_ids"].clone() if whole else self._token_ids()}
        return {}


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes`, dicts within dicts field by field."""
    merged = dict(base)
    for name, value in changes.items():
        old = merged.get(name)
        merged[name] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _image_token(config: Any) -> int | None:
    """The token that stands for a piece of an image, in a model of text with images in it."""
    for name in ("image_token_id", "image_token_index"):
        token = getattr(config, name, None)
        if isinstance(token, int):
            return token
    return None
