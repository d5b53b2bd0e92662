"""WAV file chunks that libsndfile's Python interface does not provide."""

import struct
from collections.abc import Container
from dataclasses import dataclass
from typing import BinaryIO

from spectrod.source.opening import length_of, open_binary

_CHUNK_BYTES_MAX = 1 << 20
_HEAD_BYTES = {b"ds64": 16, b"fmt ": 40}
"""Bytes that are read of these chunks, whatever their length."""

_CHUNKS_MAX = 256
_SIZE_IN_DS64 = 0xFFFFFFFF
_INTEGER, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_PLAIN = (_INTEGER, _FLOAT)
_EXTENSIBLE_REST = bytes.fromhex("000000001000800000aa00389b71")
"""Bytes after the format tag in the identifier of an extensible header, for plain formats."""


@dataclass(frozen=True, slots=True)
class PcmLayout:
    """Position and format of the samples in a WAV file.

    Attributes
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Interleaved channels.
    is_float : bool
        True for IEEE floats, False for integers.
    bits : int
        Bits of a sample, a multiple of 8.
    begin : int
        Offset of the first sample in the file [bytes].
    n_samples : int
        Samples per channel, >= 1; all of them are in the file.
    """

    fs: float
    channels: int
    is_float: bool
    bits: int
    begin: int
    n_samples: int


def find_samples(path: str) -> PcmLayout | None:
    """Find the samples of a WAV or RF64 file.

    Parameters
    ----------
    path : str
        Any file.

    Returns
    -------
    layout : PcmLayout or None
        None for anything that is not plain: another format, a codec, sizes that contradict each
        other or the file.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with open_binary(path) as file:
        if not _is_wave(file.read(12)):
            return None
        found, samples = _walk(file, (b"fmt ",))
        n_bytes = length_of(file)
    if samples is None or len(format_ := found.get(b"fmt ", b"")) < 16:
        return None
    begin, size = samples
    tag, channels, rate, _, step, bits = struct.unpack_from("<HHIIHH", format_)
    if tag == _EXTENSIBLE and format_[26:40] == _EXTENSIBLE_REST:
        valid_bits, tag = struct.unpack_from("<18xH4xH", format_)
        tag = tag if valid_bits == bits else 0
    is_whole = step and 0 < size <= n_bytes - begin and size % step == 0
    if not (tag in _PLAIN and is_whole and rate and step * 8 == channels * bits):
        return None
    return PcmLayout(float(rate), channels, tag == _FLOAT, bits, begin, size // step)


def read_chunks(path: str, wanted: Container[bytes]) -> dict[bytes, bytes]:
    """Read chunks of a WAV or RF64 file.

    Parameters
    ----------
    path : str
        Any file; one that is not a WAV file, or ends early, has fewer chunks.
    wanted : container of bytes
        Names of four bytes. A LIST's name includes its kind, as in ``LISTINFO``.

    Returns
    -------
    chunks : dict of name to content
        The first chunk of each name among the first 256 chunks, if it is complete and at most 1 MiB
        long. The chunk of samples is skipped.

    Raises
    ------
    OSError
        If the file cannot be read.

    References
    ----------
    .. [1] EBU Tech 3306, RF64: ``ds64`` holds the 64-bit size of the chunk of samples.
    """
    with open_binary(path) as file:
        return _walk(file, wanted)[0] if _is_wave(file.read(12)) else {}


def samples_bytes(path: str) -> tuple[int, int]:
    """Return the bytes of samples that a WAV or RF64 file announces, and those it contains.

    Returns
    -------
    announced, found : int
        Both 0 for other files, or if the sizes contradict each other.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with open_binary(path) as file:
        samples = _walk(file, ())[1] if _is_wave(file.read(12)) else None
        begin, size = samples or (0, 0)
        return size, min(size, length_of(file) - begin)


def _is_wave(form: bytes) -> bool:
    return form[:4] in (b"RIFF", b"RF64", b"BW64") and form[8:] == b"WAVE"


def _walk(
    file: BinaryIO, wanted: Container[bytes]
) -> tuple[dict[bytes, bytes], tuple[int, int] | None]:
    """Read the wanted chunks; return them, and the offset and size of the samples."""
    found: dict[bytes, bytes] = {}
    samples = None
    data_size = 0
    n_bytes = length_of(file)
    for _ in range(_CHUNKS_MAX):
        header = file.read(8)
        if len(header) < 8:
            break
        name, size = struct.unpack("<4sI", header)
        begin = file.tell()
        if name == b"data" and size == _SIZE_IN_DS64:
            size = data_size
        if name == b"data" and samples is None:
            # If the two sizes differ, neither is trusted.
            samples = begin, size if data_size in (0, size) else 0
        if name == b"ds64":
            sizes = _read_chunk(file, name, size) or b""
            data_size = int.from_bytes(sizes[8:], "little") if len(sizes) == 16 else 0
        else:
            full_name = name + file.read(4) if name == b"LIST" else name
            file.seek(begin)
            if full_name in wanted and full_name not in found:
                content = _read_chunk(file, name, size)
                if content is not None:
                    found[full_name] = content
        # A size may be any 64-bit number; nothing follows the end of the file.
        if begin + size >= n_bytes:
            break
        file.seek(begin + size + size % 2)
    return found, samples


def _read_chunk(file: BinaryIO, name: bytes, size: int) -> bytes | None:
    """Read a chunk, or its useful part; None if it is incomplete or too long."""
    size = min(size, _HEAD_BYTES.get(name, size))
    content = file.read(size) if size <= _CHUNK_BYTES_MAX else b""
    return content if len(content) == size else None
