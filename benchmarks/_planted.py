"""Noise with planted calls: white noise, mains hum, rain; all of it seeded."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FS = 16_000
LOW_HZ, HIGH_HZ = 2000.0, 6000.0
"""Band in which calls are, and whose noise their level is relative to."""
CALL_S = 0.3

_WHITE = 1e-2
_PERIOD_S = 3.0
_MAINS_HZ = 50.0
_DROPS_PER_S = 30.0
_DROP_S = 0.02

Samples = NDArray[np.float64]
Spans = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording of noise with calls.

    Attributes
    ----------
    samples : (n,) float64
        At 16 kHz.
    calls : list of (float, float)
        Begin and end of each call [s].
    noise_power : float
        Mean square of the noise alone between 2 and 6 kHz.
    """

    samples: Samples
    calls: Spans
    noise_power: float

    @property
    def seconds(self) -> float:
        """Length [s]."""
        return len(self.samples) / FS


def white(seconds: float, rng: np.random.Generator) -> Samples:
    """Return Gaussian noise."""
    return _WHITE * rng.standard_normal(round(seconds * FS))


def hum(seconds: float, rng: np.random.Generator) -> Samples:
    """Return noise with all harmonics of 50 Hz, which drifts by 0.1 Hz and swells by 1 dB.

    The fundamental is 15 dB above all of the noise, the amplitude of harmonic k lower by 1 / k:
    those between 2 and 6 kHz together are as strong as the noise there.
    """
    t = np.arange(round(seconds * FS)) / FS
    phase = 2 * np.pi * np.cumsum(_MAINS_HZ + 0.1 * np.sin(2 * np.pi * t / 23.0)) / FS
    swell = 10 ** (np.sin(2 * np.pi * t / 7.0) / 20)
    tones = np.zeros(len(t))
    for k in range(1, int(FS / 2 / _MAINS_HZ)):
        tones += np.sin(k * phase + rng.uniform(0.0, 2 * np.pi)) / k
    return 0.5 * white(seconds, rng) + 3.8 * _WHITE * swell * tones


def rain(seconds: float, rng: np.random.Generator) -> Samples:
    """Return noise with drops: decaying tones of 1 to 7 kHz at random times, of random strength.

    Thirty a second, of 1 to 5 ms, whose peaks are spread by 6 dB about ten times the deviation of
    the noise.
    """
    samples = 0.5 * white(seconds, rng)
    t = np.arange(round(_DROP_S * FS)) / FS
    for at in rng.integers(0, len(samples), rng.poisson(seconds * _DROPS_PER_S)):
        peak = 10 * _WHITE * 10 ** (6.0 * rng.standard_normal() / 20)
        tone = np.sin(2 * np.pi * rng.uniform(1000.0, 7000.0) * t + rng.uniform(0.0, 2 * np.pi))
        drop = peak * tone * np.exp(-t / rng.uniform(1e-3, 5e-3))
        samples[at : at + len(t)] += drop[: len(samples) - at]
    return samples


NOISES: dict[str, Callable[[float, np.random.Generator], Samples]] = {
    "white": white,
    "hum": hum,
    "rain": rain,
}


def planted(noise: str, seconds: float, level_db: float | None) -> Recording:
    """Return noise with a tone of 0.3 s in each 3 s, the first in the first second.

    Parameters
    ----------
    noise : str
        Key of ``NOISES``.
    seconds : float
        Length [s].
    level_db : float or None
        Level of a call over the noise between 2 and 6 kHz; None: no calls [dB].
    """
    rng, calls = np.random.default_rng(2), []
    samples = _noise(noise, seconds).copy()
    noise_power = float(np.mean(band_of(samples) ** 2))
    if level_db is not None:
        amplitude = np.sqrt(2 * noise_power * 10 ** (level_db / 10))
        for k in range(int(seconds / _PERIOD_S)):
            begin_s = k * _PERIOD_S + rng.uniform(0.2, 0.7)
            on = slice(round(begin_s * FS), round((begin_s + CALL_S) * FS))
            t = np.arange(on.stop - on.start) / FS
            samples[on] += amplitude * np.sin(2 * np.pi * rng.uniform(2500.0, 5500.0) * t)
            calls.append((begin_s, begin_s + CALL_S))
    return Recording(samples, calls, noise_power)


@lru_cache(maxsize=1)
def _noise(noise: str, seconds: float) -> Samples:
    return NOISES[noise](seconds, np.random.default_rng(1))


def band_of(samples: Samples) -> Samples:
    """Return what lies between 2 and 6 kHz, by a Fourier transform of the whole."""
    spectrum = np.fft.rfft(samples)
    hz = np.fft.rfftfreq(len(samples), 1 / FS)
    spectrum[(hz < LOW_HZ) | (hz > HIGH_HZ)] = 0
    return np.fft.irfft(spectrum, len(samples))
