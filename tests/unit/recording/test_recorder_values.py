"""Recordings of measurements without a thread: their files over rotation, restarts and faults."""

import json
import os
import random
from dataclasses import replace

import h5netcdf
import numpy as np
import pytest

from spectrod.config import config
from spectrod.config.settings import RecordingConfig
from spectrod.dsp.calibration import ChannelCalibration, Validity, parse_reference
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.directory import Directory
from spectrod.formats.export.disk import Disk
from spectrod.formats.origin import read_origin
from spectrod.formats.values import recorded as recorded_module
from spectrod.formats.values.convert import convert
from spectrod.formats.values.measurement_chunk import MeasurementChunk
from spectrod.formats.values.measurement_description import describe
from spectrod.formats.values.recorded import HDF5, RecoveredValues, recover
from spectrod.formats.values.value_writer import open_writer
from spectrod.lib.errors import ConfigError, InputError, StorageError
from spectrod.lib.events import EventLog
from spectrod.measure.kinds import KINDS
from spectrod.measure.levels import LevelMeter, LevelRow
from spectrod.measure.levels.levels_config import LevelsConfig
from spectrod.measure.measurement_config import MeasuredSignals, MeasurementFacts
from spectrod.recording.configured import ConfiguredRecording, Recorded
from spectrod.recording.expected_size import day_bytes
from spectrod.recording.ownership import Owner
from spectrod.recording.recorder_clock import Clock

NS = 1_000_000_000
FS = 8000.0
NOON_NS = 1_780_315_200 * NS  # 2026-06-01T12:00:00Z
DAY_NS = 86400 * NS
METER = LevelMeter(FS, 2, quantities=["LAeq", "LUFS_M"], interval_s=60.0, bands="octave")
SIGNALS = MeasuredSignals("a sound card", FS, ("left", "right"), (None, None))
FACTS = MeasurementFacts("Sound levels", bands=METER.bands)
ABOUT = describe(SIGNALS, FACTS, METER)
N_BANDS = len(METER.bands.filters)


class FastClock(Clock):
    """A clock that the test advances."""

    def __init__(self):
        self.now_s = 0.0

    def utc_ns(self):
        return NOON_NS + round(self.now_s * NS)

    def monotonic_s(self):
        return self.now_s


class Site:
    """A recording of a row a minute, whose first value is the number of its minute."""

    def __init__(self, place, clock=None, about=ABOUT, **settings):
        self.folder, self.clock, self.events = place / "pond", clock or FastClock(), EventLog()
        settings = {"min_free_mb": 0.0, "rotate_s": 86400, "product": "site"} | settings
        self.config = RecordingConfig("days", **settings)
        self.config.check()
        spec = SpectrumSpec(FS, 2)
        source = Recorded("pond", ("left", "right"), FS, "spectrod test", dict, spec, about)
        self.recording = ConfiguredRecording(
            self.config, source, self.folder, self.events, self.clock
        )
        self.recording.start()

    def play(self, n_rows, every_min=1):
        """Push rows of one minute each, and tick at their time."""
        for _ in range(n_rows):
            self.recording.write(MeasurementChunk(row(round(self.clock.now_s / 60)), ABOUT))
            self.clock.now_s += 60.0 * every_min
            self.recording.tick()

    def reported(self, kind):
        return [one.text for one in self.events.since() if one.kind.startswith(kind)]


def row(minute):
    values = np.array([[float(minute), -1.0], [-23.0, -23.0]])
    in_bands = np.full((1, N_BANDS, 2), minute / 3.0)
    flags = np.array([0, 5], np.uint8)
    begin = NOON_NS + minute * 60 * NS
    return LevelRow(minute * 480_000, 480_000, 480_000, begin, 60.0, values, flags, 0, (), in_bands)


def minutes_in(path):
    """Return the numbers of the minutes in a file."""
    lines = [one for one in path.read_text("utf-8").splitlines() if not one.startswith("#")]
    return [int(float(line.split(",")[4])) for line in lines[1:]]


@pytest.fixture
def site(tmp_path):
    random.seed(7)  # the wait before a retry is random
    return lambda **settings: Site(tmp_path, **settings)


