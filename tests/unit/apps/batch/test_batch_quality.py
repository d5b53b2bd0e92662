"""Quality flags of daily files: from the samples of units, with schedules' pauses as good data."""

import sys
from pathlib import Path

import h5netcdf
import numpy as np
import pytest

from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.unit import compute_unit
from spectrod.lib.site import Site

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, job_of, sound, write


def quality(tmp_path, **settings):
    """Return (minutes, bands) flags of the minutes with data of the first file, and the efforts.

    The first minute of small archives is 23:50.
    """
    job = job_of(tmp_path, tmp_path / "card", products=("millidecade",), **settings)
    record = compute_unit(job, plan_job(job).units[0])
    assert record.state == "done"
    with h5netcdf.File(tmp_path / "results" / record.outputs[0].path, "r") as file:
        effort = file["effort"][...]
        return file["quality_flag"][...][effort > 0], effort[effort > 0]


def test_faults_of_samples_are_flags_of_their_minutes(tmp_path):
    """Clipping is questionable in its minute alone, silence is bad in those that it reaches."""
    x = sound(300 * FS)
    x[70 * FS : 70 * FS + 5] = -32768
    x[185 * FS : 200 * FS] = 0
    write(tmp_path / "card", x)
    flags, _ = quality(tmp_path)
    assert flags.min(axis=1).tolist() == flags.max(axis=1).tolist() == [1, 3, 1, 4, 1]


def test_an_offset_is_a_flag_of_low_bands(tmp_path):
    """A steady offset leaves the bands above 2 Hz good."""
    write(tmp_path / "card", sound(120 * FS) // 4 + 8000)
    flags, _ = quality(tmp_path)
    assert flags[1, :3].tolist() == [3, 3, 3]
    assert (flags[1, 3:] == 1).all()


def test_pauses_of_a_schedule_are_no_bad_data(tmp_path):
    """Recordings of 40 s each minute, of which one is missing and one lacks 5 s within it."""
    for minute in (0, 1, 2, 4, 5, 6, 7):
        write(tmp_path / "card", sound((20 if minute == 6 else 40) * FS, minute), 60 * minute)
    write(tmp_path / "card", sound(15 * FS), 60 * 6 + 25)
    flags, effort = quality(tmp_path)
    np.testing.assert_array_equal(flags.min(axis=1), flags.max(axis=1))
    assert flags[:, 0].tolist() == [1, 1, 1, 1, 1, 3, 1]
    assert effort[0] == pytest.approx(40.0)


def test_a_loss_is_questionable_where_it_reaches(tmp_path):
    """Without a schedule each gap is a loss: of the minutes of its begin and its end."""
    write(tmp_path / "card", sound(90 * FS), 0)
    write(tmp_path / "card", sound(130 * FS), 140)
    flags, _ = quality(tmp_path)
    assert flags[:, 0].tolist() == [1, 3, 3, 1, 1]


def test_channels_have_flags_of_their_own(tmp_path):
    """Clipping of one channel is no flag of another."""
    x = sound(60 * FS, channels=2)
    x[1000:1010, 1] = 32767
    write(tmp_path / "card", x)
    job = job_of(tmp_path, tmp_path / "card", products=("millidecade",))
    record = compute_unit(job, plan_job(job).units[0])
    found = []
    for one in record.outputs:
        with h5netcdf.File(tmp_path / "results" / one.path, "r") as file:
            found.append(int(file["quality_flag"][1430, 0]))
    assert found == [1, 3]


def test_a_unit_beyond_its_calibration_says_so(tmp_path):
    """The record has the line, the minutes are questionable, and other dates are another result."""
    write(tmp_path / "card", sound(120 * FS))
    calibration = tmp_path / "mic.toml"
    text = 'reference = "1 uPa"\nfull_scale_db = 170\nfull_scale = "rms"\n'
    digests = []
    for dates in ("", "valid_until = 2026-04-30\n", "valid_until = 2026-05-01\n"):
        calibration.write_text(text + dates)
        settings = {"products": ("millidecade",), "calibration": str(calibration)}
        job = job_of(tmp_path, tmp_path / "card", **settings)
        record = compute_unit(job, plan_job(job).units[0])
        digests.append(record.digest)
        with h5netcdf.File(tmp_path / "results" / record.outputs[0].path, "r") as file:
            flag = int(file["quality_flag"][1430, 9])
        is_late = "04-30" in dates
        assert flag == (3 if is_late else 1)
        assert (
            any("is valid until 2026-05-01T00:00:00Z" in one for one in record.problems) == is_late
        )
    assert len(set(digests)) == 3


def test_a_site_is_a_point_of_a_time_series(tmp_path):
    """Files have the place as attributes and coordinates; after a move they are computed again."""
    write(tmp_path / "card", sound(60 * FS))
    site = Site(latitude=54.5, longitude=8.25, depth_m=12, platform="mooring")
    settings = {"products": ("millidecade",), "attributes": {"platform": "ship", "license": "CC0"}}
    job = job_of(tmp_path, tmp_path / "card", site=site, **settings)
    (unit,) = plan_job(job).units
    record = compute_unit(job, unit)
    with h5netcdf.File(tmp_path / "results" / record.outputs[0].path, "r") as file:
        about = file.attrs
        assert (about["platform"], about["license"]) == ("mooring", "CC0")
        assert (about["featureType"], about["geospatial_lat_max"]) == ("timeSeries", 54.5)
        assert [float(file[name][()]) for name in ("latitude", "longitude", "depth")] == [
            54.5, 8.25, 12.0
        ]  # fmt: skip
        assert file["depth"].attrs["positive"] == "down"
        assert file["site"].attrs["cf_role"] == "timeseries_id"
        assert file["psd"].attrs["coordinates"] == "site latitude longitude depth"
    moved = job_of(
        tmp_path, tmp_path / "card", site=Site(latitude=54.6, longitude=8.25), **settings
    )
    assert unit.digest(moved) != unit.digest(job)
    with h5netcdf.File(computed_without(tmp_path), "r") as file:
        assert "latitude" not in file.variables
        assert "featureType" not in file.attrs


def computed_without(tmp_path):
    """Return the daily file of a job whose deployment has no site."""
    job = job_of(tmp_path, tmp_path / "card", products=("millidecade",))
    record = compute_unit(job, plan_job(job).units[0])
    return tmp_path / "results" / record.outputs[0].path
