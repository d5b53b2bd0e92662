"""Chunks of WAV files that libsndfile's Python interface does not show."""

import os
import struct
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_CHUNK_MAX = 1 << 20
_CHUNKS_MAX = 256
_SIZE_IN_DS64 = 0xFFFFFFFF
_INTEGER, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_PLAIN = (_INTEGER, _FLOAT)
_EXTENSIBLE_REST = bytes.fromhex("000000001000800000aa00389b71")
"""What follows the format's tag in the identifier of an extensible header, of plain formats."""


@dataclass(frozen=True, slots=True)
class PcmLayout:
    """Where the samples of a WAV file lie, and how.

    Attributes
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Interleaved channels.
    is_float : bool
        IEEE floats instead of integers.
    bits : int
        Of a sample, a multiple of 8.
    begin : int
        Place of the first sample's first byte in the file.
    n_samples : int
        Samples a channel, >= 1; all of them are in the file.
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
        None of whatever is not plain: another format, codecs, sizes that contradict each other or
        the file.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with Path(path).open("rb") as file:
        if not _is_wave(file.read(12)):
            return None
        found, samples = _walk(file, (b"fmt ",))
        n_bytes = os.fstat(file.fileno()).st_size
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
        Any file; one that is no WAV, or ends early, just has fewer chunks.
    wanted : container of bytes
        Names of four bytes.

    Returns
    -------
    chunks : dict of name to content
        The first of each name, if it has at most 1 MiB; the samples' chunk is passed over. A LIST's
        name has its kind behind it, as in ``LISTINFO``; of these it is the last.

    Raises
    ------
    OSError
        If the file cannot be read.

    References
    ----------
    .. [1] EBU Tech 3306, RF64: the 64-bit size of the samples' chunk stands in ``ds64``.
    """
    with Path(path).open("rb") as file:
        return _walk(file, wanted)[0] if _is_wave(file.read(12)) else {}


def _is_wave(form: bytes) -> bool:
    return form[:4] in (b"RIFF", b"RF64", b"BW64") and form[8:] == b"WAVE"


def _walk(
    file: BinaryIO, wanted: Container[bytes]
) -> tuple[dict[bytes, bytes], tuple[int, int] | None]:
    """Read the wanted chunks; say also where the samples begin, and their bytes."""
    found: dict[bytes, bytes] = {}
    samples = None
    data_size = 0
    for _ in range(_CHUNKS_MAX):
        header = file.read(8)
        if len(header) < 8:
            break
        name, size = struct.unpack("<4sI", header)
        if name == b"data" and size == _SIZE_IN_DS64:
            size = data_size
        if name == b"data" and samples is None:
            # Two sizes that differ: neither is believed.
            samples = file.tell(), size if data_size in (0, size) else 0
        n_next = file.tell() + size + size % 2
        if (name in wanted and name not in found and size <= _CHUNK_MAX) or name == b"ds64":
            content = file.read(size)
            if name == b"ds64" and size >= 16:
                data_size = struct.unpack_from("<Q", content, 8)[0]
            elif len(content) == size:
                # Lists of other kinds may stand before the one that is wanted.
                found[name + content[:4] if name == b"LIST" else name] = content
        file.seek(n_next, os.SEEK_SET)
    return found, samples
