"""Decoding as people count it: the prompt's time, and tokens a second after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from tcompile_tui.core.decode_events import PrefillsTimed
from tcompile_tui.core.spec import Arm
from tcompile_tui.core.units import MISSING, count, milliseconds


@dataclass(frozen=True)
class DecodeSpeed:
    """Of both arms in one mode. `token_ms` is a decode step, for all `sequences` at once: what a generation takes
    beyond its prefill, by its number of tokens; None where that is lost in the noise."""

    sequences: int
    prompt_tokens: int
    new_tokens: int
    prefill_ms: Mapping[Arm, float]
    token_ms: Mapping[Arm, float | None]

    def tokens_per_s(self, arm: Arm) -> float | None:
        token_ms = self.token_ms.get(arm)
        return self.sequences * 1e3 / token_ms if token_ms else None

    def text(self, arm: Arm) -> str:
        """`812 tokens/s (prefill 4.1 ms, 1.23 ms a token)`."""
        speed, token_ms = self.tokens_per_s(arm), self.token_ms.get(arm)
        token = milliseconds(token_ms * 1e6 if token_ms is not None else None)
        prefill = milliseconds(self.prefill_ms[arm] * 1e6)
        return f"{count(speed) if speed is not None else MISSING} tokens/s (prefill {prefill}, {token} a token)"


def decode_speed(
    prefills: Mapping[Arm, PrefillsTimed], generation_ms: Mapping[Arm, float | None]
) -> DecodeSpeed | None:
    """`generation_ms` is the time of a whole generation. None where an arm was not timed."""
    if not all(arm in prefills and prefills[arm].step_ns for arm in Arm):
        return None
    of = prefills[Arm.COMPILED]
    prefill_ms = {arm: median(prefills[arm].step_ns) / 1e6 for arm in Arm}
    tokens = {arm: _token_ms(generation_ms[arm], prefill_ms[arm], of.new_tokens) for arm in Arm}
    return DecodeSpeed(of.sequences, of.prompt_tokens, of.new_tokens, prefill_ms, tokens)


def _token_ms(generation_ms: float | None, prefill_ms: float, new_tokens: int) -> float | None:
    if generation_ms is None or new_tokens < 1 or generation_ms <= prefill_ms:
        return None
    return (generation_ms - prefill_ms) / new_tokens


def decode_document(found: DecodeSpeed) -> dict[str, object]:
    """For verdict.json."""
    return {
        "sequences": found.sequences,
        "prompt_tokens": found.prompt_tokens,
        "new_tokens": found.new_tokens,
        "prefill_ms": {arm.value: found.prefill_ms[arm] for arm in Arm},
        "token_ms": {arm.value: found.token_ms[arm] for arm in Arm},
        "tokens_per_s": {arm.value: found.tokens_per_s(arm) for arm in Arm},
    }
