"""Exported files in the programs that others use."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray

from spectrod.dsp.calibration import ChannelCalibration, parse_reference
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.values.measurement_description import describe
from spectrod.formats.values.value_writer import open_writer
from spectrod.lib.site import Site
from spectrod.measure.levels.levels_config import LevelsConfig
from spectrod.measure.measurement_config import MeasuredSignals
from spectrod.recording.output_plan import make_data

BEGIN_UTC_NS = 1_795_211_223_123_456_789
OPEN = {
    ".nc": lambda path: xarray.open_dataset(path, engine="h5netcdf"),
    ".h5": lambda path: xarray.open_dataset(path, engine="h5netcdf"),
    ".zarr": lambda path: xarray.open_zarr(path, chunks=None),  # not as arrays of Dask
}


def export(path, options=None, rows=20, **settings):
    """Write rows with a gap before the eleventh; return the values."""
    spec = SpectrumSpec(**({"fs": 4000.0, "win_length": 4000, "hop": 2000} | settings))
    names = tuple(f"mic {k}" for k in range(spec.n_signals))
    about = Description(spec, "reef", names, "spectrod 1.2.3", attributes={"license": "CC0"})
    writer = make_data(path, about, options or ExportOptions())
    shape = (rows, spec.n_signals, spec.n_values)
    values = np.random.default_rng(4).uniform(1e-9, 1e-6, shape).astype(np.float32)
    index = spec.hop * np.arange(rows, dtype=np.int64)
    index[10:] += 1000
    t_ns = BEGIN_UTC_NS + (index * (10**9 / spec.fs)).astype(np.int64)
    for some, gap in ((slice(10), 0), (slice(10, None), 1000)):
        times = index[some], t_ns[some], t_ns[some]
        broadband = values[some].sum(axis=2) if spec.broadband else None
        writer.write(
            SpectrumBatch(values[some], *times, spec, "numpy", gap, bool(gap), broadband=broadband)
        )
    writer.finish()
    return spec, t_ns, values


@pytest.mark.slow
@pytest.mark.parametrize("suffix", OPEN)
def test_xarray_opens_exports(tmp_path, suffix):
    """Xarray finds times, frequencies, channels and units without a warning."""
    spec, t_ns, values = export(tmp_path / f"x{suffix}", channels=2)
    with OPEN[suffix](tmp_path / f"x{suffix}") as dataset:
        psd = dataset.psd
        assert psd.dims == ("time", "channel", "frequency")
        np.testing.assert_array_equal(psd, values)
        np.testing.assert_array_equal(dataset.t_utc_ns, t_ns.astype("M8[ns]"))
        assert abs(dataset.time - dataset.t_utc_ns).max() < np.timedelta64(1, "us")
        np.testing.assert_array_equal(dataset.frequency, spec.frequencies)
        assert dataset.channel_name.to_numpy().tolist() == ["mic 0", "mic 1"]
        assert psd.long_name == "power spectral density in FS^2/Hz"
        assert (psd.units, psd.spectrod_unit, dataset.effort.units) == ("Hz-1", "FS^2/Hz", "s")
        assert dataset.gap_length.to_numpy().tolist() == [1000]
        assert dataset.gap_start.to_numpy().tolist() == [20000]
        # A typical use: the level at a frequency and a time.
        row = psd.sel(frequency=440.0, method="nearest").isel(channel=1, time=3)
        assert row.item() == values[3, 1, round(440.0 / spec.delta_f)]


@pytest.mark.slow
def test_pandas_reads_a_csv(tmp_path):
    """Pandas skips lines with # and finds times, gaps and a column per bin."""
    spec, t_ns, values = export(tmp_path / "x.csv", channels=2)
    table = pd.read_csv(tmp_path / "x.csv", comment="#", parse_dates=["time"])
    assert table.time.astype("int64").tolist() == t_ns.tolist()
    assert table.gap_samples.tolist() == [1000 if row == 10 else 0 for row in range(20)]
    assert len(table.columns) == 8 + 2 * spec.n_values
    column = table[f"mic 1:{float(spec.frequencies[7])!r}"].to_numpy(np.float32)
    np.testing.assert_array_equal(column, values[:, 1, 7])


@pytest.mark.slow
@pytest.mark.parametrize("suffix", OPEN)
def test_xarray_finds_bands_by_name_and_the_broadband_level(tmp_path, suffix):
    """Xarray finds bands by nominal name, with exact frequencies and the broadband level."""
    bands = {"bands": "octave", "broadband": True, "scaling": "dbfs"}
    _, _, values = export(tmp_path / f"x{suffix}", channels=2, **bands)
    with OPEN[suffix](tmp_path / f"x{suffix}") as dataset:
        named = dataset.level.swap_dims(frequency="band_name")
        column = named.sel(band_name="63 Hz")
        np.testing.assert_array_equal(column, values[:, :, 5])
        assert column.frequency.item() == pytest.approx(63.0957, abs=1e-4)
        assert dataset.broadband.dims == ("time", "channel")
        np.testing.assert_array_equal(dataset.broadband, values.sum(axis=2))
        assert dataset.broadband.long_name == "broadband level in dBFS"


