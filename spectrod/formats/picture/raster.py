"""Mapping of pixels to columns, bins and bands."""

import numpy as np

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
