"""Impulse responses by an exponential sweep: the linear one, and those of harmonics apart."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.errors import ConfigError, InputError
from spectrod.two_channel.samples import as_samples
from spectrod.units import Float64Array

SAMPLES_MAX = 1 << 23
"""Maximum length of a sweep, and of a recording of one [samples]."""

HARMONICS_MAX = 20

_SIXTH_OCTAVE = 2.0 ** (1.0 / 6.0)
_LEAD_SHARE = 0.125
"""Share of the distance to the next harmonic that belongs to a response, before its time 0."""


@dataclass(frozen=True, slots=True, eq=False)
class ImpulseResponse:
    """Part of a deconvolved recording.

    Attributes
    ----------
    order : int
        1 for the linear response, k for that of the k-th harmonic.
    fs : float
        Sample rate [Hz].
    samples : (n,) float64
        Impulse response; 1 in the pass-band means a gain of 1.
    lead_samples : float
        Position of time 0 in it [samples]: the ringing of a limited band precedes it.
    """

    order: int
    fs: float
    samples: Float64Array
    lead_samples: float

    def response(self, nfft: int = 0) -> tuple[Float64Array, NDArray[np.complex128]]:
        """Return the frequency response.

        Parameters
        ----------
        nfft : int
            Transform length; 0 for the length of the response, longer ones pad it.

        Returns
        -------
        frequencies : (nfft // 2 + 1,) float64
            Frequencies [Hz]; of a harmonic, those at the output.
        response : (nfft // 2 + 1,) complex128
            Of a harmonic: its amplitude at the output over that of the sweep.
        """
        n = nfft or len(self.samples)
        if n < len(self.samples):
            raise ConfigError(f"nfft={nfft}: must be at least {len(self.samples)}")
        frequencies = np.arange(n // 2 + 1) * self.fs / n
        turns = np.exp(2j * np.pi * frequencies / self.fs * self.lead_samples)
        return frequencies, np.asarray(np.fft.rfft(self.samples, n) * turns)


@dataclass(frozen=True, slots=True)
class Sweep:
    """An exponential sine sweep of amplitude 1 and its inverse filter.

    Attributes
    ----------
    fs : float
        Sample rate [Hz].
    low_hz, high_hz : float
        First and last frequency, ascending, up to fs / 2 [Hz]. The ends of the band ring: results
        hold from a sixth of an octave inside it.
    duration_s : float
        Length, at most ``SAMPLES_MAX`` samples [s].

    Raises
    ------
    ConfigError
        If one of them breaks a rule.

    References
    ----------
    .. [1] A. Farina, "Simultaneous measurement of impulse response and distortion with a swept-sine
       technique", AES 108th convention, 2000.
    """

    fs: float
    low_hz: float
    high_hz: float
    duration_s: float

    def __post_init__(self) -> None:
        if not 0.0 < self.fs < np.inf:
            raise ConfigError(f"fs={self.fs:g}: must be a positive number of Hz")
        if not 0.0 < self.low_hz * _SIXTH_OCTAVE**3 <= self.high_hz <= self.fs / 2.0:
            raise ConfigError(
                f"low_hz={self.low_hz:g}, high_hz={self.high_hz:g}: must be half an octave apart "
                f"or more, within 0 Hz and fs/2={self.fs / 2:g} Hz"
            )
        periods = self.duration_s * self.low_hz
        if not (periods >= 1.0 and self.duration_s * self.fs <= SAMPLES_MAX):
            raise ConfigError(
                f"duration_s={self.duration_s:g}: must be a period of low_hz={self.low_hz:g} or "
                f"more, and at most {SAMPLES_MAX} samples"
            )

    @property
    def n_samples(self) -> int:
        """Length [samples]."""
        return round(self.duration_s * self.fs)

    @property
    def samples(self) -> Float64Array:
        """The sweep, (n_samples,) [FS]: sin(2 pi f1 T / R (exp(t R / T) - 1)), R = ln(f2 / f1)."""
        rate = np.log(self.high_hz / self.low_hz)
        grown = np.expm1(np.arange(self.n_samples) / self.fs * rate / self.duration_s)
        return np.asarray(np.sin(2.0 * np.pi * self.low_hz * self.duration_s / rate * grown))

    @property
    def inverse(self) -> Float64Array:
        """The inverse filter, (n_samples,): the reversed sweep, falling by 6 dB per octave.

        The sweep through it is an impulse with a gain of 1 in the band, at sample n_samples - 1.
        """
        raw = self._raw_inverse()
        nfft = _fft_length(2 * self.n_samples)
        spectrum = np.abs(np.fft.rfft(self.samples, nfft) * np.fft.rfft(raw, nfft))
        frequencies = np.fft.rfftfreq(nfft, 1.0 / self.fs)
        inside = frequencies >= self.low_hz * _SIXTH_OCTAVE
        inside &= frequencies <= self.high_hz / _SIXTH_OCTAVE
        return raw / float(np.mean(spectrum[inside]))

    def lead_s(self, order: int) -> float:
        """Return the time by which the response of a harmonic precedes the linear one [s]."""
        return float(self.duration_s / np.log(self.high_hz / self.low_hz) * np.log(order))

    def impulse_responses(
        self, recording: ArrayLike, harmonics: int = 5
    ) -> tuple[ImpulseResponse, ...]:
        """Deconvolve a recording of the sweep.

        Parameters
        ----------
        recording : (n,) array-like
            Output of the system from the first sample of the sweep on, at least as long as the
            sweep, at most ``SAMPLES_MAX`` [FS].
        harmonics : int
            Highest order, 1 to ``HARMONICS_MAX``; those must lie within the sweep's length.

        Returns
        -------
        responses : tuple of ImpulseResponse
            The linear response, then those of the second harmonic and on.

        Raises
        ------
        ConfigError, InputError
            If a parameter or the recording breaks a rule.
        """
        y = as_samples("recording", recording)
        if not self.n_samples <= len(y) <= SAMPLES_MAX:
            raise InputError(
                f"recording of {len(y)} samples: must have {self.n_samples} to {SAMPLES_MAX}"
            )
        if not 1 <= harmonics <= HARMONICS_MAX:
            raise ConfigError(f"harmonics={harmonics}: must be 1 to {HARMONICS_MAX}")
        starts = [self.n_samples - 1 - self.lead_s(k) * self.fs for k in range(1, harmonics + 2)]
        if starts[-1] < 0.0:
            raise ConfigError(
                f"harmonics={harmonics}: the last lies before the sweep; a longer one holds it"
            )
        nfft = _fft_length(len(y) + self.n_samples)
        whole = np.fft.irfft(np.fft.rfft(y, nfft) * np.fft.rfft(self.inverse, nfft), nfft)
        begins = [int(here - _LEAD_SHARE * (here - earlier)) for here, earlier in pairwise(starts)]
        ends = [len(y) + self.n_samples - 1, *begins]
        return tuple(
            ImpulseResponse(k + 1, self.fs, whole[begin:end].copy(), starts[k] - begin)
            for k, (begin, end) in enumerate(zip(begins, ends, strict=False))
        )

    def _raw_inverse(self) -> Float64Array:
        rate = np.log(self.high_hz / self.low_hz)
        fall = np.exp(-np.arange(self.n_samples) / self.fs * rate / self.duration_s)
        return np.asarray(self.samples[::-1] * fall)


def _fft_length(n: int) -> int:
    return 1 << (n - 1).bit_length()
