"""Completion of FLAC files whose header was not completed: their length, and their last block.

An incomplete block is cut; the length is written into the header for players. The checksum over
all samples, which libsndfile writes only at the end, stays empty.
"""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spectrod.errors import EmptyRecordingError, InputError
from spectrod.formats.fileio import write_at

_METADATA_AT, _METADATA_HEAD_BYTES = 4, 4
_STREAMINFO_AT, _SUMS_AT, _MD5_AT = 8, 18, 26
_BEGIN_BYTES = _MD5_AT + 16
TOTAL_MAX = (1 << 36) - 1
"""Largest number of samples per channel that a header can state."""

_SYNC = b"\xff\xf8"
"""Start of blocks of equal length, which libFLAC writes."""
_BLOCKS_BACK = 8
"""The last complete block is searched in this number of blocks from the end."""
_TAIL_BYTES_MAX = 1 << 20
"""Limit of the same search in bytes: eight blocks of eight channels of 24 bits have 0.8 MB."""
_HEADS_MAX = 1 << 15
"""Limit of candidates for a frame header; a tail of silence has at most 26 000."""
_BLOCK_BYTES_MIN = 10
"""Size of a frame header, a constant subframe, and the checksum."""

_CRC8, _CRC16 = 0x07, 0x8005
_BITS_CODES = {8: 1, 12: 2, 16: 4, 20: 5, 24: 6, 32: 7}
_RATE_CODES = (88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000)
"""Sample rates of the codes 1 to 11 [Hz]."""


def complete(fd: int, path: Path) -> int:
    """Cut the file after the last complete block, and write the length into the header.

    Parameters
    ----------
    fd : int
        Descriptor of a FLAC file of libsndfile, open for reading and writing.
    path : Path
        Path of the file, for errors.

    Returns
    -------
    n_samples : int
        Samples per channel in the file.

    Raises
    ------
    EmptyRecordingError
        If it ends before its first block could be complete.
    InputError
        If it is not such a file, or has no complete block.
    OSError
        If it cannot be read or changed.
    """
    sums, stream = _stream_info(fd, path)
    end, n_samples = _whole_blocks(fd, path, stream)
    if not n_samples:
        kind = EmptyRecordingError if _ends_in_first_block(fd, stream) else InputError
        raise kind(f"{path}: holds no samples")
    os.ftruncate(fd, end)
    sums = sums & ~TOTAL_MAX | n_samples & TOTAL_MAX
    write_at(fd, sums.to_bytes(8, "big") + bytes(16), _SUMS_AT)
    os.fsync(fd)
    return n_samples


def complete_samples(fd: int, path: Path) -> int:
    """Return the samples per channel up to the last complete block, 0 without one.

    Changes nothing; parameters and errors are those of ``complete``.
    """
    return _whole_blocks(fd, path, _stream_info(fd, path)[1])[1]


def _stream_info(fd: int, path: Path) -> tuple[int, "_Stream"]:
    """Return STREAMINFO's numbers, packed as in the file and unpacked."""
    start = os.pread(fd, _BEGIN_BYTES, 0)
    if len(start) < _BEGIN_BYTES or start[:4] != b"fLaC" or start[4] & 0x7F:
        raise InputError(f"{path}: not a FLAC file")
    sums = int.from_bytes(start[_SUMS_AT:_MD5_AT], "big")
    stream = _Stream(
        block_samples=int.from_bytes(start[_STREAMINFO_AT : _STREAMINFO_AT + 2], "big"),
        fs=sums >> 44,
        channels=(sums >> 41 & 7) + 1,
        bits=(sums >> 36 & 31) + 1,
    )
    if not (stream.fs and stream.block_samples):
        raise InputError(f"{path}: not a FLAC file of sound: its STREAMINFO is damaged")
    return sums, stream


