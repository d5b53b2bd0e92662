"""Data of strips along a plot: least and greatest samples, RMS and peak; bounded memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.averaging import exceeded_percent
from spectrod.dsp.blocks import Block
from spectrod.dsp.constant_q import is_constant_q
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import (
    FULL_SCALE_SINE_FS2,
    Float32Array,
    Float64Array,
    Int64Array,
    power_to_dbfs,
)
from spectrod.formats.picture.raster import PixelTimes, column_spans
from spectrod.lib.errors import ConfigError

_ROW_NAMES = {"max": "of maxima", "min": "of minima"}

_FUZZ = 1e-6
"""Rounding tolerance where a limit coincides with that of a cell [cells]."""
_CELLS_PER_PIXEL = 8
"""Merging halves the cells, so at least four per pixel remain."""


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """Statistics of the samples of each pixel column; NaN where samples are missing.

    Attributes
    ----------
    low, high : (channels, columns) float32 or None
        Least and greatest sample [FS]; None if only spectra are known.
    mean_square : (channels, columns) float32
        Mean square of the samples [FS^2].
    name : str
        Name of the level of ``mean_square``.
    """

    low: Float32Array | None
    high: Float32Array | None
    mean_square: Float32Array
    name: str = "RMS"

    @property
    def rms_dbfs(self) -> Float32Array:
        """RMS level, shape (channels, columns) [dBFS]."""
        return power_to_dbfs(self.mean_square)

    @property
    def peak_dbfs(self) -> Float32Array | None:
        """Level of a sine whose peak is the greatest sample, shape (channels, columns) [dBFS]."""
        if self.low is None or self.high is None:
            return None
        peak = np.maximum(-self.low, self.high)
        return power_to_dbfs(peak * peak * np.float32(FULL_SCALE_SINE_FS2))


class _Cells:
    """Evenly spaced cells of samples; when they are used up, neighbours merge to double length."""

    def __init__(self, channels: int, width: int, cell_samples: int) -> None:
        self.n_cells = _CELLS_PER_PIXEL * width
        self.cell_samples = cell_samples
        self.n_used = 0
        self.low = np.full((channels, self.n_cells), np.inf, np.float32)
        self.high = np.full((channels, self.n_cells), -np.inf, np.float32)
        self.square = np.zeros((channels, self.n_cells))
        self.count = np.zeros((1, self.n_cells))

    def reach(self, sample: int) -> None:
        """Make room up to a sample, counted from the first cell's first sample."""
        while sample // self.cell_samples >= self.n_cells:
            self._merge()
        self.n_used = max(self.n_used, sample // self.cell_samples + 1)

    def _merge(self) -> None:
        half = self.n_cells // 2
        self.low[:, :half] = np.minimum(self.low[:, ::2], self.low[:, 1::2])
        self.high[:, :half] = np.maximum(self.high[:, ::2], self.high[:, 1::2])
        self.low[:, half:], self.high[:, half:] = np.inf, -np.inf
        for table in (self.square, self.count):
            table[:, :half] = table[:, ::2] + table[:, 1::2]
            table[:, half:] = 0.0
        self.cell_samples *= 2

    def spans(self, times: PixelTimes, width: int, origin: float) -> Float64Array:
        """Return the lower and upper limit of each pixel column, shape (2, width) [cells]."""
        first, n_samples, shown = times
        edges = (first - origin + np.linspace(0.0, n_samples, width + 1)) / self.cell_samples
        spans = column_spans(edges, self.n_used, 1)
        return spans if shown is None else shown.in_columns(spans, origin, self.cell_samples)

    def mean_square(self, spans: Float64Array) -> Float32Array:
        """Return the mean square in each span; cells cut by a limit are weighted by overlap."""
        limits = np.arange(self.n_used + 1)

        def total(table: Float64Array) -> Float64Array:
            sums = np.concatenate([[0.0], np.cumsum(table[: self.n_used])])
            below, above = (np.interp(limit, limits, sums) for limit in spans)
            return np.asarray(above - below)

        count = total(self.count[0])
        # Less than half a cell may be a neighbour's samples, in a cell that a limit cuts.
        is_empty = (count < 0.5 * self.cell_samples) & ~self._have_whole_cell(spans)
        means = np.stack([total(channel) for channel in self.square])
        means = np.maximum(means, 0.0) / np.where(is_empty, 1.0, count)
        means[:, is_empty] = np.nan
        return means.astype(np.float32)

    def _have_whole_cell(self, spans: Float64Array) -> NDArray[np.bool_]:
        """Return whether a cell with samples lies wholly in each span."""
        n_filled = np.append(0, np.cumsum(self.count[0, : self.n_used] > 0.0))
        first = np.ceil(spans[0] - _FUZZ).astype(np.int64)
        stop = np.maximum(first, np.floor(spans[1] + _FUZZ).astype(np.int64))
        found: NDArray[np.bool_] = n_filled[stop] > n_filled[first]
        return found

    def extremes(self, spans: Float64Array) -> tuple[Float32Array, Float32Array]:
        """Return the least and greatest sample of all cells that each span touches."""
        first = np.floor(spans[0] + _FUZZ).astype(np.int64)
        stop = np.maximum(first + 1, np.ceil(spans[1] - _FUZZ).astype(np.int64))
        limits = np.stack([first, stop], axis=1).ravel()

        def reduced(ufunc: np.ufunc, table: Float32Array, fill: float) -> Float32Array:
            # Pad by one cell, because reduceat accepts no index after the last.
            padded = np.pad(table[:, : self.n_used], ((0, 0), (0, 1)), constant_values=fill)
            values = ufunc.reduceat(padded, limits, axis=1)[:, ::2]
            return np.where(np.isinf(values), np.float32(np.nan), values).astype(np.float32)

        return reduced(np.minimum, self.low, np.inf), reduced(np.maximum, self.high, -np.inf)


class SampleStrips:
    """Collects samples for strips: a ``spectrod.daemon.pipeline.Tap``.

    Every sample counts; memory is 24 bytes for each eighth of a pixel, for any length. Gaps are
    never filled, and samples that are not finite count as missing. Thread: one at a time.

    Parameters
    ----------
    channels : int
        Number of channels of the blocks.
    width : int
        Largest number of pixel columns that ``over`` will return.
    is_iq : bool
        Whether each pair of channels is the I and Q part of one signal.
    least_samples : int
        Smallest number of samples of a mean square, around its pixel: with fewer it would follow
        the waveform itself.
    """

    def __init__(
        self, channels: int, width: int, *, is_iq: bool = False, least_samples: int = 1
    ) -> None:
        self._cells = _Cells(channels, width, 1)
        self._is_iq = is_iq
        self._least_samples = least_samples
        self._origin = 0

    @property
    def is_empty(self) -> bool:
        """Whether no sample was added yet."""
        return self._cells.n_used == 0

    def write(self, block: Block) -> None:
        """Add a block at its absolute index."""
        cells, samples = self._cells, block.samples
        if self.is_empty:
            self._origin = block.sample_index
        start, n_samples = block.sample_index - self._origin, block.n_samples
        cells.reach(start + n_samples - 1)
        size = cells.cell_samples
        head = min(-start % size, n_samples)
        n_whole = (n_samples - head) // size
        tail = head + n_whole * size
        first = -(-start // size)
        if head:
            self._add(start // size, samples[:, np.newaxis, :head])
        if n_whole:
            self._add(first, samples[:, head:tail].reshape(len(samples), n_whole, size))
        if tail < n_samples:
            self._add(first + n_whole, samples[:, np.newaxis, tail:])

    def _add(self, first: int, pieces: Float32Array) -> None:
        """Add samples of adjacent cells, shape (channels, cells, samples)."""
        cells, where = self._cells, slice(first, first + pieces.shape[1])
        square = np.einsum("ijk,ijk->ij", pieces, pieces)
        low, high = pieces.min(axis=2), pieces.max(axis=2)
        count: Float64Array | int = pieces.shape[2]
        is_valid = np.isfinite(square).all(axis=0)
        if not is_valid.all():
            square, low, high = (
                np.where(is_valid, values, nothing)
                for values, nothing in ((square, 0.0), (low, np.inf), (high, -np.inf))
            )
            count = np.where(is_valid, count, 0.0)
        cells.square[:, where] += square
        cells.count[0, where] += count
        cells.low[:, where] = np.minimum(cells.low[:, where], low)
        cells.high[:, where] = np.maximum(cells.high[:, where], high)

    def over(self, times: PixelTimes, width: int) -> Envelope:
        """Return the statistics of a range of samples, in evenly spaced columns.

        Parameters
        ----------
        times : PixelTimes
            Times of the columns, of one sample at least.
        width : int
            Number of columns, at most that of the constructor.
        """
        spans = self._cells.spans(times, width, self._origin)
        is_gap = np.isnan(self._cells.mean_square(spans)) | times.are_missing(width)
        mean_square = self._cells.mean_square(self._widened(spans))
        mean_square[is_gap] = np.nan
        low, high = self._cells.extremes(spans)
        low[is_gap] = high[is_gap] = np.nan
        if not self._is_iq:
            return Envelope(low, high, mean_square)
        # A complex tone of amplitude 1 has 0 dBFS, like each of its two parts.
        return Envelope(
            np.minimum(low[::2], low[1::2]),
            np.maximum(high[::2], high[1::2]),
            np.float32(0.5) * (mean_square[::2] + mean_square[1::2]),
        )

    def _widened(self, spans: Float64Array) -> Float64Array:
        """Widen each span to the smallest number of samples, as far as there are samples."""
        missing = self._least_samples / self._cells.cell_samples - (spans[1] - spans[0])
        margin = np.maximum(0.0, missing / 2.0)
        return np.asarray(np.clip([spans[0] - margin, spans[1] + margin], 0.0, self._cells.n_used))


def _full_scale(spec: SpectrumSpec) -> Float64Array | None:
    """Return the mean square of digital 1.0, shape (signals, 1) [unit^2]; None if uncalibrated.

    Strips are in dBFS, of rows as of samples.
    """
    if not spec.calibration:
        return None
    squares = [one.full_scale**2 if one else 1.0 for one in spec.calibration]
    if not np.isfinite(squares).all():
        raise ConfigError("strips: show dBFS, and the messages do not say the sensitivity")
    return np.array(squares)[:, np.newaxis]


class RowStrips:
    """Collects mean squares of rows of spectra, if there are no samples.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the batches.
    width : int
        Largest number of pixel columns that ``over`` will return.
    """

    def __init__(self, spec: SpectrumSpec, width: int) -> None:
        self._spec = spec
        self._full_scale = _full_scale(spec)
        self._hop = int(spec.row_step)
        self._cells = _Cells(spec.n_signals, width, self._hop)
        self._first = 0

    def write(self, batch: SpectrumBatch) -> None:
        """Add the rows of a batch."""
        if batch.n_frames == 0:
            return
        cells = self._cells
        if cells.n_used == 0:
            self._first = int(batch.sample_index[0])
        # Use the centre of the row's hop, so that rounding never moves a row to a neighbour.
        samples: Int64Array = batch.sample_index - self._first + self._hop // 2
        cells.reach(int(samples[-1]))
        where = samples // cells.cell_samples
        for channel, squares in zip(cells.square, self._mean_squares(batch).T, strict=True):
            np.add.at(channel, where, self._hop * squares)
        np.add.at(cells.count[0], where, self._hop)

    def _mean_squares(self, batch: SpectrumBatch) -> Float64Array:
        """Return the mean square of each row, shape (rows, signals) [FS^2]."""
        spec = self._spec
        if is_constant_q(spec.bands) and batch.broadband is not None:  # the filters overlap
            return np.asarray(spec.scale.to_power(batch.broadband), np.float64)
        values = spec.scale.to_power(batch.values)
        if self._full_scale is not None:
            values = values / self._full_scale
        if spec.iq:  # mean square of each of the two parts
            values = 0.5 * values
        if spec.scaling == "density":
            width = spec.delta_f if spec.band_table is None else spec.band_table.width
            return np.asarray((values * width).sum(axis=-1, dtype=np.float64))
        sums = np.asarray(values.sum(axis=-1, dtype=np.float64))
        # Each bin holds the power of a noise bandwidth, which is wider than the bin spacing.
        return sums if spec.bands else sums * (spec.delta_f / spec.enbw_hz)

    def over(self, times: PixelTimes, width: int) -> Envelope:
        """Like ``SampleStrips.over``; a row represents the hop around the centre of its windows."""
        spec = self._spec
        n_row = spec.row_span
        origin = self._first + n_row / 2.0 - self._hop / 2.0
        spans = self._cells.spans(times, width, origin)
        # The sum of the largest powers of all bins is not the mean square of any frame.
        is_ranked = exceeded_percent(spec.averaging) is not None
        name = _ROW_NAMES.get(spec.averaging, f"of {spec.averaging}" if is_ranked else "RMS")
        mean_square = self._cells.mean_square(spans)
        mean_square[:, times.are_missing(width)] = np.nan
        return Envelope(None, None, mean_square, name)
