"""Effective number of averages over overlapping frames."""

import numpy as np
import pytest

from spectrod.dsp.welch import decaying_averages, effective_averages, frame_correlation
from spectrod.dsp.windows import get_window

# K_eff / K of long averages at overlaps of 50, 66.7 and 75 %.
SHARES = [
    ("rectangular", 0.667, 0.474, 0.364),
    ("hann", 0.947, 0.692, 0.520),
    ("hamming", 0.901, 0.632, 0.474),
    ("blackman", 0.984, 0.795, 0.603),
    ("nuttall", 0.997, 0.883, 0.692),
    ("flattop", 1.000, 0.989, 0.995),
]


@pytest.mark.parametrize(("name", "half", "two_thirds", "three_quarters"), SHARES)
def test_shares_of_long_averages(name, half, two_thirds, three_quarters):
    """Long averages are worth the known share of their frames."""
    window = get_window(name, 1200)
    for hop, share in ((600, half), (400, two_thirds), (300, three_quarters)):
        found = effective_averages(window, hop, 100_000) / 100_000
        assert found == pytest.approx(share, abs=0.0006)


@pytest.mark.parametrize(("hop", "n_frames"), [(64, 7), (256, 1), (256, 5), (300, 9)])
def test_bounds(hop, n_frames):
    """One frame is worth one; frames that do not overlap are worth their number."""
    found = effective_averages(get_window("hann", 256), hop, n_frames)
    assert 1.0 <= found <= n_frames
    if hop >= 256 or n_frames == 1:
        assert found == n_frames


def test_correlation_is_that_of_the_shifted_window():
    """The correlation is the sum of products of the window with itself, hops apart."""
    w = get_window("hamming", 101).samples
    expected = [w[h:] @ w[:-h] / (w @ w) for h in (30, 60, 90)]
    np.testing.assert_allclose(frame_correlation(get_window("hamming", 101), 30), expected)


@pytest.mark.parametrize(("hop", "n_frames"), [(64, 1), (32, 9), (16, 200), (100, 40)])
def test_averages_of_an_exponential_mean(hop, n_frames):
    """The closed form is the sum over all pairs of frames."""
    window, decay = get_window("hann", 64), 0.9
    weights = decay ** np.arange(n_frames)
    weights /= weights.sum()
    squared = np.zeros(n_frames)
    known = frame_correlation(window, hop)[: n_frames - 1] ** 2
    squared[1 : 1 + len(known)] = known
    squared[0] = 1.0
    lags = np.abs(np.subtract.outer(np.arange(n_frames), np.arange(n_frames)))
    expected = 1.0 / (weights @ squared[lags] @ weights)
    found = decaying_averages(window, hop, n_frames, decay)
    assert found == pytest.approx(expected, rel=1e-9)
