"""Percentiles of each value over the frames of a row, in bounded memory."""

from math import ceil
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.averaging import FLOOR, KEPT_FRAMES_MAX, exceeded_percent
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import FLOOR_DBFS, Float32Array, Float64Array
from spectrod.lib.errors import InternalError

CLASS_DB = 0.1
"""Width of a class [dB]: a percentile of counted frames is within half of it."""
LOWEST_DB = -300.0
"""Lower end of the classes re FS^2 or FS^2/Hz [dB]; the upper end is at 100 dB. Values below count
as zero, values above as infinite."""


class Percentile:
    """The value that a percentage of a row's frames exceeds, for each signal and each bin or band.

    Of n frames in ascending order it is number ``ceil((1 - percent / 100) n)``, counted from 1: a
    value that occurred, without interpolation. A noise floor is this value divided by its
    expectation for Gaussian noise of unit power.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows; ``spec.averaging`` is a percentile or a floor.

    Attributes
    ----------
    done : int
        Frames in the unfinished row.
    """

    def __init__(self, spec: SpectrumSpec) -> None:
        percent = exceeded_percent(spec.averaging)
        if percent is None:
            raise InternalError(f"averaging={spec.averaging!r}: no percentile")
        self._percent = percent
        self._is_floor = spec.averaging == FLOOR
        self._is_level = spec.scaling == "dbfs"
        self._row_shape = spec.n_signals, spec.n_computed
        self.done = 0
        n_values = spec.n_signals * spec.n_computed
        self._frames: _Frames = (
            _KeptFrames(spec.averaging_frames, n_values)
            if spec.averaging_frames <= KEPT_FRAMES_MAX
            else CountedFrames(spec, n_values)
        )

    def clear(self) -> None:
        """Restart the row."""
        if self.done:
            self._frames.clear()
        self.done = 0

    def add(self, frames: NDArray[Any]) -> None:
        """Add frames, (frames, signals, values) float32, of the row."""
        self._frames.add(frames.reshape(len(frames), -1))
        self.done += len(frames)

    def finish(self) -> Float32Array:
        """Return the row, (signals, values), and start the next one."""
        rank = max(1, ceil(round((100.0 - self._percent) / 100.0 * self.done, 6)))
        row = self._frames.ranked(rank).reshape(self._row_shape)
        if self._is_floor:
            row = self._without_bias(row, expected_rank(rank, self.done))
        self.clear()
        return row

    def _without_bias(self, row: Float32Array, expected: float) -> Float32Array:
        if not self._is_level:
            return np.asarray(row / np.float32(expected))
        raised = row - np.float32(10.0 * np.log10(expected))
        return np.asarray(np.where(row > FLOOR_DBFS, raised, row), np.float32)


def expected_rank(rank: int, n: int) -> float:
    """Return the expectation of the value of a rank among n powers of Gaussian noise of mean 1.

    The power of a bin has an exponential distribution. The sum of ``1 / (n - i)`` for i below the
    rank [1]_ is a difference of two harmonic numbers.

    References
    ----------
    .. [1] H. A. David and H. N. Nagaraja, "Order Statistics", 3rd ed., 2003, section 2.5.
    """
    return _harmonic(n) - _harmonic(n - rank)


_SUMMED_MAX = 64


def _harmonic(n: int) -> float:
    if n <= _SUMMED_MAX:
        return sum(1.0 / i for i in range(1, n + 1))
    series = 1.0 / (2 * n) - 1.0 / (12 * n**2) + 1.0 / (120 * n**4)  # of Euler and Maclaurin
    return float(np.log(n) + np.euler_gamma + series)


class _Frames(Protocol):
    """What a row's values are ranked in."""

    def add(self, frames: Float32Array) -> None:
        """Add (frames, values) float32."""

    def ranked(self, rank: int) -> Float32Array:
        """Return the values of a rank, counted from 1, shape (values,); once before ``clear``."""

    def clear(self) -> None:
        """Remove all frames."""


class _KeptFrames:
    """All frames of a row; ranks are exact. NaN counts as the greatest value."""

    def __init__(self, n_frames: int, n_values: int) -> None:
        self._kept = np.empty((n_frames, n_values), np.float32)
        self._n = 0

    def add(self, frames: Float32Array) -> None:
        self._kept[self._n : self._n + len(frames)] = frames
        self._n += len(frames)

    def ranked(self, rank: int) -> Float32Array:
        kept = self._kept[: self._n]
        kept.partition(rank - 1, axis=0)
        return np.array(kept[rank - 1])

    def clear(self) -> None:
        self._n = 0


class CountedFrames:
    """Histograms of a row's levels; the value of a rank is the middle of its class.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the values.
    n_values : int
        Values of a frame, of all signals; each takes 16 kB.
    """

    def __init__(self, spec: SpectrumSpec, n_values: int) -> None:
        self._is_level = spec.scaling == "dbfs"
        self._lowest_db = LOWEST_DB + 10.0 * np.log10(spec.scale.signal_factors.max())
        self._counts = np.zeros((KEPT_FRAMES_MAX, n_values), np.uint32)
        self._columns = np.arange(n_values)
        self._first, self._last = KEPT_FRAMES_MAX, -1  # classes with counts

    def add(self, frames: Float32Array) -> None:
        """Add (frames, values) float32, in the spec's unit."""
        counts, n_values = self._counts.reshape(-1), self._counts.shape[1]
        for frame in frames:
            classes = self._classes(frame)
            counts[classes * n_values + self._columns] += 1  # each index occurs once
            self._first = min(self._first, int(classes.min()))
            self._last = max(self._last, int(classes.max()))

    def _classes(self, frame: Float32Array) -> NDArray[np.int64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            levels = frame if self._is_level else 10.0 * np.log10(frame)
            numbers = np.floor((levels - np.float32(self._lowest_db)) * np.float32(1.0 / CLASS_DB))
        # The comparison puts NaN in the last class.
        top = KEPT_FRAMES_MAX - 1
        return np.where(numbers < top, np.maximum(numbers, 0), top).astype(np.int64)

    def ranked(self, rank: int) -> Float32Array:
        """Return the values of a rank, counted from 1, shape (values,)."""
        below = np.zeros(len(self._columns), np.int64)
        found = np.full(len(self._columns), self._first)
        for k in range(self._first, self._last + 1):
            below += self._counts[k]
            found += below < rank
        return self._middles(found).astype(np.float32)

    def _middles(self, classes: NDArray[np.int64]) -> Float64Array:
        levels = self._lowest_db + CLASS_DB * (classes + 0.5)
        levels[classes == 0] = -np.inf
        levels[classes == KEPT_FRAMES_MAX - 1] = np.inf
        values = np.maximum(levels, FLOOR_DBFS) if self._is_level else 10.0 ** (levels / 10.0)
        return np.asarray(values, np.float64)

    def clear(self) -> None:
        """Remove all frames."""
        self._counts[self._first : self._last + 1] = 0
        self._first, self._last = KEPT_FRAMES_MAX, -1