def test_a_file_a_day_has_the_rows_of_the_day(site):
    """Files end at midnight UTC, with every row once, and say what wrote them."""
    days = site(attributes={"title": "Pond", "no name": "x"})
    days.play(24, every_min=120)
    days.recording.finish()
    names = ["20260601T120000Z.csv", "20260602T000000Z.csv", "20260603T000000Z.csv"]
    assert sorted(one.name for one in days.folder.iterdir()) == names
    found = [minutes_in(days.folder / name) for name in names]
    assert found == [[*range(0, 720, 120)], [*range(720, 2160, 120)], [*range(2160, 2880, 120)]]
    lines = (days.folder / names[1]).read_text("utf-8").splitlines()
    about = dict(line[2:].split(": ", 1) for line in lines if line.startswith("#"))
    origin = {"recording": "days", "source": "pond", "file_name": names[1]}
    assert json.loads(about["spectrod_origin"]) == origin
    assert json.loads(about["title"]) == "Pond"
    assert "no name" not in about
    columns, first = (line.split(",") for line in lines[len(about) : len(about) + 2])
    assert columns[:7] == [
        *("time", "duration_s", "flags@left", "flags@right"),
        *("LAeq@left", "LAeq@right", "LUFS_M"),
    ]
    assert len(first) == len(columns) == 7 + 2 * N_BANDS
    assert first[:7] == [
        "2026-06-02T00:00:00.000000000Z",
        "60.0",
        "",
        "overload|settling",
        "720.0",
        "-1.0",
        "-23.0",
    ]
    facts = days.recording.status()
    assert (facts["rows"], facts["lost_rows"], facts["product"]) == (24, 0, "site")
    assert days.reported("record.ended") == ["days: 24 rows written"]


@pytest.mark.parametrize("tail", ["", "2026-06-01T12:10:00Z,60.0,,,10", "\0" * 5000])
def test_a_killed_daemon_loses_no_row_and_the_next_replaces_none(site, tail):
    """What a kill or a power failure has torn is cut off; the day goes on in another file."""
    first = site(file_name="%Y%m%d")
    first.play(10)
    part = first.folder / "20260601.csv.part"
    with part.open("a") as file:
        file.write(tail)
    first.recording.break_off("killed")
    again = site(file_name="%Y%m%d", clock=first.clock)
    again.play(5)
    again.recording.finish()
    (text,) = again.reported("record.recovered")
    assert text.endswith(f"was not finished; 10 rows kept, {len(tail)} bytes cut")
    assert minutes_in(first.folder / "20260601.csv") == [*range(10)]
    assert minutes_in(first.folder / "20260601_1.csv") == [*range(10, 15)]
    assert len(list(first.folder.iterdir())) == 2


def test_what_holds_no_row_or_is_not_ours_is_left(site, tmp_path):
    """A file without a whole row, that is locked, whose name is taken or of others stays."""
    days = site()
    days.play(1)
    part = days.folder / "20260601T120000Z.csv.part"
    with pytest.raises(StorageError, match=r"\.part: another program is writing it$"):
        recover(part)
    whole = part.read_bytes()
    days.recording.finish()
    part.write_bytes(whole)
    with pytest.raises(StorageError, match=r"20260601T120000Z\.csv exists and is not replaced$"):
        recover(part)
    torn = tmp_path / "torn.csv.part"
    torn.write_bytes(whole[:-3])
    with pytest.raises(InputError, match=r"torn\.csv\.part: has no whole row$"):
        recover(torn)
    assert torn.read_bytes() == whole[:-3]
    owner = Owner("days", "pond", days.config.file_stem)
    (days.folder / "copy.csv").write_bytes(whole)
    (days.folder / "other.csv").write_text("time,LAeq\n")
    with Directory.open(days.folder) as folder:
        names = ("20260601T120000Z.csv", "20260601T120000Z.csv.part", "copy.csv", "other.csv")
        assert [owner.wrote(folder, name) for name in names] == [True, True, False, False]


def test_text_that_begins_as_netcdf_is_cut_after_its_last_line(tmp_path):
    """Only a file that is to become NetCDF can be one already."""
    torn = tmp_path / "torn.csv.part"
    torn.write_bytes(HDF5 + b"without an end")
    assert recover(torn) == RecoveredValues(1, len("without an end"))
    assert (tmp_path / "torn.csv").read_bytes() == HDF5


@pytest.mark.parametrize(
    "content", [b"", b"# spectrod_origin: ", b"# spectrod_origin: {}\n", b"\xff"]
)
def test_other_files_have_no_origin(tmp_path, content):
    """A file whose first line is not that of a recording is of nobody."""
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    assert read_origin(descriptor, ".csv") is None
    os.close(descriptor)


