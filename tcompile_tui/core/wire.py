"""Frames on a byte stream: how the worker's records survive any split, cut or stray write.

A frame is `magic, length, crc32, payload`. The stream is private to worker and supervisor, but it lives in
the user's process, where any code can write to any descriptor. The magic number and the checksum let the
reader skip what is not ours and find the next frame, instead of losing the run.

Standard library only: the worker imports this module.
"""

from __future__ import annotations

import struct
import zlib

MAGIC = b"\xf5TC1"  # 0xF5 never occurs in UTF-8 text, so printed text cannot look like a frame
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024

CHANNEL_LOST = 113  # the exit status of a worker that cannot report any more

_HEADER = struct.Struct(">4sII")


class FrameTooLargeError(ValueError):
    """The payload is larger than a reader accepts."""


def encode_frame(payload: bytes) -> bytes:
    """Wrap `payload` (at most MAX_PAYLOAD_BYTES) into one frame."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise FrameTooLargeError(f"a record of {len(payload)} bytes is over the limit of {MAX_PAYLOAD_BYTES}")
    return _HEADER.pack(MAGIC, len(payload), zlib.crc32(payload)) + payload


class FrameDecoder:
    """Turns chunks of a byte stream back into payloads.

    `skipped_bytes` counts what was not part of a whole, intact frame; it is never silently lost.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.skipped_bytes = 0

    @property
    def pending_bytes(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add `chunk`; return the payloads that are now complete, in order."""
        self._buffer += chunk
        payloads: list[bytes] = []
        while self._seek_magic() and len(self._buffer) >= _HEADER.size:
            _, length, checksum = _HEADER.unpack_from(self._buffer)
            if length > MAX_PAYLOAD_BYTES:
                self._skip(1)
                continue
            end = _HEADER.size + length
            if len(self._buffer) < end:
                break
            payload = bytes(self._buffer[_HEADER.size : end])
            if zlib.crc32(payload) != checksum:
                self._skip(1)
                continue
            del self._buffer[:end]
            payloads.append(payload)
        return payloads

    def close(self) -> list[bytes]:
        """The stream has ended: return what is still whole behind a cut frame, count the rest as skipped."""
        payloads: list[bytes] = []
        while self._buffer:
            self._skip(1)
            payloads += self.feed(b"")
        return payloads

    def _seek_magic(self) -> bool:
        """Drop bytes up to the next possible start of a frame; False when none is in the buffer."""
        start = self._buffer.find(MAGIC[:1])
        while start >= 0:
            if MAGIC.startswith(bytes(self._buffer[start : start + len(MAGIC)])):
                self._skip(start)
                return True
            start = self._buffer.find(MAGIC[:1], start + 1)
        self._skip(len(self._buffer))
        return False

    def _skip(self, count: int) -> None:
        del self._buffer[:count]
        self.skipped_bytes += count
