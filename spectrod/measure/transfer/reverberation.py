"""Reverberation times of an impulse response, by backward integration."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError

RANGES_DB: Final = {"EDT": (0.0, 10.0), "T20": (5.0, 25.0), "T30": (5.0, 35.0)}
"""Levels below the total between which the decay is fitted [dB]."""
OCTAVES_HZ: Final = (63.0, 125.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0)
"""Nominal mid-band frequencies of octaves [Hz]."""

_NOISE_MARGIN_DB = 10.0
"""Least distance of the noise from the end of a range (ISO 3382-1, 5.3.3 and 6.3)."""
_ONSET_DB = 20.0
"""Level below the peak at which a response begins (ISO 3382-1, A.2.1)."""
_TAIL_SHARE = 0.1
"""Part at the end that is noise at first."""
_TIME_BANDWIDTH_MIN = 16.0
"""Least product of band width and reverberation time (ISO 3382-1, 7.3)."""
_BLOCKS_OF_10_DB, _BLOCK_MIN_S, _ITERATIONS = 5, 0.002, 6
_FIT_ABOVE_DB = 8.0
_SAMPLES_MIN, _LOWEST_DB = 64, -300.0
_FILTER_ORDER = 6


@dataclass(frozen=True, slots=True, eq=False)
class Reverberation:
    """Decay of an impulse response in one band.

    Attributes
    ----------
    band_hz : (float, float) or None
        Edges of the band [Hz]; None for all frequencies.
    times_s : dict of str to float
        Time of a decay by 60 dB, by the range that it is extrapolated from, see ``RANGES_DB`` [s];
        NaN where the noise is less than 10 dB below that range, or the band is too narrow for so
        short a time.
    noise_db : float
        Level of the noise re that of the begin of the decay [dB].
    t : (n,) float64
        Times after the begin of the response [s].
    decay_db : (n,) float64
        Energy that is still to come, re all of it [dB].
    """

    band_hz: tuple[float, float] | None
    times_s: dict[str, float]
    noise_db: float
    t: Float64Array
    decay_db: Float64Array


def octave_edges(middle_hz: float) -> tuple[float, float]:
    """Return the edges of the octave about a nominal frequency, base ten [Hz] (IEC 61260-1)."""
    exact = 1000.0 * 10.0 ** (0.3 * round(np.log2(middle_hz / 1000.0)))
    return exact * 10.0**-0.15, exact * 10.0**0.15


def reverberation(
    impulse: Float64Array, fs: float, band_hz: tuple[float, float] | None = None
) -> Reverberation:
    """Measure the reverberation times of an impulse response.

    Parameters
    ----------
    impulse : (n,) float64
        Impulse response with the noise after it, not faded out, ``_SAMPLES_MIN`` or more.
    fs : float
        Sample rate [Hz].
    band_hz : (float, float), optional
        Edges of a band, by a filter without phase whose power is that of a Butterworth band-pass.

    Returns
    -------
    found : Reverberation

    Raises
    ------
    ConfigError
        If the response is too short, not finite or silent, or the band is not within 0 and fs / 2.

    Notes
    -----
    The squares are integrated backwards [1]_ from where the decay meets the noise; that place, the
    noise and the rate of the late decay are found by iteration [2]_, and the energy that an
    exponential decay of this rate has after it is added. Fits are least squares of the level over
    the ranges of ISO 3382-1.

    References
    ----------
    .. [1] M. R. Schroeder, "New method of measuring reverberation time", J. Acoust. Soc. Am. 37,
       409, 1965; ISO 3382-1:2009, 5.3.3 and annex A.
    .. [2] A. Lundeby et al., "Uncertainties of measurements in room acoustics", Acustica 81, 344,
       1995.
    """
    x = np.asarray(impulse, np.float64)
    if x.ndim != 1 or len(x) < _SAMPLES_MIN:
        raise ConfigError(f"impulse of shape {x.shape}: must be one of {_SAMPLES_MIN} or more")
    if not (np.isfinite(x).all() and x.any()):
        raise ConfigError("impulse: must be finite and not silent")
    onset = _onset(x)
    if band_hz is not None:
        low, high = band_hz
        if not 0.0 < low < high < fs / 2.0:
            raise ConfigError(f"band_hz={low:g},{high:g}: must be within 0 and {fs / 2.0:g} Hz")
        x = _in_band(x, fs, low, high)
    squares = np.square(x[onset:])
    late = _late(squares, fs)
    energy = np.cumsum((squares[: late.knee] - late.noise)[::-1])[::-1] + late.rest
    positive = np.maximum(energy, energy.max() * 1e-30)
    decay_db = 10.0 * np.log10(positive / positive[0])
    t = np.arange(late.knee) / fs
    noise_db = max(10.0 * np.log10(max(late.floor, 1e-300) / late.begin), _LOWEST_DB)
    least_s = 0.0 if band_hz is None else _TIME_BANDWIDTH_MIN / (band_hz[1] - band_hz[0])
    times = {name: _time(t, decay_db, ends, noise_db, least_s) for name, ends in RANGES_DB.items()}
    return Reverberation(band_hz, times, float(noise_db), t, decay_db)


def _onset(x: Float64Array) -> int:
    """Return the first sample that is less than 20 dB below the peak."""
    size = np.abs(x)
    return int(np.argmax(size >= size.max() * 10.0 ** (-_ONSET_DB / 20.0)))


def _in_band(x: Float64Array, fs: float, low_hz: float, high_hz: float) -> Float64Array:
    nfft = 1 << (2 * len(x) - 1).bit_length()
    f = np.fft.rfftfreq(nfft, 1.0 / fs)
    middle = np.sqrt(low_hz * high_hz)
    with np.errstate(divide="ignore"):
        detune = (f / middle - middle / f) * middle / (high_hz - low_hz)
    gains = 1.0 / np.sqrt(1.0 + detune**_FILTER_ORDER)
    return np.asarray(np.fft.irfft(np.fft.rfft(x, nfft) * gains, nfft)[: len(x)])


class _Late(NamedTuple):
    """Late decay: an exponential, and the noise that it ends in.

    Attributes
    ----------
    knee : int
        Where they meet, or the end [samples].
    noise : float
        Power of the noise; 0 if they do not meet.
    rest : float
        Energy of the decay after the knee.
    floor, begin : float
        Power of the decay at the knee and at sample 0.
    """

    knee: int
    noise: float
    rest: float
    floor: float
    begin: float


def _late(squares: Float64Array, fs: float) -> _Late:
    n = len(squares)
    noise = float(squares[-max(1, int(_TAIL_SHARE * n)) :].mean())
    knee, rate, level = n, 0.0, 0.0
    block = max(1, round(_BLOCK_MIN_S * fs))
    for _ in range(_ITERATIONS):
        n_blocks = knee // block
        means = squares[: n_blocks * block].reshape(n_blocks, block).mean(axis=1)
        is_decay = _late_decay(means, noise)
        if is_decay.sum() < 2:
            break
        centres = (np.arange(n_blocks) + 0.5) * block
        slope, power = map(float, np.polyfit(centres[is_decay], np.log(means[is_decay]), 1))
        if slope >= 0.0:
            break
        rate, level = -slope, power
        knee = int(np.clip((level - np.log(max(noise, 1e-300))) / rate, block, n))
        after = min(knee + int(np.log(10.0) / rate), int((1.0 - _TAIL_SHARE) * n))
        noise = float(squares[after:].mean())
        block = max(1, round(np.log(10.0) / rate / _BLOCKS_OF_10_DB))
    if rate <= 0.0:
        return _Late(n, 0.0, 0.0, noise, float(squares.max()))
    floor = noise if knee < n else float(np.exp(level - rate * n))
    return _Late(knee, noise if knee < n else 0.0, floor / rate, floor, float(np.exp(level)))


def _late_decay(means: Float64Array, noise: float) -> NDArray[np.bool_]:
    """Return which blocks are after the largest, and before the first that is near the noise."""
    peak = int(np.argmax(means))
    low = np.flatnonzero(means[peak:] <= noise * 10.0 ** (_FIT_ABOVE_DB / 10.0))
    stop = peak + int(low[0]) if low.size else len(means)
    numbers = np.arange(len(means))
    return np.asarray((numbers >= peak) & (numbers < stop) & (means > 0.0))


def _time(
    t: Float64Array,
    decay_db: Float64Array,
    ends_db: tuple[float, float],
    noise_db: float,
    least_s: float,
) -> float:
    """Return the time of 60 dB from a part of the decay [s]; NaN if that does not tell."""
    first_db, last_db = ends_db
    if noise_db > -last_db - _NOISE_MARGIN_DB:
        return np.nan
    is_fitted = (decay_db <= -first_db) & (decay_db >= -last_db)
    if is_fitted.sum() < 2 or decay_db[-1] > -last_db:
        return np.nan
    slope, _ = np.polyfit(t[is_fitted], decay_db[is_fitted], 1)
    time_s = -60.0 / float(slope) if slope < 0.0 else np.nan
    return time_s if time_s >= least_s else np.nan
