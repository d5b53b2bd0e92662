import resource
from dataclasses import replace

import h5netcdf
import numpy as np
import pytest

from spectrod.dsp.calibration import ChannelCalibration, Response, Validity, parse_reference
from spectrod.dsp.conditions import Condition
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.millidecade import FLOOR_DB, MillidecadeWriter
from spectrod.formats.export.minute_bands import minute_bands
from spectrod.formats.export.minutes import MINUTE_NS, MinuteMeans
from spectrod.lib.errors import ConfigError, InputError, StorageError
from spectrod.recording.inputs import open_recording
from spectrod.recording.output_plan import make_data

FS = 1000.0
MIDNIGHT_NS = 20_000 * 86_400 * 10**9
SECOND_NS = 10**9
OPTIONS = ExportOptions(profile="millidecade")


def spec_of(**settings):
    return SpectrumSpec(**({"fs": FS, "win_length": 1000, "hop": 500, "nfft": 1000} | settings))


def described(**settings):
    spec = spec_of(**settings)
    names = tuple(f"mic {k}" for k in range(spec.n_signals))
    return Description(spec, "reef", names, "spectrod 1.2.3")


def batch_of(spec, values, begin_ns):
    """Make rows one hop apart, of white noise densities or of values (rows, signals, values)."""
    n = len(values)
    shape = (n, spec.n_signals, spec.n_values)
    if np.ndim(values) == 1:
        values = np.reshape(values, (n, 1, 1)) * white(spec)
    values = np.broadcast_to(values, shape)
    step_ns = round(spec.hop * spec.averaging_frames / spec.fs * 1e9)
    t_ns = begin_ns + step_ns * np.arange(n, dtype=np.int64)
    index = np.arange(n, dtype=np.int64) * spec.hop
    return SpectrumBatch(np.array(values, np.float32), index, t_ns, t_ns, spec, "numpy")


def white(spec):
    """Return values with a density of 1 in each band of a minute; one from 0 Hz is half as wide."""
    values = np.ones(spec.n_values)
    if spec.bands:
        values[0] = 2.0
    return values


def minutes_of(spec, *batches):
    means = MinuteMeans(spec)
    return [m for batch in batches for m in means.add(batch)] + list(means.flush())


def day_file(path):
    with h5netcdf.File(path, "r") as file:
        arrays = {name: file[name][...] for name in file.variables}
        return arrays, {**file.attrs}


def test_powers_are_averaged_by_the_minute():
    """A minute's level is the mean of power, not of levels, of rows centred in the minute."""
    spec = spec_of()
    power = np.arange(1.0, 361.0)
    got = minutes_of(spec, batch_of(spec, power, MIDNIGHT_NS))
    assert [m.begin_utc_ns for m in got] == [MIDNIGHT_NS + k * MINUTE_NS for k in range(4)]
    # A row is 1 s long, so the one at 59.5 s has its centre at 60 s.
    np.testing.assert_allclose(got[0].density, power[:119].mean(), rtol=1e-12)
    np.testing.assert_allclose(got[1].density, power[119:239].mean(), rtol=1e-12)
    np.testing.assert_allclose(got[3].density, power[359:].mean(), rtol=1e-12)
    assert [m.effort_s for m in got] == [60.0, 60.0, 60.0, 0.5]


def test_batches_may_end_anywhere():
    """Minutes do not depend on the division into batches."""
    spec = spec_of()
    power = np.random.default_rng(1).uniform(1e-6, 1e-3, 301)
    whole = batch_of(spec, power, MIDNIGHT_NS + 123_456_789)
    parts = [
        replace(
            whole,
            values=whole.values[k : k + 7],
            t_utc_ns=whole.t_utc_ns[k : k + 7],
            sample_index=whole.sample_index[k : k + 7],
        )
        for k in range(0, 301, 7)
    ]
    for one, other in zip(minutes_of(spec, whole), minutes_of(spec, *parts), strict=True):
        np.testing.assert_allclose(one.density, other.density, rtol=1e-12)
        assert one.begin_utc_ns == other.begin_utc_ns
        assert one.effort_s == pytest.approx(other.effort_s, rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "effort_s"),
    [
        ({}, 10.5),  # 20 rows of 1 s that overlap by half
        ({"hop": 1000}, 20.0),
        ({"hop": 2000}, 20.0),  # one second of every two
        ({"averaging": "mean", "averaging_frames": 2}, 20.5),
    ],
)
def test_effort_is_the_time_of_the_samples(settings, effort_s):
    """Effort is the duration of samples: overlap counts once, time between frames does not."""
    spec = spec_of(**settings)
    (minute,) = minutes_of(spec, batch_of(spec, np.ones(20), MIDNIGHT_NS + SECOND_NS))
    assert minute.effort_s == pytest.approx(effort_s, rel=1e-12)


