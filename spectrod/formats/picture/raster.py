"""Mapping of pixels to columns, bins and bands."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array, Int64Array

_FUZZ = 1e-6
"""Rounding tolerance where a row's edge coincides with that of a bin [bins]."""


def column_spans(edges: Float64Array, n_slots: int, rows_per_column: int) -> Float64Array:
    """Return the columns of each pixel.

    A pixel at least one column wide has exactly its area; a narrower one has the column under its
    centre. Beyond both ends of the slots, the first and the last column are continued.

    Parameters
    ----------
    edges : (pixels + 1,) float64
        Edges of the pixels, ascending [slots].
    n_slots : int
        Number of slots, >= 1.
    rows_per_column : int
        Slots in a column, >= 1.

    Returns
    -------
    spans : (2, pixels) float64
        Lower and upper limit of each pixel [columns].
    """
    end = n_slots / rows_per_column
    limits = np.clip(edges / rows_per_column, 0.0, end)
    lo, hi = limits[:-1], limits[1:]
    n_columns = np.ceil(end)
    nearest = np.minimum(np.floor(0.5 * (lo + hi)), n_columns - 1.0)
    is_narrow = hi - lo < 1.0
    return np.stack([np.where(is_narrow, nearest, lo), np.where(is_narrow, nearest + 1.0, hi)])


@dataclass(frozen=True, slots=True, eq=False)
class ShownRecordings:
    """Recordings of a schedule that pixels stand for, see ``DutyCycle.recording_of``.

    Attributes
    ----------
    is_shown : (pixels,) bool
        Whether a pixel stands for a recording, not for its own time.
    is_missing : (pixels,) bool
        Whether a pixel stands for a recording that is missing.
    begin, end : (shown,) float64
        Absolute index of the recording's first sample, and of the one after its last, of each of
        these pixels.
    last_row : (shown,) float64
        Absolute index of the first sample of the recording's last row.
    """

    is_shown: NDArray[np.bool_]
    is_missing: NDArray[np.bool_]
    begin: Float64Array
    end: Float64Array
    last_row: Float64Array

    def in_columns(self, spans: Float64Array, origin: float, column: float) -> Float64Array:
        """Return spans of pixels like ``column_spans``, with whole recordings where they are shown.

        A recording has all columns that it touches: they have no others, because pauses are longer.

        Parameters
        ----------
        spans : (2, pixels) float64
            Lower and upper limit of each pixel's own time [columns].
        origin : float
            Sample at which the first column begins.
        column : float
            Samples of a column.
        """
        limits = (np.stack([self.begin, self.end]) - origin) / column
        return self._within(spans, np.floor(limits[0] + _FUZZ), np.ceil(limits[1] - _FUZZ))

    def in_slots(
        self, spans: Float64Array, first_row: int, row_samples: float, rows_per_column: int
    ) -> Float64Array:
        """Return spans like ``in_columns``, with all rows of recordings where they are shown.

        Rows lie in slots that may begin up to half a row before them or after them, see
        ``PoolBuffer``; a row may be much longer than the sound of its recording.

        Parameters
        ----------
        spans : (2, pixels) float64
            Lower and upper limit of each pixel's own time [columns].
        first_row : int
            Sample at which the row of the first slot begins.
        row_samples : float
            From one slot to the next.
        rows_per_column : int
            Slots in a column.
        """
        since = np.stack([self.begin, self.last_row]) - first_row
        lo, hi = (since + row_samples // 2) // row_samples // rows_per_column
        return self._within(spans, lo, hi + 1.0)

    def _within(self, spans: Float64Array, lo: Float64Array, hi: Float64Array) -> Float64Array:
        last = np.ceil(spans.max()) - 1.0
        lo = np.clip(lo, 0.0, last)
        spans = spans.copy()
        spans[:, self.is_shown] = lo, np.clip(hi, lo + 1.0, last + 1.0)
        return spans


class PixelTimes(NamedTuple):
    """Times of a picture's pixels along the time axis."""

    begin: int
    """Absolute index of the first pixel's first sample."""
    n_samples: int
    """Samples of all pixels."""
    shown: ShownRecordings | None = None
    """Pixels that stand for recordings of a schedule, not for their own time."""

    def are_missing(self, width: int) -> NDArray[np.bool_]:
        """Return whether pixels stand for a recording that is missing, shape (width,)."""
        return np.zeros(width, np.bool_) if self.shown is None else self.shown.is_missing


def bin_spans(edges_hz: Float64Array, delta_f: float, n_bins: int) -> Int64Array:
    """Return the bins of each row of pixels.

    The cell of a bin extends half a bin width to both sides of its centre. A row has every bin
    whose cell it touches: so the row of a tone's frequency always has the nearest bin, and no bin
    in range is left out.

    Parameters
    ----------
    edges_hz : (rows + 1,) float64
        Edges of the rows, ascending, from >= 0 to <= the Nyquist frequency [Hz].
    delta_f : float
        Bin width [Hz].
    n_bins : int
        Bins from 0 Hz to the Nyquist frequency.

    Returns
    -------
    spans : (2, rows) int64
        First bin of each row, and the one after its last.
    """
    edges = edges_hz / delta_f
    first = np.floor(edges[:-1] + 0.5 + _FUZZ)
    stop = np.ceil(edges[1:] + 0.5 - _FUZZ)
    last_bin = n_bins - 1
    first = np.clip(first, 0, last_bin)
    return np.stack([first, np.clip(stop, first + 1, n_bins)]).astype(np.int64)


def band_spans(edges_hz: Float64Array, lower: Float64Array, upper: Float64Array) -> Int64Array:
    """Return the bands of each row of pixels: all that it touches, or the nearest one.

    Parameters
    ----------
    edges_hz : (rows + 1,) float64
        Edges of the rows, ascending [Hz].
    lower, upper : (bands,) float64
        Limits of each band, ascending [Hz].

    Returns
    -------
    spans : (2, rows) int64
        First band of each row, and the one after its last.
    """
    first = np.searchsorted(upper, edges_hz[:-1] * (1.0 + _FUZZ), side="right")
    stop = np.searchsorted(lower, edges_hz[1:] * (1.0 - _FUZZ), side="left")
    first = np.minimum(first, len(lower) - 1)
    return np.stack([first, np.clip(stop, first + 1, len(lower))]).astype(np.int64)
