"""Rows of one second against SciPy's Welch estimate of the same clock seconds, in float64."""

import csv
import datetime as dt
import json

import numpy as np
import pytest
import soundfile
from scipy import signal

from spectrod.cli import main

FULL_SCALE_SINE = 0.5
BAND_ERROR_MAX_DB = 0.05
BROADBAND_ERROR_MAX_DB = 0.01
START = dt.datetime(2026, 5, 1, 4, 29, 59, 750_000, dt.UTC)


def third_octaves(fs, delta_f):
    """Return edges of base-ten third octaves (IEC 61260-1), at least a bin wide, below fs / 2."""
    centre = 1000.0 * 10.0 ** (np.arange(-40, 30) / 10.0)
    edges = np.stack([centre * 10.0**-0.05, centre * 10.0**0.05], axis=1)
    return edges[(np.diff(edges)[:, 0] >= delta_f) & (edges[:, 1] <= fs / 2)]


def millidecades(fs, delta_f):
    """Return edges of millidecades: 1 Hz to 434 Hz, then 1/1000 of a decade, below fs / 2."""
    assert delta_f <= 1.0
    ratios = 10.0 ** (np.arange(2638, 5000) / 1000.0)
    edges = np.concatenate([[0.0], np.arange(434) + 0.5, ratios])
    return np.stack([edges[:-1], edges[1:]], axis=1)[edges[1:] <= fs / 2]


def integrated(density, f, edges):
    """Return the power of bands, with each bin's spread evenly halfway to its neighbours."""
    limits = np.concatenate([[f[0]], (f[1:] + f[:-1]) / 2, [f[-1]]])
    power = np.concatenate([[0.0], np.cumsum(density * f[1])])
    return np.diff(np.interp(edges, limits, power), axis=1)[:, 0]


def sound(fs, seconds):
    """Make pink-like noise, a tone that moves, and bursts: nothing is stationary."""
    rng = np.random.default_rng(3)
    n = round(fs * seconds)
    noise = signal.lfilter([1.0], [1.0, -0.95], rng.standard_normal(n)) * 0.01
    t = np.arange(n) / fs
    tone = 0.05 * np.sin(2 * np.pi * (200.0 * t + 0.01 * fs * t * t / seconds))
    bursts = (np.sin(2 * np.pi * 0.13 * t) > 0.8) * rng.standard_normal(n) * 0.05
    return noise + tone + bursts


def recorded(tmp_path, fs, x, settings):
    """Return the level rows of ``record``, the broadband one last, and the file's last line."""
    soundfile.write(tmp_path / "x.wav", x, fs, "PCM_24")
    (tmp_path / "c.toml").write_text("[analysis]\n" + settings)
    arguments = ["record", str(tmp_path / "x.wav"), "-o", str(tmp_path / "x.csv")]
    arguments += ["--config", str(tmp_path / "c.toml"), "--start-time", START.isoformat()]
    assert main(arguments) == 0
    lines = (tmp_path / "x.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    *names, last = [name for name in rows[0] if ":" in name]
    assert last == "channel 0:broadband"
    levels = np.array([[float(row[name]) for name in (*names, last)] for row in rows])
    return rows, levels, json.loads(lines[-1].removeprefix("# end: "))


def decibels(power):
    return 10.0 * np.log10(np.maximum(power / FULL_SCALE_SINE, 1e-20))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fs", "bands", "win_length", "hop", "seconds"),
    [
        (48_000, "third-octave", 4096, 2048, 20.6),  # README's product
        (44_100, "third-octave", 22_050, 11_025, 20.6),
        (32_000, "millidecade", 32_000, 16_000, 8.6),
        (16_000, "millidecade", 16_000, 8000, 8.6),
        (8000, "millidecade", 8000, 4000, 8.6),
        pytest.param(  # an hour
            *(8000, "third-octave", 4000, 2000, 3600.6), marks=pytest.mark.extended
        ),
    ],
)
def test_seconds_of_the_clock(tmp_path, fs, bands, win_length, hop, seconds):
    """Rows start at whole UTC seconds, and bands and broadband are Welch's of that second."""
    x = sound(fs, seconds)
    settings = f"""
bands = "{bands}"
averaging = "mean"
rate_hz = 1
align = "utc"
win_length = {win_length}
nfft = {win_length}
hop = {hop}
"""
    rows, levels, end = recorded(tmp_path, fs, x, settings)
    x, _ = soundfile.read(tmp_path / "x.wav")  # as it was rounded
    lead = fs // 4
    has_lead = lead >= win_length
    assert (int(rows[0]["cut_frames"]) > 0) == has_lead
    whole = rows[has_lead:]
    first = START + dt.timedelta(seconds=0.25)
    for number, row in enumerate(whole):
        time = first + dt.timedelta(seconds=number)
        assert row["time"] == f"{time:%Y-%m-%dT%H:%M:%S}.000000000Z"
        assert int(row["sample_index"]) == lead + number * fs
    n_seconds = int(seconds - 0.25)
    assert sum(row["cut_frames"] == "0" for row in whole) == n_seconds
    # The end, 0.35 s, is a shorter row, if a window fits in it.
    assert len(whole) - n_seconds == (round((seconds - 0.25) % 1 * fs) >= win_length)
    assert end["rows"] == len(rows)

    edges = {"third-octave": third_octaves, "millidecade": millidecades}[bands](fs, fs / win_length)
    assert levels.shape[1] == len(edges) + 1
    worst_band = worst_sum = worst_broadband = 0.0
    for number, (*bands_, broadband) in enumerate(levels[has_lead : has_lead + n_seconds]):
        own = np.array(bands_)
        begin = lead + number * fs
        f, density = signal.welch(
            x[begin : begin + fs],
            fs,
            "hann",
            nperseg=win_length,
            noverlap=win_length - hop,
            detrend=False,
        )
        power = integrated(density, f, edges)
        worst_band = max(worst_band, np.abs(own - decibels(power)).max())
        total = FULL_SCALE_SINE * (10.0 ** (own / 10.0)).sum()
        worst_sum = max(worst_sum, abs(decibels(total) - decibels(power.sum())))
        of_all = decibels(density.sum() * f[1])
        worst_broadband = max(worst_broadband, abs(broadband - of_all))
    assert worst_band <= BAND_ERROR_MAX_DB
    assert worst_sum <= BROADBAND_ERROR_MAX_DB
    assert worst_broadband <= BROADBAND_ERROR_MAX_DB
