"""Features of intervals: those of all frames at once, for any cut into blocks, and bad input."""

import numpy as np
import pytest

from spectrod.analysis.spectrogram import spectrogram
from spectrod.dsp.calibration import calibration_of
from spectrod.dsp.interval_flags import IntervalFlag
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.features.feature_meter import feature_meter
from spectrod.measure.features.feature_quantities import parse_feature, parse_features
from spectrod.measure.features.feature_tally import FeatureTally, check_features
from spectrod.measure.features.indices import (
    acoustic_complexity,
    acoustic_diversity,
    soundscape_index,
)
from spectrod.measure.features.kurtosis import spectral_kurtosis
from spectrod.measure.features.shape import spectral_shape
from spectrod.measure.levels import LevelMeter, OctaveMeter

FS = 20_000
ALL = ("centroid", "centroid_sd", "rolloff_min", "flatness", "flux_max", "entropy", "ACI_0.4s",
       "NDSI", "SK_mean", "SK_max", "SK_frequency", "ADI")  # fmt: skip


def noise(n, channels=2, seed=11):
    """Return white noise, and noise whose power falls with frequency."""
    x = np.random.default_rng(seed).uniform(-0.3, 0.3, (channels, n)).astype(np.float32)
    x[1:] = np.cumsum(x[1:], axis=1) * 0.02 % 0.9
    return x


def spec_of(channels=2, **changes):
    return SpectrumSpec(FS, channels, **({"win_length": 512, "hop": 256} | changes))


def meter_of(names=ALL, interval_s=0.5, channels=2, **changes):
    return feature_meter(spec_of(channels), names, interval_s=interval_s, **changes)


def frames_of(x, spec):
    """Return all frames of samples, (frames, channels, bins)."""
    found = spectrogram(x, FS, win_length=spec.win_length, hop=spec.hop, engine="numpy")
    return np.moveaxis(found.values, -1, 0)


def in_blocks(meter, x, rng):
    """Feed samples in blocks of random lengths; return all rows."""
    rows, first = [], 0
    while first < x.shape[1]:
        n = int(rng.integers(1, 1500))
        rows += meter.push(x[:, first : first + n])
        first += n
    return rows + meter.finish()


def test_meters_print_as_one_line():
    """Rate, channels, quantities and interval are there, of meters of frames and of samples."""
    meter = meter_of(("centroid", "flatness"))
    assert repr(meter) == "<FrameMeter: 20000 Hz, 2 channels, centroid, flatness each 0.5 s>"
    levels = LevelMeter(FS, quantities=["LAeq"])
    assert repr(levels) == "<LevelMeter: 20000 Hz, 1 channel, LAeq each 1 s>"
    octaves = OctaveMeter(FS, 2, fraction=1, f_min_hz=63.0, f_max_hz=4000.0)
    expected = "<OctaveMeter: 20000 Hz, 2 channels, 7 bands from 63 Hz to 4 kHz each 1 s>"
    assert repr(octaves) == expected
    assert repr(octaves.push(np.zeros((2, 2 * FS)))[0]) == (
        "<OctaveRow: sample 0, 20000 samples, 7 x 2 levels, 7 settling>"
    )


def test_rows_print_as_one_line():
    """Begin, duration, sizes and flags are there, and no array."""
    (row,) = meter_of(("centroid",), interval_s=1.0).push(noise(FS + 1000))
    assert repr(row) == "<Measurement: sample 0, 1 s, 1 value of 2 channels>"
    levels = LevelMeter(FS, quantities=["LAeq", "L90"], bands="octave", utc_ns=10**18)
    partial = [*levels.push(noise(FS + 1000)[:1]), *levels.finish()][-1]
    assert repr(partial) == (
        "<LevelRow: sample 20000, 2001-09-09T01:46:41.000000000Z, 0.05 s, 2 values of 1 channel, "
        "8 bands, partial>"
    )


