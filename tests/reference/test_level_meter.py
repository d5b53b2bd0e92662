"""The sound level meter against SciPy, its independence of blocks, and its flags."""

import datetime as dt
import math
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from spectrod.dsp.blocks import Block
from spectrod.dsp.weighting import POLES_HZ
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.intervals import local_utc_ns, period_at, period_hours
from spectrod.measure.levels import LevelFlag, LevelMeter, parse_quantity
from spectrod.measure.levels.frequency_weighting import weighting_cascade

NS = 10**9
BERLIN = ZoneInfo("Europe/Berlin")
EVERYTHING = [
    *("LAeq", "LCeq", "LZeq", "LAE", "LAF", "LAFmax", "LAFmin", "LASmax", "LCSmin", "LAImax"),
    *("LCpeak", "LZpeak", "LAF10", "L50", "LAS90", "LUFS_M", "LUFS_Mmax", "LUFS_S", "LUFS_Smax"),
    *("peak", "true_peak", "rms", "crest", "dc"),
]


def rows_of(meter, x, cuts=()):
    """Feed (channels, n) samples in pieces; return all rows."""
    rows = []
    for part in np.split(x, list(cuts), axis=1):
        rows += meter.push(part)
    return rows + meter.finish()


def noise(channels, n, seed=3):
    rng = np.random.default_rng(seed)
    envelope = np.repeat(10.0 ** rng.uniform(-2.5, -1, n // 500 + 1), 500)[:n]
    return (envelope * rng.standard_normal((channels, n)) + 0.01).astype(np.float32)


def level(power):
    return 10.0 * np.log10(np.asarray(power) / 0.5)


def weighted_by(weighting, x, fs):
    """Filter by SciPy with sections of the same coefficients."""
    sos = []
    for one in weighting_cascade(weighting, fs):
        pad = [0.0] * (3 - len(one.b))
        sos.append([*one.b, *pad, *one.a, *pad])
    return signal.sosfilt(sos, x)


def test_against_scipy():
    """Levels equal a straightforward computation in float64 within 0.01 dB."""
    fs, n = 16000.0, 70_001
    x = noise(2, n)
    names = ["LAeq", "LAE", "LAFmax", "LAFmin", "LAF", "L10", "L50", "L95.5", "LZeq", "LZpeak"]
    meter = LevelMeter(fs, 2, quantities=[*names, "rms", "crest", "dc", "peak"], interval_s=3600)
    (row,) = rows_of(meter, x)
    weighted = weighted_by("A", x.astype(np.float64), fs)
    a = -np.expm1(-1.0 / (fs * 0.125))
    fast = signal.lfilter([a], [1.0, a - 1.0], np.square(weighted))
    settled = fast[:, int(fs / 2) :]
    counted = level(settled[:, 31 - int(fs / 2) % 32 :: 32])
    mean_a, mean_z = np.square(weighted).mean(axis=1), np.square(x, dtype=np.float64).mean(axis=1)
    expected = [
        level(mean_a),
        level(mean_a * n / fs),
        level(fast.max(axis=1)),
        level(settled.min(axis=1)),
        level(fast[:, -1]),
        *(np.percentile(counted, 100.0 - p, axis=1) for p in (10, 50, 95.5)),
        level(mean_z),
        level(np.square(x, dtype=np.float64).max(axis=1)),
    ]
    np.testing.assert_allclose(row.values[: len(names)], expected, rtol=0, atol=0.01)
    peak = np.abs(x).max(axis=1)
    rest = [np.sqrt(mean_z), 20 * np.log10(peak / np.sqrt(mean_z)), x.mean(axis=1)]
    np.testing.assert_allclose(row.values[len(names) :], [*rest, 20 * np.log10(peak)], rtol=1e-5)


@pytest.mark.extended
@pytest.mark.parametrize("fs", [44100, 48000, 96000])
def test_weighted_white_noise_is_that_of_the_curve(fs):
    """A and C of white noise are its DFT times the curve of IEC 61672-1, annex E, within 0.01 dB.

    phonometry 3.3 reads 0.09 to 0.14 dB less: its A filter is low above 8 kHz, 0.4 dB at 16 kHz.
    """
    x = np.random.default_rng(61672).standard_normal((1, 10 * fs))
    power = np.abs(np.fft.rfft(x[0])) ** 2
    f = np.fft.rfftfreq(x.shape[1], 1.0 / fs)
    low, high = f**2 + 20.598997**2, f**2 + 12194.217**2
    c = f**4 / (low * high) ** 2
    a = c * f**4 / ((f**2 + 107.65265**2) * (f**2 + 737.86223**2))
    at_1_khz = np.flatnonzero(f == 1000.0)
    expected = [
        10.0 * np.log10(np.sum(power * one / one[at_1_khz]) / np.sum(power)) for one in (a, c)
    ]
    meter = LevelMeter(float(fs), quantities=["LAeq", "LCeq", "LZeq"], interval_s=60.0)
    (row,) = rows_of(meter, x)
    *weighted, z = row.values[:, 0]
    assert weighted - z == pytest.approx(expected, abs=0.01)


def test_an_hour_against_scipy():
    """LAeq, LAFmax and percentiles of an hour are within 0.01 dB of SciPy's on all of it."""
    fs, n = 4000.0, 3600 * 4000
    x = noise(1, n)
    meter = LevelMeter(fs, quantities=["LAeq", "LAFmax", "L10", "L90"], interval_s=3600)
    (row,) = rows_of(meter, x, range(100_003, n, 100_003))
    weighted = weighted_by("A", x[0].astype(np.float64), fs)
    a = -np.expm1(-1.0 / (fs * 0.125))
    fast = signal.lfilter([a], [1.0, a - 1.0], np.square(weighted))
    expected = [level(np.square(weighted).mean()), level(fast.max())]
    expected += list(np.percentile(level(fast[2000:]), [90, 10]))
    np.testing.assert_allclose(row.values[:, 0], expected, rtol=0, atol=0.01)
    assert row.n_samples == row.due_samples == n


@pytest.mark.slow
@settings(max_examples=10)
@given(st.lists(st.integers(0, 20_000), max_size=12), st.sampled_from([0.05, 0.1337, 0.4]))
def test_cuts_change_no_bit(cuts, interval_s):
    """Rows are the same to the bit for any blocks, and any number of them."""
    x = noise(2, 20_000)
    names = [name for name in EVERYTHING if parse_quantity(name).least_interval_s <= interval_s]
    whole = rows_of(LevelMeter(8000.0, 2, quantities=names, interval_s=interval_s), x)
    cut = rows_of(LevelMeter(8000.0, 2, quantities=names, interval_s=interval_s), x, sorted(cuts))
    assert len(whole) == len(cut) == math.ceil(20_000 / 8000 / interval_s)
    for one, other in zip(whole, cut, strict=True):
        assert (one.first_sample, one.n_samples) == (other.first_sample, other.n_samples)
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.flags, other.flags)


def test_intervals_add_up():
    """Energies of intervals add up to the whole, extremes are theirs, the summary has both."""
    x = noise(1, 30_011)
    names = ["LAeq", "LAFmax", "LCpeak", "dc", "true_peak"]
    meter = LevelMeter(8000.0, quantities=names, interval_s=0.1)
    values = np.array([row.values[:, 0] for row in rows_of(meter, x)])
    (whole,) = rows_of(LevelMeter(8000.0, quantities=names, interval_s=60), x)
    np.testing.assert_allclose(meter.summary().values, whole.values, rtol=1e-9)
    np.testing.assert_allclose(values[:, 1:3].max(axis=0), whole.values[1:3, 0], rtol=1e-12)
    weights = np.full(38, 800.0)
    weights[-1] = 30_011 - 37 * 800
    mean = np.average(10.0 ** (values[:, 0] / 10.0), weights=weights)
    assert 10.0 * math.log10(mean) == pytest.approx(whole.values[0, 0], abs=1e-9)


def test_full_scale_sine():
    """A full-scale sine is 0 dBFS, its peak level 3.01 dB higher, its crest factor 3.01 dB."""
    fs = 48000.0
    x = np.sin(2.0 * np.pi * 1000.0 / fs * np.arange(3 * 48000) + 0.1)
    names = ["LAeq", "LCeq", "LZeq", "LAFmax", "LASmax", "LCpeak", "crest", "rms"]
    # The start of the sine excites the filters. At the end S has averaged for three seconds.
    row = rows_of(LevelMeter(fs, quantities=names), x[np.newaxis])[-1]
    expected = [0, 0, 0, 0, 10 * math.log10(1 - math.exp(-3)), 3.01, 3.01, 0.5**0.5]
    np.testing.assert_allclose(row.values[:, 0], expected, rtol=0, atol=0.02)


@pytest.mark.parametrize(
    ("hz", "cycles", "expected", "limit"),
    [
        (31.5, 1, 2.5, 2.0),
        (500.0, 1, 3.5, 1.0),
        (8000.0, 1, 3.4, 2.0),
        (500.0, 0.5, 2.4, 1.0),
        (500.0, -0.5, 2.4, 1.0),
    ],
)
def test_peak_c(hz, cycles, expected, limit):
    """Peak C of one cycle and of half cycles is within class 1 of IEC 61672-1, and 0.15 dB."""
    fs = 48000.0
    n = round(abs(cycles) / hz * fs)
    x = np.zeros(24000)
    x[4800 : 4800 + n] = math.copysign(1.0, cycles) * np.sin(
        2.0 * np.pi * abs(cycles) * np.arange(n) / n
    )
    (row,) = rows_of(LevelMeter(fs, quantities=["LCpeak"]), x[np.newaxis])
    f2 = hz * hz
    low, high = POLES_HZ[0] ** 2, POLES_HZ[3] ** 2
    steady = 20.0 * math.log10(high * f2 / ((f2 + low) * (f2 + high))) + 0.0619
    error_db = row.values[0, 0] - steady - expected
    assert abs(error_db) <= min(limit, 0.15)


@pytest.mark.parametrize("fs", [44100.0, 48000.0, 96000.0])
def test_peak_c_between_samples(fs):
    """Peak C of a cycle of 8 kHz is within 0.15 dB wherever between two samples it starts.

    The true peak is that of the same weighting at 16 times the rate.
    """
    cycle = np.sin(2.0 * np.pi * 8000.0 / (16 * fs) * np.arange(round(16 * fs / 8000.0)))
    true = np.abs(weighted_by("C", np.pad(cycle, (0, 999)), 16 * fs)).max()
    found = []
    for start in np.linspace(0.0, 1.0, 21):
        t = (np.arange(500) - 100 - start) / fs
        x = np.where((t >= 0.0) & (t < 1.0 / 8000.0), np.sin(2.0 * np.pi * 8000.0 * t), 0.0)
        (row,) = rows_of(LevelMeter(fs, quantities=["LCpeak"]), x[np.newaxis])
        found.append(row.values[0, 0])
    np.testing.assert_allclose(found, level(true**2), rtol=0, atol=0.15)


TRANSIENT = np.array([0.0, 0.6, 0.6, 0.0])
"""Its largest value, 0.6 * 4 / pi, lies between the middle samples."""


def transient_at(place, n, name):
    x = np.zeros(n)
    x[place : place + 4] = TRANSIENT[: n - place]
    meter = LevelMeter(48000.0, quantities=[name])
    rows_of(meter, x[np.newaxis])
    return float(meter.summary().values[0, 0])


@pytest.mark.parametrize("n", [20, 1201, 4095, 4096, 4097, 4100, 8190, 8192])
@pytest.mark.parametrize(("name", "of_one_db"), [("true_peak", 0.0), ("LZpeak", 3.01)])
def test_peak_at_both_ends(n, name, of_one_db):
    """A transient in the first or the last samples reads what it reads in the middle.

    A signal that is cut in it has the value half a sample beyond its last sample.
    """
    middle_db = transient_at(n // 2, n, name)
    assert middle_db == pytest.approx(20 * math.log10(0.6 * 4 / math.pi) + of_one_db, abs=0.5)
    assert transient_at(0, n, name) == pytest.approx(middle_db, abs=1e-9)
    assert transient_at(n - 4, n, name) == pytest.approx(middle_db, abs=1e-9)
    assert transient_at(n - 3, n, name) == pytest.approx(middle_db, abs=1e-9)
    x = np.where(np.arange(n) % 2, 0.5, -0.5)
    beyond = 2.0 / np.pi * 0.5 * np.sum(1.0 / np.arange(1, 12, 2))
    meter = LevelMeter(48000.0, quantities=[name])
    rows_of(meter, x[np.newaxis])
    found = float(meter.summary().values[0, 0])
    assert found == pytest.approx(20 * math.log10(beyond) + of_one_db, abs=0.5)


@pytest.mark.parametrize("length", [1000, 4090, 4091, 4095, 4096, 4097])
@pytest.mark.parametrize("name", ["true_peak", "LZpeak"])
def test_peaks_between_samples_belong_to_their_interval(length, name):
    """A transient in the last samples of an interval reads there what it reads elsewhere.

    Of the next interval only the place before its first sample is near it.
    """
    fs = 48000.0
    x = np.zeros(4 * length)
    x[length - 4 : length] = TRANSIENT
    rows = rows_of(LevelMeter(fs, quantities=[name], interval_s=length / fs), x[np.newaxis])
    values = np.array([row.values[0, 0] for row in rows])
    assert [row.first_sample for row in rows] == [0, length, 2 * length, 3 * length]
    assert values[0] == pytest.approx(transient_at(length // 2, length, name), abs=1e-9)
    assert values[1] < values[0] - 12.0
    assert (values[2:] < -190.0).all()


def test_calibration_shifts_levels_only():
    """The level of full scale moves levels, and no loudness, peak or linear value."""
    x = noise(2, 48000)
    names = [name for name in EVERYTHING if name not in ("LCSmin", "LAS90", "LUFS_S", "LUFS_Smax")]
    plain = rows_of(LevelMeter(48000.0, 2, quantities=names), x)[0].values
    scaled = LevelMeter(48000.0, 2, quantities=names, full_scale_db=[106.02, 10 * math.log10(2)])
    values = rows_of(scaled, x)[0].values
    moved = [parse_quantity(name).unit in ("level", "exposure") for name in names]
    shift = 106.02 - 10.0 * math.log10(2.0)
    np.testing.assert_allclose(values[:, 0] - plain[:, 0], np.where(moved, shift, 0.0), atol=1e-9)
    np.testing.assert_allclose(values[:, 1], plain[:, 1], rtol=1e-12)


@pytest.mark.parametrize("full_scale_db", [None, 106.02, 180.0, -150.0])
def test_silence_is_the_same_level_in_any_unit(full_scale_db):
    """It is -200 dB, of levels, peaks and bands, whatever the calibration, as in spectra."""
    meter = LevelMeter(
        8000.0,
        quantities=["LAeq", "LAFmax", "LCpeak", "LAE"],
        full_scale_db=full_scale_db,
        bands="octave",
        band_range_hz=(250.0, 1000.0),
    )
    for row in rows_of(meter, np.zeros((1, 17_000))):
        assert row.values[:, 0].tolist() == [-200.0] * 4
        assert np.nanmax(row.band_values) == np.nanmin(row.band_values) == -200.0


def test_silence():
    """Digital silence has the lowest level, -200 dBFS, and no crest factor."""
    row = rows_of(
        LevelMeter(8000.0, quantities=["LAeq", "L90", "peak", "crest"]), np.zeros((1, 9000))
    )[0]
    np.testing.assert_allclose(row.values[:3, 0], -200.0, atol=0.01)
    assert math.isnan(row.values[3, 0])


# ---- time


def block(x, index, utc_ns, fs, lost=0):
    return Block(x, index, 0, utc_ns, lost > 0, lost, fs)


def push(meter, block):
    return meter.push(block.samples, block.missing_samples, block.t_utc_ns)


def test_intervals_on_the_clock():
    """Intervals end at whole seconds of UTC; the first and the last one are partial."""
    fs = 8000.0
    x = noise(1, 20_000)
    meter = LevelMeter(fs, quantities=["LZeq"], align="utc")
    start = 1_700_000_000 * NS + NS // 4
    rows = push(meter, block(x, 0, start, fs)) + meter.finish()
    assert [row.n_samples for row in rows] == [6000, 8000, 6000]
    assert [row.due_samples for row in rows] == [8000] * 3
    assert [row.begin_utc_ns for row in rows] == [start, start + 3 * NS // 4, start + 7 * NS // 4]
    assert [int(row.flags[0]) for row in rows] == [LevelFlag.PARTIAL, 0, LevelFlag.PARTIAL]
    assert rows[0].duration_s == 0.75


def test_a_drifting_clock():
    """A sound card that is 0.1 % slow still has an interval for each second, none of them cut."""
    fs = 8000.0
    meter = LevelMeter(fs, quantities=["LZeq"], align="utc")
    x, rows = noise(1, 800), []
    for k in range(300):
        utc_ns = 1_700_000_000 * NS + round(800 * k / fs * 1.001 * NS)
        rows += push(meter, block(x, 800 * k, utc_ns, fs))
    assert 29 <= len(rows) <= 31
    for row in rows:
        assert row.n_samples == pytest.approx(8000, abs=90)
        assert row.flags[0] == 0
        assert (row.begin_utc_ns + NS // 2) // NS * NS == pytest.approx(
            row.begin_utc_ns, abs=NS / 40
        )


def test_local_days_with_a_change_of_the_clock():
    """Local days have 23, 24 or 25 hours, and the night of such a day 7 or 9."""
    date = dt.date(2026, 3, 29)
    begin, end = (local_utc_ns(date + dt.timedelta(days=k), 0, BERLIN) for k in (0, 1))
    assert end - begin == 23 * 3600 * NS
    assert period_hours(begin, end, BERLIN) == (12.0, 4.0, 7.0)
    assert period_hours(begin - NS, end, BERLIN) == (24.0, 8.0, 15.0)
    autumn = local_utc_ns(dt.date(2026, 10, 25), 12, BERLIN)
    assert period_hours(autumn, autumn + 1, BERLIN) == (12.0, 4.0, 9.0)
    assert period_at(begin, BERLIN) == (2, local_utc_ns(date, 7, BERLIN))
    for hour, period in ((6, 2), (7, 0), (18, 0), (19, 1), (22, 1), (23, 2)):
        assert period_at(local_utc_ns(date, hour, BERLIN), BERLIN)[0] == period


def test_lden():
    """Day 60, evening 55 and night 50 dB give Lden 60.0; a short night counts its true hours."""
    fs = 1000.0
    for date, night_h in ((dt.date(2026, 6, 1), 8), (dt.date(2026, 3, 29), 7)):
        begin = local_utc_ns(date, 0, BERLIN)
        names = ["Lday", "Levening", "Lnight", "Lden"]
        meter = LevelMeter(
            fs, quantities=names, interval_s=86400, align="local", time_zone="Europe/Berlin",
            utc_ns=begin,
        )  # fmt: skip
        # A tone of each hour's level for ten seconds, the rest of the hour missing.
        lost, rows = 0, []
        tone = np.sin(2.0 * np.pi * 200.0 / fs * np.arange(10_000))[np.newaxis]
        for hour in range(16 + night_h):
            utc_ns = begin + hour * 3600 * NS
            gain_db = {0: 60.0, 1: 55.0, 2: 50.0}[period_at(utc_ns, BERLIN)[0]] - 100.0
            rows += meter.push(tone * 10.0 ** (gain_db / 20.0), lost, utc_ns)
            lost = 3_590_000
        (row,) = rows + meter.finish()
        a_db = 20.0 * math.log10(abs(a_gain(200.0)))
        found = row.values[:, 0] + 100.0 - a_db
        hours = np.array([12, 4, night_h])
        lden = 10.0 * math.log10(np.average(np.full(3, 1e6), weights=hours))
        np.testing.assert_allclose(found, [60, 55, 50, lden], atol=0.05)
        assert row.due_samples == (16 + night_h) * 3_600_000
        assert row.flags[0] == LevelFlag.GAP | LevelFlag.PARTIAL | LevelFlag.SETTLING


def a_gain(hz):
    f2 = hz * hz
    f1, f2_, f3, f4 = (pole * pole for pole in POLES_HZ)
    return (
        f4
        * f2**2
        / ((f2 + f1) * (f2 + f4) * math.sqrt((f2 + f2_) * (f2 + f3)))
        * 10 ** (1.99966 / 20)
    )


# ---- gaps and flags


def test_gap():
    """A gap starts the filters again, and flags the intervals with it; times go on."""
    fs = 8000.0
    x = noise(1, 40_000)
    meter = LevelMeter(fs, quantities=["LAeq", "LAFmin"], align="utc")
    start = 1_700_000_000 * NS
    rows = push(meter, block(x[:, :10_000], 0, start, fs))
    rows += push(meter, block(x[:, :30_000], 26_000, start + round(26_000 / fs * NS), fs, 16_000))
    rows += meter.finish()
    assert [row.first_sample for row in rows] == [0, 8000, 26_000, 32_000, 40_000, 48_000]
    assert [row.n_samples for row in rows] == [8000, 2000, 6000, 8000, 8000, 8000]
    broken = LevelFlag.GAP | LevelFlag.PARTIAL | LevelFlag.SETTLING
    assert [int(row.flags[0]) for row in rows] == [LevelFlag.SETTLING, broken, broken, 0, 0, 0]
    new = LevelMeter(
        fs, quantities=["LAeq", "LAFmin"], align="utc", utc_ns=start + 26_000 * 125_000
    )
    again = rows_of(new, x[:, :30_000])
    np.testing.assert_array_equal(rows[3].values, again[1].values)
    assert meter.summary().flags[0] == broken
    assert meter.summary().n_samples == 40_000


def test_overload_and_under_range():
    """One sample at full scale flags its channel and interval; a low level its own."""
    x = noise(2, 24_000) * 0.5
    x[0, 9000] = -1.0
    meter = LevelMeter(8000.0, 2, quantities=["LZeq"], lower_limit_db=-20.0)
    x[1, 16_000:] *= 1e-3
    x[0] += 0.2
    rows = rows_of(meter, np.clip(x, -1.0, 1.0))
    found = [[int(flag) for flag in row.flags] for row in rows]
    under = int(LevelFlag.UNDER_RANGE)
    assert [flags[0] for flags in found] == [0, 0, 0]
    x[0, 9000] = -1.0
    meter = LevelMeter(8000.0, 2, quantities=["LZeq"], lower_limit_db=-40.0)
    found = [[int(flag) for flag in row.flags] for row in rows_of(meter, x)]
    assert found[1][0] == LevelFlag.OVERLOAD
    assert found[0][0] == found[2][0] == found[1][1] == 0
    assert found[2][1] == under


def test_settling():
    """Rows within the settling time of the slowest quantity are flagged."""
    meter = LevelMeter(8000.0, quantities=["LASmax", "LAeq"])
    rows = rows_of(meter, noise(1, 48_000))
    assert [int(row.flags[0]) for row in rows] == [LevelFlag.SETTLING] * 4 + [0, 0]


def test_minimum_leaves_out_settling():
    """The minimum of a steady tone is its level, not that of the start; before, there is none."""
    x = np.sin(np.arange(16_000))[np.newaxis]
    rows = rows_of(LevelMeter(8000.0, quantities=["LZFmin", "LZFmax"], interval_s=0.4), x)
    assert np.isnan(rows[0].values[0, 0])
    assert rows[0].values[1, 0] < -0.1
    np.testing.assert_allclose([row.values[0, 0] for row in rows[1:]], 0.0, atol=0.12)


# ---- arguments


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"quantities": ["LAEQ"]}, r"quantity='LAEQ': must be a level.*did you mean LAeq"),
        ({"quantities": ["L0"]}, r"quantity='L0': must name a percentage above 0"),
        ({"quantities": ["LAFmax10"]}, r"quantity='LAFmax10': must be a level"),
        ({"quantities": []}, r"quantities: 0 names; must be 1 to 64"),
        ({"quantities": ["LAeq", "LAeq"]}, r"quantities: LAeq is given twice"),
        ({"interval_s": 0.009}, r"interval_s=0.009: must be 0.01 s to 366 days"),
        ({"interval_s": float("nan")}, r"interval_s=nan: must be"),
        ({"quantities": ["L10"], "interval_s": 0.5}, r"interval_s=0.5: L10 needs at least 1 s"),
        ({"quantities": ["LRA"]}, r"interval_s=1: LRA needs at least 3 s"),
        ({"quantities": ["Lden"], "time_zone": "UTC"}, r"interval_s=1: Lden needs at least 86400"),
        ({"quantities": ["Lday"]}, r"time_zone: Lday needs the time zone of its local times"),
        ({"align": "local", "interval_s": 86400}, r"time_zone: align='local' needs the time zone"),
        (
            {"align": "local", "interval_s": 7000, "time_zone": "Asia/Kathmandu"},
            r"interval_s=7000: align='local' needs an interval of whole seconds that divides a day",
        ),
        (
            {"align": "local", "interval_s": 0.5, "time_zone": "Asia/Kathmandu"},
            r"interval_s=0\.5: align='local' needs an interval of whole seconds that divides a day",
        ),
        ({"align": "noon"}, r"align='noon': must be one of start, utc, local"),
        ({"time_zone": "Mars/Base"}, r"time_zone='Mars/Base': there is no such time zone"),
        ({"time_zone": "../../etc/passwd"}, r"time_zone='../../etc/passwd': there is no such"),
        ({"fs": 0.0}, r"fs=0: must be"),
        ({"fs": 500.0}, r"fs=500: the weighting A needs a sample rate of at least 1000 Hz"),
        ({"fs": 4000.0, "quantities": ["LUFS_M"]}, r"fs=4000: loudness needs a sample rate"),
        ({"channels": 0}, r"channels=0: must be 1 to 4096"),
        ({"channels": 3, "quantities": ["LUFS_M"]}, r"channels=3: loudness has channel weights"),
        ({"channels": 4096, "quantities": ["L10"]}, r"channels=4096: percentiles of 1 levels"),
        ({"full_scale_db": [1.0, 2.0]}, r"full_scale_db=\[1.0, 2.0\]: must be one finite level"),
        ({"full_scale_db": float("inf")}, r"full_scale_db=inf: must be one finite level"),
    ],
)  # fmt: skip
def test_wrong_arguments(given, text):
    """Each wrong argument is one error that names the value and the rule."""
    with pytest.raises(ConfigError, match=text):
        LevelMeter(**{"fs": 8000.0, **given})


def test_wrong_samples():
    """Samples of the wrong shape or type, not finite, or without a needed time are errors."""
    meter = LevelMeter(8000.0, 2)
    with pytest.raises(ConfigError, match=r"samples of shape \(3, 5\), float64: must be \(2, n\)"):
        meter.push(np.zeros((3, 5)))
    with pytest.raises(ConfigError, match=r"complex128: must be \(2, n\) real floating"):
        meter.push(np.zeros((2, 5), complex))
    with pytest.raises(ConfigError, match=r"int16: must be .* floating-point .* 1\.0 at full"):
        meter.push(np.zeros((2, 5), np.int16))
    with pytest.raises(InputError, match=r"samples after 0: not finite"):
        meter.push([[0.0, np.nan], [0.0, 0.0]])
    with pytest.raises(InputError, match=r"no samples: there are no levels"):
        meter.summary()
    with pytest.raises(ConfigError, match=r"utc_ns: intervals on the clock need the time"):
        LevelMeter(8000.0, align="utc").push(np.zeros(5))
    assert LevelMeter(8000.0).finish() == []