def test_rows_are_counted_across_blocks(site):
    """The whole rows are found wherever the blocks in which a file is read end."""
    days = site()
    days.play(7)
    part = days.folder / "20260601T120000Z.csv.part"
    size = part.stat().st_size
    descriptor = os.open(part, os.O_RDONLY)
    for n_bytes in (1, 7, 100, 1 << 20):
        found = recorded_module._whole_rows(descriptor, size, block_bytes=n_bytes)
        assert found == (size, 7)
    os.close(descriptor)


def test_files_are_kept_by_age(site):
    """Whole days that were finished longer ago are deleted."""
    days = site(keep_days=2.0)
    days.play(40, every_min=180)
    names = sorted(one.name for one in days.folder.glob("*.csv"))
    assert names == ["20260604T000000Z.csv", "20260605T000000Z.csv"]
    assert days.recording.status()["kept_files"] == 2


def test_a_disk_error_is_reported_once_and_retried(site, monkeypatch):
    """Rows that could not be written are counted as lost; no torn line is left."""
    days = site()
    days.play(5)
    real = os.pwrite

    def fail(descriptor, data, offset):
        real(descriptor, data[:7], offset)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail)
    days.play(5)
    assert days.recording.status()["state"] == "failed"
    monkeypatch.setattr(os, "pwrite", real)
    days.play(5)
    days.recording.finish()
    facts = days.recording.status()
    found = [minutes_in(path) for path in sorted(days.folder.iterdir())]
    assert [one for part in found for one in part] == [*range(5), *range(10, 15)]
    assert (facts["rows"], facts["lost_rows"], facts["error"]) == (10, 5, "")
    (failed,) = days.reported("record.failed")
    assert failed.endswith("No space left on device; it is tried again")
    assert days.reported("record.resumed") == ["days: resumed; 5 rows are missing"]


def test_an_event_has_the_rows_that_begin_around_it(site):
    """With triggers, rows are recorded that begin in the pre-roll, the event and the post-roll."""
    days = site(triggers=("control",), pre_roll_s=120.0, post_roll_s=60.0)
    days.play(10)
    at = NOON_NS + 9 * 60 * NS
    days.recording.trigger(at, at, "asked for")
    days.play(10)
    days.recording.finish()
    (path,) = days.folder.iterdir()
    assert minutes_in(path) == [7, 8, 9, 10]


def test_a_day_is_no_longer_than_reported(site):
    """A line has at most the bytes that the first report counts."""
    days = site()
    days.play(3)
    (part,) = days.folder.iterdir()
    before = part.stat().st_size
    widest = np.full((1, N_BANDS, 2), -100.0 / 3.0)
    wide = replace(row(3), values=np.full((2, 2), -123.0 / 7.0), band_values=widest)
    days.recording.write(MeasurementChunk(wide, ABOUT))
    n_bytes = part.stat().st_size - before
    assert n_bytes <= day_bytes(days.config, SpectrumSpec(FS, 2), ABOUT) / 1440 < 1.2 * n_bytes
    days.recording.finish()


SITE = """
[source]
uri = "signal:sine,1000,-20"
[levels.site]
quantities = ["LAeq"]
[recordings.a]
"""


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "product = 'sites'",
            "product='sites': the source has no such product; there are: dbfs, site",
        ),
        ("product = 'site'\nvalues = 'xls'", "recordings.a: values='xls': must be csv or nc"),
        (
            "product = 'site'\npyramid = true",
            "recordings.a: pyramid=true: must be false with product='site', which has measurements",
        ),
    ],
)
def test_bad_settings_are_one_clear_error(tmp_path, keys, message):
    """An error names the table, the key, the value and the rule."""
    file = tmp_path / "c.toml"
    file.write_text(SITE + keys)
    with pytest.raises(ConfigError) as caught:
        config.load(str(file))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- NetCDF


def texts_of(attributes):
    return {name: str(one) for name, one in attributes.items()}


def variables_of(path):
    """Return all variables of a NetCDF file, with dimensions and attributes, and its attributes."""
    with h5netcdf.File(path) as file:
        found = {
            name: (one.dimensions, one.dtype, one[...].tolist(), texts_of(one.attrs))
            for name, one in file.variables.items()
        }
        about = texts_of(file.attrs)
    return found, {k: v for k, v in about.items() if k not in ("history", "date_created")}


