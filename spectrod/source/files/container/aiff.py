"""Headers of AIFF and AIFF-C files.

References
----------
.. [1] Apple, Audio Interchange File Format AIFF-C, draft of 1991-08-26.
"""

import math
import struct
from functools import partial

from spectrod.lib.errors import InputError
from spectrod.source.files.codings import Coding
from spectrod.source.files.container.container_chunks import RIFX, Bytes, walk
from spectrod.source.files.container.container_header import (
    SoundHeader,
    checked,
    coding_of,
    full,
    integers,
)
from spectrod.source.files.container.extent import Stated, is_open

_SSND_HEAD = 8
"""Bytes in front of the samples: offset of the first one, and length of a block."""
_SUBTYPES = {
    b"fl32": "FLOAT", b"FL32": "FLOAT", b"fl64": "DOUBLE", b"FL64": "DOUBLE", b"raw ": "PCM_U8",
    b"ulaw": "ULAW", b"ULAW": "ULAW", b"alaw": "ALAW", b"ALAW": "ALAW", b"in24": "PCM_24",
    b"in32": "PCM_32", b"42ni": "PCM_24", b"23ni": "PCM_32",
}  # fmt: skip
_LITTLE = (b"sowt", b"42ni", b"23ni")
_INTEGERS = (b"NONE", b"twos", b"sowt", b"")


def is_aiff(head: bytes) -> bool:
    """Return whether a file with these first bytes is an AIFF or AIFF-C file."""
    return head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC")


def read_aiff(path: str, source: Bytes, at: int) -> SoundHeader:
    """Read the header of an AIFF file; see ``wave.read_wave``."""
    head = source.at(at, 12)
    form_size = struct.unpack_from(">I", head, 4)[0]
    common, samples = b"", None
    for chunk in walk(source, RIFX, at + 12):
        if chunk.name == b"COMM" and not common:
            common = full(source, chunk)
        if chunk.name == b"SSND" and samples is None:
            samples = chunk
        if common and samples:
            break
    if samples is None:
        raise InputError(f"{path}: has no samples: no chunk SSND is where its header says")
    if len(common) < 18:
        raise InputError(f"{path}: not a sound file: no format (COMM) of its samples")
    channels, _, bits = struct.unpack_from(">HIH", common)
    fs = _extended(common[8:18])
    checked(path, fs, channels)
    kind = common[18:22] if head[8:12] == b"AIFC" else b""
    subtype, coding = _coding(path, kind, bits)
    step_bytes = coding.n_bytes * channels if coding else 1
    offset = int.from_bytes(source.at(samples.begin, 4), "big")
    if offset > max(0, samples.size - _SSND_HEAD):
        offset = 0
    size = max(0, samples.size - _SSND_HEAD - offset)
    is_unknown = any(is_open(one, step_bytes, form_size) for one in (size, samples.size))
    begin = samples.begin + _SSND_HEAD + offset
    stated = Stated(begin, size, is_unknown, step_bytes, RIFX, is_32_bit=True)
    return SoundHeader("AIFF", subtype, fs, channels, coding, stated, partial(_head, common))


def _coding(path: str, kind: bytes, bits: int) -> tuple[str, Coding | None]:
    subtype = integers(-(-bits // 8)) if kind in _INTEGERS else _SUBTYPES.get(kind, "")
    if not subtype and kind in _INTEGERS:
        raise InputError(f"{path}: its samples have {bits} bits, which cannot be read")
    return (subtype, coding_of(subtype, is_big=kind not in _LITTLE)) if subtype else ("", None)


def _extended(number: bytes) -> float:
    """Return an IEEE 754 number of 80 bits; infinity beyond the range of 64 bits."""
    exponent, mantissa = struct.unpack(">HQ", number)
    try:
        value = math.ldexp(mantissa, (exponent & 0x7FFF) - 16383 - 63)
    except OverflowError:
        value = math.inf
    return -value if exponent & 0x8000 else value


def _head(common: bytes, n_bytes: int) -> bytes:
    """Return the least header of so many bytes of samples; see ``SoundHeader.head``."""
    content = common + bytes(len(common) % 2)
    chunks = b"FVER" + struct.pack(">II", 4, 0xA2805140)
    chunks += b"COMM" + struct.pack(">I", len(common)) + content
    sizes = n_bytes + len(chunks) + 20, n_bytes + _SSND_HEAD
    form, ssnd = (struct.pack(">I", min(size, 0xFFFFFFFF)) for size in sizes)
    return b"FORM" + form + b"AIFC" + chunks + b"SSND" + ssnd + bytes(_SSND_HEAD)