def _whole_blocks(fd: int, path: Path, stream: "_Stream") -> tuple[int, int]:
    """Return the end and the samples of the complete blocks."""
    size = os.fstat(fd).st_size
    tail_bytes = min(_BLOCKS_BACK * stream.block_bytes_max, _TAIL_BYTES_MAX)
    tail_at = max(_BEGIN_BYTES, size - tail_bytes)
    tail = os.pread(fd, size - tail_at, tail_at)
    end, n_samples = _last_whole(tail, stream)
    if n_samples // stream.block_samples > (tail_at + end) // _BLOCK_BYTES_MIN:
        raise InputError(f"{path}: its last block claims {n_samples} samples: more than have room")
    return tail_at + end, n_samples


def _ends_in_first_block(fd: int, stream: "_Stream") -> bool:
    """Return whether a file has no more than its metadata and the bytes of one block."""
    at, is_last = _METADATA_AT, False
    while not is_last:
        head = os.pread(fd, _METADATA_HEAD_BYTES, at)
        if len(head) < _METADATA_HEAD_BYTES:
            return True
        is_last = bool(head[0] & 0x80)
        at += _METADATA_HEAD_BYTES + int.from_bytes(head[1:], "big")
    return os.fstat(fd).st_size <= at + min(stream.block_bytes_max, _TAIL_BYTES_MAX)


def stated_samples(fd: int) -> int:
    """Return the samples per channel that a header states; 0 if unknown. Raises OSError."""
    return int.from_bytes(os.pread(fd, _MD5_AT - _SUMS_AT, _SUMS_AT), "big") & TOTAL_MAX


@dataclass(frozen=True, slots=True)
class _Stream:
    """Parameters of all blocks, from the metadata block STREAMINFO.

    Attributes
    ----------
    block_samples : int
        Samples per channel of each block except the last.
    fs, channels, bits : int
        Sample rate [Hz], number of channels, and bits per sample.
    """

    block_samples: int
    fs: int
    channels: int
    bits: int

    @property
    def block_bytes_max(self) -> int:
        """Limit of a block's length: incompressible samples are stored verbatim."""
        return self.block_samples * self.channels * (self.bits + 1) // 8 + 64

    def has_form(self, code: int) -> bool:
        """Return whether the fourth byte of a frame header has these channels and bits."""
        assignment, bits_code = code >> 4, code >> 1 & 7
        is_stereo = self.channels == 2 and assignment in (8, 9, 10)
        return (assignment == self.channels - 1 or is_stereo) and bits_code in (
            0,
            _BITS_CODES.get(self.bits),
        )

    def has_rate(self, code: int, stated: int) -> bool:
        """Return whether a frame header's rate code, and the number after it, give this rate."""
        if code == 0:
            return True
        if code <= len(_RATE_CODES):
            return self.fs == _RATE_CODES[code - 1]
        return self.fs == stated * {12: 1000, 13: 1, 14: 10}[code]


def _last_whole(tail: bytes, stream: _Stream) -> tuple[int, int]:
    """Return the end of the last complete block and the number of samples up to it.

    Returns 0, 0 if there is none. A block is complete if its own checksum and that of its header
    are correct. Time and memory are proportional to the tail's length, for any content.
    """
    heads = _heads(tail, stream)
    sums = _aligned_crc16(tail)
    newest_start: dict[int, int] = {}
    begin = end = 0
    for at in (*heads, len(tail)):
        candidate = newest_start.get(int(sums[at]), at)
        if 0 < at - candidate <= stream.block_bytes_max:
            begin, end = candidate, at
        newest_start[int(sums[at])] = at
    if not end:
        return 0, 0
    number, n_samples = heads[begin]
    return end, number * stream.block_samples + n_samples


def _heads(tail: bytes, stream: _Stream) -> dict[int, tuple[int, int]]:
    """Return number and samples of the intact frame headers in a tail, by ascending offset.

    Only the last ``_HEADS_MAX`` candidates are checked.
    """
    octets = np.frombuffer(tail, np.uint8)
    is_head = (octets[:-3] == _SYNC[0]) & (octets[1:-2] == _SYNC[1])
    # Exclude forbidden or reserved values: block size 0, rate 15, the last bit.
    is_head &= (octets[2:-1] >= 16) & (octets[2:-1] & 15 < 15) & (octets[3:] & 1 == 0)
    places = np.flatnonzero(is_head)[-_HEADS_MAX:].tolist()
    found = ((at, _read_head(tail, at, stream)) for at in places)
    return {at: head for at, head in found if head}


