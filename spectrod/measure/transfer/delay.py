"""The delay between two channels by generalised cross-correlation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.transfer.channel_pairs import as_pair
from spectrod.measure.transfer.cross_spectra import TransferMeter
from spectrod.measure.transfer.phase_weights import averaged_weights, single_weights
from spectrod.measure.transfer.transfer_function import TransferFunction

SAMPLES_MAX = 1 << 20
"""Maximum number of samples that are correlated."""

_UPSAMPLING = 4
"""Points of the correlation for each sample, between which its maximum is found."""

_TAPER_SHARE = 1.0 / 16.0
"""Share of the samples at either end that are faded: ends of a record, not of its sound, would leak
into all frequencies."""

_SEGMENT_MIN, _SEGMENT_MAX = 32, 1 << 14
_SEGMENTS = 4
"""Bounds on the segments of aligned channels [samples], and how many follow each other at least."""

_NEWTON_STEPS = 4
_NEWTON_MAX = 0.3
"""Steps of the maximum to that of all phases, and their largest size [samples]."""


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
        Height of the correlation's maximum: 1 if all frequencies that count have this delay, about
        0 for unrelated channels; negative if the response is inverted.
    """

    seconds: float
    samples: float
    peak: float


@naming_arrays
def measure_delay(
    reference: ArrayLike,
    response: ArrayLike,
    fs: float,
    *,
    max_delay_s: float | None = None,
    band_hz: tuple[float, float] | None = None,
) -> Delay:
    """Measure the delay of a response by generalised cross-correlation.

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
        re the strongest, and those in which a channel has only leakage, never count.

    Returns
    -------
    delay : Delay

    Raises
    ------
    ConfigError, InputError
        If a parameter breaks a rule, or a channel is silent.

    Notes
    -----
    The correlation of the whole, faded at its ends, gives the delay to a sample. The channels are
    then aligned, and the rest is measured in averages of segments, in which a delay of less than a
    sample costs no coherence. So the error without noise is below 0.01 samples if the sound's
    bandwidth times its duration is 200 or more.
    """
    x, y = as_pair(reference, response)
    if not 16 <= len(x) <= SAMPLES_MAX:
        raise InputError(f"{len(x)} samples: must be 16 to {SAMPLES_MAX}")
    if not 0.0 < fs < np.inf:
        raise ConfigError(f"fs={fs:g}: must be a positive number of Hz")
    if band_hz is not None and not 0.0 <= band_hz[0] < band_hz[1] < np.inf:
        raise ConfigError(
            f"band_hz=({band_hz[0]:g}, {band_hz[1]:g}): must be two ascending frequencies"
        )
    limit = len(x) // 2 if max_delay_s is None else _limit(max_delay_s, fs, len(x))
    whole = _delay_of_whole(x, y, fs, limit, band_hz)
    return _delay_of_segments(x, y, fs, round(whole.samples), limit, band_hz) or whole


