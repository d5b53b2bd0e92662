"""Sums of powers and cross spectra over the frames of a reference and its responses."""

import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.welch import decaying_averages, effective_averages
from spectrod.lib.errors import InputError
from spectrod.measure.frame_spectra import Complex128Array
from spectrod.measure.transfer.transfer_function import TransferFunction


class CrossSums:
    """Averages the cross spectra of a reference with one or more responses.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the frames; its first channel is the reference, all others are responses.
    decay : float
        Weight of a frame over that of the next one, above 0 and at most 1: 1 for a mean, less for
        an exponential average.

    Attributes
    ----------
    n_frames : int
        Frames so far.
    """

    def __init__(self, spec: SpectrumSpec, decay: float = 1.0) -> None:
        self._spec, self._decay = spec, decay
        self.clear()

    def clear(self) -> None:
        """Remove all frames."""
        n, n_bins = self._spec.channels - 1, self._spec.n_bins
        self.n_frames, self._weight = 0, 0.0
        self._powers = np.zeros((1 + n, n_bins))
        self._cross = np.zeros((n, n_bins), np.complex128)

    def add(self, spectra: Complex128Array) -> None:
        """Add frames, (frames, channels, bins) [FS]."""
        n = len(spectra)
        powers = spectra.real**2 + spectra.imag**2
        cross = spectra[:, :1].conj() * spectra[:, 1:]
        weights = self._decay ** np.arange(n - 1, -1, -1.0)
        if self._decay < 1.0:
            powers *= weights[:, np.newaxis, np.newaxis]
            cross *= weights[:, np.newaxis, np.newaxis]
            self._powers *= self._decay**n
            self._cross *= self._decay**n
        self._powers += powers.sum(axis=0)
        self._cross += cross.sum(axis=0)
        self._weight = self._weight * self._decay**n + float(weights.sum())
        self.n_frames += n

    @property
    def n_averages(self) -> float:
        """Independent frames that the averages are worth; see ``spectrod.dsp.welch``."""
        settings = self._spec.taper, self._spec.hop, self.n_frames
        if self._decay < 1.0:
            return decaying_averages(*settings, self._decay)
        return effective_averages(*settings)

    def result(self, response: int = 0) -> TransferFunction:
        """Return the averages so far of the reference and one of the responses.

        Raises
        ------
        InputError
            With fewer than two frames, whose coherence is always 1.
        """
        spec = self._spec
        if self.n_frames < 2:
            raise InputError(
                f"{self.n_frames} frames of {spec.win_length} samples: coherence needs 2 or "
                "more; take more samples, or a shorter window"
            )
        scale = np.full(spec.n_bins, 2.0 * spec.power_scale / self._weight)
        scale[0] /= 2.0
        if spec.nfft % 2 == 0:
            scale[-1] /= 2.0
        return TransferFunction(
            spec.frequencies,
            self._powers[0] * scale,
            self._powers[1 + response] * scale,
            self._cross[response] * scale,
            self.n_frames,
            self.n_averages,
        )