def test_rows_that_were_cut_off_count_by_their_frames():
    """A row that was cut off weighs by its frames and covers its own time."""
    spec = spec_of(averaging="mean", averaging_frames=3)
    whole = batch_of(spec, np.full(1, 1.0), MIDNIGHT_NS)  # 2 s
    cut = replace(batch_of(spec, np.full(1, 5.0), MIDNIGHT_NS + 10 * SECOND_NS), cut_frames=1)
    (minute,) = minutes_of(spec, whole, cut)
    np.testing.assert_allclose(minute.density, 2.0)
    assert minute.effort_s == 3.0


def test_rows_of_a_minute_may_reach_into_the_next_one():
    """Rows of 120 windows, half overlapping, are 60 s apart and 60.5 s long."""
    spec = spec_of(averaging="mean", averaging_frames=120)
    got = minutes_of(spec, batch_of(spec, np.array([1.0, 2.0]), MIDNIGHT_NS))
    assert [m.effort_s for m in got] == [60.0, 60.0]
    np.testing.assert_allclose(got[1].density, 2.0)


def test_gaps_lessen_the_effort():
    """Ten missing seconds of a minute reduce its effort by ten seconds but not its level."""
    spec = spec_of()
    before = batch_of(spec, np.ones(39), MIDNIGHT_NS)  # to 20 s
    after = batch_of(spec, np.ones(59), MIDNIGHT_NS + 30 * SECOND_NS)  # to 60 s
    (minute,) = minutes_of(spec, before, after)
    assert minute.effort_s == 50.0
    np.testing.assert_allclose(minute.density, 1.0)


@pytest.mark.parametrize("scaling", ["density", "spectrum", "dbfs"])
@pytest.mark.parametrize("bands", ["", "millidecade"])
def test_all_scalings_are_the_same_density(scaling, bands):
    """A white density of 1e-6 FS^2/Hz is 1e-6 in every band with any scaling of the rows."""
    spec = spec_of(scaling=scaling, bands=bands)
    width = spec.band_table.width if bands else spec.enbw_hz
    power = 1e-6 * white(spec) * (1.0 if scaling == "density" else width)
    values = 10.0 * np.log10(power / 0.5) if scaling == "dbfs" else power
    batch = batch_of(spec, np.broadcast_to(values, (9, 1, spec.n_values)), MIDNIGHT_NS)
    (minute,) = minutes_of(spec, batch)
    np.testing.assert_allclose(minute.density, 1e-6, rtol=1e-5)


def test_a_line_is_in_one_band():
    """Power in one bin goes to one band, divided by its width."""
    spec = spec_of(win_length=2000, nfft=2000, fs=2000.0, hop=1000)
    values = np.zeros((3, 1, spec.n_values))
    values[..., 700] = 5.0
    (minute,) = minutes_of(spec, batch_of(spec, values, MIDNIGHT_NS))
    bands = minute_bands(2000.0, 2000)
    assert np.flatnonzero(minute.density[0]).size in (1, 2)
    np.testing.assert_allclose((minute.density[0] * bands.width).sum(), 5.0, rtol=1e-12)
    assert abs(bands.centre[minute.density[0].argmax()] - 700.0) < 1.0


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"weighting": "A"}, "weighting='A': must be 'Z'"),
        ({"averaging": "max"}, "averaging='max': must be 'none' or 'mean'"),
        ({"averaging": "exponential"}, "averaging='exponential'"),
        ({"bands": "octave"}, "bands='octave': must be '' or 'millidecade'"),
        ({"output": "complex"}, "output='complex': must be 'power'"),
        ({"channels": 2, "iq": True}, "iq=True"),
        ({"nfft": 1000, "fs": 1001.0}, "must be 1 Hz or less"),
        ({"averaging": "mean", "averaging_frames": 121}, "rows of 60.5 s: must be a minute"),
        ({"win_length": 61_000, "nfft": 61_000}, "windows of 61 s: must be a minute or less"),
    ],
)
def test_only_rows_that_have_the_densities(tmp_path, settings, rule):
    """Rows without mean densities or with too coarse bins are refused before the first row."""
    with pytest.raises(ConfigError, match=rule):
        make_data(tmp_path / "x.nc", described(**settings), OPTIONS)
    assert list(tmp_path.iterdir()) == []


