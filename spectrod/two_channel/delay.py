"""The delay between two channels by generalised cross-correlation with phase transform."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.errors import ConfigError, InputError
from spectrod.two_channel.samples import as_pair
from spectrod.units import Float64Array

SAMPLES_MAX = 1 << 20
"""Maximum number of samples that are correlated."""

_UPSAMPLING = 4
"""Points of the correlation for each sample: a parabola through three then errs by less than 0.01
samples."""

_ENERGY_MIN = 1e-6
"""Smallest magnitude of a bin of the cross spectrum that counts, over the largest [1]."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Delay of a response against a reference.

    Attributes
    ----------
    seconds : float
        Positive if the response is later [s].
    samples : float
        The same [samples].
    peak : float
        Height of the correlation's maximum: 1 if all frequencies have this delay, about 0 for
        unrelated channels; negative if the response is inverted.
    """

    seconds: float
    samples: float
    peak: float


def measure_delay(
    reference: ArrayLike,
    response: ArrayLike,
    fs: float,
    *,
    max_delay_s: float | None = None,
    band_hz: tuple[float, float] | None = None,
) -> Delay:
    """Measure the delay of a response by GCC-PHAT.

    Parameters
    ----------
    reference, response : (n,) array-like
        Samples of both channels, 16 to ``SAMPLES_MAX`` [FS].
    fs : float
        Sample rate [Hz].
    max_delay_s : float, optional
        Largest delay of either sign, above 0 [s]; by default half of the samples.
    band_hz : tuple of float, optional
        Lowest and highest frequency that counts [Hz]; by default all but 0 Hz. Bins below -120 dB
        re the strongest never count.

    Returns
    -------
    delay : Delay

    Raises
    ------
    ConfigError, InputError
        If a parameter breaks a rule, or a channel is silent.

    References
    ----------
    .. [1] C. H. Knapp and G. C. Carter, "The generalized correlation method for estimation of time
       delay", IEEE Trans. ASSP 24(4), 1976.
    """
    x, y = as_pair(reference, response)
    if not 16 <= len(x) <= SAMPLES_MAX:
        raise InputError(f"{len(x)} samples: must be 16 to {SAMPLES_MAX}")
    if not 0.0 < fs < np.inf:
        raise ConfigError(f"fs={fs:g}: must be a positive number of Hz")
    limit = len(x) // 2 if max_delay_s is None else _limit(max_delay_s, fs, len(x))
    nfft = 1 << (2 * len(x) - 1).bit_length()
    cross = np.fft.rfft(y, nfft) * np.fft.rfft(x, nfft).conj()
    return delay_of_cross_spectrum(cross, fs, nfft, limit, band_hz)


def delay_of_cross_spectrum(
    cross: NDArray[np.complex128],
    fs: float,
    nfft: int,
    max_samples: int,
    band_hz: tuple[float, float] | None = None,
) -> Delay:
    """Measure the delay of a response by GCC-PHAT of a cross spectrum.

    Parameters
    ----------
    cross : (nfft // 2 + 1,) complex128
        Of one frame or averaged, conj(X) Y in any unit.
    fs : float
        Sample rate [Hz].
    nfft : int
        Transform length; the correlation is circular in it.
    max_samples : int
        Largest delay of either sign, below nfft / 2 [samples].
    band_hz : tuple of float, optional
        See ``measure_delay``.

    Returns
    -------
    delay : Delay

    Raises
    ------
    InputError
        If no frequency has power in both channels.
    """
    size = np.abs(cross)
    chosen = size > _ENERGY_MIN**2 * size.max()
    chosen[0] = False
    if band_hz is not None:
        frequencies = np.arange(len(size)) * fs / nfft
        chosen &= (frequencies >= band_hz[0]) & (frequencies <= band_hz[1])
    if not chosen.any():
        raise InputError("delay: no frequency has power in both channels")
    phase = np.divide(cross, size, out=np.zeros_like(cross), where=chosen)
    n_fine = _UPSAMPLING * nfft
    correlation = np.fft.irfft(phase, n_fine) * n_fine / (2.0 * np.count_nonzero(chosen))
    reach = _UPSAMPLING * max_samples + 1
    lags = np.concatenate([correlation[-reach:], correlation[: reach + 1]])
    offset, peak = _parabola(lags)
    samples = (offset - reach) / _UPSAMPLING
    return Delay(samples / fs, samples, peak)


def _limit(max_delay_s: float, fs: float, n: int) -> int:
    samples = max_delay_s * fs
    if not 1.0 <= samples < n:
        raise ConfigError(
            f"max_delay_s={max_delay_s:g}: must be 1 sample or more, and less than the {n} given"
        )
    return int(samples)


def _parabola(values: Float64Array) -> tuple[float, float]:
    """Return place and height of the largest magnitude inside, by a parabola through three."""
    k = 1 + int(np.argmax(np.abs(values[1:-1])))
    before, here, after = values[k - 1 : k + 2].tolist()
    curvature = before - 2.0 * here + after
    shift = 0.5 * (before - after) / curvature if curvature else 0.0
    shift = min(0.5, max(-0.5, shift))
    return k + shift, here - 0.25 * (before - after) * shift
