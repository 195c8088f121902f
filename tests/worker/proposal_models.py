"""Models of many kinds without example_inputs(), and the inputs that are to be proposed for them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Convnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 7, stride=2)
        self.norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.norm(self.stem(x)).relu().mean((2, 3)))


class LeNet(nn.Module):
    """Only one size of image fits."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.classifier = nn.Linear(16 * 5 * 5, 10)

    def forward(self, image):
        return self.classifier(self.features(image).flatten(1))


class OddSize(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.out = nn.Linear(8 * 75 * 75, 2)

    def forward(self, x):
        return self.out(self.conv(x).flatten(1))


class Patches(nn.Module):
    """A small vision transformer: the side follows from its positions."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 32, 8, 8)
        self.pos_embed = nn.Parameter(torch.zeros(1, 64, 32))
        self.block = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)

    def forward(self, img):
        return self.block(self.patch(img).flatten(2).transpose(1, 2) + self.pos_embed)


class Tokens(nn.Module):
    """A transformer with fewer places than the usual length."""

    def __init__(self) -> None:
        super().__init__()
        self.tok = nn.Embedding(999, 32)
        self.pos = nn.Embedding(48, 32)
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)

    def forward(self, input_ids, attention_mask=None):
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        return self.blocks(self.tok(input_ids) + self.pos(places))


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(500, 16)
        self.att = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, tokens, mask):
        x = self.emb(tokens)
        return self.att(x, x, x, key_padding_mask=mask)[0]


class ArithmeticMask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(24, 24)

    def forward(self, hidden_states, attention_mask):
        scores = torch.einsum("btd,bsd->bts", self.proj(hidden_states), hidden_states)
        return (scores + (1.0 - attention_mask[:, None, :]) * -1e4).softmax(-1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(12, 20, num_layers=2, batch_first=True)
        self.out = nn.Linear(20, 3)

    def forward(self, series):
        return self.out(self.rnn(series)[0][:, -1])


class Packed(nn.Module):
    """Lengths must be real values: the meta device has none."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(77, 8)
        self.rnn = nn.GRU(8, 8, batch_first=True)

    def forward(self, words, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.emb(words), lengths, batch_first=True)
        return self.rnn(packed)[1]


class FlatMlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        return self.net(x)


class Joined(nn.Module):
    """Two inputs of one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(17 + 6, 1)

    def forward(self, obs, act):
        return self.q(torch.cat([obs, act], dim=-1))


class Bare(nn.Module):
    """No layer at all: a parameter that is multiplied."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(40, 7))

    def forward(self, x):
        return x @ self.weight


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 16), nn.SiLU())
        self.inp = nn.Conv2d(4, 16, 3, padding=1)
        self.down = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(16, 16, 4, stride=2, padding=1)
        self.out = nn.Conv2d(32, 4, 1)

    def forward(self, sample, timestep):
        freqs = torch.arange(16, device=sample.device)
        angles = timestep[:, None].float() * freqs[None]
        emb = self.time(torch.cat([angles.sin(), angles.cos()], -1))[:, :, None, None]
        first = self.inp(sample) + emb
        return self.out(torch.cat([first, self.up(self.down(first))], 1))


class Waves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 8, 80, stride=16), nn.ReLU(), nn.Conv1d(8, 8, 3), nn.AdaptiveAvgPool1d(1)
        )

    def forward(self, audio):
        return self.layers(audio.unsqueeze(1))


class Volume(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(2, 4, 3)

    def forward(self, x):
        return self.conv(x).mean()


class Normed(nn.Module):
    """Called first is what is written last."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(96, 96)
        self.norm = nn.LayerNorm(36)

    def forward(self, window):
        return self.mix(self.norm(window).transpose(1, 2))


class Ratings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(30, 8)
        self.items = nn.Embedding(40, 8)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1)


class Branching(nn.Module):
    """Its way depends on values."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(10, 4)
        self.b = nn.Linear(10, 4)

    def forward(self, x):
        return self.a(x) if x.mean() > 0 else self.b(x)


class HalfBuilt(nn.Module):
    """Its constructor asks for values."""

    def __init__(self) -> None:
        super().__init__()
        rates = [rate.item() for rate in torch.linspace(0, 0.1, 3)]
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(14, 14), nn.Dropout(rate)) for rate in rates)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