def test_a_file_a_day(tmp_path):
    """Each file has all minutes of its day and appears when the day is over."""
    about = described()
    writer = make_data(tmp_path / "reef.nc", about, OPTIONS)
    writer.write(batch_of(about.spec, np.full(360, 1e-6), MIDNIGHT_NS - 2 * MINUTE_NS))
    assert [path.name for path in tmp_path.iterdir()] == ["reef_20241003.nc"]
    writer.finish()
    assert writer.n_frames == 360
    arrays, attributes = day_file(tmp_path / "reef_20241003.nc")
    assert arrays["time"][0] == MIDNIGHT_NS / 1e9 - 86400
    np.testing.assert_array_equal(np.diff(arrays["time"]), 60.0)
    np.testing.assert_array_equal(np.flatnonzero(arrays["effort"]), [1438, 1439])
    np.testing.assert_allclose(arrays["psd"][1438:], -60.0, atol=1e-5)
    assert np.isnan(arrays["psd"][:1438]).all()
    bands = minute_bands(FS, 1000)
    np.testing.assert_array_equal(arrays["frequency"], bands.centre)
    np.testing.assert_array_equal(arrays["frequency_bnds"].T, [bands.lower, bands.upper])
    assert attributes["time_coverage_start"] == "2024-10-03T00:00:00.000000000Z"
    assert attributes["time_coverage_duration"] == "P1D"
    arrays, _ = day_file(tmp_path / "reef_20241004.nc")
    np.testing.assert_array_equal(np.flatnonzero(arrays["effort"]), [0, 1])
    with pytest.raises(StorageError, match=r"20241004\.nc: .*has no attribute spectrod_engines$"):
        open_recording(tmp_path / "reef_20241004.nc")


def test_a_file_a_signal(tmp_path):
    """Each of several signals has a file named after it."""
    about = described(channels=2)
    values = np.full((10, 1, 1), 1e-6) * np.reshape([1.0, 10.0], (2, 1)) * white(about.spec)
    writer = make_data(tmp_path / "reef.nc", about, OPTIONS)
    writer.write(batch_of(about.spec, values, MIDNIGHT_NS))
    writer.finish()
    for name, level in (("mic-0", -60.0), ("mic-1", -50.0)):
        arrays, _ = day_file(tmp_path / f"reef_{name}_20241004.nc")
        np.testing.assert_allclose(arrays["psd"][0], level, atol=1e-5)
    with pytest.raises(ConfigError, match="must differ in letters, digits"):
        MillidecadeWriter(tmp_path / "x.nc", replace(about, signals=("a b", "a/b")), OPTIONS)


def test_silence_has_a_level(tmp_path):
    """Silence has the lowest level instead of minus infinity."""
    about = described()
    writer = make_data(tmp_path / "x.nc", about, OPTIONS)
    writer.write(batch_of(about.spec, np.zeros(10), MIDNIGHT_NS))
    writer.finish()
    arrays, _ = day_file(tmp_path / "x_20241004.nc")
    np.testing.assert_array_equal(arrays["psd"][0], np.float32(FLOOR_DB))


def test_a_clock_set_back_within_a_day_joins_minutes(tmp_path):
    """After a clock is set back within a day, repeated minutes are averaged by effort."""
    about = described(hop=1000)
    writer = make_data(tmp_path / "x.nc", about, OPTIONS)
    writer.write(batch_of(about.spec, np.full(30, 1e-6), MIDNIGHT_NS))
    writer.write(batch_of(about.spec, np.full(60, 1e-6), MIDNIGHT_NS + MINUTE_NS))
    writer.write(batch_of(about.spec, np.full(10, 5e-6), MIDNIGHT_NS + 30 * SECOND_NS))
    writer.finish()
    arrays, _ = day_file(tmp_path / "x_20241004.nc")
    np.testing.assert_allclose(arrays["psd"][0], 10.0 * np.log10(2e-6), atol=1e-5)
    np.testing.assert_array_equal(arrays["effort"][:3], [40.0, 60.0, 0.0])