def owns(site, name):
    with Directory.open(site.folder) as folder:
        return Owner("days", "pond", site.config.file_stem).wrote(folder, name)


def test_netcdf_is_that_of_the_command(site, tmp_path):
    """A file that has been lines is, byte for byte of its values, as if written at once."""
    calibration = ChannelCalibration(parse_reference("1 uPa"), 170.0, None, "M1-1", (20.0, 3000.0))
    signals = replace(SIGNALS, calibrations=(calibration, None))
    facts = replace(FACTS, time_zone="Europe/Berlin", notes=('a "note", \u00e4',))
    about = describe(signals, facts, METER)
    rows = [row(k) for k in range(5)]
    rows[3].values[:] = np.nan, -np.inf
    rows[4].band_values[:] = 1.0 / 3.0, -1e-300
    days = site(values="nc", attributes={"title": "Pond"})
    for one in rows:
        days.recording.write(MeasurementChunk(one, about))
    assert owns(days, "20260601T120000Z.nc.part")
    days.recording.finish()
    made = tmp_path / "made.nc"
    writer = open_writer(made, replace(about, extra={"title": "Pond"}))
    for one in rows:
        writer.write(one)
    writer.finish()
    found = variables_of(days.folder / "20260601T120000Z.nc")
    np.testing.assert_equal(found, variables_of(made))
    assert found[1]["title"] == "Pond"
    assert found[0]["LAeq"][3]["spectrod_unit"] == "dB re 1 uPa, dBFS"
    assert owns(days, "20260601T120000Z.nc")
    assert not owns(days, "made.nc")
    assert [one.name for one in days.folder.iterdir()] == ["20260601T120000Z.nc"]


def test_converted_levels_have_the_names_of_cf(site, tmp_path):
    """A file that has been lines has CF's names, the calibration's dates, and ACDD's times."""
    hydrophone = ChannelCalibration(
        parse_reference("1 uPa"), 170.0, None, "H1", validity=Validity(None, NOON_NS + 60 * NS)
    )
    config = LevelsConfig("site", quantities=("LZeq", "LZE", "LAeq"), interval_s=0.5)
    bound = config.bind(replace(SIGNALS, calibrations=(hydrophone, hydrophone)))
    meter = bound.open(0)
    about = describe(bound.signals, bound.facts, meter)
    days = site(about=about, values="nc", attributes={"geospatial_lat_min": "54.5"})
    noise = np.random.default_rng(5).uniform(-0.3, 0.3, (2, round(FS)))
    for one in [*meter.push(noise, utc_ns=NOON_NS), *meter.finish()]:
        days.recording.write(MeasurementChunk(one, about))
    days.recording.finish()
    with h5netcdf.File(next(days.folder.iterdir())) as file:
        level = file["LZeq"].attrs
        assert level["standard_name"] == "sound_pressure_level_in_water"
        assert level["units"] == "0.1 lg(re 1 uPa2)"
        assert (
            file["LZE"].attrs["long_name"].startswith("sound exposure level LZE in dB re (1 uPa)")
        )
        assert {"standard_name", "cell_methods"}.isdisjoint(file["LAeq"].attrs)
        assert file.attrs["calibration_valid_until"] == "2026-06-01T12:01:00Z"
        assert "calibration_valid_from" not in file.attrs
        assert file.attrs["geospatial_lat_min"] == 54.5
        assert file.attrs["time_coverage_start"] == "2026-06-01T12:00:00.000000000Z"
        assert file.attrs["time_coverage_duration"] == "PT1.000000000S"
        assert file.attrs["summary"] == "LZeq, LZE, LAeq of a sound card, in intervals of 0.5 s"


def content_of(path):
    """Return what a file of values says of its rows."""
    if path.suffix == ".nc":
        return variables_of(path)[0]
    return [one for one in path.read_text("utf-8").splitlines() if not one.startswith("#")]


