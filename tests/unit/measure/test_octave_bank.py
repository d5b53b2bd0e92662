"""Levels in fractional octaves: intervals, settling, gaps, and rules."""

import numpy as np
import pytest

from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.levels import OctaveMeter
from spectrod.measure.levels.octave_bank import OctaveFilterBank
from spectrod.measure.levels.octave_filters import STAGES_MAX, octave_filters
from spectrod.measure.levels.recursive import CHUNK_SAMPLES, FilterStack, RecursiveFilter

FS = 48000.0


def noise(n, channels=1, seed=3):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, (channels, n))


def test_bands_have_the_standards_names_and_edges():
    """Third octaves from 20 Hz to 20 kHz have nominal names, and neighbours meet."""
    filters = octave_filters(FS, 3, 20.0, 20000.0)
    assert len(filters) == 31
    assert (filters[0].name, filters[17].name, filters[-1].name) == ("20 Hz", "1 kHz", "20 kHz")
    edges = [one.upper_hz for one in filters[:-1]]
    np.testing.assert_allclose([one.lower_hz for one in filters[1:]], edges)
    assert octave_filters(44100.0, 3, 20.0, 20000.0)[-1].name == "16 kHz"
    assert all(one.upper_hz <= 0.47 * one.fs for one in filters)


def test_low_bands_stay_at_the_last_stage():
    """Bands below what the stages decimate to keep the rate of the last stage."""
    filters = octave_filters(4800.0, 3, 0.25, 20.0)
    assert max(one.stage for one in filters) == STAGES_MAX
    meter = OctaveMeter(4800.0, f_min_hz=0.25, f_max_hz=20.0, interval_s=60.0)
    t = np.arange(60 * 4800) / 4800.0
    rows = meter.push(np.sin(2.0 * np.pi * filters[5].centre_hz * t))
    assert rows == []  # the chunk with the last sample is not complete
    (row,) = meter.finish()
    assert np.argmax(row.levels[:, 0]) == 5


@pytest.mark.parametrize("blocks", [(1, 4095, 7000), (CHUNK_SAMPLES,), (9999, 17)])
def test_results_do_not_depend_on_the_blocks(blocks):
    """Rows are the same, to the bit, however the samples are cut into blocks."""
    x = noise(3 * CHUNK_SAMPLES + 1234, 2)

    def rows_of(sizes):
        meter = OctaveMeter(FS, 2, interval_s=0.0501, f_min_hz=100.0)
        rows, first, k = [], 0, 0
        while first < x.shape[1]:
            rows += meter.push(x[:, first : first + sizes[k % len(sizes)]])
            first, k = first + sizes[k % len(sizes)], k + 1
        return rows + meter.finish()

    expected, rows = rows_of((x.shape[1],)), rows_of(blocks)
    assert [row.first_sample for row in rows] == [row.first_sample for row in expected]
    for one, other in zip(rows, expected, strict=True):
        np.testing.assert_array_equal(one.levels, other.levels)
    assert sum(row.n_samples for row in rows) == x.shape[1]


