"""Means and percentiles of white noise, against the distributions that theory gives them."""

import numpy as np
import pytest
from scipy import signal, stats

import spectrod

FS, N = 8000.0, 256
WINDOWS = ["rectangular", "hann", "hamming", "blackman", "nuttall", "blackmanharris", "flattop"]


def degrees_of_freedom(window, hop, frames):
    """Return those of Welch's estimate (P. D. Welch 1967)."""
    w = signal.get_window("boxcar" if window == "rectangular" else window, N)
    lags = [w[: N - k] @ w[k:] / (w @ w) for k in range(hop, N, hop)][: frames - 1]
    overlap = sum((1.0 - (j + 1) / frames) * rho**2 for j, rho in enumerate(lags))
    return 2.0 * frames / (1.0 + 2.0 * overlap)


@pytest.mark.parametrize("window", WINDOWS)
def test_means_of_white_noise_are_within_chi_squared_bounds(window):
    """95 % of the bins are within their bounds, whatever the overlap and the number of frames."""
    rng = np.random.default_rng(11)
    for hop in (N, N // 2, N // 4):
        for frames in (1, 8, 40):
            x = rng.normal(0.0, 1.0, (1, N + hop * (frames * 60 - 1)))
            found = spectrod.spectrogram(
                x, FS, window=window, win_length=N, hop=hop, averaging="mean",
                averaging_frames=frames, engine="numpy",
            )  # fmt: skip
            nu = degrees_of_freedom(window, hop, frames)
            scaled = found.values[0, 8:-8] * (FS / 2.0) * nu
            low, high = stats.chi2.ppf([0.025, 0.975], nu)
            share = ((scaled >= low) & (scaled <= high)).mean()
            assert share == pytest.approx(0.95, abs=0.02), (hop, frames)
            assert scaled.mean() / nu == pytest.approx(1.0, abs=0.03), (hop, frames)


@pytest.mark.parametrize("percent", [1, 10, 50, 90, 99])
def test_percentiles_of_white_noise_are_exponential(percent):
    """Ln of white noise is -ln(n / 100) times its density."""
    x = np.random.default_rng(12).normal(0.0, 1.0, N * 2000)
    found = spectrod.spectrogram(
        x, FS, win_length=N, hop=N, averaging=f"L{percent}", averaging_frames=2000, engine="numpy"
    )
    mean = found.values[8:-8].mean() * FS / 2.0
    assert mean == pytest.approx(-np.log(percent / 100.0), rel=0.02)
