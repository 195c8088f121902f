"""Reading records back: bytes of one JSON line to a checked event.

Recorded runs come from anyone, so nothing is trusted: each kind has its own strict decoder, a record that
does not fit is an error for the caller to count, and a kind from a newer program is no error at all.
"""

from __future__ import annotations

import msgspec

from tcompile_tui.core.events import EVENT_TYPES, Block, Event


class BadRecordError(ValueError):
    """The bytes are not a record of this schema."""


class _Envelope(msgspec.Struct):
    kind: str


# Beyond what any worker sends: a forged record must not fill memory or overflow the 64-bit arrays of times.
_MAX_BLOCK_STEPS = 1_000_000
_MAX_TIME_NS = 2**63 - 1
_PEEK = msgspec.json.Decoder(_Envelope)
# strict=False reads the strings 'nan' and 'inf' where a float belongs.
_DECODERS: dict[str, msgspec.json.Decoder[Event]] = {
    event_type.kind: msgspec.json.Decoder(event_type, strict=False) for event_type in EVENT_TYPES
}


def decode_event(line: bytes) -> Event | None:
    """One record, or None for a kind that this program does not know. Raises BadRecordError."""
    try:
        decoder = _DECODERS.get(_PEEK.decode(line).kind)
        event = decoder.decode(line) if decoder is not None else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRecordError(str(error)) from None
    if isinstance(event, Block) and not _is_possible(event):
        raise BadRecordError("a block with step times or a number of steps that cannot be")
    return event


def _is_possible(block: Block) -> bool:
    times = block.step_ns or block.summary_ns or (0,)
    return 0 <= block.steps <= _MAX_BLOCK_STEPS and min(times) >= 0 and max(times) <= _MAX_TIME_NS