def test_an_interval_has_the_features_of_its_frames():
    """Each value is that of the functions for all frames of the interval at once."""
    x = noise(2 * FS)
    rows = meter_of().push(x)
    assert [row.first_sample for row in rows] == [0, 10_000, 20_000, 30_000]
    for row in rows:
        samples = x[:, row.first_sample : row.first_sample + 10_000]
        spec = spec_of()
        frames = frames_of(samples, spec)
        assert row.n_frames == len(frames) == (10_000 - 512) // 256 + 1
        shape = spectral_shape(frames, spec)
        frequencies, kurtosis = spectral_kurtosis(frames, spec)
        n_block = (8_000 - 512) // 256 + 1
        expected = [
            shape.centroid_hz.mean(axis=0),
            shape.centroid_hz.std(axis=0),
            shape.rolloff_hz.min(axis=0),
            shape.flatness.mean(axis=0),
            shape.flux[1:].max(axis=0),
            shape.entropy.mean(axis=0),
            acoustic_complexity(frames, spec, block_s=n_block * spec.row_s).values[0],
            soundscape_index(frames, spec).values,
            kurtosis.mean(axis=-1),
            kurtosis.max(axis=-1),
            frequencies[kurtosis.argmax(axis=-1)],
        ]
        np.testing.assert_allclose(row.values[:-1], expected, rtol=1e-9)
        # Cells within a class, 0.009 dB, of the threshold may count or not.
        near = [
            acoustic_diversity(frames, spec, threshold_db=-50.0 + by).values for by in (-0.01, 0.01)
        ]
        assert (row.values[-1] >= np.min(near, axis=0) - 1e-12).all()
        assert (row.values[-1] <= np.max(near, axis=0) + 1e-12).all()


@pytest.mark.parametrize("seed", range(3))
def test_results_do_not_depend_on_the_cut_into_blocks(seed):
    """Live and file give the same bits: rows are the same however samples come."""
    x = noise(int(1.3 * FS))
    whole = meter_of()
    rows = whole.push(x) + whole.finish()
    cut = in_blocks(meter_of(), x, np.random.default_rng(seed))
    assert len(cut) == len(rows) == 3
    for one, other in zip(rows, cut, strict=True):
        assert one.values.tobytes() == other.values.tobytes()
        assert one.n_frames == other.n_frames
        np.testing.assert_array_equal(one.flags, other.flags)


def test_an_interval_does_not_depend_on_the_begin_of_the_measurement():
    """A meter that begins later has the same rows from its first whole interval on."""
    x = noise(2 * FS)
    rows = meter_of().push(x)
    begin = 7_777
    late = meter_of(first_sample=begin).push(x[:, begin:])
    assert late[0].first_sample == begin
    assert late[0].flags[0] == IntervalFlag.PARTIAL
    for one, other in zip(rows[1:], late[1:], strict=True):
        assert one.first_sample == other.first_sample
        assert one.values.tobytes() == other.values.tobytes()


def test_no_frame_spans_a_gap():
    """Frames begin again after a gap; flags say so, and intervals without samples have no row."""
    x = noise(FS)
    meter = meter_of(("centroid", "flux"))
    rows = meter.push(x[:, :6_000])
    rows += meter.push(x[:, :6_000], missing_samples=20_000)
    rows += meter.finish()
    assert [row.first_sample for row in rows] == [0, 26_000, 30_000]
    gap_and_part = IntervalFlag.GAP | IntervalFlag.PARTIAL
    assert [row.flags[0] for row in rows] == [gap_and_part, gap_and_part, IntervalFlag.PARTIAL]
    assert [row.n_samples for row in rows] == [6_000, 4_000, 2_000]
    assert [row.span_samples for row in rows] == [6_000, 4_000, 2_000]
    meter = meter_of(("centroid", "flux"))
    meter.push(x[:, :3_000])
    (row,) = meter.push(x[:, 3_000:8_000], missing_samples=2_000)
    spec = spec_of()
    parts = [frames_of(part, spec) for part in (x[:, :3_000], x[:, 3_000:8_000])]
    flux = np.concatenate([spectral_shape(part, spec).flux[1:] for part in parts])
    assert row.n_frames == sum(map(len, parts))
    assert (row.n_samples, row.span_samples) == (8_000, 10_000)
    np.testing.assert_allclose(row.values[1], flux.mean(axis=0), rtol=1e-9)