def write_values(path, calibration):
    """Write levels of noise, of the whole and of octaves."""
    config = LevelsConfig("sea", quantities=("LZeq", "LZE", "LAeq"), interval_s=0.5, bands="octave")
    bound = config.bind(MeasuredSignals("reef", 8000.0, ("0",), (calibration,)))
    meter = bound.open(0)
    writer = open_writer(path, describe(bound.signals, bound.facts, meter))
    noise = np.random.default_rng(5).uniform(-0.3, 0.3, (1, 8000))
    for row in [*meter.push(noise, utc_ns=BEGIN_UTC_NS), *meter.finish()]:
        writer.write(row)
    writer.finish()


@pytest.mark.slow
def test_netcdf_files_follow_cf(tmp_path):
    """The checker of CF 1.11 accepts rows, bands, levels and daily files."""
    air = Site(latitude=54.5, longitude=8.25, height_m=1.5, platform="mast")
    water = Site(latitude=54.5, longitude=-8.25, depth_m=12, instrument="hydrophone")
    export(tmp_path / "density.nc", ExportOptions(attributes=air.attributes), channels=2)
    bands = {"bands": "third-octave", "broadband": True}
    export(tmp_path / "bands.nc", scaling="spectrum", averaging="exponential", **bands)
    export(tmp_path / "levels.nc", scaling="dbfs", averaging="max", averaging_frames=4)
    export(tmp_path / "iq.nc", scaling="dbfs", channels=2, iq=True, rows=11)
    export(tmp_path / "radio.nc", channels=2, iq=True, center_frequency_hz=433.92e6)
    export(tmp_path / "day.nc", ExportOptions(profile="millidecade"), nfft=4000)
    hydrophone = ChannelCalibration(parse_reference("1 uPa"), 170.0)
    microphone = ChannelCalibration(parse_reference("20 uPa"), 120.0)
    for name, one, site in (("air", microphone, air), ("water", hydrophone, water)):
        options = ExportOptions(profile="millidecade", attributes=site.attributes)
        export(tmp_path / f"{name}.nc", options, nfft=4000, calibration=(one,))
    sea = {"bands": "third-octave", "broadband": True, "scaling": "dbfs"}
    export(
        tmp_path / "sea.nc",
        ExportOptions(attributes=water.attributes),
        calibration=(hydrophone,),
        **sea,
    )
    write_values(tmp_path / "values.nc", hydrophone)
    paths = sorted(tmp_path.iterdir())
    assert [path.name for path in paths] == [
        "air_20261120.nc", "bands.nc", "day_20261120.nc", "density.nc", "iq.nc", "levels.nc",
        "radio.nc", "sea.nc", "values.nc", "water_20261120.nc",
    ]  # fmt: skip
    checker = Path(sys.executable).with_name("compliance-checker")
    command = [checker, "--test=cf:1.11", "--criteria=strict", *paths]
    report = subprocess.run(command, check=False, capture_output=True, text=True)
    assert report.stdout.count("All tests passed!") == len(paths), report.stdout + report.stderr
    assert report.returncode == 0


@pytest.mark.slow
def test_netcdf_files_have_the_acdd_fields_known_to_a_program(tmp_path):
    """Only fields known to the operator are missing from those of ACDD 1.3."""
    asked = {"creator_name": "A. Nonymous", "institution": "Reef", "summary": "A reef."}
    site = Site(latitude=54.5, longitude=8.25, depth_m=12, platform="mooring", instrument="ST600")
    asked |= site.attributes
    export(tmp_path / "x.nc", ExportOptions(attributes=asked))
    checker = Path(sys.executable).with_name("compliance-checker")
    write_values(tmp_path / "values.nc", ChannelCalibration(parse_reference("1 uPa"), 170.0))
    command = [checker, "--test=acdd:1.3", tmp_path / "x.nc", tmp_path / "values.nc"]
    both = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    reports = [set(re.findall(r"^\* (\S+) not present", one, re.MULTILINE))
               for one in both.split("IOOS Compliance Checker Report")[1:]]  # fmt: skip
    report, missing = both, reports[0]
    known = {"title", "summary", "keywords", "Conventions", "source", "history", "date_created",
             "license", "creator_name", "institution", "standard_name_vocabulary",
             "time_coverage_start", "time_coverage_end", "time_coverage_duration",
             "time_coverage_resolution"}  # fmt: skip
    assert "Highly Recommended" in report, "the checker has looked at the variables"
    assert "project" in missing, "and at the attributes"
    assert not missing & (known | site.attributes.keys())
    assert not reports[1] & (known - {"license", "creator_name", "institution"})