def test_a_clock_set_back_over_midnight_is_counted(tmp_path):
    """After a clock is set back over midnight, the finished file stays and the loss is counted."""
    about = described(hop=1000)
    writer = make_data(tmp_path / "x.nc", about, OPTIONS)
    writer.write(batch_of(about.spec, np.full(90, 1e-6), MIDNIGHT_NS - MINUTE_NS))
    writer.write(batch_of(about.spec, np.full(60, 1e-6), MIDNIGHT_NS + MINUTE_NS))
    writer.write(batch_of(about.spec, np.full(20, 1e-3), MIDNIGHT_NS - MINUTE_NS))
    writer.finish()
    before, _ = day_file(tmp_path / "x_20241003.nc")
    np.testing.assert_allclose(before["psd"][1439], -60.0, atol=1e-5)
    _, attributes = day_file(tmp_path / "x_20241004.nc")
    assert attributes["left_out_s"] == 20.0


def test_days_that_are_written_stay(tmp_path):
    """Aborting discards only the current day and keeps finished days."""
    about = described()
    writer = make_data(tmp_path / "x.nc", about, OPTIONS)
    writer.write(batch_of(about.spec, np.ones(360), MIDNIGHT_NS - MINUTE_NS))
    writer.abort()
    writer.abort()
    assert [path.name for path in tmp_path.iterdir()] == ["x_20241003.nc"]


def test_a_full_disk_leaves_the_days_before(tmp_path):
    """A full disk loses one day with one error; files of earlier days are complete."""
    about = described()
    writer = make_data(tmp_path / "x.nc", about, OPTIONS)
    rng = np.random.default_rng(1)
    writer.write(batch_of(about.spec, rng.uniform(1e-6, 1e-5, 360), MIDNIGHT_NS - MINUTE_NS))
    assert [path.name for path in tmp_path.iterdir()] == ["x_20241003.nc"]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(StorageError, match=r"x_20241004\.nc: File too large$"):
            writer.finish()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.abort()
    assert [path.name for path in tmp_path.iterdir()] == ["x_20241003.nc"]
    arrays, _ = day_file(tmp_path / "x_20241003.nc")
    assert arrays["effort"][1439] == 60.0


def test_nothing_is_not_a_day(tmp_path):
    """No rows make no file, and rows of another analysis are refused."""
    writer = make_data(tmp_path / "x.nc", described(), OPTIONS)
    with pytest.raises(ConfigError, match="the analysis has changed"):
        writer.write(batch_of(spec_of(hop=100), np.ones(3), MIDNIGHT_NS))
    with pytest.raises(InputError, match="nothing to write: not a single row"):
        writer.finish()
    assert list(tmp_path.iterdir()) == []


def test_stored_recordings_become_days(tmp_path):
    """Stored recordings of any readable format become daily files, whose names are returned."""
    about = described()
    writer = make_data(tmp_path / "all.npz", about, ExportOptions())
    writer.write(batch_of(about.spec, np.full(200, 1e-6), MIDNIGHT_NS))
    writer.finish()
    reader = open_recording(tmp_path / "all.npz")
    days = MillidecadeWriter(tmp_path / "day.nc", reader.description, OPTIONS)
    for batch in reader.batches():
        days.write(batch)
    days.finish()
    reader.close()
    (path,) = days.files
    assert path == tmp_path / "day_20241004.nc"
    arrays, _ = day_file(path)
    assert arrays["effort"][0] == 60.0


def calibrated(response=None):
    """Return a calibration: digital 1.0 (rms) is 170 dB re 1 uPa."""
    known_hz = None if response is None else response.range_hz
    return ChannelCalibration(parse_reference("1 uPa"), 170.0, response, "h1", known_hz)


def day_of(tmp_path, conditions=None, **settings):
    """Return the arrays of a day with two minutes of which the second has these faults."""
    about = described(**settings)
    writer = make_data(tmp_path / "q.nc", about, OPTIONS)
    minute = MIDNIGHT_NS // MINUTE_NS + 1
    writer.faults = None if conditions is None else {minute: np.array(conditions, np.uint8)}
    shape = (239, about.spec.n_signals, about.spec.n_values)
    writer.write(batch_of(about.spec, np.full(shape, 1e-6), MIDNIGHT_NS))
    writer.finish()
    return [day_file(path)[0] for path in writer.files]


