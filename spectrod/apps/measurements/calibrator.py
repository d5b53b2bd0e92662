"""The tone of a calibrator: its level and frequency in a recording, and whether it can be used."""

from dataclasses import dataclass
from math import expm1, log10, pi, sin, sqrt

import numpy as np

from spectrod.dsp.units import FULL_SCALE_SINE_FS2, Float64Array
from spectrod.dsp.windows import get_window
from spectrod.lib.errors import InputError

FREQUENCY_TOLERANCE = 0.02
"""Largest relative deviation of the tone from the stated frequency."""
FLUCTUATION_MAX_DB = 0.1
"""Largest deviation of the F-weighted level from its mean [dB]."""
THD_N_MAX = 0.05
"""Largest amplitude of distortion and noise over that of the whole signal."""
SILENCE_DBFS = -90.0
"""Lowest level of a tone [dBFS]."""
CLIPPED_FS = 0.999
"""Magnitude of samples that count as clipped [FS]."""
CHANGE_MAX_DB = 0.5
"""Largest change since the last calibration that needs no confirmation [dB]."""
DURATION_MIN_S, DURATION_MAX_S = 3.0, 60.0
FREQUENCY_MIN_HZ = 10.0
FREQUENCY_MAX_FS = 0.45
"""Highest frequency of a tone, as a share of the sample rate."""

_F_TIME_CONSTANT_S = 0.125
_F_SETTLE_S = 1.0
"""Time after which the F weighting has forgotten its start: eight time constants."""
_SEGMENT_S = 0.25
_SEGMENT_PERIODS = 20
_BLOCK_S = 0.01
_PURE, _LOBE_BINS = "nuttall", 5
"""Window of distortion and noise, and the bins on each side that hold the power of a tone between
two bins but for less than -80 dB; of a Hann window as many hold all but -48 dB, 0.4 %."""
_NOISE_MIN_HZ, _NOISE_MAX_HZ = 20.0, 20_000.0
"""Range in which distortion and noise are measured, as AES17 has it."""


@dataclass(frozen=True, slots=True)
class Tone:
    """A calibrator's tone.

    Attributes
    ----------
    frequency_hz : float
        Frequency [Hz].
    level_dbfs : float
        Level of the tone alone [dBFS].
    fluctuation_db : float
        Largest deviation of the F-weighted level from its mean, after the first second [dB].
    thd_n : float
        Root mean square of all but the tone, 20 Hz to 20 kHz, over that of the whole.
    uncertainty_db : float
        Standard uncertainty of the mean level, from its scatter over segments [dB].
    """

    frequency_hz: float
    level_dbfs: float
    fluctuation_db: float
    thd_n: float
    uncertainty_db: float

    def expanded_uncertainty_db(self, level_uncertainty_db: float) -> float:
        """Return the expanded uncertainty, k = 2, with that of the calibrator's level [dB]."""
        return sqrt(level_uncertainty_db**2 + (2.0 * self.uncertainty_db) ** 2)


def measure_tone(samples: Float64Array, fs: float, frequency_hz: float) -> Tone:
    """Measure the tone of a calibrator.

    Parameters
    ----------
    samples : (n,) float64
        At least ``DURATION_MIN_S`` [FS].
    fs : float
        Sample rate [Hz].
    frequency_hz : float
        Stated frequency, ``FREQUENCY_MIN_HZ`` to ``FREQUENCY_MAX_FS * fs`` [Hz].

    Raises
    ------
    InputError
        If the signal is too short, silent, clipped, of another frequency, unstable or impure; with
        the measured number and its limit.

    Notes
    -----
    Level and frequency are those of segments with a Hann window, from the two largest bins of each:
    with r the ratio of the larger neighbour to the largest bin, the tone is at
    ``d = (2r - 1) / (1 + r)`` bins from the latter, and the window's transform at d gives its
    amplitude. This is exact for a single tone.
    """
    if not FREQUENCY_MIN_HZ <= frequency_hz <= FREQUENCY_MAX_FS * fs:
        raise InputError(
            f"frequency={frequency_hz:g}: must be {FREQUENCY_MIN_HZ:g} to "
            f"{FREQUENCY_MAX_FS * fs:g} Hz at a sample rate of {fs:g} Hz"
        )
    if len(samples) < DURATION_MIN_S * fs:
        raise InputError(f"{len(samples) / fs:.3g} s: must be at least {DURATION_MIN_S:g} s")
    peak = float(np.max(np.abs(samples)))
    if not peak < CLIPPED_FS:
        raise InputError(f"clipped: the peak is {peak:.4g} FS: must be below {CLIPPED_FS:g}")
    samples = samples - samples.mean()
    tone = _tone(samples, fs, frequency_hz)
    _check(tone, frequency_hz)
    return tone


def _check(tone: Tone, frequency_hz: float) -> None:
    """Raise InputError for the first property that is out of its limit."""
    if not tone.level_dbfs >= SILENCE_DBFS:
        raise InputError(
            f"silent: the strongest tone has {tone.level_dbfs:.1f} dBFS: must have "
            f"{SILENCE_DBFS:g} dBFS"
        )
    if not abs(tone.frequency_hz / frequency_hz - 1.0) <= FREQUENCY_TOLERANCE:
        raise InputError(
            f"off frequency: the strongest tone is at {tone.frequency_hz:.1f} Hz: must be within "
            f"{FREQUENCY_TOLERANCE:.0%} of {frequency_hz:g} Hz"
        )
    if not tone.fluctuation_db <= FLUCTUATION_MAX_DB:
        raise InputError(
            f"unstable: the level fluctuates by {tone.fluctuation_db:.2f} dB (F): must be at most "
            f"{FLUCTUATION_MAX_DB:g} dB"
        )
    if not tone.thd_n <= THD_N_MAX:
        raise InputError(
            f"impure: distortion and noise are {tone.thd_n:.1%}: must be at most {THD_N_MAX:.0%}"
        )


