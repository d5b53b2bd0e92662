"""Rows of a constant-Q or variable-Q transform, in float64."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.stft.stft_reference import ReferenceStft, as_float64
from spectrod.analysis.stft.stft_tables import bin_weights, kernel_spec
from spectrod.dsp.constant_q import FilterGroup, filter_groups
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array

_FRAMES = 8
"""Frames of one product of matrices. Every product has this shape, so that BLAS computes every
frame with the same operations and results do not depend on how a stream is cut."""

_PRODUCT_MAX = 1 << 17
"""Largest number of multiplications in a product: OpenBLAS uses threads from 2^18 on, which wait
for each other longer than they compute where the processor has other work."""


class ConstantQRows(ReferenceStft):
    """Frames to powers of a constant-Q transform's filters, and what averages make of them.

    Each filter lies in the middle of the frame. Its value is a direct sum of products with the
    samples: no coefficient is dropped, as sparse filters in the frequency domain do.

    Parameters
    ----------
    spec : SpectrumSpec
        What to compute; its bands are a constant-Q transform.
    layout : SampleLayout
        Layout of the samples.
    """

    def __init__(self, spec: SpectrumSpec, layout: SampleLayout) -> None:
        # The broadband value is that of the whole window, as beside other bands.
        whole = replace(spec, bands="", broadband=False, scaling="density")
        shape, tables = kernel_spec(whole, layout.sample_format, interleaved=layout.interleaved)
        shape = replace(shape, n_bands=spec.n_computed, decibels=spec.scaling == "dbfs")
        super().__init__(shape, tables)
        scale = float(spec.scale.signal_factors.max())
        self._broadband = spec.broadband
        self._broadband_factor = spec.delta_f * scale / float(whole.scale.signal_factors.max())
        self._filter_factors = scale * _filter_factors(spec)
        self._groups = _groups(spec)

    def _chunks(self, n_frames: int, frame_values: int) -> Iterator[tuple[int, int]]:  # noqa: ARG002
        return ((start, min(start + _FRAMES, n_frames)) for start in range(0, n_frames, _FRAMES))

    def _values(
        self,
        samples: NDArray[Any],
        begins: NDArray[np.int64],
        hop: int | None,  # noqa: ARG002 - places are given
    ) -> Float64Array:
        """Power of each filter: (frames, channels, values) float64."""
        values = np.empty((len(begins), len(samples), self.spec.n_values))
        n_filters = len(self._filter_factors)
        for channel, one in enumerate(samples):
            values[:, channel, :n_filters] = self._filtered(one, begins)
        if self._broadband:
            for row in range(len(begins)):
                whole = super()._values(samples, begins[row : row + 1], None)
                values[row, :, n_filters:] = whole[0]
        return values

    def _summed(self, power: Float64Array) -> Float64Array:
        """Mean square of all bins: (frames, channels, 1) float64."""
        total: Float64Array = (power * self._factors).sum(axis=-1, keepdims=True)
        return total * self._broadband_factor

    def _filtered(self, samples: NDArray[Any], begins: NDArray[np.int64]) -> Float64Array:
        """Power of each filter of one channel: (frames, filters) float64."""
        parts = []
        for group in self._groups:
            frames = np.zeros((_FRAMES, group.n_padded))
            for row, begin in enumerate(begins + group.start):
                part = samples[begin : begin + group.n_samples]
                frames[row, : group.n_samples] = as_float64(part, self.spec.sample_format)
            parts.append(group.power(frames)[: len(begins)])
        return np.concatenate(parts, axis=1) * self._filter_factors


class _FilterGroup:
    """Filters of an octave, cut into matrices of a size that BLAS multiplies in one thread."""

    def __init__(self, filters: FilterGroup) -> None:
        self.start = filters.start
        self.n_samples, columns = filters.matrix.shape
        self._n_filters = columns // 2
        piece = max(1, _PRODUCT_MAX // (_FRAMES * columns))
        n_pieces = -(-self.n_samples // piece)
        self.n_padded = n_pieces * piece
        padded = np.zeros((self.n_padded, columns))
        padded[: self.n_samples] = filters.matrix
        self._matrices = padded.reshape(n_pieces, piece, columns)

    def power(self, frames: Float64Array) -> Float64Array:
        """Return |sum of products|^2, (frames, filters), of padded frames."""
        pieces = frames.reshape(len(frames), *self._matrices.shape[:2]).transpose(1, 0, 2)
        sums = np.matmul(np.ascontiguousarray(pieces), self._matrices).sum(axis=0)
        power: Float64Array = sums[:, : self._n_filters] ** 2 + sums[:, self._n_filters :] ** 2
        return power


def _groups(spec: SpectrumSpec) -> list[_FilterGroup]:
    filters = filter_groups(spec.bands, spec.fs, spec.win_length, spec.window)
    return [_FilterGroup(one) for one in filters]


def _filter_factors(spec: SpectrumSpec) -> Float64Array:
    """Return the factor of each filter's power; a tone has half its amplitude in a filter."""
    bands = spec.band_table
    assert bands is not None
    factors = 2.0 * bin_weights(spec, bands.centre)
    return factors / bands.width if spec.scaling == "density" else factors
