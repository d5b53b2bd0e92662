"""Averages and percentiles of white noise, against the distributions that theory gives them."""

import numpy as np
import pytest
from scipy import signal, stats

import spectrod
from spectrod.dsp.welch import decaying_averages
from spectrod.dsp.windows import get_window

FS, N = 8000.0, 256
SCIPY_NAMES = {"rectangular": "boxcar", "kaiser:8.6": ("kaiser", 8.6)}
WINDOWS = [
    "rectangular", "hann", "hamming", "blackman", "nuttall", "blackmanharris", "flattop",
    "bartlett", "kaiser:8.6",
]  # fmt: skip


def correlations(window, hop):
    """Return the correlation of one bin in frames 1, 2, ... hops apart, as long as they overlap."""
    w = signal.get_window(SCIPY_NAMES.get(window, window), N)
    return np.array([w[: N - k] @ w[k:] / (w @ w) for k in range(hop, N, hop)])


def degrees_of_freedom(window, hop, frames):
    """Return those of Welch's estimate (P. D. Welch 1967)."""
    lags = correlations(window, hop)[: frames - 1]
    overlap = sum((1.0 - (j + 1) / frames) * rho**2 for j, rho in enumerate(lags))
    return 2.0 * frames / (1.0 + 2.0 * overlap)


def degrees_of_freedom_of_decay(window, hop, keep):
    """Return those of an exponential average, long after its beginning.

    Of ``y[n] = keep y[n-1] + (1 - keep) p[n]`` frame n - j has the weight ``(1 - keep) keep**j``.
    Powers p of a bin of noise have the mean m, the variance m^2 and, j hops apart, the covariance
    m^2 rho[j]^2. With sum over i of ``w[i] w[i+j]`` = ``(1 - keep) / (1 + keep) keep**j``, y has
    the mean m and the variance

        m^2 (1 - keep) / (1 + keep) (1 + 2 sum over j >= 1 of keep**j rho[j]^2)

    and chi-squared over nu, scaled to the mean m, has 2 m^2 / nu. So without overlap nu is
    2 (1 + keep) / (1 - keep), or 2 (2 - a) / a of the weight a = 1 - keep of a new frame. The
    average is no sum of equal terms: chi-squared has its mean and variance, not its exact shape.
    """
    rho = correlations(window, hop)
    overlap = np.sum(keep ** np.arange(1, len(rho) + 1) * rho**2)
    return 2.0 * (1.0 + keep) / (1.0 - keep) / (1.0 + 2.0 * overlap)


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


@pytest.mark.parametrize("window", WINDOWS)
def test_exponential_averages_of_white_noise_are_within_chi_squared_bounds(window):
    """95 % of the bins of an exponential average are within bounds of its degrees of freedom."""
    rng = np.random.default_rng(13)
    for hop in (N, N // 2, N // 4):
        for frames in (3.0, 12.0):
            keep = np.exp(-1.0 / frames)
            # Rows are eight time constants apart, so nearly independent; the first are left out.
            apart = round(8 * frames)
            x = rng.normal(0.0, 1.0, (1, N + hop * (apart * 62 - 1)))
            found = spectrod.spectrogram(
                x, FS, window=window, win_length=N, hop=hop, averaging="exponential",
                averaging_s=frames * hop / FS, averaging_frames=apart, engine="numpy",
            )  # fmt: skip
            nu = degrees_of_freedom_of_decay(window, hop, keep)
            worth = decaying_averages(get_window(window, N), hop, 4000, keep)
            assert 2.0 * worth == pytest.approx(nu, rel=1e-6)
            scaled = found.values[0, 8:-8, 2:] * (FS / 2.0) * nu
            low, high = stats.chi2.ppf([0.025, 0.975], nu)
            share = ((scaled >= low) & (scaled <= high)).mean()
            assert share == pytest.approx(0.95, abs=0.02), (hop, frames)
            assert scaled.mean() / nu == pytest.approx(1.0, abs=0.03), (hop, frames)
            assert scaled.var() == pytest.approx(2.0 * nu, rel=0.15), (hop, frames)


@pytest.mark.parametrize("percent", [1, 10, 50, 90, 99])
def test_percentiles_of_white_noise_are_exponential(percent):
    """Ln of white noise is -ln(n / 100) times its density."""
    x = np.random.default_rng(12).normal(0.0, 1.0, N * 2000)
    found = spectrod.spectrogram(
        x, FS, win_length=N, hop=N, averaging=f"L{percent}", averaging_frames=2000, engine="numpy"
    )
    mean = found.values[8:-8].mean() * FS / 2.0
    assert mean == pytest.approx(-np.log(percent / 100.0), rel=0.02)
