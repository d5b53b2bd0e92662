"""Rows of the reassigned spectrogram: power where it lies in time and frequency, in float64."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.stft.stft_reference import ReferenceStft, as_float64
from spectrod.analysis.stft.stft_tables import bin_weights, kernel_spec
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.dsp.windows import get_window, window_derivative

_PER_WINDOW = 8
"""Least number of sub-frames that begin within the length of one."""
_GATE = 1e-10
"""Power below which a bin is not moved, relative to the strongest of its sub-frame: the place of
weaker ones is the quotient of two rounding errors."""


class ReassignedRows(ReferenceStft):
    """Frames to rows of the reassigned spectrogram, and what averages make of them.

    A frame of W samples holds sub-frames of W // 2 samples. Three transforms of each, with the
    window w, with t w and with dw/dt, say where the power of each bin lies [1]_: at the time ``t +
    Re(X_tw X*) / |X|^2`` and at the frequency ``f - Im(X_dw X*) / (2 pi |X|^2)``. A row has the
    power that lies within its hop around the middle of the frame, at most W // 4 samples, in the
    bin of its frequency. Sub-frames lie at the same samples for all rows, so every power is in
    exactly one row: the sum over bins and rows is that of the sub-frames' power.

    Parameters
    ----------
    spec : SpectrumSpec
        What to compute; its bands are ``"reassigned"``.
    layout : SampleLayout
        Layout of the samples.

    References
    ----------
    .. [1] F. Auger, P. Flandrin, "Improving the readability of time-frequency and time-scale
       representations by the reassignment method", IEEE Trans. Signal Processing 43, 1995.
    """

    def __init__(self, spec: SpectrumSpec, layout: SampleLayout) -> None:
        plain = replace(spec, bands="", broadband=False, scaling="density")
        shape, tables = kernel_spec(plain, layout.sample_format, interleaved=layout.interleaved)
        shape = replace(shape, n_bands=spec.n_computed, decibels=spec.scaling == "dbfs")
        super().__init__(shape, tables)
        self._broadband = spec.broadband
        self._length = spec.win_length // 2
        taper = get_window(spec.window, self._length).samples
        n = np.arange(self._length) - self._length / 2.0
        slope = window_derivative(spec.window, self._length)
        self._windows = np.stack([taper, n * taper, slope])
        self._cell = min(spec.hop, spec.win_length // 4)
        count = -(-self._cell * _PER_WINDOW // self._length)
        reach = (spec.win_length - self._length - self._cell) // 2
        self._offsets, self._reach = _offsets(self._cell, count, reach), reach
        weights = bin_weights(spec, spec.bin_frequencies)
        # Of one side's power: twice that, except at 0 Hz and fs / 2.
        weights[1 : (spec.nfft + 1) // 2] *= 2.0
        scale = float(spec.scale.signal_factors.max()) / (
            spec.nfft * float(np.sum(taper**2)) * count
        )
        self._weights = weights * scale
        self._widths = None
        if spec.scaling == "density":
            bands = spec.band_table
            assert bands is not None
            self._widths = bands.width
        self._start = (spec.win_length - self._length) // 2

    def _chunks(self, n_frames: int, frame_values: int) -> Iterator[tuple[int, int]]:  # noqa: ARG002
        return ((row, row + 1) for row in range(n_frames))

    def _values(
        self,
        samples: NDArray[Any],
        begins: NDArray[np.int64],
        hop: int | None,  # noqa: ARG002 - places are given
    ) -> Float64Array:
        """Power in each bin: (frames, channels, values) float64."""
        values = np.empty((len(begins), len(samples), self.spec.n_values))
        for row, begin in enumerate(begins):
            for channel, one in enumerate(samples):
                part = as_float64(
                    one[begin : begin + self.spec.win_length], self.spec.sample_format
                )
                values[row, channel] = self._row(part)
        return values

    def _row(self, frame: Float64Array) -> Float64Array:
        every = np.lib.stride_tricks.sliding_window_view(frame, self._length)
        parts = every[self._start + self._offsets]
        x, xt, xd = np.fft.rfft(parts * self._windows[:, np.newaxis], self.spec.nfft)
        power = np.square(x.real) + np.square(x.imag)
        is_strong = power > _GATE * power.max(axis=1, keepdims=True)
        inverse = 1.0 / np.where(is_strong, power, 1.0)
        later_samples = np.where(is_strong, (xt * x.conj()).real * inverse, 0.0)
        at = np.clip(later_samples, -self._reach, self._reach) + self._offsets[:, np.newaxis]
        # Not at half samples, where the power of steady sounds lies but for rounding.
        begin = -0.5 * self._cell - 0.25
        is_here = (at >= begin) & (at < begin + self._cell)
        per_bin = self.spec.nfft / (2.0 * np.pi)
        higher_bins = np.where(is_strong, -(xd * x.conj()).imag * inverse * per_bin, 0.0)
        n_bins = x.shape[1]
        # Bounded before the conversion to integers: weak bins may be far away.
        moved = np.clip(np.rint(higher_bins), -n_bins, n_bins).astype(np.int64)
        bins = np.clip(np.arange(n_bins) + moved, 0, n_bins - 1)
        weighted = power * self._weights
        sums = np.bincount(bins[is_here], weighted[is_here], minlength=n_bins)
        found: Float64Array = sums.astype(np.float64)
        total = found.sum()
        if self._widths is not None:
            found = found / self._widths
        return np.append(found, total) if self._broadband else found


def _offsets(cell: int, count: int, reach: int) -> NDArray[np.int64]:
    """Return the places of sub-frames whose power may lie in a cell, ``count`` of them a cell."""
    most = -(-(cell // 2 + reach) * count // cell) + 1
    places = np.arange(-most, most + 1) * cell // count
    kept: NDArray[np.int64] = places[np.abs(places) <= cell // 2 + reach]
    return kept
