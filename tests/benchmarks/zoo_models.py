"""The architectures of `zoo`, at sizes for a test machine's CPU and at those that people run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """One architecture: what kind of model it is, the target, and the options that give it its size."""

    kind: str
    target: str
    options: str

    @property
    def arguments(self) -> list[str]:
        return [self.target, *shlex.split(self.options)]


_IMAGE = "--dim B=2 --dim H=64 --dim W=64"
_TEXT = "--dim B=2 --dim T=32"
_SLIM = "--arg num_hidden_layers=2 --arg hidden_size=64 --arg num_attention_heads=2 --arg intermediate_size=128"

SMALL = (
    Model("CNN", "timm:resnet18", _IMAGE),
    Model("ViT", "timm:vit_tiny_patch16_224", "--dim B=2 --arg img_size=64 --arg depth=2"),
    Model("decoder", "transformers:gpt2", f"{_TEXT} --arg num_hidden_layers=2 --arg n_embd=64 --arg n_head=2"),
    Model("encoder", "transformers:bert", f"{_TEXT} {_SLIM}"),
    Model("ConvNeXt", "torchvision:convnext_tiny", "--dim B=1 --dim H=64 --dim W=64"),
    Model("Swin", "timm:swin_tiny_patch4_window7_224", "--dim B=1 --arg img_size=56 --arg depths=[1,1,1,1] --arg embed_dim=48"),
    Model("decoder", "transformers:llama", f"{_TEXT} {_SLIM} --arg num_key_value_heads=2"),
    Model("encoder-decoder", "transformers:t5", f"{_TEXT} --arg num_layers=1 --arg d_model=64 --arg d_ff=128 --arg num_heads=2 --arg d_kv=32"),
    Model("speech", "transformers:whisper", "--dim B=1 --dim T=16 --arg encoder_layers=1 --arg decoder_layers=1 --arg d_model=64 --arg encoder_attention_heads=2 --arg decoder_attention_heads=2 --arg max_source_positions=100"),
    Model("text and image", "transformers:clip", "--dim B=2 --arg text_config.num_hidden_layers=1 --arg vision_config.num_hidden_layers=1 --arg text_config.hidden_size=64 --arg vision_config.hidden_size=64 --arg text_config.num_attention_heads=2 --arg vision_config.num_attention_heads=2 --arg vision_config.image_size=64"),
    Model("detection", "torchvision:ssdlite320_mobilenet_v3_large", "--dim B=1 --arg num_classes=5"),
    Model("LSTM", "torch.nn:LSTM", "--arg input_size=32 --arg hidden_size=64 --input 'float32[16,4,32]'"),
    Model("segmentation", "torchvision:lraspp_mobilenet_v3_large", _IMAGE),
    Model("decoder", "transformers:mistral", f"{_TEXT} {_SLIM} --arg num_key_value_heads=2"),
    Model("CNN", "torchvision:mobilenet_v3_small", _IMAGE),
    Model("CNN", "torchvision:resnet18", f"{_IMAGE} --task train"),
    Model("ViT", "torchvision:vit_b_16", "--dim B=1 --arg image_size=32"),
    Model("ViT", "timm:deit_tiny_patch16_224", "--dim B=2 --arg img_size=64 --arg depth=2"),
    Model("encoder", "transformers:distilbert", f"{_TEXT} --arg n_layers=2 --arg dim=64 --arg hidden_dim=128 --arg n_heads=2"),
    Model("encoder", "transformers:roberta", f"{_TEXT} {_SLIM}"),
    Model("decoder", "transformers:qwen2", f"{_TEXT} {_SLIM} --arg num_key_value_heads=2"),
    Model("decoder", "transformers:opt", f"{_TEXT} --arg num_hidden_layers=2 --arg hidden_size=64 --arg num_attention_heads=2 --arg ffn_dim=128 --arg word_embed_proj_dim=64"),
    Model("ViT", "transformers:vit", f"--dim B=2 {_SLIM} --arg image_size=64"),
    Model("encoder-decoder", "transformers:bart", f"{_TEXT} --arg encoder_layers=1 --arg decoder_layers=1 --arg d_model=64 --arg encoder_attention_heads=2 --arg decoder_attention_heads=2 --arg encoder_ffn_dim=128 --arg decoder_ffn_dim=128"),
    Model("speech", "transformers:wav2vec2", f"--dim B=1 --dim L=4000 {_SLIM}"),
    Model("mixture of experts", "transformers:mixtral", f"{_TEXT} {_SLIM} --arg num_key_value_heads=2 --arg num_local_experts=2"),
    Model("state space", "transformers:mamba", f"{_TEXT} --arg num_hidden_layers=2 --arg hidden_size=64 --arg state_size=8"),
    Model("MLP-Mixer", "timm:mixer_s32_224", "--dim B=2 --arg img_size=64"),
    Model("CNN", "timm:convnext_atto", "--dim B=1 --dim H=64 --dim W=64"),
    Model("CNN", "torchvision:squeezenet1_1", _IMAGE),
    Model("CNN", "timm:regnetx_002", _IMAGE),
    Model("encoder", "transformers:electra", f"{_TEXT} {_SLIM}"),
    Model("encoder", "transformers:albert", f"{_TEXT} {_SLIM}"),
    Model("video", "torchvision:r3d_18", "--dim B=1 --dim T=4 --dim H=32 --dim W=32"),
    Model("segmentation", "transformers:segformer", "--dim B=1 --dim H=64 --dim W=64 --arg depths=[1,1,1,1]"),
    Model("CNN", "torchvision:shufflenet_v2_x0_5", _IMAGE),
    Model("decoder", "transformers:gemma", f"{_TEXT} {_SLIM} --arg num_key_value_heads=2 --arg head_dim=32"),
    Model("detection", "transformers:yolos", f"--dim B=1 {_SLIM} --arg image_size=[64,64]"),
)  # fmt: skip


_LLAMA = "--arg vocab_size=32000 --arg hidden_size=2048 --arg intermediate_size=8192 --arg num_hidden_layers=16 --arg num_attention_heads=32 --arg num_key_value_heads=8"
_MISTRAL = "--arg vocab_size=32000 --arg hidden_size=1024 --arg intermediate_size=3584 --arg num_hidden_layers=8 --arg num_attention_heads=16 --arg num_key_value_heads=4"
_WHISPER = "--arg encoder_layers=12 --arg decoder_layers=12 --arg d_model=768 --arg encoder_attention_heads=12 --arg decoder_attention_heads=12 --arg encoder_ffn_dim=3072 --arg decoder_ffn_dim=3072"

# At the sizes that people run on one data-centre GPU; the first dozen has one of every kind.
REAL = (
    Model("CNN", "torchvision:resnet50", "--dim B=64"),
    Model("encoder", "transformers:bert", "--dim B=16 --dim T=128 --dtype bfloat16"),
    Model("ViT", "torchvision:vit_b_16", "--dim B=32 --dtype bfloat16"),
    Model("decoder", "transformers:gpt2", "--dim B=8 --dim T=512 --dtype bfloat16"),
    Model("LSTM", "torch.nn:LSTM", "--arg input_size=512 --arg hidden_size=1024 --arg num_layers=2 --input 'float32[128,32,512]'"),
    Model("encoder-decoder", "transformers:t5", "--dim B=8 --dim T=128 --dtype bfloat16"),
    Model("decoder", "transformers:llama", f"--dim B=1 --dim T=1024 --dtype bfloat16 {_LLAMA}"),
    Model("ConvNeXt", "torchvision:convnext_tiny", "--dim B=32 --dtype bfloat16"),
    Model("Swin", "torchvision:swin_t", "--dim B=32 --dtype bfloat16"),
    Model("text and image", "transformers:clip", "--dim B=16 --dim T=77 --dtype bfloat16"),
    Model("speech", "transformers:whisper", f"--dim B=4 --dim T=64 --dtype bfloat16 {_WHISPER}"),
    Model("detection", "torchvision:ssdlite320_mobilenet_v3_large", "--dim B=8"),
    Model("decoder", "transformers:mistral", f"--dim B=2 --dim T=512 --dtype bfloat16 {_MISTRAL}"),
    Model("CNN", "timm:resnet50", "--dim B=64 --task train --channels-last --amp bf16"),
    Model("encoder", "transformers:bert", "--dim B=16 --dim T=128 --task train --amp bf16"),
    Model("ViT", "timm:vit_small_patch16_224", "--dim B=64 --dtype bfloat16"),
    Model("Swin", "timm:swin_tiny_patch4_window7_224", "--dim B=32 --dtype bfloat16"),
    Model("speech", "transformers:wav2vec2", "--dim B=4 --dim L=80000 --dtype bfloat16"),
    Model("segmentation", "torchvision:deeplabv3_resnet50", "--dim B=4"),
    Model("video", "torchvision:r3d_18", "--dim B=4 --dim T=16 --dim H=112 --dim W=112"),
)  # fmt: skip
