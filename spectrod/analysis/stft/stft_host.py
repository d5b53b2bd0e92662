"""Spectra on the host, fast: by several threads, and in float32 where there is much to do."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from math import prod
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.parallel import in_parts
from spectrod.analysis.stft.stft_reference import (
    FLOAT64,
    Arithmetic,
    Chunk,
    ReferenceStft,
    Values,
)
from spectrod.analysis.stft.stft_stage import StftSpec, StftTables

MANY_POINTS = 1 << 25
"""Points of transforms after which a stream continues in float32: about 0.8 s of NumPy's."""
MANY_POINTS_AT_ONCE = 1 << 23
"""Points of a plan's largest batch from which on all its frames are in float32: about 0.2 s of
NumPy's transforms, as long as the import of ``scipy.fft`` takes."""

_CHUNK_VALUES = 1 << 19
"""Values of frames in one step: 2 MiB of float32. With fewer of them threads wait for Python's lock
most of the time."""
_GROUP_CHUNKS = 8
"""Chunks whose values are in memory at once where they are averaged."""


class HostStft(ReferenceStft):
    """Frames to rows of results, as ``ReferenceStft``, for signals of any length.

    ``scipy.fft``, where it is installed, computes in float32: NumPy's transforms compute in float64
    whatever they are given, and take 2 to 3 times as long. Which of the two computes a frame
    depends on its number alone, so that rows do not depend on how a stream is cut.

    Parameters
    ----------
    spec, tables
        As of ``ReferenceStft``.
    max_frames : int, optional
        Frames of the largest batch, >= 1; None to compute in float64 always.
    """

    def __init__(self, spec: StftSpec, tables: StftTables, max_frames: int | None) -> None:
        super().__init__(spec, tables, chunk_values=_CHUNK_VALUES)
        self._max_frames = max_frames
        self._first = self._n_frames = self._first_float32 = 0
        self._kept = local()

    def _chunks(self, n_frames: int, frame_values: int) -> Iterator[Chunk]:
        self._first, self._n_frames = self._n_frames, self._n_frames + n_frames
        self._first_float32 = self._float32_from(frame_values)
        n_float64 = min(max(0, self._first_float32 - self._first), n_frames)
        yield from super()._chunks(n_float64, frame_values)
        for start, stop in super()._chunks(n_frames - n_float64, frame_values):
            yield n_float64 + start, n_float64 + stop

    def _float32_from(self, frame_points: int) -> int:
        """Return the number of the first frame in float32."""
        if self._max_frames is None:
            return sys.maxsize
        if self._max_frames * frame_points >= MANY_POINTS_AT_ONCE:
            return 0
        return -(-MANY_POINTS // frame_points)

    def _write(
        self, out: Values, chunks: Sequence[Chunk], values: Callable[[Chunk, Values], Values]
    ) -> None:
        def write(part: slice) -> None:
            super(HostStft, self)._write(out, chunks[part], values)

        in_parts(write, len(chunks), _n_bytes(chunks))

    def _in_order(
        self, chunks: Sequence[Chunk], values: Callable[[Chunk], Values]
    ) -> Iterator[Values]:
        # One group after the other, so that memory is bounded.
        for first in range(0, len(chunks), _GROUP_CHUNKS):
            group = chunks[first : first + _GROUP_CHUNKS]

            def some(part: slice, group: Sequence[Chunk] = group) -> list[Values]:
                with np.errstate(all="ignore"):
                    return [values(chunk) for chunk in group[part]]

            for found in in_parts(some, len(group), _n_bytes(group)):
                yield from found

    def _memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Values:
        # Kept by each thread: memory that one gives back to the system makes all others wait.
        n_bytes = prod(shape) * dtype.itemsize
        kept = getattr(self._kept, "memory", None)
        if kept is None or kept.nbytes < n_bytes:
            kept = self._kept.memory = np.empty(n_bytes, np.uint8)
        return kept[:n_bytes].view(dtype).reshape(shape)

    def _chunk(
        self,
        samples: NDArray[Any],
        begins: NDArray[np.int64],
        hop: int | None,
        chunk: Chunk,
        room: Values | None,
    ) -> Values:
        is_float64 = self._first + chunk[0] < self._first_float32
        by = FLOAT64 if is_float64 else _float32() or FLOAT64
        return self._values_by(by, samples, begins[slice(*chunk)], hop, room)


def _n_bytes(chunks: Sequence[Chunk]) -> int:
    return len(chunks) * _CHUNK_VALUES * np.dtype(np.float32).itemsize


@cache
def _float32() -> Arithmetic | None:
    """Return transforms in float32, None if no library is installed that has them."""
    try:
        fft = import_module("scipy.fft")
    except ImportError:
        return None
    return Arithmetic(np.float32, fft.rfft, fft.fft)
