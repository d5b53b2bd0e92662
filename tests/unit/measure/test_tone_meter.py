"""Tones of intervals: figures, tracks with identity and age, for any cut into blocks."""

import numpy as np
import pytest

from spectrod.analysis.spectrogram import spectrogram
from spectrod.dsp.interval_flags import IntervalFlag
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError
from spectrod.measure.quantity_names import known_quantities
from spectrod.measure.tones.distortion import measure_distortion
from spectrod.measure.tones.tone_meter import tone_meter
from spectrod.measure.tones.tone_quantities import DISTORTIONS, TRACK_COLUMNS, UNITS
from spectrod.measure.tones.tone_tally import ToneSettings, ToneTally

FS = 16_000
N = 8_000
NAMES = (*DISTORTIONS, "OBW", "tracks")
ID, FREQUENCY, FREQUENCY_SD, LEVEL, LEVEL_SD, AGE = range(len(TRACK_COLUMNS))


def spec_of(channels=1, **changes):
    given = {"window": "blackmanharris", "win_length": 2048, "hop": 1024}
    return SpectrumSpec(FS, channels, **(given | changes))


def meter_of(names=NAMES, interval_s=0.5, channels=1, **changes):
    return tone_meter(spec_of(channels), names, interval_s=interval_s, **changes)


def tones(n, *frequencies, amplitude=0.1, noise=1e-3, seed=4):
    """Return tones in noise, (1, n)."""
    t = np.arange(n) / FS
    x = sum(amplitude * np.sin(2 * np.pi * f * t) for f in frequencies)
    return (x + noise * np.random.default_rng(seed).normal(size=n))[np.newaxis].astype(np.float32)


def test_values_are_those_of_the_mean_spectrum():
    """Each figure is that of the library for the mean of the interval's frames."""
    t = np.arange(2 * N) / FS
    x = 0.5 * np.sin(2 * np.pi * 500.3 * t) + 0.005 * np.sin(2 * np.pi * 1000.6 * t)
    x = np.stack([x, 0.3 * x]) + 1e-4 * np.random.default_rng(2).normal(size=(2, 2 * N))
    x = x.astype(np.float32)
    rows = meter_of(channels=2).push(x)
    assert len(rows) == 2
    for row in rows:
        part = x[:, row.first_sample : row.first_sample + N]
        frames = spectrogram(
            part, FS, window="blackmanharris", win_length=2048, hop=1024, engine="numpy"
        ).values
        n = frames.shape[-1]
        assert row.n_frames == n == (N - 2048) // 1024 + 1
        spec = spec_of(averaging="mean", averaging_frames=n)
        for k in range(2):
            mean = frames[k].mean(axis=-1, dtype=np.float64)
            found = measure_distortion(mean, spec)
            expected = [getattr(found, field) for field in DISTORTIONS.values()]
            np.testing.assert_allclose(row.values[: len(expected), k], expected, rtol=1e-9)
            assert row.values[2, k] == pytest.approx(-40.0, abs=0.05)  # THD of 1 %


def test_intermodulation_is_that_of_the_two_strongest_tones():
    """IMD is 20 lg of the root-sum-square of the library, and NaN without such a pair."""
    t = np.arange(N) / FS
    x = 0.4 * (np.sin(2 * np.pi * 3000.3 * t) + np.sin(2 * np.pi * 3500.1 * t))
    x = np.stack([x + 0.01 * x**2, 0.4 * np.sin(2 * np.pi * 3000.3 * t)])
    (row,) = meter_of(("IMD_ccif", "tracks", "IMD_smpte"), channels=2).push(x.astype(np.float32))
    # f2 - f1 has the amplitude 0.01 * 0.4^2, the reference is 0.8.
    assert row.values[0, 0] == pytest.approx(20.0 * np.log10(0.002), abs=0.05)
    assert np.isnan(row.values[[0, 2, 2], [1, 0, 1]]).all()
    assert [one.unit for one in known_quantities(["IMD_ccif"], 1.0, UNITS)] == ["dB"]
    with pytest.raises(ConfigError, match="IMD_smpte: is of real signals, not of I/Q"):
        tone_meter(spec_of(2, iq=True), ["IMD_smpte"], interval_s=0.5)


@pytest.mark.parametrize("seed", range(2))
def test_results_do_not_depend_on_the_cut_into_blocks(seed):
    """Values and tracks are the same to the bit however samples come."""
    x = tones(3 * N + 1000, 440.0, 1234.5, 5000.0)
    whole = meter_of()
    rows = whole.push(x) + whole.finish()
    rng = np.random.default_rng(seed)
    cut, found, first = meter_of(), [], 0
    while first < x.shape[1]:
        n = int(rng.integers(1, 3000))
        found += cut.push(x[:, first : first + n])
        first += n
    found += cut.finish()
    assert len(found) == len(rows) == 4
    for one, other in zip(rows, found, strict=True):
        assert one.values.tobytes() == other.values.tobytes()
        assert one.tables[0].tobytes() == other.tables[0].tobytes()


def test_tracks_have_identity_age_and_uncertainty():
    """A tone keeps its identity while it sounds, and its errors are within its uncertainty."""
    whole, early = tones(6 * N, 440.0), tones(3 * N, 2000.0, noise=0.0)
    x = whole.copy()
    x[:, : 3 * N] += early
    rows = meter_of(("tracks",)).push(x)
    assert [row.values[0, 0] for row in rows] == [2.0, 2.0, 2.0, 1.0, 1.0, 1.0]
    for k, row in enumerate(rows):
        (table,) = row.tables
        assert table[0, ID] == rows[0].tables[0][0, ID]
        assert table[0, AGE] == 0.5 * k
        # Six deviations: a probability of 2e-9 for each.
        assert abs(table[0, FREQUENCY] - 440.0) < 6.0 * table[0, FREQUENCY_SD]
        assert abs(table[0, LEVEL] + 20.0) < 6.0 * table[0, LEVEL_SD]
    assert rows[0].tables[0][1, FREQUENCY] == pytest.approx(2000.0, abs=0.01)


