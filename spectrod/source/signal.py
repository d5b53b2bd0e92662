"""Test signals of exact frequency and level, the same every time."""

from collections.abc import Callable, Iterator

import numpy as np

from spectrod.config import Pace
from spectrod.errors import ConfigError
from spectrod.source.base import PulledSource
from spectrod.units import FULL_SCALE_SINE_FS2, Float32Array, Float64Array, dbfs_to_amplitude

Generator = Callable[[int, int], Float64Array]
"""(index of the first sample, n) -> (n,) float64 samples."""

_PINK_PERIOD = 1 << 20
_SEED = 20260101

USAGE: dict[str, str] = {
    "sine": "signal:sine,FREQ_HZ,LEVEL_DBFS",
    "white": "signal:white,LEVEL_DBFS",
    "pink": "signal:pink,LEVEL_DBFS",
    "sweep": "signal:sweep,FROM_HZ,TO_HZ,SECONDS,LEVEL_DBFS",
    "multitone": "signal:multitone,LEVEL_DBFS,FREQ_HZ,...",
}


class SignalSource(PulledSource):
    """A test signal, the same in every channel, without end.

    Parameters
    ----------
    text : str
        What follows ``signal:``, as ``USAGE`` says. A level is the whole signal's RMS in dBFS
        (0 dBFS = full-scale sine), but of each tone for ``multitone``.
    fs : float
        Sample rate [Hz].
    channels : int
        Channels, all alike.
    pace : {"realtime", "full"}
        How fast.

    Raises
    ------
    ConfigError
        If the text is not as ``USAGE`` says or a frequency is not below fs / 2.
    """

    def __init__(self, text: str, fs: float, channels: int, pace: Pace) -> None:
        super().__init__(pace)
        self.fs, self.channels = fs, channels
        self._generate = _parse(text, fs)
        self.name = "signal"
        self.description = f"test signal {text}"

    def blocks(self, n_max: int) -> Iterator[Float32Array]:
        """Yield the signal in blocks of n_max samples."""
        index = 0
        while True:
            samples = self._generate(index, n_max).astype(np.float32)
            yield np.broadcast_to(samples, (self.channels, n_max))
            index += n_max


def _parse(text: str, fs: float) -> Generator:
    kind, *arguments = text.split(",")
    if kind not in USAGE:
        raise ConfigError(f"signal:{text}: must be one of {', '.join(USAGE.values())}")
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

    def generate(index: int, n: int) -> Float64Array:
        # Cycles modulo 1 at the block's start: phase-exact to the rounding of one float64 product
        # for years, where sin(2 pi f n / fs) loses digits as n grows.
        start = index * frequency_hz / fs % 1.0
        cycles = start + np.arange(n) * (frequency_hz / fs)
        return np.asarray(amplitude * np.sin(2.0 * np.pi * cycles))

    return generate


def _multitone(fs: float, level_dbfs: float, *frequencies_hz: float) -> Generator:
    if not frequencies_hz:
        raise ValueError
    tones = [_sine(fs, frequency_hz, level_dbfs) for frequency_hz in frequencies_hz]
    return lambda index, n: np.sum([tone(index, n) for tone in tones], axis=0)


def _sweep(fs: float, from_hz: float, to_hz: float, seconds: float, level_dbfs: float) -> Generator:
    """Make a repeating exponential sweep: equal time for each octave."""
    _check_frequency(from_hz, fs)
    _check_frequency(to_hz, fs)
    _check_level(level_dbfs)
    if not 0.0 < seconds <= 86400.0 or from_hz == to_hz:
        raise ValueError
    period = max(1, round(seconds * fs))
    rate = np.log(to_hz / from_hz) / period

    def generate(index: int, n: int) -> Float64Array:
        position = (index + np.arange(n)) % period
        cycles = from_hz / fs * np.expm1(position * rate) / rate
        return np.asarray(dbfs_to_amplitude(level_dbfs) * np.sin(2.0 * np.pi * cycles))

    return generate


def _rms(level_dbfs: float) -> float:
    """Root mean square [FS] of a signal of the given level."""
    _check_level(level_dbfs)
    return float(np.sqrt(FULL_SCALE_SINE_FS2) * dbfs_to_amplitude(level_dbfs))


def _white(_fs: float, level_dbfs: float) -> Generator:
    rms = _rms(level_dbfs)
    generator = np.random.default_rng(_SEED)
    return lambda _index, n: generator.standard_normal(n) * rms


def _pink(_fs: float, level_dbfs: float) -> Generator:
    """Make one period whose density falls with 1/f exactly, of random phase, and repeat it."""
    phases = np.random.default_rng(_SEED).uniform(0.0, 2.0 * np.pi, _PINK_PERIOD // 2 + 1)
    magnitudes = np.zeros(_PINK_PERIOD // 2 + 1)
    magnitudes[1:-1] = 1.0 / np.sqrt(np.arange(1, _PINK_PERIOD // 2))
    period = np.fft.irfft(magnitudes * np.exp(1j * phases))
    period *= _rms(level_dbfs) / np.sqrt(np.mean(np.square(period)))
    return lambda index, n: period[(index + np.arange(n)) % _PINK_PERIOD]


_MAKERS: dict[str, Callable[..., Generator]] = {
    "sine": _sine,
    "white": _white,
    "pink": _pink,
    "sweep": _sweep,
    "multitone": _multitone,
}
