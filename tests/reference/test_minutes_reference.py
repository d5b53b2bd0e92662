"""Daily files against minutes computed in float64 as pbp computes them."""

import datetime as dt

import h5py
import numpy as np
import pytest
import soundfile
from scipy import signal

from spectrod.cli import main

ERROR_MAX_DB = 1e-5
"""Of levels above -128 dB, which float32 rounds by up to 4e-6 dB."""
START = dt.datetime(2026, 5, 1, 12, 0, 53, 250_000, dt.UTC)
FIRST_MINUTE = 12 * 60


def sound(fs, seconds):
    """Make noise that grows by 6 dB in 10 s, with a tone that rises."""
    rng = np.random.default_rng(5)
    n = round(fs * seconds)
    t = np.arange(n) / fs
    noise = signal.lfilter([1.0], [1.0, -0.5], rng.standard_normal(n)) * 0.004 * 2 ** (t / 10.0)
    return np.clip(noise + 0.01 * np.sin(2 * np.pi * (300.0 + t) * t), -1.0, 1.0)


def table(fs):
    """Return the limits of hybrid millidecades (Martin et al. 2021), the last one at fs / 2."""
    ratios = 10.0 ** (np.arange(2638, 6000) / 1000.0)
    limits = np.concatenate([np.arange(435) - 0.5, ratios])
    return np.concatenate([limits[limits < fs / 2], [fs / 2]])


def minute(x, fs):
    """Return levels of bands: Welch's densities of bins, each spread over 1 Hz."""
    f, density = signal.welch(x, fs, "hann", nperseg=fs, noverlap=fs // 2, detrend=False)
    sums = np.concatenate([[0.0], np.cumsum(density)])
    limits = table(fs)
    power = np.diff(np.interp(limits, np.concatenate([f - 0.5, [f[-1] + 0.5]]), sums))
    return 10.0 * np.log10(power / np.diff(limits))


def daily(tmp_path, fs, files):
    """Record a folder of (begin [s], samples); return levels and effort from the first minute."""
    (tmp_path / "site").mkdir()
    for begin_s, x in files:
        time = START + dt.timedelta(seconds=begin_s)
        name = f"{time:%Y-%m-%dT%H%M%S}.{time.microsecond // 1000:03}Z.wav"
        soundfile.write(tmp_path / "site" / name, x, fs, "FLOAT")
    command = ["record", str(tmp_path / "site"), "-o", str(tmp_path / "d.nc")]
    assert main([*command, "--profile", "millidecade", "--engine", "numpy"]) == 0
    with h5py.File(tmp_path / "d_20260501.nc") as file:
        whole = file["psd"][:], file["effort"][:], file["frequency_bnds"][:]
    return *(values[FIRST_MINUTE:] for values in whole[:2]), whole[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "fs",
    [
        8000,
        11_025,  # a window of an odd length: 118 in a minute
        *(pytest.param(fs, marks=pytest.mark.extended) for fs in (44_100, 96_000, 256_000)),
    ],
)
def test_minutes_are_those_of_the_clock(tmp_path, fs):
    """A whole minute, the rest of one before, and of one after, in all bands to fs / 2."""
    x = sound(fs, 70.25).astype(np.float32).astype(np.float64)
    psd, effort, limits = daily(tmp_path, fs, [(0.0, x)])
    hop = fs - fs // 2
    lead = round(6.75 * fs)
    parts = [x[:lead], x[lead : lead + 60 * fs], x[lead + 60 * fs :]]
    np.testing.assert_allclose(limits[:, 1], table(fs)[1:], rtol=1e-12)
    np.testing.assert_allclose(limits[:, 0], table(fs)[:-1], rtol=1e-12)
    for number, part in enumerate(parts):
        assert np.abs(psd[number] - minute(part, fs)).max() <= ERROR_MAX_DB
        covered = fs + (len(part) - fs) // hop * hop
        assert effort[number] == pytest.approx(covered / fs, abs=1e-5)
    assert not effort[len(parts) :].any()
    assert np.isnan(psd[len(parts) :]).all()


@pytest.mark.slow
def test_a_gap_within_a_minute_splits_its_windows(tmp_path):
    """Both parts of a minute count by their windows, none of which spans the gap."""
    fs = 8000
    x = sound(fs, 70.0).astype(np.float32).astype(np.float64)
    lead = round(6.75 * fs)
    first, second = x[: lead + 20 * fs], x[lead + 33 * fs :]
    psd, effort, _ = daily(tmp_path, fs, [(0.0, first), (39.75, second)])
    parts = x[lead : lead + 20 * fs], x[lead + 33 * fs : lead + 60 * fs]
    frames = [2 * len(part) // fs - 1 for part in parts]
    powers = [10.0 ** (minute(part, fs) / 10.0) for part in parts]
    expected = 10.0 * np.log10(np.average(powers, axis=0, weights=frames))
    assert np.abs(psd[1] - expected).max() <= ERROR_MAX_DB
    assert effort[1] == 47.0
