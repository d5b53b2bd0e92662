"""How exact spectra in float32 are: as a whole, bin by bin, and what pairs of frames would cost.

``python benchmarks/stft_accuracy.py [--device NAME]`` prints, for tones with noise 100 dB below and
for white noise, the relative L2 of the power, the largest error of a bin's amplitude over the
largest bin's, and the largest level error of bins down to 1e-10 of the maximum; then the time of
two real frames as two transforms and as the parts of one complex transform, and what a loud frame
leaves in a quiet one beside it.
"""

import argparse

import numpy as np
from _report import median_seconds

import spectrod
from spectrod.fft.runtime import use_device

SIZES = (64, 256, 1024, 4096, 65536)
FRAMES = 64
FS = 48_000.0
LEVEL_RANGE = 1e-10


def signals(n: int) -> dict[str, np.ndarray]:
    """Make a full-scale tone between two bins with noise 100 dB below, and white noise."""
    rng = np.random.default_rng(1)
    t = np.arange(n * (FRAMES + 1) // 2 + n)
    noise = rng.standard_normal(len(t))
    tone = np.sin(2 * np.pi * (n // 5 + 0.3) / n * t)
    return {"tone": (tone + 1e-5 * noise).astype(np.float32), "noise": (noise / 10).astype("f4")}


def frame_errors(x: np.ndarray, n: int, device: str) -> tuple[float, float, float]:
    """Relative L2; largest amplitude error over the largest bin's; largest level error [dB]."""
    settings = {"win_length": n, "hop": n // 2, "nfft": n, "scaling": "spectrum"}
    found = spectrod.spectrogram(x, FS, engine="opencl", device=device, **settings).values
    right = spectrod.spectrogram(x, FS, engine="numpy", **settings).values.astype(float)
    peak = right.max(axis=0)
    audible = right > LEVEL_RANGE * peak
    amplitude = np.abs(np.sqrt(found) - np.sqrt(right)) / np.sqrt(peak)
    level = 10 * np.abs(np.log10(found[audible] / right[audible]))
    l2 = np.linalg.norm(found - right) / np.linalg.norm(right)
    return float(l2), float(amplitude.max()), float(level.max())


def pair_times(n: int) -> tuple[float, float]:
    """Time of two real frames by two real transforms and by one complex one [s]."""
    count = (1 << 22) // n
    reals = np.ones((2 * count, n), np.float32)
    pairs = np.ones((count, n), np.complex64)
    bins = np.empty((2 * count, n // 2 + 1), np.complex64)
    whole = np.empty((count, n), np.complex64)
    real = spectrod.fft.plan(reals.shape, dtype="float32", kind="r2c")
    paired = spectrod.fft.plan(pairs.shape)
    two = median_seconds(lambda: real.execute(reals, bins))
    one = median_seconds(lambda: paired.execute(pairs, whole))
    return two / count, one / count


def leak(n: int) -> tuple[float, float]:
    """Relative L2 error of a frame at -100 dB, beside a tone in one transform, and by itself."""
    t, window = np.arange(n), np.hanning(n)
    loud = np.sin(2 * np.pi * (n // 40 + 0.3) / n * t) * window
    quiet = (1e-5 * np.random.default_rng(0).standard_normal(n) * window).astype(np.float32)
    right = np.fft.rfft(quiet.astype(float))
    both = spectrod.fft.fft((loud + 1j * quiet).astype(np.complex64))
    mirrored = np.conj(np.roll(both[::-1], 1))
    paired = ((both - mirrored) / 2j)[: n // 2 + 1]
    alone = spectrod.fft.rfft(quiet)
    scale = np.linalg.norm(right)
    return tuple(float(np.linalg.norm(bins - right) / scale) for bins in (paired, alone))


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="", help="part of PLATFORM/DEVICE, or an index")
    device = parser.parse_args().device
    print(use_device(device, always=True).label)
    for n in SIZES:
        for name, x in signals(n).items():
            l2, amplitude, level = frame_errors(x, n, device)
            print(f"{n:6} {name:5} L2 {l2:.1e}  amplitude {amplitude:.1e}  level {level:.4f} dB")
    for n in (256, 1024, 4096):
        two, one = (1e6 * seconds for seconds in pair_times(n))
        print(f"{n:6} two real frames {two:.2f} us, as one complex {one:.2f} us")
    paired, alone = leak(4096)
    print(f"  4096 a frame at -100 dB: beside a tone {paired:.1e}, by itself {alone:.1e}")


if __name__ == "__main__":
    main()
