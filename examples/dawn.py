"""Make a folder of recordings to try spectrod on: a synthetic dawn, in files of five minutes.

    python examples/dawn.py dawn/ --hours 2

Each file is named by its UTC. Crickets stop while birds begin, a generator runs for a fifth of the
time, rain comes at the end, and one file is missing. The same folder is the same to the sample.
"""

import argparse
import wave
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

FS = 16_000
FILE_S = 300
BEGIN = datetime(2026, 5, 1, 4, 0, tzinfo=UTC)
MISSING = 0.7
"""Position of the missing file, as a share of the whole time."""
SONGS = [
    # Frequencies that a syllable goes through [Hz], its length [s], syllables, pause [s].
    ((3100, 4600, 3800), 0.12, 6, 0.06),
    ((2300, 2100), 0.35, 2, 0.20),
    ((5200, 6900), 0.05, 14, 0.03),
    ((4200, 3000, 3300), 0.22, 3, 0.12),
]


def pink(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return n samples of noise with a density of 1/f and an RMS of 1."""
    spectrum = np.fft.rfft(rng.standard_normal(n))
    spectrum[1:] /= np.sqrt(np.arange(1, spectrum.size))
    spectrum[0] = 0
    noise = np.fft.irfft(spectrum, n)
    return noise / noise.std()


def syllable(frequencies: Sequence[float], length_s: float) -> np.ndarray:
    """Return a tone that glides through the frequencies, with soft ends."""
    n = int(length_s * FS)
    hz = np.interp(np.linspace(0, 1, n), np.linspace(0, 1, len(frequencies)), frequencies)
    return np.sin(2 * np.pi * np.cumsum(hz) / FS) * np.hanning(n)


def add_songs(x: np.ndarray, rng: np.random.Generator, songs_a_minute: float) -> None:
    """Add songs of random birds, distances and times."""
    for _ in range(rng.poisson(songs_a_minute * x.size / FS / 60)):
        frequencies, length_s, count, pause_s = SONGS[rng.integers(len(SONGS))]
        pitch = rng.uniform(0.93, 1.07)
        one = syllable([pitch * hz for hz in frequencies], length_s)
        one *= 10 ** rng.uniform(-2.6, -1.2)
        step = one.size + int(pause_s * FS)
        first = rng.integers(x.size - step * count)
        for start in range(first, first + step * count, step):
            x[start : start + one.size] += one


def add_crickets(x: np.ndarray, gain: float) -> None:
    """Add the crickets' pulses of 4.5 kHz, 30 a second."""
    t = np.arange(x.size) / FS
    x += gain * np.sin(2 * np.pi * 4500 * t) * np.maximum(np.sin(2 * np.pi * 30 * t), 0) ** 2


def add_generator(x: np.ndarray) -> None:
    """Add harmonics of 50 Hz, of which a period is a whole number of samples."""
    t = np.arange(FS // 50) / FS
    period = sum(0.02 / k * np.sin(2 * np.pi * 50 * k * t + k * k) for k in range(1, 25))
    x += np.resize(period, x.size)


def recording(share: float, seed: int) -> np.ndarray:
    """Return one file's samples; `share` of the whole time is over when it begins."""
    rng = np.random.default_rng(seed)
    n = FILE_S * FS
    gusts = np.interp(np.arange(n), np.linspace(0, n, 40), rng.uniform(0.3, 1.0, 40))
    x = 0.004 * gusts * np.resize(pink(rng, 1 << 20), n)
    x += 0.0002 * rng.standard_normal(n)
    add_crickets(x, 0.006 * max(0.0, 1 - 2.5 * share))
    add_songs(x, rng, 60 / (1 + np.exp(-14 * (share - 0.4))))
    if 0.45 <= share < 0.65:
        add_generator(x)
    rain = np.clip((np.linspace(share, share + 0.05, n) - 0.8) / 0.1, 0, 1)
    x += 0.004 * rain * np.diff(rng.standard_normal(n + 1))
    return x


def write(path: Path, x: np.ndarray) -> None:
    """Write samples of -1 to 1 as a WAV file of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(FS)
        file.writeframes((np.clip(x, -1, 1) * 32767).astype("<i2").tobytes())


def main() -> None:
    """Write the files into the folder of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=float, default=1.0, help="from 04:00 UTC (1)")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    files = round(args.hours * 3600 / FILE_S)
    for k in range(files):
        if k == int(MISSING * files):
            continue
        begin = BEGIN + timedelta(seconds=k * FILE_S)
        write(args.folder / f"{begin:%Y%m%d_%H%M%S}.wav", recording(k / files, k))


if __name__ == "__main__":
    main()