class Starred(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(19, 2)

    def forward(self, *args):
        return self.inner(*args)


class AllOptional(nn.Module):
    """As language models of a well-known library are called."""

    main_input_name = "input_ids"

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(64, 8)

    def forward(self, input_ids: torch.Tensor | None = None, inputs_embeds: torch.Tensor | None = None):
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give one of them")
        return self.emb(input_ids) if inputs_embeds is None else inputs_embeds


class Particular(nn.Module):
    """Says which size it expects."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(80, 8, 3)

    def forward(self, input_features):
        if input_features.shape[-1] != 3000:
            raise ValueError(f"expected mel features of length 3000, found {input_features.shape[-1]}: pad them")
        return self.conv(input_features)


class TwoParts(nn.Module):
    """An encoder and a decoder, neither of which is required by its signature."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(64, 8)
        self.places = nn.Parameter(torch.zeros(1, 32, 8))

    def forward(self, input_ids=None, decoder_input_ids=None):
        if decoder_input_ids is None:
            raise ValueError("You have to specify decoder_input_ids")
        if input_ids.shape[1] != 100:
            raise ValueError("the encoder takes 100 tokens")
        return self.emb(input_ids).sum() + self.emb(decoder_input_ids) + self.places


def lazy() -> nn.Module:
    return nn.Sequential(nn.LazyConv2d(8, 3, stride=4), nn.Flatten(), nn.LazyLinear(5))


def scripted() -> nn.Module:
    return torch.jit.script(nn.Sequential(nn.Linear(128, 4)))


class Nhwc(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, frames):
        return self.conv(frames.permute(0, 3, 1, 2))


class Bfloat16(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(9, 3, dtype=torch.bfloat16)

    def forward(self, x):
        return self.layer(x)


TABLE: list[tuple[Any, list[str]]] = [
    (Convnet, ["x=float32[8,3,224,224]"]),
    (LeNet, ["image=float32[8,1,32,32]"]),
    (OddSize, ["x=float32[8,3,150,150]"]),
    (Patches, ["img=float32[8,3,64,64]"]),
    (Tokens, ["input_ids=int64[8,48]<0,999>"]),
    (Masked, ["tokens=int64[8,128]<0,500>", "mask=bool[8,128]"]),
    (ArithmeticMask, ["hidden_states=float32[8,128,24]", "attention_mask=int64[8,128]<0,2>"]),
    (Recurrent, ["series=float32[8,128,12]"]),
    (Packed, ["words=int64[8,128]<0,77>", "lengths=int64[8]<128,129>"]),
    (FlatMlp, ["x=float32[8,784]"]),
    (Joined, ["obs=float32[8,11]", "act=float32[8,12]"]),
    (Bare, ["x=float32[8,40]"]),
    (Denoiser, ["sample=float32[8,4,32,32]", "timestep=int64[8]<0,1000>"]),
    (Waves, ["audio=float32[8,16000]"]),
    (Volume, ["x=float32[8,2,16,64,64]"]),
    (Normed, ["window=float32[8,96,36]"]),
    (Ratings, ["user=int64[8]<0,30>", "item=int64[8]<0,40>"]),
    (Branching, ["x=float32[8,10]"]),
    (HalfBuilt, ["x=float32[8,14]"]),
    (Starred, ["float32[8,19]"]),
    (Particular, ["input_features=float32[8,80,3000]"]),
    (TwoParts, ["input_ids=int64[8,100]<0,64>", "decoder_input_ids=int64[8,32]<0,64>"]),
    (lazy, ["input=float32[8,3,224,224]"]),
    (scripted, ["input=float32[8,128]"]),
    (Nhwc, ["frames=float32[8,224,224,3]"]),
    (Bfloat16, ["x=bfloat16[8,9]"]),
    (lambda: nn.Bilinear(3, 4, 5), ["input1=float32[8,3]", "input2=float32[8,4]"]),
    (lambda: nn.Transformer(32, 2, 1, 1, 64), ["src=float32[128,8,32]", "tgt=float32[128,8,32]"]),
    (AllOptional, ["input_ids=int64[8,128]<0,64>"]),
]
