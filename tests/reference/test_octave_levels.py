"""Levels in fractional octaves against SciPy, and their intervals, gaps and sums."""

import numpy as np
import pytest
from scipy import signal

from spectrod.lib.errors import ConfigError
from spectrod.measure.levels import LevelMeter

FS = 48000
NAMES = ["LZeq", "LZFmax", "LZFmin", "LZF90", "LZSmax", "LZE"]


def bursts(fs, seconds=4.0, channels=2):
    """Make noise that gets louder for half of each second, by another amount in each channel."""
    rng = np.random.default_rng(11)
    n = round(seconds * fs)
    gain = 1.0 + 4.0 * (np.arange(n) % fs < fs // 2)
    return 0.02 * rng.standard_normal((channels, n)) * gain * np.arange(1, channels + 1)[:, None]


def measured(x, fs=FS, block=5000, **settings):
    settings = {"bands": "octave", "band_quantities": NAMES, "interval_s": 1.0} | settings
    meter = LevelMeter(fs, len(x), **settings)
    rows = []
    for first in range(0, x.shape[1], block):
        rows += meter.push(x[:, first : first + block])
    return meter, rows + meter.finish()


def db(power):
    return 10.0 * np.log10(2.0 * power)


@pytest.mark.parametrize("fs", [48000, 44100, 8000])
def test_levels_are_those_of_scipys_filter(fs):
    """In octaves with a rate of their own, levels are those of a filter and an average of SciPy."""
    x = bursts(fs)
    meter, rows = measured(x, fs)
    for number, band in enumerate(meter.bands.filters):
        if not 125.0 <= band.centre_hz <= 0.2 * fs:
            continue  # SciPy's filter at the full rate is warped above, and slow to settle below
        edges = [band.lower_hz, band.upper_hz]
        sos = signal.butter(6, edges, "bandpass", fs=fs, output="sos")
        squares = np.square(signal.sosfilt(sos, x))
        # The decimators delay bands by up to 60 of their samples: bursts begin and end later.
        for row in rows[2:3]:
            begin, end = row.first_sample, row.first_sample + row.n_samples
            found = dict(zip(NAMES, row.band_values[:, number], strict=True))
            mean = squares[:, begin:end].mean(axis=1)
            np.testing.assert_allclose(found["LZeq"], db(mean), atol=0.1)
            np.testing.assert_allclose(found["LZE"], db(mean), atol=0.1)
            for time, constant_s in (("F", 0.125), ("S", 1.0)):
                keep = np.exp(-1.0 / (fs * constant_s))
                averages = signal.lfilter([1.0 - keep], [1.0, -keep], squares)[:, begin:end]
                highest = db(averages.max(axis=1))
                np.testing.assert_allclose(found[f"LZ{time}max"], highest, atol=0.15)
                if time == "F":
                    lowest, tenth = db(averages.min(axis=1)), db(np.quantile(averages, 0.1, axis=1))
                    np.testing.assert_allclose(found["LZFmin"], lowest, atol=0.2)
                    np.testing.assert_allclose(found["LZF90"], tenth, atol=0.2)


def test_values_do_not_depend_on_blocks():
    """Values in bands are the same to the bit for any cut of the samples into blocks."""
    x = bursts(8000)
    _, whole = measured(x, 8000, block=x.shape[1])
    _, cut = measured(x, 8000, block=777)
    assert len(whole) == len(cut) == 4
    for one, other in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(one.band_values, other.band_values)


def test_the_sum_of_bands_is_the_whole():
    """Bands of pink noise have together the level of the whole, within 0.1 dB."""
    rng = np.random.default_rng(3)
    spectrum = np.fft.rfft(rng.standard_normal(1 << 18))
    f = np.fft.rfftfreq(1 << 18, 1.0 / FS)
    spectrum *= np.where((f > 30.0) & (f < 15000.0), 1.0 / np.sqrt(np.maximum(f, 1.0)), 0.0)
    x = np.fft.irfft(spectrum)[None]
    x *= 0.1 / x.std()
    meter, _ = measured(np.tile(x, 2), bands="third-octave", quantities=["LZeq"])
    total = meter.summary()
    summed = 10.0 * np.log10((10.0 ** (total.band_values[0, :, 0] / 10.0)).sum())
    assert summed == pytest.approx(total.values[0, 0], abs=0.1)


def test_the_total_is_that_of_all_intervals():
    """Means, extremes and percentiles of all intervals together are those of one long interval."""
    x = bursts(8000)
    many, rows = measured(x, 8000)
    one, _ = measured(x, 8000, interval_s=60.0)
    np.testing.assert_allclose(
        many.summary().band_values, one.summary().band_values, rtol=0, atol=1e-9
    )
    highest = np.max([row.band_values[1] for row in rows], axis=0)
    np.testing.assert_array_equal(many.summary().band_values[1], highest)


def test_a_gap_starts_the_filters_again():
    """After a gap, bands settle again: minima and percentiles leave out that time."""
    x = bursts(8000, 14.0, channels=1)
    meter = LevelMeter(8000, bands="octave", band_quantities=NAMES, band_range_hz=(250, 2000))
    rows = meter.push(x[:, :32000]) + meter.push(x[:, 40000:], missing_samples=8000)
    rows += meter.finish()
    by_start = {row.first_sample // 8000: row for row in rows}
    assert 4 not in by_start
    assert by_start[5].flags[0] & 4
    unsettled = by_start[5].band_values
    assert np.isfinite(unsettled[0]).all()
    later = by_start[10]  # S settles in 4 s
    assert not later.flags[0]
    np.testing.assert_allclose(later.band_values[0], by_start[2].band_values[0], atol=1.5)
    # A filter that starts from rest would read a minimum far below that of the noise.
    assert (unsettled[2] > by_start[2].band_values[2] - 6.0)[np.isfinite(unsettled[2])].all()


def test_calibration_shifts_bands():
    """Levels in bands have the full scale of each channel."""
    x = bursts(8000)
    _, plain = measured(x, 8000)
    _, shifted = measured(x, 8000, full_scale_db=[100.0, 120.0])
    difference = shifted[2].band_values - plain[2].band_values
    for k, full_scale_db in enumerate((100.0, 120.0)):
        np.testing.assert_allclose(difference[:, :, k], full_scale_db - 3.0103, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"bands": "mel:40"}, "bands='mel:40': must be octave, third-octave, octave/6, octave/12"),
        ({"bands": "octave/5"}, "bands='octave/5': must be octave"),
        ({"bands": "", "band_quantities": ["LZeq"]}, "band_quantities=LZeq: need bands: octave"),
        ({"band_quantities": ["LAeq"]}, "quantity='LAeq': in bands, must be a level without"),
        ({"band_quantities": ["L90"]}, "quantity='L90': in bands, must be a level without"),
        ({"band_quantities": ["LZImax"]}, "quantity='LZImax': in bands"),
        ({"band_quantities": ["LZpeak"]}, "quantity='LZpeak': in bands"),
        ({"band_quantities": ["LUFS_M"]}, "quantity='LUFS_M': in bands"),
        ({"band_quantities": ["LZF10"], "interval_s": 0.5}, "interval_s=0.5: LZF10 needs at least"),
        ({"band_range_hz": (100.0, 10.0)}, "f_min_hz=100: must be above 0 and at most f_max_hz=10"),
        ({"band_range_hz": (float("nan"), 10.0)}, "f_min_hz=nan: must be above 0"),
        ({"band_range_hz": (1e-3, 10.0)}, "f_min_hz=0.001: must be at least fs/262144"),
    ],
)
def test_wrong_bands(settings, text):
    """Each wrong band, quantity and range is one error."""
    with pytest.raises(ConfigError, match=text):
        LevelMeter(FS, **({"bands": "octave"} | settings))


def test_percentiles_in_bands_are_bounded_in_memory():
    """Percentiles of many bands and channels that need more than 512 MiB are refused."""
    with pytest.raises(ConfigError, match="percentiles of 31 levels need more than 512 MiB"):
        LevelMeter(FS, 64, bands="third-octave", band_quantities=["LZF90"])
