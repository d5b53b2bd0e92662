"""Measurements in memory as datasets of xarray: those of their NetCDF files."""

import numpy as np
import pytest
import soundfile
import xarray

from spectrod.cli import main
from spectrod.dsp.calibration import Calibration, ChannelCalibration
from spectrod.dsp.level_reference import parse_reference
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.values.arrow_tables import MeasurementTable
from spectrod.formats.values.value_netcdf import ValueNetcdfWriter
from spectrod.lib import optional_packages
from spectrod.lib.errors import InputError, UnavailableError
from spectrod.measure.features.feature_meter import feature_meter
from spectrod.measure.levels import LevelMeter

BEGIN_NS = 1_777_600_000 * 10**9 + 123
FS = 8000.0


def levels(channels=2, **settings):
    """Measure 2.5 intervals; return the rows and the meter."""
    asked = {"quantities": ["LAeq", "rms", "LUFS_M"], "interval_s": 1.0, "utc_ns": BEGIN_NS}
    meter = LevelMeter(FS, channels=channels, **asked | settings)
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, (channels, 20_000))
    return [*meter.push(noise), *meter.finish()], meter


def features():
    spec = SpectrumSpec(FS, 1, "hann", win_length=1024, hop=512)
    meter = feature_meter(spec, ["centroid", "flatness"], interval_s=0.5)
    noise = np.random.default_rng(2).uniform(-0.5, 0.5, (1, 20_000))
    return [*meter.push(noise), *meter.finish()], meter


def as_netcdf(table, path):
    """Open a NetCDF file of the rows; return it without the time when it was written."""
    writer = ValueNetcdfWriter(path, table._about)
    for row in table._rows:
        writer.write(row)
    writer.finish()
    with xarray.open_dataset(path) as opened:
        stored = opened.load()
    for name in ("history", "date_created"):
        del stored.attrs[name]
    return stored


IN_WATER = Calibration("cal.toml", ChannelCalibration(parse_reference("1 uPa"), 120.0), {})
CASES = {
    "bands and a zone": (
        lambda: levels(bands="octave"),
        {"channels": ["left", "right"], "time_zone": "Europe/Berlin"},
    ),
    "calibrated": (
        lambda: levels(1, quantities=["LZeq", "LZE", "LAeq"], full_scale_db=[120.0]),
        {"source": "pier", "calibration": IN_WATER},
    ),
    "no date": (lambda: levels(utc_ns=None), {}),
    "features": (features, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_dataset_of_the_netcdf_file(case, tmp_path):
    """Values to the bit, types of times, units, coordinates and attributes are the same."""
    measured, settings = CASES[case]
    rows, meter = measured()
    table = MeasurementTable(rows, meter, **settings)
    made, stored = table.to_xarray(), as_netcdf(table, tmp_path / "x.nc")
    xarray.testing.assert_identical(made, stored)
    for name, variable in made.variables.items():
        for key in ("units", "calendar", "coordinates"):
            assert variable.encoding.get(key) == stored[name].encoding.get(key), (name, key)
        assert variable.dtype.kind in (stored[name].dtype.kind, "O")  # texts are objects


def test_it_has_what_the_command_writes(tmp_path):
    """Rows of a meter and ``spectrod levels -o x.nc`` of the same sound have the same variables."""
    sound, path = tmp_path / "a.wav", tmp_path / "x.nc"
    noise = np.random.default_rng(3).uniform(-0.5, 0.5, (20_000, 2)).astype(np.float32)
    soundfile.write(sound, noise, int(FS), subtype="FLOAT")
    asked = ["--quantity", "LAeq,LAFmax", "--bands", "octave", "--interval", "1s"]
    times = ["--start-time", "2026-03-01T12:00:00.25Z", "--time-zone", "Asia/Tokyo"]
    assert main(["levels", str(sound), *asked, *times, "-o", str(path)]) == 0
    begin_ns = np.datetime64("2026-03-01T12:00:00.25", "ns").astype(int)
    meter = LevelMeter(
        FS,
        channels=2,
        quantities=["LAeq", "LAFmax"],
        interval_s=1.0,
        bands="octave",
        utc_ns=int(begin_ns),
        align="utc",
    )
    rows = [*meter.push(noise.T), *meter.finish()]
    made = MeasurementTable(rows, meter, time_zone="Asia/Tokyo").to_xarray()
    with xarray.open_dataset(path) as stored:
        xarray.testing.assert_identical(made.drop_attrs(deep=False), stored.drop_attrs(deep=False))
    assert str(made.t_utc_ns.values[0]) == "2026-03-01T12:00:00.250000000"
    assert (made.LAeq.dims, made.LZeq_bands.dims) == (
        ("time", "channel"),
        ("time", "band", "channel"),
    )
    assert made.LAeq.attrs["spectrod_unit"] == "dBFS"


def test_rows_that_no_dataset_holds_are_refused():
    """Nothing, and days beside their hours, are errors that say the rule."""
    rows, meter = levels()
    with pytest.raises(InputError, match="no rows: a dataset has at least one"):
        MeasurementTable([], meter).to_xarray()
    hour = 3600
    meter = LevelMeter(
        8.0,
        quantities=["LZeq"],
        interval_s=float(hour),
        utc_ns=1_777_593_600 * 10**9,
        align="local",
        time_zone="UTC",
        days=True,
    )
    rows = [*meter.push(np.ones((1, 25 * hour * 8))), *meter.finish()]
    text = "rows of days and of shorter intervals: times of a dataset ascend, so it has no days"
    with pytest.raises(InputError, match=text):
        MeasurementTable(rows, meter).to_xarray()


def test_the_library_is_named_if_it_is_missing(monkeypatch):
    """Without xarray the error says what to install."""
    rows, meter = levels()
    table = MeasurementTable(rows, meter)

    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(optional_packages, "import_module", missing)
    with pytest.raises(UnavailableError, match=r"xarray is not installed: .*spectrod\[xarray\]"):
        table.to_xarray()