def test_minutes_that_nobody_checked_are_not_evaluated(tmp_path):
    """Without checks every value is 2, which pbp gives, too."""
    (arrays,) = day_of(tmp_path)
    assert arrays["quality_flag"].dtype == np.int8
    assert arrays["quality_flag"].shape == arrays["psd"].shape
    assert (arrays["quality_flag"] == 2).all()
    assert "sensitivity" not in arrays


@pytest.mark.parametrize(
    ("conditions", "flag"),
    [
        (0, 1),
        (Condition.GAP, 3),
        (Condition.CLIPPING, 3),
        (Condition.SUSPECTED, 3),
        (Condition.SILENT, 4),
        (Condition.MISSING | Condition.GAP, 4),
        (Condition.STUCK | Condition.CLIPPING, 4),
    ],
)
def test_quality_is_that_of_the_worst_condition(tmp_path, conditions, flag):
    """The worst condition of a signal decides; a minute without data is not evaluated."""
    one, other = day_of(tmp_path, [conditions, 0], channels=2)
    quality = one["quality_flag"]
    assert (other["quality_flag"][:2] == 1).all()
    assert (quality[0] == 1).all()
    assert (quality[1] == flag).all()
    assert (quality[2:] == 2).all()


def test_an_offset_is_questionable_at_low_frequencies_only(tmp_path):
    """Bands of 1 Hz that reach into two bins from 0 Hz are 0, 1 and 2 Hz."""
    quality = day_of(tmp_path, [Condition.DC])[0]["quality_flag"]
    np.testing.assert_array_equal(np.flatnonzero(quality[1] == 3), [0, 1, 2])
    assert (quality[1, 3:] == 1).all()


def test_sensitivity_is_that_of_the_chain(tmp_path):
    """It is the level of full scale with its sign changed, plus the response where known."""
    flat, curved = calibrated(), calibrated(Response((10.0, 1000.0), (0.0, -6.0)))
    one, other = day_of(tmp_path, [0, 0], channels=2, calibration=(flat, curved))
    assert (one["sensitivity"] == -170.0).all()
    assert (one["quality_flag"][:2] == 1).all()
    for hz, level in ((5.0, -170.0), (10.0, -170.0), (100.0, -173.0)):
        at = np.flatnonzero(other["frequency"] == hz)
        np.testing.assert_allclose(other["sensitivity"][at], level, atol=1e-4)
    np.testing.assert_array_equal(np.flatnonzero(other["quality_flag"][0] == 2), np.arange(10))


def test_minutes_beyond_a_calibration_are_questionable(tmp_path):
    """A minute that is not all within the dates is 3, and the file has both of them."""
    end_ns = MIDNIGHT_NS + 90 * SECOND_NS
    dated = replace(calibrated(), validity=Validity(MIDNIGHT_NS, end_ns))
    (arrays,) = day_of(tmp_path, [0], calibration=(dated,))
    assert (arrays["quality_flag"][:3, 7] == [1, 3, 2]).all()
    _, about = day_file(tmp_path / "q_20241004.nc")
    assert about["calibration_valid_from"] == "2024-10-04T00:00:00Z"
    assert about["calibration_valid_until"] == "2024-10-04T00:01:30Z"


def test_quality_has_the_attributes_of_the_archive(tmp_path):
    """Names, values and meanings are those that NCEI asks for."""
    day_of(tmp_path, [0], calibration=(calibrated(),))
    with h5netcdf.File(tmp_path / "q_20241004.nc", "r") as file:
        about = file["quality_flag"].attrs
        assert (about["standard_name"], about["long_name"]) == ("quality_flag", "Data quality flag")
        assert about["coverage_content_type"] == "qualityInformation"
        assert about["flag_values"].tolist() == [1, 2, 3, 4]
        assert about["flag_meanings"].split() == ["good", "not_evaluated", "questionable", "bad"]
        assert file["psd"].attrs["ancillary_variables"] == "effort quality_flag"
        assert file["sensitivity"].attrs["spectrod_unit"] == "dB re 1 FS/(1 uPa)"