def test_stated_deviations_are_those_of_repeated_measurements():
    """The standard deviation of a mean of overlapping frames is that of many measurements."""
    rows = meter_of(("tracks",)).push(tones(200 * N, 441.7, noise=0.02))
    found = np.array([row.tables[0][0] for row in rows])
    for value, deviation in ((FREQUENCY, FREQUENCY_SD), (LEVEL, LEVEL_SD)):
        # 200 values have a standard deviation to 5 %; the stated one is of first order.
        assert found[:, value].std() == pytest.approx(found[:, deviation].mean(), rel=0.25)


def test_a_track_ends_after_the_missed_intervals_and_its_identity_is_not_used_again():
    """Up to max_missed intervals without a peak do not end a track; gaps count as such."""
    settings = ToneSettings(max_missed=1)
    tone, silence = tones(N, 440.0), tones(N)[:, :N] * 0.0
    meter = meter_of(("tracks",), settings=settings)
    identities = []
    for part in (tone, silence, tone, silence, silence, tone):
        (row,) = meter.push(part)
        identities.append(row.tables[0][:, ID].tolist())
    assert identities == [[0.0], [], [0.0], [], [], [1.0]]
    (row,) = meter.push(tone, missing_samples=N)
    assert row.tables[0][0, [ID, AGE]].tolist() == [1.0, 1.0]
    (row,) = meter.push(tone, missing_samples=2 * N)
    assert row.tables[0][0, [ID, AGE]].tolist() == [2.0, 0.0]


def test_another_meter_continues_the_identities():
    """With shared numbers, no identity is used twice by meters that follow each other."""
    numbers = [0]
    for expected in ([0.0, 1.0], [2.0, 3.0]):
        meter = meter_of(("tracks",), next_identity=numbers)
        (row,) = meter.push(tones(N, 440.0, 900.0))
        assert sorted(row.tables[0][:, ID].tolist()) == expected


def test_tracks_are_bounded_and_limited_to_a_band():
    """There are at most max_tracks, the strongest, and none outside the band."""
    x = tones(N, 440.0, 900.0, 2000.0) + tones(N, 3000.0, amplitude=0.3)
    (row,) = meter_of(("tracks",), settings=ToneSettings(max_tracks=1)).push(x)
    assert row.tables[0][:, FREQUENCY] == pytest.approx([3000.0], abs=0.1)
    (row,) = meter_of(("tracks",), settings=ToneSettings(band_hz=(500.0, 2500.0))).push(x)
    assert row.tables[0][:, FREQUENCY] == pytest.approx([900.0, 2000.0], abs=0.1)
    assert row.values[0, 0] == 2.0


def test_without_a_tone_values_are_missing():
    """Noise has no distortion; silence and an interval without a frame have nothing at all."""
    (row,) = meter_of(("fundamental", "OBW", "tracks")).push(tones(N))
    assert np.isnan(row.values[0, 0])
    assert row.values[1, 0] == pytest.approx(0.99 * FS / 2, rel=0.05)
    assert row.values[2, 0] == 0.0
    meter = meter_of(("tracks", "OBW"))
    meter.push(tones(1000, 440.0))
    (row,) = meter.finish()
    assert row.flags[0] == IntervalFlag.PARTIAL
    assert np.isnan(row.values).all()
    assert row.tables[0].shape == (0, len(TRACK_COLUMNS))


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        ((), "quantities: 0 names; must be 1 to 64"),
        (("SINAD", "SINAD"), "quantities: SINAD is given twice"),
        (("sinad",), r"quantity='sinad': must be one of fundamental, .*; did you mean SINAD\?"),
    ],
)
def test_wrong_names(names, rule):
    """Each wrong name is one error."""
    with pytest.raises(ConfigError, match=rule):
        known_quantities(names, 1.0, UNITS)


@pytest.mark.parametrize(
    ("settings", "changes", "rule"),
    [
        ({"max_tracks": 1025}, {}, "max_tracks=1025: must be 1 to 1024"),
        ({"max_missed": -1}, {}, "max_missed=-1: must be at least 0 frames"),
        ({"threshold_db": -1.0}, {}, "threshold_db=-1: must be a level of at least 0 dB"),
        ({"harmonics": 101}, {}, "harmonics=101: must be 2 to 100"),
        ({"max_step_hz": np.inf}, {}, "max_step_hz=inf: must be a positive number of Hz"),
        ({}, {"iq": True, "channels": 2}, "THD: is of real signals, not of I/Q"),
        ({}, {"weighting": "A"}, "weighting='A': tones are measured unweighted"),
        ({}, {"channels": 4096, "win_length": 1 << 14}, "must be at most 16777216 values"),
    ],
)
def test_wrong_settings(settings, changes, rule):
    """Each setting that cannot be is one error when the meter is made."""
    spec = SpectrumSpec(FS, **({"win_length": 2048} | changes))
    with pytest.raises(ConfigError, match=rule):
        ToneTally(known_quantities(("THD",), 1.0, UNITS), spec, 1.0, ToneSettings(**settings))
