"""Completion of FLAC files whose header was not completed: their length, and their last block.

An incomplete block is cut; the length is written into the header for players. The checksum over
all samples, which libsndfile writes only at the end, stays empty.
"""

import os
from pathlib import Path

from spectrod.formats.fileio import write_at
from spectrod.formats.sound.flac_frames import FrameForm, last_whole
from spectrod.lib.errors import EmptyRecordingError, InputError

_METADATA_AT, _METADATA_HEAD_BYTES = 4, 4
_STREAMINFO_AT, _SUMS_AT, _MD5_AT = 8, 18, 26
_BEGIN_BYTES = _MD5_AT + 16
TOTAL_MAX = (1 << 36) - 1
"""Largest number of samples per channel that a header can state."""

_BLOCKS_BACK = 8
"""The last complete block is searched in this number of blocks from the end."""
_TAIL_BYTES_MAX = 1 << 20
"""Limit of the same search in bytes: eight blocks of eight channels of 24 bits have 0.8 MB."""
_BLOCK_BYTES_MIN = 10
"""Size of a frame header, a constant subframe, and the checksum."""


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


def _stream_info(fd: int, path: Path) -> tuple[int, FrameForm]:
    """Return STREAMINFO's numbers, packed as in the file and unpacked."""
    start = os.pread(fd, _BEGIN_BYTES, 0)
    if len(start) < _BEGIN_BYTES or start[:4] != b"fLaC" or start[4] & 0x7F:
        raise InputError(f"{path}: not a FLAC file")
    sums = int.from_bytes(start[_SUMS_AT:_MD5_AT], "big")
    stream = FrameForm(
        block_samples=int.from_bytes(start[_STREAMINFO_AT : _STREAMINFO_AT + 2], "big"),
        fs=sums >> 44,
        channels=(sums >> 41 & 7) + 1,
        bits=(sums >> 36 & 31) + 1,
    )
    if not (stream.fs and stream.block_samples):
        raise InputError(f"{path}: not a FLAC file of sound: its STREAMINFO is damaged")
    return sums, stream


def _whole_blocks(fd: int, path: Path, stream: FrameForm) -> tuple[int, int]:
    """Return the end and the samples of the complete blocks."""
    size = os.fstat(fd).st_size
    tail_bytes = min(_BLOCKS_BACK * stream.block_bytes_max, _TAIL_BYTES_MAX)
    tail_at = max(_BEGIN_BYTES, size - tail_bytes)
    tail = os.pread(fd, size - tail_at, tail_at)
    end, n_samples = last_whole(tail, stream)
    if n_samples // stream.block_samples > (tail_at + end) // _BLOCK_BYTES_MIN:
        raise InputError(f"{path}: its last block claims {n_samples} samples: more than have room")
    return tail_at + end, n_samples


def _ends_in_first_block(fd: int, stream: FrameForm) -> bool:
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
