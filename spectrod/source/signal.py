"""Deterministic test signals of exact frequency and level."""

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from spectrod.config.config import Pace
from spectrod.dsp.units import FULL_SCALE_SINE_FS2, Float32Array, Float64Array, dbfs_to_amplitude
from spectrod.lib.errors import ConfigError
from spectrod.lib.suggestions import did_you_mean
from spectrod.source.base import PulledSource

Generator = Callable[[int, int], Float64Array]
"""(index of the first sample, n) -> (n,) float64 samples."""

_NOISE_PERIOD = 1 << 20
_SEED = 20260101
_DAY_S = 86400.0

USAGE: dict[str, str] = {
    "sine": "signal:sine,FREQ_HZ,LEVEL_DBFS",
    "white": "signal:white,LEVEL_DBFS",
    "pink": "signal:pink,LEVEL_DBFS",
    "sweep": "signal:sweep,FROM_HZ,TO_HZ,SECONDS,LEVEL_DBFS",
    "multitone": "signal:multitone,LEVEL_DBFS,FREQ_HZ,...",
    "impulses": "signal:impulses,PERIOD_S,LEVEL_DBFS",
}


class SignalSource(PulledSource):
    """A test signal, the same in every channel, without end.

    Parameters
    ----------
    The text after ``signal:``; see ``USAGE``. Levels are RMS in dBFS (0 dBFS = full-scale sine)
    of the whole signal, of each tone for ``multitone``; for ``impulses`` they are the peak
    (0 dBFS = full scale).
        peak (0 dBFS = full scale).
    fs : float
        Sample rate [Hz].
    channels : int
        Number of identical channels.
    pace : {"realtime", "full"}
        Pace of delivery.

    Raises
    ------
    ConfigError
        If the text does not conform to ``USAGE``, or a frequency is not below fs / 2.

    Notes
    -----
    Every sample is a function of its index alone, so blocks of any size join exactly at any index.
    Noise repeats after 2^20 samples and has its level over each such period; the magnitudes of its
    bins over a whole period are exact, only their phases are random. The sweep restarts at phase 0
    after its duration, rounded to whole samples.
    """

    def __init__(self, text: str, fs: float, channels: int, pace: Pace) -> None:
        super().__init__(pace)
        self.fs, self.channels = fs, channels
        self._generate = _parse(text, fs)
        self.name = "signal"
        self.description = f"test signal {text}"

    def start_at(self, sample_index: int) -> None:
        """Skip the samples before an index; see ``PulledSource``."""
        self._first = sample_index

    def blocks(self, n_max: int) -> Iterator[Float32Array]:
        """Yield the signal in blocks of n_max samples."""
        index = self._first
        while True:
            samples = self._generate(index, n_max).astype(np.float32)
            yield np.broadcast_to(samples, (self.channels, n_max))
            index += n_max


def _parse(text: str, fs: float) -> Generator:
    kind, *arguments = text.split(",")
    if kind not in USAGE:
        forms = ", ".join(USAGE.values())
        raise ConfigError(f"signal:{text}: must be one of {forms}{did_you_mean(kind, USAGE)}")
    try:
        numbers = [float(argument) for argument in arguments]
        return _MAKERS[kind](fs, *numbers)
    except (TypeError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"signal:{text}: must be {USAGE[kind]}") from error


def _check_frequency(frequency_hz: float, fs: float) -> None:
    if not 0.0 < frequency_hz < fs / 2:
        raise ConfigError(f"signal: {frequency_hz:g} Hz: must lie between 0 and fs/2 = {fs / 2:g}")


def _check_level(level_dbfs: float) -> None:
    if not -200.0 <= level_dbfs <= 20.0:
        raise ConfigError(f"signal: {level_dbfs:g} dBFS: must be -200 to 20")


def _sine(fs: float, frequency_hz: float, level_dbfs: float) -> Generator:
    _check_frequency(frequency_hz, fs)
    _check_level(level_dbfs)
    amplitude = dbfs_to_amplitude(level_dbfs)
    cycles_a_sample = _exactly(frequency_hz) / _exactly(fs)
    step = float(cycles_a_sample)

    def generate(index: int, n: int) -> Float64Array:
        # Reduce the first phase exactly: sin(2 pi f n / fs) loses digits as n grows.
        cycles = float(index * cycles_a_sample % 1) + np.arange(n) * step
        return np.asarray(amplitude * np.sin(2.0 * np.pi * cycles))

    return generate