def segment_samples(fs: float, frequency_hz: float) -> int:
    """Return the samples of a segment: 0.25 s, or 20 periods of a low tone."""
    return round(max(_SEGMENT_S, _SEGMENT_PERIODS / frequency_hz) * fs)


def _segment_power(
    samples: Float64Array, fs: float, frequency_hz: float, window: str
) -> Float64Array:
    """Return ``|X|^2`` of windowed segments, (segments, bins), scaled to the square of S1."""
    n = segment_samples(fs, frequency_hz)
    n_segments = len(samples) // n
    taper = get_window(window, n)
    segments = samples[: n_segments * n].reshape(n_segments, n) * taper.samples
    return np.asarray(np.abs(np.fft.rfft(segments)) ** 2 / taper.s1**2)


def tone_spectrum(
    samples: Float64Array, fs: float, frequency_hz: float
) -> tuple[Float64Array, Float64Array]:
    """Return the mean spectrum of which distortion and noise are measured.

    Parameters
    ----------
    samples : (n,) float64
        A segment or more [FS].
    fs : float
        Sample rate [Hz].
    frequency_hz : float
        Frequency of the tone [Hz].

    Returns
    -------
    frequencies : (bins,) float64
        [Hz].
    levels : (bins,) float64
        A sine has its level at its bin, at least -200 dB [dBFS].
    """
    samples = samples - samples.mean()
    power = _segment_power(samples, fs, frequency_hz, _PURE).mean(axis=0)
    delta_f = fs / segment_samples(fs, frequency_hz)
    # One side of the spectrum has half of the amplitude.
    levels = 10.0 * np.log10(np.maximum(2.0 * power / FULL_SCALE_SINE_FS2, 1e-20))
    return delta_f * np.arange(len(power), dtype=float), np.asarray(levels)


def _tone(samples: Float64Array, fs: float, frequency_hz: float) -> Tone:
    delta_f = fs / segment_samples(fs, frequency_hz)
    power = _segment_power(samples, fs, frequency_hz, "hann")
    mean = power.mean(axis=0)
    k = _LOBE_BINS + int(np.argmax(mean[_LOBE_BINS:-1]))
    interpolated = [_interpolated(row, k) for row in power]
    squares = np.array([square for _, square in interpolated])
    positions = np.array([position for position, _ in interpolated])
    tone = float(squares.mean())
    if not tone > 0.0:
        return Tone(0.0, -np.inf, 0.0, 1.0, 0.0)
    levels = 10.0 * np.log10(np.maximum(squares, 1e-30))
    return Tone(
        float(positions.mean() * delta_f),
        10.0 * log10(tone / FULL_SCALE_SINE_FS2),
        _fluctuation_db(samples, fs, float(positions.mean() * delta_f)),
        _thd_n(_segment_power(samples, fs, frequency_hz, _PURE), k, delta_f, frequency_hz),
        float(levels.std(ddof=1)) / sqrt(len(levels)),
    )


def _interpolated(power: Float64Array, k: int) -> tuple[float, float]:
    """Return the position [bins] and the mean square of a tone at or next to a bin."""
    k += int(np.argmax(power[k - 1 : k + 2])) - 1
    amplitude = sqrt(float(power[k]))
    if amplitude == 0.0:
        return float(k), 0.0
    above, below = sqrt(float(power[min(k + 1, len(power) - 1)])), sqrt(float(power[k - 1]))
    ratio = max(above, below) / amplitude
    offset = min(max((2.0 * ratio - 1.0) / (1.0 + ratio), 0.0), 0.5)
    gain = sin(pi * offset) / (pi * offset * (1.0 - offset**2)) if offset > 1e-9 else 1.0
    # One side of the spectrum has half of the amplitude.
    square = 2.0 * (amplitude / gain) ** 2
    return k + (offset if above >= below else -offset), square


def _thd_n(power: Float64Array, k: int, delta_f: float, frequency_hz: float) -> float:
    """Return the amplitude of all but the tone over that of all, in the measured range."""
    mean = power.mean(axis=0)
    f = delta_f * np.arange(len(mean))
    counted = (f >= min(_NOISE_MIN_HZ, frequency_hz / 2.0)) & (f <= _NOISE_MAX_HZ)
    counted |= abs(np.arange(len(mean)) - k) <= _LOBE_BINS  # a tone above the range
    counted[:_LOBE_BINS] = False
    total = float(mean[counted].sum())
    tone = float(mean[k - _LOBE_BINS : k + _LOBE_BINS + 1].sum())
    return sqrt(max(0.0, total - tone) / total)


def _fluctuation_db(samples: Float64Array, fs: float, frequency_hz: float) -> float:
    """Return the largest deviation of the F-weighted level from its mean [dB].

    Squares are first averaged over whole periods, so that a low tone's own ripple does not count.
    """
    period = fs / max(frequency_hz, fs / len(samples))
    n_block = max(1, round(max(1.0, round(_BLOCK_S * fs / period)) * period))
    n_blocks = len(samples) // n_block
    squares = np.square(samples[: n_blocks * n_block]).reshape(n_blocks, n_block).mean(axis=1)
    weight = -expm1(-n_block / (fs * _F_TIME_CONSTANT_S))
    average = float(squares[0])
    averages = []
    for square in squares.tolist():
        average += weight * (square - average)
        averages.append(average)
    settled = np.array(averages[round(_F_SETTLE_S * fs / n_block) :])
    levels = 10.0 * np.log10(np.maximum(settled, 1e-30))
    return float(np.max(np.abs(levels - 10.0 * log10(max(settled.mean(), 1e-30)))))