def test_silence_has_no_features():
    """Without any power values are NaN, and so they are without a frame."""
    (row,) = meter_of(channels=1).push(np.zeros((1, 10_000), np.float32))
    assert row.n_frames == 38
    assert np.isnan(row.values[[0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11]]).all()
    assert row.values[6, 0] == 0.0
    meter = meter_of(channels=1)
    meter.push(np.ones((1, 500)))
    (short,) = meter.finish()
    assert short.n_frames == 0
    assert np.isnan(short.values).all()
    assert short.flags[0] == IntervalFlag.PARTIAL | IntervalFlag.OVERLOAD


def test_the_calibration_of_channels_does_not_matter(tmp_path):
    """Features are ratios: channels may have different units."""
    file = tmp_path / "two.toml"
    file.write_text(
        '[channels.0]\nreference = "20 uPa"\nfull_scale_db = 120\nfull_scale = "rms"\n'
        '[channels.1]\nreference = "1 V"\nfull_scale_db = 3\nfull_scale = "rms"\n',
        "utf-8",
    )
    x = noise(10_000)
    names = ("centroid", "flatness", "NDSI", "ADI")
    (row,) = meter_of(names).push(x)
    spec = spec_of(calibration=calibration_of(str(file), 2))
    assert len(set(spec.scale.units)) == 2
    (calibrated,) = feature_meter(spec, names, interval_s=0.5).push(x)
    np.testing.assert_allclose(calibrated.values, row.values, rtol=1e-5)


def test_intervals_follow_utc():
    """With align utc intervals end at multiples of UTC, and rows state the time."""
    meter = meter_of(("centroid",), align="utc", channels=1)
    begin_ns = 1_700_000_000_300_000_000
    rows = meter.push(noise(FS, 1), 0, begin_ns)
    assert [row.begin_utc_ns for row in rows] == [begin_ns, begin_ns + 200_000_000]
    assert [row.n_samples for row in rows] == [4_000, 10_000]
    with pytest.raises(ConfigError, match="utc_ns: intervals on the clock need the time"):
        meter_of(align="utc").push(noise(10))


def test_names_state_all_parameters():
    """An index without parameters is the published one; names that are read again are the same."""
    assert parse_feature("ACI").name == "ACI_5s"
    assert parse_feature("NDSI").name == "NDSI_1000-2000Hz_2000-8000Hz"
    assert parse_feature("ADI").name == "ADI_0-10000Hz_1000Hz_-50dB"
    own = "ADI_0-1000000Hz_1000.5Hz_-40dB"
    assert parse_feature(own).name == parse_feature(parse_feature(own).name).name == own
    assert (parse_feature("rolloff_sd").shape, parse_feature("rolloff_sd").unit) == (
        "rolloff",
        "Hz",
    )


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        ((), "quantities: 0 names; must be 1 to 64"),
        (("centroid",) * 2, "quantities: centroid is given twice"),
        (("ADI", "ADI_0-10000Hz_1000Hz_-50dB"), "is given twice"),
        (("centroidd",), r"feature='centroidd': must be .* did you mean centroid\?"),
        (("centroid_mean",), "feature='centroid_mean': must be a feature"),
        (("ACI",), "interval_s=1: ACI_5s needs at least its block, 5 s"),
        (("NDSI_1-2Hz",), "feature='NDSI_1-2Hz': must be a feature"),
    ],
)
def test_wrong_names(names, rule):
    """Each wrong name is one error."""
    with pytest.raises(ConfigError, match=rule):
        parse_features(names, 1.0)


