"""The level of every pixel of every plot."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.bands import Bands
from spectrod.dsp.constant_q import is_constant_q
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import FULL_SCALE_SINE_FS2, Float32Array, Float64Array, Int64Array
from spectrod.formats.picture.axes import FrequencyAxis
from spectrod.formats.picture.painter import Painter
from spectrod.formats.picture.peak_entries import PeakLevels
from spectrod.formats.picture.pooling import ColumnPool
from spectrod.formats.picture.raster import (
    PixelTimes,
    band_spans,
    bin_spans,
    column_spans,
)

_PIECE_VALUES = 1 << 18
"""Values that are processed at once: some buffers of 1 MiB instead of spectra of all columns."""


def pixel_values(
    pool: ColumnPool,
    spec: SpectrumSpec,
    axis: FrequencyAxis,
    size: tuple[int, int],
    painter: Painter,
    *,
    times: PixelTimes,
) -> tuple[Float32Array, PeakLevels | None]:
    """Return the level of every pixel, or the power if that is quicker to colour.

    A pixel column combines its rows by mean, maximum or minimum power, as the pool does; a column
    narrower than a row has the nearest row. A pixel row has the largest of the values that it
    touches.

    Parameters
    ----------
    pool : ColumnPool
        Pool with at least one row.
    spec : SpectrumSpec
        Spec of its rows, with their averaging; scaling "spectrum" or "density".
    axis : FrequencyAxis
        Axis of frequencies within the spec's range.
    size : (int, int)
        Width and height of each plot [px].
    painter : Painter
        Computes the pixels.
    times : PixelTimes
        Times of the columns.

    Returns
    -------
    levels : (signals, rows, columns) float32
        Levels [``spec.scale.level_unit``], lowest frequency first; NaN where samples are missing
        and in rows that touch no band.
    """
    width, height = size
    begin, n_samples, shown = times
    edges = begin - pool.first_sample + np.linspace(0.0, n_samples, width + 1)
    slots = _slots(pool, spec, edges)
    columns = column_spans(slots, pool.n_slots, pool.rows_per_column)
    centres, end = 0.5 * (edges[:-1] + edges[1:]), float(pool.end_sample - pool.first_sample)
    if is_constant_q(spec.bands):
        # The frames are much longer than most filters: no row stands for the first half of one.
        centres, end = 0.5 * (slots[:-1] + slots[1:]), float(pool.n_slots)
    is_beyond = (centres < 0.0) | (centres > end)
    if shown is not None:
        columns = shown.in_slots(columns, pool.first_sample, pool.hop, pool.rows_per_column)
        is_beyond = (is_beyond & ~shown.is_shown) | shown.is_missing
    lo, hi = columns
    spans = value_spans(spec, axis.edges(height))
    # 0 dB is a full-scale sine, or a complex tone of amplitude 1, or 1 FS^2/Hz, or the reference
    # of the calibration.
    is_density = spec.scaling == "density" and spec.scale.calibrated is None
    full_scale = FULL_SCALE_SINE_FS2 if is_density else spec.scale.reference_power
    offset_db = 10.0 * np.log10(full_scale) if is_density else 0.0
    host, scale = painter.host, None
    if host is not None:
        scale = PeakLevels(float(offset_db))
    values = np.empty((spec.n_signals, height, width), np.float32)
    for signal in range(spec.n_signals):
        for rows in _few_values_each(spans, max(1, _PIECE_VALUES // width)):
            first, stop = int(spans[0, rows.start]), int(spans[1, rows.stop - 1])
            power = pool.power(signal, lo, hi, slice(first, stop))
            part = spans[:, rows] - first
            values[signal, rows] = (
                painter.levels(np.ascontiguousarray(power), part, full_scale, offset_db)
                if host is None
                else host.peaks(power, part, full_scale)
            )
    if is_beyond.any():
        values[:, :, is_beyond] = np.nan
    if spec.band_table is not None:
        values[:, _without_band(spec.band_table, axis.edges(height))] = np.nan
    return values, scale


def _without_band(bands: Bands, edges_hz: Float64Array) -> NDArray[np.bool_]:
    """Return which rows of pixels lie below the first band or above the last, shape (rows,)."""
    is_without: NDArray[np.bool_] = edges_hz[1:] <= bands.lower[0]
    is_without |= edges_hz[:-1] >= bands.upper[-1]
    return is_without


def value_spans(spec: SpectrumSpec, edges_hz: Float64Array) -> Int64Array:
    """Return the values of each row of pixels like ``bin_spans``, also for bands."""
    bands = spec.band_table
    if bands is not None:
        return band_spans(edges_hz, bands.lower, bands.upper)
    below_centre_hz = spec.nfft // 2 * spec.delta_f if spec.iq else 0.0
    from_first_hz = edges_hz - spec.center_frequency_hz + below_centre_hz
    return bin_spans(from_first_hz, spec.delta_f, spec.n_bins)


def _slots(pool: ColumnPool, spec: SpectrumSpec, samples: Float64Array) -> Float64Array:
    """Return the slot coordinates of samples, counted from the first row's first sample.

    A row represents one row interval around the centre of its frames. So slot s begins after the
    row's first sample by half the difference between the row's span and the interval.
    """
    return (samples - (spec.row_span - pool.hop) / 2.0) / pool.hop


def _few_values_each(spans: Int64Array, most: int) -> Iterator[slice]:
    """Split the rows of a picture into groups with few values; a single row may have more."""
    (first, stop), begin = spans, 0
    while begin < len(first):
        end = max(begin + 1, int(np.searchsorted(stop, first[begin] + most, side="right")))
        yield slice(begin, end)
        begin = end
