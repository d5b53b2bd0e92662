"""Complex spectra of the frames of a stream of samples, in float64.

The engines' complex spectra are rounded to float32, which would bound the phase and the coherence
of strongly related channels.
"""

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array

Complex128Array = NDArray[np.complex128]

_BLOCK_VALUES = 1 << 18
"""Samples of frames that are transformed at a time."""


class FrameTransform:
    """Transforms the windowed frames of a stream.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the frames.
    """

    def __init__(self, spec: SpectrumSpec) -> None:
        self._spec = spec
        self._step = max(1, _BLOCK_VALUES // (spec.nfft * spec.channels))
        # Short blocks are joined in place: the samples kept are moved once per window.
        n = 2 * spec.win_length + self._step * min(spec.hop, spec.win_length)
        self._buffer = np.empty((spec.channels, n))
        self.restart()

    def restart(self) -> None:
        """Continue after a gap: no frame spans it."""
        self._begin = self._end = self._skip = 0

    def push(self, samples: Float64Array) -> Iterator[Complex128Array]:
        """Yield the spectra of the frames that are complete.

        Parameters
        ----------
        samples : (channels, n) float64
            Samples that follow those pushed before [FS].

        Yields
        ------
        spectra : (frames, channels, bins) complex128
            Unnormalised spectra [FS].
        """
        first = 0
        while first < samples.shape[1]:
            first += self._take(samples[:, first:])
            n_frames = self._spec.n_frames(self._end - self._begin)
            for k in range(0, n_frames, self._step):
                yield self._transform(k, min(k + self._step, n_frames))
            self._begin += n_frames * self._spec.hop
            # A hop beyond the end of what came skips samples to come.
            beyond = max(0, self._begin - self._end)
            self._begin -= beyond
            self._skip += beyond

    def _take(self, samples: Float64Array) -> int:
        """Skip or keep samples, as many as there is room for; return their number."""
        skipped = min(self._skip, samples.shape[1])
        self._skip -= skipped
        n_kept, room = self._end - self._begin, self._buffer.shape[1] - self._end
        if room < samples.shape[1] - skipped:
            self._buffer[:, :n_kept] = self._buffer[:, self._begin : self._end].copy()
            self._begin, self._end = 0, n_kept
            room = self._buffer.shape[1] - n_kept
        n = min(room, samples.shape[1] - skipped)
        self._buffer[:, self._end : self._end + n] = samples[:, skipped : skipped + n]
        self._end += n
        return int(skipped + n)

    def _transform(self, first: int, stop: int) -> Complex128Array:
        """Transform frames from first to stop of those that are kept."""
        spec = self._spec
        begin = self._begin + first * spec.hop
        part = self._buffer[:, begin : begin + (stop - first - 1) * spec.hop + spec.win_length]
        frames = sliding_window_view(part, spec.win_length, axis=-1)[:, :: spec.hop]
        windowed = frames.swapaxes(0, 1) * spec.taper.samples
        return np.asarray(np.fft.rfft(windowed, spec.nfft, axis=-1))