@pytest.mark.parametrize("name", ["31.5 Hz", "1 kHz", "16 kHz"])
def test_a_sine_settles_in_the_stated_time(name):
    """After the settling time a band's envelope is within 0.1 dB, for octaves and 24ths alike."""
    for fraction in (1, 24):
        near = {"31.5 Hz": 31.5, "1 kHz": 1000.0, "16 kHz": 16000.0}[name]
        one = min(
            octave_filters(FS, fraction, near / 1.1, near * 1.1),
            key=lambda found: abs(found.centre_hz - near),
        )
        n = int(np.ceil(2.0 * one.settle_s * FS / CHUNK_SAMPLES) + 1) * CHUNK_SAMPLES
        phase = 2.0 * np.pi * one.centre_hz / FS * np.arange(n)
        bank = OctaveFilterBank([one], 2)
        both = np.stack([np.cos(phase), np.sin(phase)])
        parts = [next(bank.run(part))[0] for part in np.split(both, n // CHUNK_SAMPLES, axis=1)]
        envelope = np.hypot(*np.concatenate(parts, axis=1))
        settled = envelope[int(np.ceil(one.settle_s * one.fs)) :]
        assert np.abs(20.0 * np.log10(settled)).max() < 0.1 + 0.03


def test_rows_before_settling_are_flagged():
    """A band's rows are flagged until its filter has settled, after the start and after a gap."""
    meter = OctaveMeter(FS, interval_s=0.1, f_min_hz=25.0)
    rows = meter.push(noise(120000)) + meter.push(noise(60000), missing_samples=48000)
    rows += meter.finish()
    first = np.array([row.first_sample for row in rows])
    for band, one in enumerate(meter.filters):
        flagged = np.array([row.is_settling[band] for row in rows])
        since = np.where(first < 168000, first, first - 168000)
        np.testing.assert_array_equal(flagged, since < one.settle_s * FS)
    assert 120000 not in first
    assert 168000 in first


def test_levels_are_re_full_scale():
    """A full-scale sine at 1 kHz has 0 dBFS in its band; a given full scale shifts all levels."""
    x = np.sin(2.0 * np.pi * 1000.0 / FS * np.arange(96000))
    for full_scale_db, expected in ((None, 0.0), (97.0, 97.0 - 3.0103)):
        given = {} if full_scale_db is None else {"full_scale_db": full_scale_db}
        meter = OctaveMeter(FS, interval_s=1.0, **given)
        rows = meter.push(x) + meter.finish()
        band = [one.name for one in meter.filters].index("1 kHz")
        assert rows[1].levels[band, 0] == pytest.approx(expected, abs=0.02)
        assert not rows[1].is_settling[band]


def test_a_band_without_a_sample_has_no_level():
    """An interval shorter than a sample of a low band has no level there, not the lowest one."""
    meter = OctaveMeter(FS, interval_s=0.001, f_min_hz=20.0)
    rows = meter.push(noise(CHUNK_SAMPLES))
    low = np.array([row.levels[0, 0] for row in rows])
    assert np.isnan(low).any()
    assert np.isfinite([row.levels[-1, 0] for row in rows]).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fs": -1.0}, "fs=-1: must be"),
        ({"channels": 0}, "channels=0: must be 1 to 4096"),
        ({"fraction": 2}, "fraction=2: must be one of 1, 3, 6, 12, 24"),
        ({"interval_s": 0.0}, "interval_s=0: must be 0.001 s to a day"),
        ({"interval_s": float("nan")}, "interval_s=nan: must be"),
        ({"f_min_hz": 0.0}, "f_min_hz=0: must be above 0 and at most f_max_hz=20000"),
        ({"f_min_hz": 1e-6}, "f_min_hz=1e-06: must be at least fs/262144, 0.194 Hz"),
        ({"f_min_hz": 24000.0, "f_max_hz": 30000.0}, "no band of 1/3 octave lies there and below"),
    ],
)
def test_rules(settings, message):
    """An error names the value and the rule."""
    with pytest.raises(ConfigError, match=message):
        OctaveMeter(**({"fs": FS} | settings))


def test_unusable_samples_are_refused():
    """Samples of another shape, kind, or not finite are refused."""
    meter = OctaveMeter(FS, 2)
    with pytest.raises(ConfigError, match=r"samples of shape \(5,\), float64: must be \(2, n\)"):
        meter.push(np.zeros(5))
    with pytest.raises(ConfigError, match=r"int16: must be .* floating-point .* 1\.0 at full"):
        meter.push(np.zeros((2, 5), np.int16))
    with pytest.raises(ConfigError, match=r"transpose \(n, channels\), divide int16 by 32768$"):
        meter.push(np.zeros((5, 2), np.int16))
    with pytest.raises(ConfigError, match=r"\(n, channels\), the meter has channels=1$"):
        OctaveMeter(FS).push(np.zeros((5, 2)))
    with pytest.raises(InputError, match="samples after 0: not finite"):
        meter.push(np.full((2, 3), np.nan))


@pytest.mark.parametrize("channels", [1, 3, 20])
def test_filters_in_a_stack_are_those_alone(channels):
    """Filters that run together give what each gives alone, and forget on reset."""
    found = [one for one in octave_filters(FS, 3, 1000.0, 4000.0) if one.stage == 2][:3]
    n = CHUNK_SAMPLES >> 2
    stack = FilterStack([one.cascade for one in found], channels, n)
    alone = [RecursiveFilter(one.cascade, channels, n) for one in found]
    x = np.random.default_rng(1).standard_normal((4, channels, n))
    together = [stack.run(part) for part in x]
    for part, bands in zip(x, together, strict=True):
        np.testing.assert_allclose(bands, [one.run(part) for one in alone], rtol=1e-12, atol=1e-15)
    stack.reset()
    np.testing.assert_array_equal(stack.run(x[0]), together[0])
