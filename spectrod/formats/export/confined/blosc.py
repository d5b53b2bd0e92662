"""Chunks of Zarr stores of strangers: a checksum, and Blosc, whose code is in C."""

import struct

import google_crc32c
import numpy as np
from numcodecs import blosc

from spectrod.formats.export.confined.confined_messages import ConfinedAnswer, Content, Question

blosc.use_threads = False  # a process may not have more than one
_HEAD = struct.Struct("<BBBBIII")
"""Blosc's header: version, version of the codec, flags, type size, sizes decoded, of a block, and
of all [bytes]."""
_CHECKSUM_BYTES = 4


class Chunks:
    """Decodes the chunks of one store; see ``confined_child.Handler``."""

    def needs_bytes(self, question: Question) -> int:
        """Return the memory of a chunk: its content, the decoded one, and a copy of both."""
        return 2 * (question.first + question.past)

    def answer(self, question: Question, content: bytes) -> tuple[ConfinedAnswer, Content]:
        """Decode a chunk of ``question.past`` bytes; raises ValueError or RuntimeError."""
        if question.what == "open":
            return ConfinedAnswer(), None
        decoded = _decoded(content, question.past, is_compressed=question.name == "blosc")
        return ConfinedAnswer(n_bytes=len(decoded)), decoded


def open_file() -> Chunks:
    """Return what decodes chunks, which come with the questions."""
    return Chunks()


def _decoded(content: bytes, n_bytes: int, *, is_compressed: bool) -> bytes | memoryview:
    packed, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    if len(checksum) < _CHECKSUM_BYTES:
        raise ValueError("a chunk without a checksum")
    if google_crc32c.value(packed) != int.from_bytes(checksum, "little"):
        raise ValueError("a chunk whose checksum is wrong")
    if not is_compressed:
        if len(packed) != n_bytes:
            raise ValueError(f"a chunk of {len(packed)} bytes: must be {n_bytes}")
        return packed
    if len(packed) < _HEAD.size:
        raise ValueError(f"a chunk of {len(packed)} bytes: has no header")
    *_, unpacked_bytes, _, packed_bytes = _HEAD.unpack_from(packed)
    if (unpacked_bytes, packed_bytes) != (n_bytes, len(packed)):
        raise ValueError(
            f"a chunk of {packed_bytes} bytes of {unpacked_bytes}: must be {len(packed)} of "
            f"{n_bytes}"
        )
    out = np.zeros(n_bytes, np.uint8)
    blosc.decompress(packed, out)
    return out.data
