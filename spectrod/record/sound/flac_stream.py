"""FLAC files that ended before their header was complete: how long they are, and their last block.

A block that is not whole is cut; the length is written into the header, so that every player knows
it. The checksum over all samples, which libsndfile leaves open until the end, stays open.
"""

import os
from functools import lru_cache
from pathlib import Path

from spectrod.errors import InputError
from spectrod.record.sound.fileio import storage_error, write_at

_STREAMINFO_AT, _SUMS_AT, _MD5_AT = 8, 18, 26
TOTAL_MAX = (1 << 36) - 1
"""Samples a channel that a header can state."""

_SYNC = b"\xff\xf8"
"""Of blocks of equal length, which libFLAC writes."""
_BLOCKS_BACK = 8
"""Within so many blocks from the end the last whole one is found."""
_CRC8, _CRC16 = 0x07, 0x8005


def complete(path: Path) -> int:
    """Cut what follows the last whole block, and write the length into the header.

    Parameters
    ----------
    path : Path
        A FLAC file as libsndfile writes it.

    Returns
    -------
    n_samples : int
        Samples a channel that it holds.

    Raises
    ------
    InputError
        If it is no such file, or holds no whole block.
    StorageError
        If it cannot be read or changed.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return complete_open(fd, path)
        finally:
            os.close(fd)
    except OSError as error:
        raise storage_error(path, error) from error


def stated_samples(fd: int) -> int:
    """Read how many samples a channel a header states; 0 for an unknown length. Raises OSError."""
    return int.from_bytes(os.pread(fd, _MD5_AT - _SUMS_AT, _SUMS_AT), "big") & TOTAL_MAX


def complete_open(fd: int, path: Path) -> int:
    """Do the same to an open file; raises OSError in place of StorageError."""
    start = os.pread(fd, _MD5_AT + 16, 0)
    if len(start) < _MD5_AT + 16 or start[:4] != b"fLaC" or start[4] & 0x7F:
        raise InputError(f"{path}: not a FLAC file")
    block_samples = int.from_bytes(start[_STREAMINFO_AT : _STREAMINFO_AT + 2], "big")
    sums = int.from_bytes(start[_SUMS_AT:_MD5_AT], "big")
    channels, bits = (sums >> 41 & 7) + 1, (sums >> 36 & 31) + 1
    # A block that does not get smaller by compression is stored as it is.
    block_bytes_max = block_samples * channels * (bits + 1) // 8 + 64
    size = os.fstat(fd).st_size
    tail_at = max(_MD5_AT + 16, size - _BLOCKS_BACK * block_bytes_max)
    tail = os.pread(fd, size - tail_at, tail_at)
    end, n_samples = _last_whole(tail, block_samples, block_bytes_max)
    if not n_samples:
        raise InputError(f"{path}: holds no samples")
    os.ftruncate(fd, tail_at + end)
    sums = sums & ~TOTAL_MAX | n_samples & TOTAL_MAX
    write_at(fd, sums.to_bytes(8, "big") + bytes(16), _SUMS_AT)
    os.fsync(fd)
    return n_samples


def _last_whole(tail: bytes, block_samples: int, block_bytes_max: int) -> tuple[int, int]:
    """Find where the last whole block ends and how many samples the file holds up to there.

    0, 0 if there is none. A block is whole if the checksum of its header and its own are right.
    """
    begins, at = [], tail.rfind(_SYNC)
    while at >= 0:
        begins.append(at)
        at = tail.rfind(_SYNC, 0, at + 1)
    heads = [(at, head) for at in begins if (head := _read_head(tail, at, block_samples))]
    for end in (len(tail), *(at for at, _ in heads)):
        for at, (number, n_samples) in heads:
            if at >= end:
                continue
            if end - at > block_bytes_max:
                break
            if _crc16(tail[at : end - 2]) == int.from_bytes(tail[end - 2 : end], "big"):
                return end, number * block_samples + n_samples
    return 0, 0


def _read_head(data: bytes, at: int, block_samples: int) -> tuple[int, int] | None:
    """Read a block's number and its samples from its header; None if there is none here.

    References
    ----------
    .. [1] RFC 9639, section 9.1: the frame header.
    """
    if len(data) < at + 5:
        return None
    size_code, rate_code = data[at + 2] >> 4, data[at + 2] & 15
    number_end, number = _read_number(data, at + 4)
    end = number_end
    n_samples = block_samples
    if size_code in (6, 7):
        n_bytes = size_code - 5
        n_samples = int.from_bytes(data[end : end + n_bytes], "big") + 1
        end += n_bytes
    end += {12: 1, 13: 2, 14: 2}.get(rate_code, 0)
    if number < 0 or end >= len(data) or _crc8(data[at:end]) != data[end]:
        return None
    return number, n_samples


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number coded as UTF-8 extended to 36 bits; where it ends, and -1 if it is none."""
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
    table, crc = _table(8, _CRC8), 0
    for byte in data:
        crc = table[crc ^ byte]
    return crc


def _crc16(data: bytes) -> int:
    table, crc = _table(16, _CRC16), 0
    for byte in data:
        crc = (crc << 8 & 0xFF00) ^ table[crc >> 8 ^ byte]
    return crc


@lru_cache
def _table(bits: int, polynomial: int) -> tuple[int, ...]:
    top, mask = 1 << (bits - 1), (1 << bits) - 1

    def divided(value: int) -> int:
        for _ in range(8):
            value = value << 1 ^ (polynomial if value & top else 0)
        return value & mask

    return tuple(divided(byte << (bits - 8)) for byte in range(256))