def _exactly(number: float) -> Fraction:
    """Return the exact value of a number's decimal representation: 0.1 is a tenth."""
    return Fraction(repr(float(number)))


def _multitone(fs: float, level_dbfs: float, *frequencies_hz: float) -> Generator:
    if not frequencies_hz:
        raise ValueError
    tones = [_sine(fs, frequency_hz, level_dbfs) for frequency_hz in frequencies_hz]
    return lambda index, n: np.sum([tone(index, n) for tone in tones], axis=0)


def _sweep(fs: float, from_hz: float, to_hz: float, seconds: float, level_dbfs: float) -> Generator:
    """Return a generator of a repeating exponential sweep: equal time per octave."""
    _check_frequency(from_hz, fs)
    _check_frequency(to_hz, fs)
    _check_level(level_dbfs)
    if not 0.0 < seconds <= _DAY_S:
        raise ConfigError(f"signal: sweep of {seconds:g} s: must be above 0, a day at most")
    if from_hz == to_hz:
        raise ConfigError(f"signal: sweep from {from_hz:g} to {to_hz:g} Hz: must not be the same")
    period = max(1, round(seconds * fs))
    rate = np.log(to_hz / from_hz) / period

    def generate(index: int, n: int) -> Float64Array:
        position = (index + np.arange(n)) % period
        cycles = from_hz / fs * np.expm1(position * rate) / rate
        return np.asarray(dbfs_to_amplitude(level_dbfs) * np.sin(2.0 * np.pi * cycles))

    return generate


def _rms(level_dbfs: float) -> float:
    """Return the root mean square [FS] of a signal of the given level."""
    _check_level(level_dbfs)
    return float(np.sqrt(FULL_SCALE_SINE_FS2) * dbfs_to_amplitude(level_dbfs))


def _noise(level_dbfs: float, exponent: float) -> Generator:
    """Return a generator that repeats noise of density f^exponent, exactly, with random phases."""
    n_bins = _NOISE_PERIOD // 2 + 1
    phases = np.random.default_rng(_SEED).uniform(0.0, 2.0 * np.pi, n_bins)
    magnitudes = np.zeros(n_bins)
    magnitudes[1:-1] = np.arange(1.0, n_bins - 1) ** (exponent / 2.0)
    period = np.fft.irfft(magnitudes * np.exp(1j * phases))
    period *= _rms(level_dbfs) / np.sqrt(np.mean(np.square(period)))
    return lambda index, n: period[(index + np.arange(n)) % _NOISE_PERIOD]


def _white(_fs: float, level_dbfs: float) -> Generator:
    return _noise(level_dbfs, 0.0)


def _pink(_fs: float, level_dbfs: float) -> Generator:
    return _noise(level_dbfs, -1.0)


def _impulses(fs: float, period_s: float, level_dbfs: float) -> Generator:
    """Return a generator of one-sample impulses: the k-th at k periods, rounded half up."""
    _check_level(level_dbfs)
    period = _exactly(period_s) * _exactly(fs)
    if not 1 <= period <= _exactly(fs * _DAY_S):
        raise ConfigError(
            f"signal: period of {period_s:g} s: must be a sample ({1 / fs:g} s) to a day"
        )
    amplitude = dbfs_to_amplitude(level_dbfs)

    def generate(index: int, n: int) -> Float64Array:
        samples = np.zeros(n)
        samples[[position - index for position in _multiples(period, index, index + n)]] = amplitude
        return samples

    return generate


def _multiples(period: Fraction, start: int, stop: int) -> list[int]:
    """Return the multiples of a period, rounded half up, that lie in [start, stop)."""
    # With period = a / b, floor(k a / b + 1 / 2) >= n if and only if 2 k a >= (2 n - 1) b.
    a, b = period.numerator, period.denominator
    k_first, k_stop = (-(-(2 * n - 1) * b // (2 * a)) for n in (start, stop))
    return [(2 * k * a + b) // (2 * b) for k in range(max(0, k_first), k_stop)]


_MAKERS: dict[str, Callable[..., Generator]] = {
    "sine": _sine,
    "white": _white,
    "pink": _pink,
    "sweep": _sweep,
    "multitone": _multitone,
    "impulses": _impulses,
}
