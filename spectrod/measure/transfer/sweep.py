"""Impulse responses by an exponential sweep: the linear one, and those of harmonics apart."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.transfer.channel_pairs import as_samples

SAMPLES_MAX = 1 << 23
"""Maximum length of a sweep, and of a recording of one [samples]."""

HARMONICS_MAX = 20

_SIXTH_OCTAVE = 2.0 ** (1.0 / 6.0)
_LEAD_SHARE = 0.5
"""Share of the distance to the next harmonic that belongs to a response, before its time 0."""

_RISE_OCTAVES = (-1.0, -0.25)
"""Where the gain of the inverse filter rises from 0 to 1, re the sweep's first frequency. The sweep
has enough power there, as it starts at once; a rise in the band would ring in it."""
_FALL_OCTAVES = (-1.0 / 6.0, 0.0)
"""Where it falls from 1 to 0, re the sweep's last frequency."""
_PEAK_MIN = 20.0
"""Least peak of a response over the root mean square of all. Noise of 2^24 samples reaches 6, a
sweep of another length 10 to 20, a room whose reverberation is 24 dB above its direct sound 50."""
_REGULARISATION = 1e-6
"""Power that is added to that of the sweep, over that of an endless one: it keeps the inverse
filter finite where the sweep has none."""


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
        Impulse response; 1 in the pass-band means a gain of 1. It fades in up to time 0.
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
    """An exponential sine sweep of amplitude 1, and the responses that recordings of it give.

    Attributes
    ----------
    fs : float
        Sample rate [Hz].
    low_hz, high_hz : float
        First and last frequency, ascending, up to fs / 2 [Hz]. Results hold from ``low_hz`` to a
        sixth of an octave below ``high_hz``.
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
    def band_hz(self) -> tuple[float, float]:
        """Lowest and highest frequency of which results hold [Hz]."""
        return self.low_hz, self.high_hz / _SIXTH_OCTAVE

    def lead_s(self, order: int) -> float:
        """Return the time by which the response of a harmonic precedes the linear one [s]."""
        return float(self.duration_s / np.log(self.high_hz / self.low_hz) * np.log(order))

    @naming_arrays
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

        Notes
        -----
        The spectrum of the recording is divided by that of the sweep, with a regularisation [1]_,
        instead of Farina's filtering by the reversed sweep, whose gain ripples near the ends of the
        band.

        References
        ----------
        .. [1] O. Kirkeby, P. A. Nelson, H. Hamada and F. Orduna-Bustamante, "Fast deconvolution of
           multichannel systems using regularization", IEEE Trans. Speech Audio Proc. 6(2), 1998.
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
        whole = self._deconvolve(y)
        begins = [int(here - _LEAD_SHARE * (here - earlier)) for here, earlier in pairwise(starts)]
        ends = [len(y) + self.n_samples - 1, *begins]
        return tuple(
            self._response(k + 1, whole[begin:end], starts[k] - begin)
            for k, (begin, end) in enumerate(zip(begins, ends, strict=False))
        )

    @naming_arrays
    def begin_in(self, recording: ArrayLike) -> int:
        """Find the sweep in a recording: the peak of its linear response is time 0.

        Parameters
        ----------
        recording : (n,) array-like
            At most ``SAMPLES_MAX`` samples, of which a part is the output of a system [FS].

        Returns
        -------
        begin : int
            Index of the sweep's first sample, below 0 if the recording lacks it [samples].

        Raises
        ------
        InputError
            If the recording breaks a rule, or no sweep stands out of it.
        """
        y = as_samples("recording", recording)
        if not 1 <= len(y) <= SAMPLES_MAX:
            raise InputError(f"recording of {len(y)} samples: must have 1 to {SAMPLES_MAX}")
        size = np.abs(self._deconvolve(y))
        peak = int(np.argmax(size))
        if not size[peak] > _PEAK_MIN * np.sqrt(np.mean(np.square(size))):
            raise InputError(
                f"recording: no sweep from {self.low_hz:g} to {self.high_hz:g} Hz in "
                f"{self.duration_s:g} s stands out of it"
            )
        return peak - (self.n_samples - 1)

    def _response(self, order: int, samples: Float64Array, lead_samples: float) -> ImpulseResponse:
        """Fade in what precedes time 0: a cut would be a ripple of the gain."""
        faded = samples.copy()
        n = int(lead_samples)
        faded[:n] *= _rise((np.arange(n) + 0.5) / max(1, n))
        return ImpulseResponse(order, self.fs, faded, lead_samples)

    def _deconvolve(self, recording: Float64Array) -> Float64Array:
        """Return the response, whose time 0 is that of sample ``n_samples - 1``."""
        nfft = _fft_length(len(recording) + self.n_samples)
        sweep = np.fft.rfft(self.samples, nfft)
        power = np.square(sweep.real) + np.square(sweep.imag)
        frequencies = np.fft.rfftfreq(nfft, 1.0 / self.fs)
        frequencies[0] = frequencies[1]
        # An endless sweep passes each octave in the same time.
        octaves = np.log2(self.high_hz / self.low_hz)
        endless = self.duration_s * self.fs**2 / (4.0 * np.log(2.0) * octaves)
        power += _REGULARISATION * endless / frequencies
        power[0] = np.inf
        np.conj(sweep, out=sweep)
        sweep *= self._gain(frequencies) / power
        sweep *= np.fft.rfft(recording, nfft)
        whole = np.fft.irfft(sweep, nfft)
        before = self.n_samples - 1
        return np.concatenate((whole[nfft - before :], whole[: len(recording)]))

    def _gain(self, frequencies: NDArray[np.floating]) -> Float64Array:
        """Return the gain of the inverse filter after the sweep, (bins,)."""
        below, above = (np.log2(frequencies / edge) for edge in (self.low_hz, self.high_hz))
        gain = _rise((below - _RISE_OCTAVES[0]) / (_RISE_OCTAVES[1] - _RISE_OCTAVES[0]))
        if self.high_hz < self.fs / 2.0:
            gain *= _rise((_FALL_OCTAVES[1] - above) / (_FALL_OCTAVES[1] - _FALL_OCTAVES[0]))
        return gain


def _rise(part: NDArray[np.floating]) -> Float64Array:
    """Return half a period of a cosine, from 0 below 0 to 1 above 1."""
    return np.asarray(np.square(np.sin(np.pi / 2.0 * np.clip(part, 0.0, 1.0))))


def _fft_length(n: int) -> int:
    return 1 << (n - 1).bit_length()
