"""Frames come back whole and in order, whatever the pipe and the user's code do to the stream."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core.wire import MAGIC, MAX_PAYLOAD_BYTES, FrameDecoder, FrameTooLargeError, encode_frame

HEADER_BYTES = len(encode_frame(b""))


def header(length: int, checksum: int = 0) -> bytes:
    return MAGIC + struct.pack(">II", length, checksum)


# 0xFF, like the magic's first byte, is in no UTF-8 text: printed text can never complete a cut frame.
CUT_FRAME = encode_frame(b"\xff" * 20)
BROKEN_FRAME = encode_frame(b"\xff" * 20)[:-1] + b"\xfe"

payloads = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=10).map(encode_frame),  # a frame within a frame is payload
    st.just(MAGIC),
)
strays = st.one_of(
    st.text(max_size=40).map(str.encode),
    st.integers(1, len(CUT_FRAME) - 1).map(lambda size: CUT_FRAME[:size]),
    st.sampled_from([MAGIC[:1], MAGIC[:3], MAGIC, BROKEN_FRAME, header(MAX_PAYLOAD_BYTES + 1), header(3, 7)]),
)
pieces = st.lists(st.one_of(st.tuples(st.just(True), payloads), st.tuples(st.just(False), strays)), max_size=8)


@given(pieces=pieces, chunk_sizes=st.lists(st.integers(1, 40), min_size=1))
def test_every_frame_survives_any_split_and_any_stray_write(
    pieces: list[tuple[bool, bytes]], chunk_sizes: list[int]
) -> None:
    stream = b"".join(encode_frame(data) if is_frame else data for is_frame, data in pieces)
    decoder, received, fed, turn = FrameDecoder(), [], 0, 0
    while fed < len(stream):
        size = chunk_sizes[turn % len(chunk_sizes)]
        received += decoder.feed(stream[fed : fed + size])
        fed, turn = min(fed + size, len(stream)), turn + 1
        framed = sum(HEADER_BYTES + len(payload) for payload in received)
        assert framed + decoder.skipped_bytes + decoder.pending_bytes == fed
    received += decoder.close()
    assert received == [data for is_frame, data in pieces if is_frame]
    assert decoder.skipped_bytes == sum(len(data) for is_frame, data in pieces if not is_frame)
    assert decoder.pending_bytes == 0


@given(st.lists(st.binary(max_size=200), max_size=5), st.data())
def test_without_strays_frames_arrive_as_soon_as_they_are_whole(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(encode_frame, frames))
    cut = data.draw(st.integers(0, len(stream)))
    decoder = FrameDecoder()
    first, second = decoder.feed(stream[:cut]), decoder.feed(stream[cut:])
    whole, end = 0, 0
    for frame in frames:
        end += HEADER_BYTES + len(frame)
        whole += end <= cut
    assert (len(first), first + second) == (whole, frames)
    assert (decoder.skipped_bytes, decoder.pending_bytes, decoder.close()) == (0, 0, [])


@given(st.binary(max_size=300))
def test_garbage_alone_is_counted_and_never_raises(garbage: bytes) -> None:
    decoder = FrameDecoder()
    received = decoder.feed(garbage) + decoder.close()
    framed = sum(HEADER_BYTES + len(payload) for payload in received)
    assert framed + decoder.skipped_bytes == len(garbage)


def test_printed_text_does_not_wait_and_does_not_delay_a_frame() -> None:
    decoder = FrameDecoder()
    assert decoder.feed("Épöch 1\n".encode()) == []
    assert decoder.pending_bytes == 0
    assert decoder.feed(b"done" + encode_frame(b"one") + b"bye" + encode_frame(b"two")) == [b"one", b"two"]
    assert decoder.skipped_bytes == len("Épöch 1\ndonebye".encode())


def test_an_impossible_length_does_not_hold_the_stream() -> None:
    decoder = FrameDecoder()
    false_start = header(MAX_PAYLOAD_BYTES + 1)
    assert decoder.feed(false_start + encode_frame(b"next")) == [b"next"]
    assert decoder.skipped_bytes == len(false_start)


def test_a_write_into_the_middle_of_a_frame_costs_that_frame_only() -> None:
    frame = encode_frame(b"x" * 50)
    hit = frame[:30] + b"printed by the user" + frame[30:]
    decoder = FrameDecoder()
    assert decoder.feed(encode_frame(b"before") + hit + encode_frame(b"after")) == [b"before", b"after"]
    assert decoder.skipped_bytes == len(hit)


def test_close_returns_the_frames_behind_a_cut_one() -> None:
    decoder = FrameDecoder()
    cut = encode_frame(b"y" * 1000)[:100]
    assert decoder.feed(cut + encode_frame(b"last words")) == []
    assert decoder.pending_bytes > 0
    assert decoder.close() == [b"last words"]
    assert (decoder.skipped_bytes, decoder.pending_bytes) == (len(cut), 0)
    assert decoder.close() == []


def test_the_size_limit_holds_on_both_sides() -> None:
    largest = bytes(MAX_PAYLOAD_BYTES)
    assert FrameDecoder().feed(encode_frame(largest)) == [largest]
    with pytest.raises(FrameTooLargeError, match="16777217"):
        encode_frame(largest + b"!")