@pytest.mark.parametrize(
    ("name", "changes", "rule"),
    [
        ("NDSI_1000-2000Hz_2000-10001Hz", {}, "band of 2000 to 10001 Hz: must be .* fs/2=10000 Hz"),
        ("NDSI_2000-1000Hz_2000-8000Hz", {}, "band of 2000 to 1000 Hz: must be ascending"),
        (
            "ADI_0-11000Hz_1000Hz_-50dB",
            {},
            "^ADI_0-11000Hz_1000Hz_-50dB: top_hz=11000, .* fs/2=10000 Hz",
        ),
        ("ADI_0-1000Hz_10Hz_-50dB", {}, "width_hz=10: bands without a bin of 39.0625 Hz"),
        ("ACI_0.02s", {}, "ACI_0.02s: its block must hold two frames, 0.0384 s"),
        ("NDSI", {"iq": True}, "the index is of real signals, not of I/Q"),
        ("ADI", {"iq": True}, "ADI_0-10000Hz_1000Hz_-50dB: iq=True: acoustic diversity is of real"),
    ],
)
def test_features_that_the_frames_do_not_have(name, changes, rule):
    """Frequencies above fs / 2 and parameters finer than the frames are errors."""
    with pytest.raises(ConfigError, match=rule):
        check_features([parse_feature(name)], spec_of(**changes))


def test_wrong_meters():
    """Intervals shorter than a frame, bands without a bin, too much memory and bad samples."""
    with pytest.raises(ConfigError, match=r"interval_s=0.02: must be at least a frame, win_length"):
        meter_of(("centroid",), interval_s=0.02)
    with pytest.raises(ConfigError, match="band_hz=\\(1, 2\\): has no bin"):
        meter_of(("centroid",), band_hz=(1.0, 2.0))
    with pytest.raises(ConfigError, match=r"channels=52: acoustic diversity needs 260 MiB"):
        FeatureTally([parse_feature("ADI")], spec_of(52))
    with pytest.raises(ConfigError, match="4096 spectra of 8193 bins: must be at most 16777216"):
        FeatureTally([], spec_of(4096, win_length=1 << 14))
    with pytest.raises(InputError, match="samples after 0: not finite"):
        meter_of(channels=1).push(np.full((1, 5), np.nan))


@pytest.mark.parametrize("band_hz", [None, (1000.0, 3000.0)])
def test_rows_have_the_kurtosis_of_each_bin(band_hz):
    """The table of each channel is that of all frames at once, for any cut into blocks."""
    x = noise(FS)
    rows = meter_of(("SK_max",), band_hz=band_hz, spectra=("kurtosis",)).push(x)
    cut = meter_of(("SK_max",), band_hz=band_hz, spectra=("kurtosis",))
    spec = spec_of()
    tally = FeatureTally((), spec, band_hz, ("kurtosis",))
    for row, other in zip(rows, in_blocks(cut, x, np.random.default_rng(1)), strict=True):
        frames = frames_of(x[:, row.first_sample : row.first_sample + 10_000], spec)
        frequencies, expected = spectral_kurtosis(frames, spec, band_hz=band_hz)
        np.testing.assert_allclose(np.stack(row.tables)[:, 0], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(np.stack(row.tables), np.stack(other.tables))
        np.testing.assert_allclose(row.values[0], expected.max(axis=-1), rtol=1e-9)
        bins = tally.first_bin + np.arange(tally.n_bins)
        np.testing.assert_allclose(bins * spec.delta_f, frequencies, rtol=1e-12)


def test_bins_of_iq_are_two_sided():
    """Bins of I/Q begin below 0 Hz, and a tone is where it is."""
    spec = SpectrumSpec(FS, 2, win_length=512, hop=256, iq=True)
    t = np.arange(10_000) / FS
    tone = np.exp(-2j * np.pi * 2500.0 * t) + 1e-3 * noise(10_000, 1)[0]
    x = np.stack([tone.real, tone.imag])
    (row,) = feature_meter(spec, ("centroid",), interval_s=0.5, spectra=("kurtosis",)).push(x)
    tally = FeatureTally((), spec, None, ("kurtosis",))
    assert (tally.first_bin, tally.n_bins) == (-256, 512)
    (table,) = row.tables
    assert table.shape == (1, 512)
    assert table[0, 256 - 64] == pytest.approx(-1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("spectra", "rule"),
    [
        (("SPD",), r"spectra='SPD': must be one of kurtosis"),
        (("kurtosis", "kurtosis"), "spectra: kurtosis is given twice"),
    ],
)
def test_wrong_spectra(spectra, rule):
    """Each wrong name of values of bins is one error."""
    with pytest.raises(ConfigError, match=rule):
        meter_of(("centroid",), spectra=spectra)
