"""Headers of Apple's Core Audio Format.

References
----------
.. [1] Apple, Core Audio Format specification 1.0: the size -1 of the samples means up to the end.
"""

import struct
from functools import partial

from spectrod.lib.errors import InputError
from spectrod.source.files.codings import Coding
from spectrod.source.files.container.container_chunks import CAF, Bytes, FileBytes, walk
from spectrod.source.files.container.container_header import (
    SoundHeader,
    checked,
    coding_of,
    full,
    integers,
)
from spectrod.source.files.container.extent import Stated

_HEAD_BYTES = 8
_EDIT_BYTES = 4
"""Number of edits, in front of the samples."""
_FLOAT, _LITTLE = 1, 2
_OPEN = (1 << 64) - 1
_SIZE_MAX = (1 << 63) - 1
_PACKETS_MAX = 1 << 24
"""Bytes that are read of the table of packets: of 8 million packets at least."""


def is_caf(head: bytes) -> bool:
    """Return whether a file with these first bytes is a CAF file."""
    return head[:6] == b"caff\0\1"


def read_caf(path: str, source: Bytes, at: int) -> SoundHeader:
    """Read the header of a CAF file; see ``wave.read_wave``."""
    found: dict[bytes, bytes] = {}
    samples = None
    for chunk in walk(source, CAF, at + _HEAD_BYTES):
        if chunk.name == b"data" and samples is None:
            samples = chunk
        if chunk.name in (b"desc", b"kuki", b"pakt") and chunk.name not in found:
            found[chunk.name] = full(source, chunk, _PACKETS_MAX)
        if samples is not None and not isinstance(source, FileBytes):
            break
    if samples is None:
        raise InputError(f"{path}: has no samples: no chunk data is where its header says")
    description = found.get(b"desc", b"")
    if len(description) < 32:
        raise InputError(f"{path}: not a sound file: no format (desc) of its samples")
    fs, kind, flags, packet_bytes, _, channels, bits = struct.unpack_from(">d4s5I", description)
    checked(path, fs, channels)
    subtype, coding = _coding(path, kind, flags, packet_bytes // channels, bits)
    step_bytes = coding.n_bytes * channels if coding else 1
    size = min(max(0, samples.size - _EDIT_BYTES), _SIZE_MAX)
    is_unknown = samples.size == _OPEN
    begin = samples.begin + _EDIT_BYTES
    stated = Stated(begin, size, is_unknown, step_bytes, CAF, is_32_bit=False)
    return SoundHeader("CAF", subtype, fs, channels, coding, stated, partial(_head, found))


def _coding(
    path: str, kind: bytes, flags: int, n_bytes: int, bits: int
) -> tuple[str, Coding | None]:
    if kind in (b"ulaw", b"alaw"):
        subtype = kind.decode().upper()
        return subtype, coding_of(subtype)
    if kind != b"lpcm":
        return "", None
    floats = {4: "FLOAT", 8: "DOUBLE"}
    subtype = floats.get(n_bytes, "") if flags & _FLOAT else integers(n_bytes)
    if not subtype or bits != 8 * n_bytes:
        raise InputError(
            f"{path}: its samples have {bits} bits in {n_bytes} bytes, which cannot be read"
        )
    return subtype, coding_of(subtype, is_big=not flags & _LITTLE)


def _head(found: dict[bytes, bytes], n_bytes: int) -> bytes:
    """Return the least header of so many bytes of samples; see ``SoundHeader.head``."""
    names = [name for name in (b"desc", b"kuki", b"pakt") if name in found]
    chunks = b"".join(CAF.header.pack(name, len(found[name])) + found[name] for name in names)
    data = CAF.header.pack(b"data", n_bytes + _EDIT_BYTES) + bytes(_EDIT_BYTES)
    return b"caff\0\1\0\0" + chunks + data
