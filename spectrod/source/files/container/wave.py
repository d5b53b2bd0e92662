"""Headers of WAV files: RIFF, RIFX, RF64, BW64 and Sony's Wave64.

References
----------
.. [1] Microsoft, Multiple channel audio data and WAVE files: ``WAVEFORMATEXTENSIBLE``.
.. [2] EBU Tech 3306, RF64, and ITU-R BS.2088, BW64: ``ds64`` has the sizes of 64 bits.
.. [3] Sony, Wave64: chunks are named by GUIDs and sized by 64 bits, their headers included.
"""

import struct
from functools import partial
from typing import NamedTuple

from spectrod.lib.errors import InputError
from spectrod.source.files.codings import Coding
from spectrod.source.files.container.container_chunks import (
    RIFF,
    RIFX,
    W64,
    Bytes,
    ChunkStyle,
    FileBytes,
    walk,
)
from spectrod.source.files.container.container_header import (
    MPEG,
    SoundHeader,
    checked,
    coding_of,
    full,
    integers,
)
from spectrod.source.files.container.extent import Stated, is_open, may_end

_FORMS = {b"RIFF": RIFF, b"RIFX": RIFX, b"RF64": RIFF, b"BW64": RIFF}
_LARGE = ("RF64", "BW64")
_SIZE_MAX_32 = 0xFFFFFFFF
_SIZE_MAX = (1 << 63) - 1
_W64_RIFF = b"riff" + bytes.fromhex("2e91cf11a5d628db04c10000")
_W64_WAVE = b"wave" + bytes.fromhex("f3acd3118cd100c04f8edb8a")
_W64_OPEN_MIN = 1 << 62

_PCM, _FLOAT, _ALAW, _ULAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_MPEG_TAGS = (0x50, 0x55)
"""MPEG layers I and II; layer III."""
_GUID_RESTS = (
    bytes.fromhex("000000001000800000aa00389b71"),
    bytes.fromhex("00002107d3118644c8c1ca000000"),
)
"""Bytes of the identifier of a format after its tag: of all formats, and of Ambisonics."""
_FACT_MAX = 64


class _Format(NamedTuple):
    """The ``fmt`` chunk."""

    tag: int
    channels: int
    rate: int
    bits: int
    content: bytes


def is_wave(head: bytes) -> bool:
    """Return whether a file with these first 40 bytes is a WAV file of any kind."""
    is_riff = head[:4] in _FORMS and head[8:12] == b"WAVE"
    return is_riff or (head[:16] == _W64_RIFF and head[24:40] == _W64_WAVE)


def read_wave(path: str, source: Bytes, at: int) -> SoundHeader:
    """Read the header of a WAV file.

    Parameters
    ----------
    path : str
        Name of the file, for messages.
    source : Bytes
        Its bytes.
    at : int
        Where the format begins.

    Raises
    ------
    InputError
        If the header states no format, or none that can be read, or no samples.
    """
    head = source.at(at, 40)
    if head[:4] in _FORMS:
        style, first = _FORMS[head[:4]], at + 12
        form, form_size = head[:4].decode(), style.header.unpack(head[:8])[1]
    else:
        style, first, form, form_size = W64, at + 40, "W64", 0
    found: dict[bytes, bytes] = {}
    for chunk in walk(source, style, first):
        name = chunk.name[:4]
        if name == b"data":
            break
        if name in (b"fmt ", b"ds64", b"fact") and name not in found:
            found[name] = full(source, chunk)
    else:
        raise InputError(f"{path}: has no samples: no chunk data is where its header says")
    format_ = _format_of(path, found.get(b"fmt ", b""), style)
    fs, channels = float(format_.rate), format_.channels
    checked(path, fs, channels)
    subtype, coding = _coding(path, format_, is_big=style is RIFX)
    step_bytes = coding.n_bytes * channels if coding else 1
    is_w64 = style is W64
    is_unknown = (
        chunk.size >= _W64_OPEN_MIN if is_w64 else is_open(chunk.size, step_bytes, form_size)
    )
    stated = Stated(chunk.begin, chunk.size, is_unknown, step_bytes, style, is_32_bit=not is_w64)
    if form in _LARGE:
        stated = _by_ds64(source, stated, found.get(b"ds64", b""))
    chunk_style = RIFF if is_w64 else style
    head_of = partial(_head, chunk_style, format_.content, found.get(b"fact", b""))
    return SoundHeader(
        form.replace("RIFF", "WAV"),
        subtype,
        fs,
        channels,
        coding,
        stated,
        head_of,
        n_samples=0 if coding else _number(found.get(b"fact", b"")[:4], style),
        block_samples=0 if coding else _number(format_.content[18:20], style),
    )


def _number(content: bytes, style: ChunkStyle) -> int:
    return int.from_bytes(content, "big" if style is RIFX else "little")


def _format_of(path: str, content: bytes, style: ChunkStyle) -> _Format:
    if len(content) < 16:
        raise InputError(f"{path}: not a sound file: no format (fmt) before its samples")
    order = ">" if style is RIFX else "<"
    tag, channels, rate, _, _, bits = struct.unpack_from(f"{order}HHIIHH", content)
    if tag == _EXTENSIBLE and len(content) >= 40 and content[26:40] in _GUID_RESTS:
        (tag,) = struct.unpack_from(f"{order}H", content, 24)
    return _Format(tag, channels, rate, bits, content)


def _by_ds64(source: Bytes, stated: Stated, ds64: bytes) -> Stated:
    """Return the size of ``ds64``; the other one if it alone fits what follows the samples."""
    if len(ds64) < 16:
        return stated
    size = min(int.from_bytes(ds64[8:16], "little"), _SIZE_MAX)
    large = stated._replace(size=size, is_open=False, is_32_bit=False)
    if (
        isinstance(source, FileBytes)
        and may_end(source, stated, stated.size)
        and not may_end(source, large, size)
    ):
        return stated
    return large if size else stated


def _coding(path: str, format_: _Format, *, is_big: bool) -> tuple[str, Coding | None]:
    """Return the name and the coding of the samples; "" and None of a codec."""
    tag, n_bytes = format_.tag, -(-format_.bits // 8)
    if tag == _PCM:
        subtype = "PCM_U8" if n_bytes == 1 else integers(n_bytes)
    elif tag == _FLOAT:
        subtype = {4: "FLOAT", 8: "DOUBLE"}.get(n_bytes, "")
    else:
        subtype = {_ALAW: "ALAW", _ULAW: "ULAW"}.get(tag, "")
    if not subtype and tag in (_PCM, _FLOAT):
        raise InputError(f"{path}: its samples have {format_.bits} bits, which cannot be read")
    if not subtype:
        return (MPEG if tag in _MPEG_TAGS else ""), None
    return subtype, coding_of(subtype, is_big=is_big)


def _head(style: ChunkStyle, format_: bytes, fact: bytes, n_bytes: int) -> bytes:
    """Return the least header of so many bytes of samples."""
    chunks = [(b"fmt ", format_), *([(b"fact", fact[:_FACT_MAX])] if fact else [])]
    packed = b"".join(
        style.header.pack(name, len(content)) + content + bytes(len(content) % 2)
        for name, content in chunks
    )
    sizes = [min(size, _SIZE_MAX_32) for size in (n_bytes + len(packed) + 12, n_bytes)]
    form = style.header.pack(b"RIFX" if style is RIFX else b"RIFF", sizes[0])
    return form + b"WAVE" + packed + style.header.pack(b"data", sizes[1])