def delay_of_average(
    found: TransferFunction,
    spec: SpectrumSpec,
    reach: tuple[int, int],
    band_hz: tuple[float, float] | None = None,
) -> Delay:
    """Measure the delay of a response from averaged spectra.

    Parameters
    ----------
    found : TransferFunction
        Averages of uncalibrated channels.
    spec : SpectrumSpec
        Definition of the frames.
    reach : (int, int)
        Least and largest delay, below half of a frame in size [samples].
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
    weights = averaged_weights(found, spec.taper.samples, spec.nfft)
    weights[~_in_band(spec.frequencies, band_hz)] = 0.0
    return _correlated(found.gxy, weights, spec.fs, spec.nfft, reach)


def _delay_of_whole(
    x: Float64Array,
    y: Float64Array,
    fs: float,
    limit: int,
    band_hz: tuple[float, float] | None,
) -> Delay:
    """Measure the delay, within +-limit samples, from one transform of each channel."""
    nfft = 1 << (2 * len(x) - 1).bit_length()
    taper = _faded_ends(len(x))
    of_x, of_y = np.fft.rfft(x * taper, nfft), np.fft.rfft(y * taper, nfft)
    weights = single_weights(of_x, of_y, taper, nfft)
    weights[~_in_band(np.fft.rfftfreq(nfft, 1.0 / fs), band_hz)] = 0.0
    return _correlated(of_x.conj() * of_y, weights, fs, nfft, (-limit, limit))


def _delay_of_segments(
    x: Float64Array,
    y: Float64Array,
    fs: float,
    removed: int,
    limit: int,
    band_hz: tuple[float, float] | None,
) -> Delay | None:
    """Measure the delay that is left after alignment; None if there is too little to average."""
    n = 1 << max(0, ((len(x) - abs(removed)) // _SEGMENTS).bit_length() - 1)
    n = min(n, _SEGMENT_MAX)
    if n < _SEGMENT_MIN:
        return None
    meter = TransferMeter(fs, win_length=n, delay_samples=removed)
    meter.push(x, y)
    reach = (max(-n // 4, -limit - removed), min(n // 4, limit - removed))
    try:
        rest = delay_of_average(meter.result(), meter.spec, reach, band_hz)
    except InputError:  # the band lies between the bins of segments
        return None
    samples = removed + rest.samples
    return Delay(samples / fs, samples, rest.peak)


def _faded_ends(n: int) -> Float64Array:
    """Return a window that is 1 but for a half period of a cosine at either end, (n,)."""
    n_faded = max(1, int(n * _TAPER_SHARE))
    taper = np.ones(n)
    taper[:n_faded] = np.sin(np.pi / 2.0 * (np.arange(n_faded) + 0.5) / n_faded) ** 2
    taper[-n_faded:] = taper[:n_faded][::-1]
    return taper


def _in_band(
    frequencies: NDArray[np.floating], band_hz: tuple[float, float] | None
) -> NDArray[np.bool_]:
    low, high = (0.0, np.inf) if band_hz is None else band_hz
    found: NDArray[np.bool_] = (frequencies >= low) & (frequencies <= high)
    return found


def _correlated(
    cross: NDArray[np.complex128],
    weights: Float64Array,
    fs: float,
    nfft: int,
    reach: tuple[int, int],
) -> Delay:
    """Return the delay within reach at which the weighted phases of a cross spectrum agree most."""
    total = float(np.sum(weights))
    if not total > 0.0:
        raise InputError("delay: no frequency has power in both channels")
    phases = np.zeros_like(cross)
    np.divide(cross, np.abs(cross), out=phases, where=weights > 0.0)
    phases *= weights / total
    correlation = np.fft.irfft(phases, _UPSAMPLING * nfft) * (_UPSAMPLING * nfft / 2.0)
    first, last = (_UPSAMPLING * lag for lag in reach)
    lags = correlation[np.arange(first - 1, last + 2) % len(correlation)]
    samples = (first - 1 + _highest(lags)) / _UPSAMPLING
    samples, peak = _climb(phases, 2.0 * np.pi / nfft, samples)
    samples = min(max(samples, float(reach[0])), float(reach[1]))
    return Delay(samples / fs, samples, peak)


def _highest(values: Float64Array) -> float:
    """Return the place of the largest magnitude inside, by parabolas through three values.

    That of a narrow band has many maxima of nearly the same height.
    """
    size = np.abs(values)
    before, here, after = size[:-2], size[1:-1], size[2:]
    curvature = before - 2.0 * here + after
    is_top = (here >= before) & (here >= after) & (curvature < 0.0)
    shift = np.divide(before - after, 2.0 * curvature, out=np.zeros_like(here), where=is_top)
    heights = np.where(is_top, here - 0.25 * (before - after) * shift, here)
    k = int(np.argmax(heights))
    return float(1 + k + shift[k])


def _climb(phases: NDArray[np.complex128], step: float, samples: float) -> tuple[float, float]:
    """Move a delay to the maximum of the correlation by Newton's method; return it and the height.

    Parameters
    ----------
    phases : (bins,) complex128
        Weighted phases, of weights whose sum is 1.
    step : float
        Angle by which a sample turns each bin more than the one before [rad].
    samples : float
        Delay near the maximum [samples].
    """
    angles = step * np.arange(len(phases))
    for _ in range(_NEWTON_STEPS):
        turned = phases * np.exp(1j * angles * samples)
        slope = -float(np.sum(angles * turned.imag))
        curvature = -float(np.sum(np.square(angles) * turned.real))
        if curvature == 0.0:
            break
        samples -= min(_NEWTON_MAX, max(-_NEWTON_MAX, slope / curvature))
    height = float(np.sum((phases * np.exp(1j * angles * samples)).real))
    return samples, height


def _limit(max_delay_s: float, fs: float, n: int) -> int:
    samples = max_delay_s * fs
    if not 1.0 <= samples < n:
        raise ConfigError(
            f"max_delay_s={max_delay_s:g}: must be 1 sample or more, and less than the {n} given"
        )
    return int(samples)