@pytest.mark.parametrize("values", ["csv", "nc"])
@pytest.mark.parametrize("word", KINDS)
def test_a_recording_of_any_kind_is_a_file_written_at_once(site, tmp_path, word, values):
    """Rows of each kind of measurement have the names, units and digits of a file of a command."""
    is_framed = "win_length" in KINDS[word].__struct_fields__
    config = KINDS[word]("site", interval_s=0.5, **{"win_length": 256} if is_framed else {})
    bound = config.bind(SIGNALS)
    meter = bound.open(0)
    about = describe(bound.signals, bound.facts, meter).without_spectra()
    noise = np.random.default_rng(5).uniform(-0.3, 0.3, (2, round(2.2 * FS)))
    rows = [*meter.push(noise, utc_ns=NOON_NS), *meter.finish()]
    assert len(rows) == 5
    days = site(about=about, values=values)
    writer = open_writer(tmp_path / f"made.{values}", about)
    for one in rows:
        days.recording.write(MeasurementChunk(one, about))
        writer.write(one)
    days.recording.finish()
    writer.finish()
    (file,) = days.folder.iterdir()
    np.testing.assert_equal(content_of(file), content_of(tmp_path / f"made.{values}"))


@pytest.mark.parametrize("step", ["lines", "converting", "renamed"])
def test_a_kill_leaves_what_becomes_netcdf(site, step):
    """Wherever a kill happens, the next start makes one NetCDF file of all rows."""
    first = site(values="nc")
    first.play(10)
    part = first.folder / "20260601T120000Z.nc.part"
    if step == "converting":
        part.with_name(f"{part.name}.new").write_bytes(b"\x89HDF\r\n\x1a\n...")
    if step == "renamed":
        with Directory.open(first.folder) as folder:
            folder.rename(convert(folder, part.name, part), part.name)
    first.recording.break_off("killed")
    again = site(values="nc", clock=first.clock)
    (text,) = again.reported("record.recovered")
    kept = "all" if step == "renamed" else "10"
    assert text.endswith(f"was not finished; {kept} rows kept, 0 bytes cut")
    assert [one.name for one in first.folder.iterdir()] == ["20260601T120000Z.nc"]
    values = variables_of(first.folder / "20260601T120000Z.nc")[0]["LAeq"][2]
    assert values == [[float(k), -1.0] for k in range(10)]
    again.recording.finish()


def test_lines_stay_while_they_cannot_be_converted(site, monkeypatch):
    """Without space for NetCDF the lines stay, and become NetCDF when there is space again."""
    days = site(values="nc", rotate_s=300)
    days.play(5)
    real = Disk.write

    def fail(disk, _data):
        disk._failure = OSError(28, "No space left on device")
        return 0

    monkeypatch.setattr(Disk, "write", fail)
    days.play(1)
    assert days.recording.status()["state"] == "failed"
    names = ["20260601T120000Z.nc.part"]
    assert [one.name for one in days.folder.iterdir()] == names
    monkeypatch.setattr(Disk, "write", real)
    days.play(3)
    days.recording.finish()
    files = sorted(days.folder.iterdir())
    found = [one[0] for path in files for one in variables_of(path)[0]["LAeq"][2]]
    assert [one.name for one in files] == ["20260601T120000Z.nc", "20260601T120600Z.nc"]
    assert found == [0, 1, 2, 3, 4, 6, 7, 8]  # the wait before the retry has cost a row
    facts = days.recording.status()
    assert (facts["rows"], facts["lost_rows"], facts["error"]) == (8, 1, "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b",60.0,", b",x,", "row 0 cannot be read: could not convert string to float: 'x'"),
        (b"settling", b"setting", "row 0 cannot be read: 'setting'"),
        (b"T12:00", b" 12:00", "row 0 cannot be read: time='2026-06-01 12:00:00.000000000Z'"),
        (b"2026-06", b"2026-99", "row 0 cannot be read: Month out of range"),
        (b",-1.0", b"", "row 0 cannot be read: 20 cells"),
        (b'"time_zone":""', b'"time_zone":"../x"', "cannot be read: time_zone='../x': there is no"),
        (b'"fs":', b'"fz":', "its description cannot be read: Object missing required field `fs`"),
    ],
)
def test_lines_that_others_have_changed_are_left(site, old, new, message):
    """A line or a description that cannot be read is named, and the file stays as it is."""
    days = site(values="nc")
    days.play(3)
    part = days.folder / "20260601T120000Z.nc.part"
    days.recording.break_off("killed")
    changed = part.read_bytes().replace(old, new)
    part.write_bytes(changed)
    again = site(values="nc")
    (text,) = again.reported("record.unrecovered")
    assert message in text
    assert part.read_bytes() == changed
    assert [one.name for one in days.folder.iterdir()] == [part.name]