def _aligned_crc16(data: bytes) -> NDArray[np.uint16]:
    """Compute the CRC-16 of every prefix, shifted so that equal values enclose complete blocks.

    With R(i) the CRC of the first i bytes, which is a polynomial over GF(2) modulo P, the bytes
    from a to b, including their checksum, are intact if R(b) = R(a) x^(8 (b - a)). P has a constant
    term, so x has an inverse, and the condition is S(a) = S(b) with S(i) = R(i) x^(-8 i). Byte i
    adds its value times x^(16 - 8 (i + 1)) to S.

    Parameters
    ----------
    data : bytes
        Data of length n.

    Returns
    -------
    sums : (n + 1,) uint16
        S of each prefix, starting with the empty one.
    """
    powers, octets = _powers_of_x(), np.frombuffer(data, np.uint8)
    exponents = (8 - 8 * np.arange(len(data), dtype=np.int64)) % len(powers)
    terms = np.zeros(len(data) + 1, np.uint16)
    for bit in range(8):
        is_set = (octets >> bit & 1).astype(bool)
        terms[1:][is_set] ^= powers[(exponents[is_set] + bit) % len(powers)]
    return np.bitwise_xor.accumulate(terms)


@lru_cache
def _powers_of_x() -> NDArray[np.uint16]:
    """Return x^0, x^1, ... modulo the CRC-16's polynomial until they repeat: 32767 powers."""
    powers: list[int] = []
    value = 1
    while value != 1 or not powers:
        powers.append(value)
        value = value << 1 ^ (_CRC16 | 0x10000 if value & 0x8000 else 0)
    return np.array(powers, np.uint16)


def _read_head(data: bytes, at: int, stream: _Stream) -> tuple[int, int] | None:
    """Read a block's number and its samples from its header; None if there is none here.

    References
    ----------
    .. [1] RFC 9639, section 9.1: the frame header.
    """
    if len(data) < at + 5 or not stream.has_form(data[at + 3]):
        return None
    size_code, rate_code = data[at + 2] >> 4, data[at + 2] & 15
    end, number = _read_number(data, at + 4)
    n_samples = stream.block_samples
    if size_code in (6, 7):
        size_end = end + size_code - 5
        n_samples = int.from_bytes(data[end:size_end], "big") + 1
        end = size_end
    rate_end = end + {12: 1, 13: 2, 14: 2}.get(rate_code, 0)
    stated_rate = int.from_bytes(data[end:rate_end], "big")
    if number < 0 or rate_end >= len(data) or not stream.has_rate(rate_code, stated_rate):
        return None
    return (number, n_samples) if _crc8(data[at:rate_end]) == data[rate_end] else None


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number in UTF-8 extended to 36 bits; return its end, and -1 if it is not valid."""
    first = data[at]
    n_ones = 8 - (first ^ 0xFF).bit_length()
    if n_ones == 0:
        return at + 1, first
    rest = data[at + 1 : at + n_ones]
    if n_ones == 1 or n_ones > 7 or any(byte >> 6 != 2 for byte in rest):
        return at + 1, -1
    number = first & (0x7F >> n_ones)
    for byte in rest:
        number = number << 6 | byte & 0x3F
    return at + n_ones, number


def _crc8(data: bytes) -> int:
    table, crc = _crc8_table(), 0
    for byte in data:
        crc = table[crc ^ byte]
    return crc


@lru_cache
def _crc8_table() -> bytes:
    def divided(value: int) -> int:
        for _ in range(8):
            value = value << 1 ^ (_CRC8 if value & 0x80 else 0)
        return value & 0xFF

    return bytes(divided(byte) for byte in range(256))
