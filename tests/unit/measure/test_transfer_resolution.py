"""Whether a transfer function says that its frames are too short for a resonance."""

import numpy as np
import pytest

from spectrod.measure.transfer.cross_spectra import TransferMeter

FS = 48_000


def resonance(x, frequency_hz, quality, gain_db=12.0):
    """Return the samples through a peak filter, by its frequency response.

    The response is that of R. Bristow-Johnson's cookbook, of periodic samples.
    """
    a, w = 10.0 ** (gain_db / 40.0), 2.0 * np.pi * frequency_hz / FS
    alpha = np.sin(w) / (2.0 * quality)
    z = np.exp(-2j * np.pi * np.fft.rfftfreq(len(x)))
    b = (1.0 + alpha * a) - 2.0 * np.cos(w) * z + (1.0 - alpha * a) * z**2
    d = (1.0 + alpha / a) - 2.0 * np.cos(w) * z + (1.0 - alpha / a) * z**2
    return np.fft.irfft(np.fft.rfft(x) * b / d, len(x))


def measured(win_length, frequency_hz, quality, noise):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(10 * FS)
    y = resonance(x, frequency_hz, quality) + noise * rng.standard_normal(len(x))
    meter = TransferMeter(FS, win_length=win_length)
    meter.push(x, y)
    return meter.result()


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize(
    ("win_length", "frequency_hz", "quality", "expected"),
    [
        (4096, 120.0, 5.0, True),
        (1024, 120.0, 1.0, True),
        (4095, 120.0, 5.0, True),
        (4096, 5000.0, 5.0, False),
        (16384, 120.0, 5.0, True),
        (65536, 120.0, 5.0, False),
    ],
)
def test_frames_that_are_too_short_for_a_resonance_are_known(
    win_length, frequency_hz, quality, expected, noise
):
    """The answer is that of H1 at the peak, a quarter of a dB too low or not."""
    found = measured(win_length, frequency_hz, quality, noise)
    assert found.outlasts_frames is expected
    low_db = 12.0 - 20.0 * np.log10(np.abs(found.h1)).max()
    assert (low_db > 0.25) == expected


def test_a_short_frame_is_known_in_noise():
    """Noise of a third of the input hides neither the resonance nor makes one."""
    assert measured(4096, 120.0, 5.0, 0.3).outlasts_frames
    assert not measured(4096, 5000.0, 5.0, 0.3).outlasts_frames


def test_a_wire_and_noise_alone_do_not_outlast_a_frame():
    """Neither a response of one sample nor one of unrelated channels does."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, FS))
    for response in (x, y):
        meter = TransferMeter(FS, win_length=1024)
        meter.push(x, response)
        assert not meter.result().outlasts_frames
