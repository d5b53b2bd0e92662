"""AudioMoth's recordings with a trigger (T.WAV), from which it left out what did not reach it.

In place of a stretch that it left out, AudioMoth writes one block of 512 bytes at a position that
is a multiple of that: 32 samples of +1 or -1 are the bits, the lowest first, of the number of
blocks for which it stands; the others are 0. Within the first and the last 32 KiB of the file it
writes zeros instead [1]_.

References
----------
.. [1] Open Acoustic Devices, AudioMoth-Utils: ``expand``, which AudioMoth's configuration app uses.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from spectrod.lib.errors import InputError
from spectrod.source.files.container import FileBytes, extent_of, read_header
from spectrod.source.files.container.comment import comment_of
from spectrod.source.opening import open_binary
from spectrod.source.store.urls import is_url

Int64Array = NDArray[np.int64]

YEARS_MAX = 1
"""Longest recording with what was left out: a number of blocks may be anything."""
_YEAR_S = 365.25 * 86400
_TRIGGERED = re.compile(r"\bAudioMoth\b.*\b(?:threshold was|trigger)\b", re.DOTALL)
"""In the comment of a recording with an amplitude or a frequency trigger, of any firmware."""
_COMMENT_MAX = 2048
"""Length of a comment that is looked at; AudioMoth's is shorter than 400 characters."""
_BLOCK_BYTES, _BLOCK_SAMPLES, _BITS = 512, 256, 32
_EDGE_BYTES = 1 << 15
_READ_BLOCKS = 1 << 11


@dataclass(frozen=True, slots=True)
class Stretches:
    """The stretches of a recording that were kept, in order.

    Attributes
    ----------
    first : (n,) int64
        Index of the first sample of each in the recording.
    at : (n,) int64
        Index of the same sample in the file.
    length : (n,) int64
        Samples of each.
    n_stored : int
        Samples in the file, those that stand for others included.
    n_samples : int
        Samples of the recording.
    """

    first: Int64Array
    at: Int64Array
    length: Int64Array
    n_stored: int
    n_samples: int

    def pieces(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield index, index in the file, and length of what was kept of [begin, end)."""
        k = int(np.searchsorted(self.first + self.length, begin, side="right"))
        for first, at, length in zip(
            self.first[k:].tolist(), self.at[k:].tolist(), self.length[k:].tolist(), strict=True
        ):
            skipped = max(0, begin - first)
            n = min(first + length, end) - first - skipped
            if n <= 0:
                return
            yield first + skipped, at + skipped, n


def is_triggered(comment: str) -> bool:
    """Return whether a comment is that of a recording of AudioMoth with a trigger."""
    return _TRIGGERED.search(comment[:_COMMENT_MAX]) is not None


def find_stretches(path: str, comment: str | None = None) -> Stretches | None:
    """Find what AudioMoth kept of a recording.

    Parameters
    ----------
    path : str
        Any file.
    comment : str, optional
        Its comment, if it is known.

    Returns
    -------
    stretches : Stretches or None
        None unless the comment is that of a recording with a trigger, and something was left out.

    Raises
    ------
    InputError
        If the recording lasts more than ``YEARS_MAX``, or cannot be read.
    """
    if comment is not None and not is_triggered(comment):
        return None
    try:
        is_file = is_url(path) or os.path.isfile(path)  # noqa: PTH113 - "\0" is none
        return _find(path) if is_file else None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def _find(path: str) -> Stretches | None:
    with open_binary(path) as file:
        source = FileBytes(file)
        if not is_triggered(comment_of(source)):
            return None
        header = read_header(path, source)
        if not (header and header.coding and header.coding.dtype == "<i2" and header.channels == 1):
            return None
        begin = header.stated.begin
        found = _scan(file, begin, begin + extent_of(source, header.stated).size // 2 * 2)
    if found.n_samples > YEARS_MAX * _YEAR_S * header.fs:
        years = found.n_samples / header.fs / _YEAR_S
        raise InputError(f"{path}: lasts {years:.3g} years: must be at most {YEARS_MAX}")
    if not len(found.length):
        raise InputError(f"{path}: holds no samples: its recorder left all of them out")
    is_complete = int(found.length.sum()) == found.n_stored
    return None if is_complete else found


def _scan(file: BinaryIO, begin: int, end: int) -> Stretches:
    """Find the stretches in the samples of a file, [begin, end) bytes."""
    first, at, length = [], [], []
    n_samples = n_stored = 0
    place = begin
    while place < end:
        size = min(_READ_BLOCKS * _BLOCK_BYTES - place % _BLOCK_BYTES, end - place)
        file.seek(place)
        samples = np.frombuffer(_read_exactly(file, size), "<i2")
        if not len(samples):
            break
        stored, stands_for, is_kept = _blocks(samples, place, end)
        ends = n_samples + np.cumsum(stands_for)
        ends_stored = n_stored + np.cumsum(stored)
        edges = np.flatnonzero(np.diff(is_kept, prepend=False, append=False))
        starts, stops = edges[::2], edges[1::2] - 1
        first.append((ends - stands_for)[starts])
        at.append((ends_stored - stored)[starts])
        length.append(ends_stored[stops] - at[-1])
        n_samples, n_stored = int(ends[-1]), int(ends_stored[-1])
        place += 2 * len(samples)
    return Stretches(_joined(first), _joined(at), _joined(length), n_stored, n_samples)


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    parts = []
    while size and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    data = b"".join(parts)
    return data[: len(data) // 2 * 2]


def _joined(parts: list[Int64Array]) -> Int64Array:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _blocks(
    samples: NDArray[np.int16], place: int, end: int
) -> tuple[Int64Array, Int64Array, NDArray[np.bool_]]:
    """Return of each block its samples, those for which it stands, and whether it was kept.

    The first and the last block of a file may be shorter.
    """
    n_before = min(-place % _BLOCK_BYTES // 2, len(samples))
    n_blocks, n_after = divmod(len(samples) - n_before, _BLOCK_SAMPLES)
    blocks = samples[n_before : len(samples) - n_after].reshape(n_blocks, _BLOCK_SAMPLES)
    bits = blocks[:, :_BITS]
    numbers = (bits == 1) @ (1 << np.arange(_BITS, dtype=np.int64))
    is_number = (np.abs(bits) == 1).all(axis=1) & ~blocks[:, _BITS:].any(axis=1) & (numbers > 0)
    offsets = place + 2 * n_before + _BLOCK_BYTES * np.arange(n_blocks)
    is_edge = (offsets < _EDGE_BYTES) | (end - offsets < _EDGE_BYTES)
    is_left_out = is_number | (is_edge & ~blocks.any(axis=1))
    before, after = (n_before,) * (n_before > 0), (n_after,) * (n_after > 0)
    whole = np.full(n_blocks, _BLOCK_SAMPLES, np.int64)
    stands_for = np.where(is_number, _BLOCK_SAMPLES * numbers, whole)
    is_kept = (
        [bool(samples[:n_before].any())] * len(before),
        ~is_left_out,
        [bool(samples[-n_after:].any())] * len(after),
    )
    return (
        np.concatenate((before, whole, after)).astype(np.int64),
        np.concatenate((before, stands_for, after)).astype(np.int64),
        np.concatenate(is_kept).astype(bool),
    )
