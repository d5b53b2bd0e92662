"""Tables of ``stft_simd.cl``, in the order in which it reads them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.stft.stft_stage import BandRows, StftSpec, StftTables
from spectrod.dsp.units import Float64Array
from spectrod.fft.simd_shape import SimdShape
from spectrod.fft.simd_tables import block_starts, column_twiddles, planes, row_twiddles
from spectrod.fft.twiddles import unit_roots


def simd_tables(spec: StftSpec, tables: StftTables, shape: SimdShape) -> Iterator[NDArray[Any]]:
    """Tables in the order of the kernel's arguments; one number for those not read."""
    none = np.zeros(1)
    twiddles = row_twiddles(shape.radices)
    floats = (
        twiddles.view(np.float64) if len(twiddles) else none,
        column_twiddles(shape.length, shape.lanes) if shape.columns else none,
        none if spec.iq else _real_twiddles(shape),
        window_table(spec, tables.window, shape),
        none if tables.weights is None else tables.weights,
    )
    yield from (table.astype(np.float32) for table in floats)
    if tables.bands is None:
        yield np.zeros(2, np.int32)
        yield np.zeros(1, np.float32)
    else:
        yield np.stack([tables.bands.first, tables.bands.count], axis=1).astype(np.int32)
        yield band_weights(tables.bands, shape).astype(np.float32)


def window_table(spec: StftSpec, window: Float64Array, shape: SimdShape) -> Float64Array:
    """Arrange what complex values are multiplied by.

    Returns
    -------
    table : (vectors, 2, lanes) float64
        Factors of the real and of the imaginary parts of the values of each vector that is loaded,
        in the order of loading: up the frame, the last vector not past its end, or, where columns
        are not staged, column by column of a block of rows. Integers' full scale, a half for the
        twice that real transforms make, and the alternating sign that puts the middle of a
        two-sided spectrum where it belongs, are in them.
    """
    padded = np.zeros(spec.nfft)
    padded[: spec.win_length] = window / spec.loaded_full_scale
    if spec.iq:
        if spec.nfft % 2 == 0:
            padded[1::2] *= -1.0
        values = np.stack([padded, padded])
    else:
        values = padded.reshape(-1, 2).T / 2.0
    places = _loads(shape)[:, None] + np.arange(shape.lanes)
    return np.moveaxis(values[:, places], 0, 1)


def _loads(shape: SimdShape) -> NDArray[np.int64]:
    """First value of each vector, in the order of loading."""
    if not shape.columns or shape.staged:
        return block_starts(shape.length, shape.lanes)
    rows = shape.length // shape.lanes
    columns = np.arange(shape.lanes, dtype=np.int64) * rows
    return (block_starts(rows, shape.lanes)[:, None] + columns).ravel()


def _real_twiddles(shape: SimdShape) -> Float64Array:
    """Factors that join the halves of a real frame, as the two layouts say."""
    if not shape.columns:
        return unit_roots(np.arange(shape.length), 2 * shape.length).view(np.float64)
    rows = np.arange(shape.radices[-1]) * shape.steps
    of_pairs = np.arange((shape.steps + 1) // 2)[:, None] + rows
    bins = of_pairs.ravel()[:, None] * shape.lanes + np.arange(shape.lanes)
    if shape.steps % 2 == 0:
        middle = (shape.steps // 2 + rows) * shape.lanes
        bins = np.concatenate([bins, np.repeat(middle[:, None], shape.lanes, axis=1)])
    return planes(unit_roots(bins, 2 * shape.length))


def band_weights(bands: BandRows, shape: SimdShape) -> Float64Array:
    """Weights of one band after the other, with zeros up to whole vectors where columns."""
    if not shape.columns:
        return bands.weights
    sizes = -(-bands.count // shape.lanes) * shape.lanes
    starts = np.cumsum(sizes) - sizes
    offsets = np.cumsum(bands.count) - bands.count
    table = np.zeros(sizes.sum())
    table[np.arange(len(bands.weights)) + np.repeat(starts - offsets, bands.count)] = bands.weights
    return table
