"""The store and the pyramids of a whole job: the values of its units, whole or not there."""

import datetime as dt
import errno
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import h5netcdf
import msgspec
import numpy as np
import pytest
import xarray
import zarr

from spectrod.apps.batch.merged import merged_problems, write_merged
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.run import status_of
from spectrod.apps.batch.staging import merging
from spectrod.apps.batch.unit import compute_unit
from spectrod.apps.web.history.answer import answer
from spectrod.apps.web.history.budget import Budget
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.request import HistoryRequest
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.page_topics import TopicInfo
from spectrod.cli import main
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import level_to_power
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidReader, PyramidWriter
from spectrod.lib.errors import BusyError, ConfigError, StorageError

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import BEGIN, FS, job_of, sound, write

DAYS = ("20260501", "20260502", "20260503", "20260505")
MINUTE_NS = 60 * 10**9
DAY_NS = 1440 * MINUTE_NS


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Return a folder with a job of four days of a few minutes, all computed, not merged."""
    folder = tmp_path_factory.mktemp("merged")
    for k, day in enumerate((0, 1, 2, 4)):
        write(folder / "card", sound((130 + 41 * k) * FS, k, 2), 300.0 + 86400 * day - 3600 * k)
    write(folder / "card", sound(70 * FS, 9, 2), 300.0 + 86400 * 2 - 3600 * 4)
    for path in (folder / "card").iterdir():
        os.utime(path, (1_780_000_000, 1_780_000_000))
    job = the_job(folder, folder)
    for unit in plan_job(job).units:
        assert compute_unit(job, unit).state == "done"
    return folder


def the_job(tmp_path, archive, **settings):
    found = {"products": ("millidecade",), "merged": ("zarr", "pyramid")} | settings
    return job_of(tmp_path, archive / "card", channel_names=("left", "right"), **found)


@pytest.fixture
def copied(tmp_path, archive):
    """Return a job with results of its own, and its units."""
    shutil.copytree(archive / "results", tmp_path / "results")
    job = the_job(tmp_path, archive)
    return job, plan_job(job).units


def merge(job, units):
    """Merge, and return (written, unchanged, not computed) of the store and of the pyramids."""
    found = write_merged(job, [status_of(job, unit) for unit in units])
    return [(one.n_written, one.n_kept, one.n_missing) for one in found]


def problems(job, units):
    return list(merged_problems(job, [status_of(job, unit) for unit in units]))


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def all_contents(job):
    return [contents(Path(job.output) / name) for name in ("archive.zarr", "history")]


def daily(job, day, signal="left"):
    """Return the levels and the effort of a daily file."""
    with h5netcdf.File(Path(job.output) / "north" / f"north_{signal}_{day}.nc") as file:
        return file["psd"][:], file["effort"][:]


def forget(job, unit):
    """Remove the result of a unit."""
    for path in Path(job.output).rglob(f"*{unit.name}*"):
        if path.is_file():
            path.unlink()


def test_the_store_has_the_minutes_of_all_units(copied):
    """Xarray and zarr read the daily files' values; a unit without a result is NaN, and named."""
    job, units = copied
    forget(job, units[1])
    assert merge(job, units) == [(3, 0, 1), (3, 0, 1)]
    found = xarray.open_zarr(Path(job.output) / "archive.zarr", group="north", chunks=None)
    assert found.psd.dims == ("time", "channel", "frequency")
    assert found.channel_name.values.tolist() == ["left", "right"]
    for place, day in enumerate(DAYS):
        minutes = found.isel(time=slice(1440 * place, 1440 * (place + 1)))
        date = np.datetime64(f"{day[:4]}-{day[4:6]}-{day[6:]}")
        ends = date, date + np.timedelta64(1439, "m")
        np.testing.assert_array_equal(minutes.time.values[[0, -1]], ends)
        if day == units[1].name:
            assert np.isnan(minutes.psd).all()
            assert (minutes.effort == 0).all()
            continue
        for channel, signal in enumerate(("left", "right")):
            level, effort = daily(job, day, signal)
            np.testing.assert_array_equal(minutes.psd[:, channel], level)
            np.testing.assert_array_equal(minutes.effort, effort)
    assert found.unit_name.values.tolist() == list(DAYS)
    assert found.unit_state.values.tolist() == ["done", "not computed", "done", "done"]
    assert found.psd.attrs["units"] == "0.1 lg(re 1 Hz-1)"
    assert found.attrs["units_not_computed"] == 1
    assert found.attrs["software"].startswith("spectrod ")
    assert len(found.attrs["spectrod_parameters"]) == 32
    plain = zarr.open_group(Path(job.output) / "archive.zarr", mode="r")
    np.testing.assert_array_equal(plain["north/psd"][:1440, 0], daily(job, DAYS[0])[0])
    assert plain["north/psd"].chunks == (1440, 1, 496)
    assert problems(job, units) == []


@pytest.mark.parametrize("unit", ["day", "hour"])
def test_the_bytes_do_not_depend_on_how_often_it_was_merged(tmp_path, archive, unit):
    """Merged after each unit in any order, store and pyramids are those of one merge at the end."""
    whole, parts = (
        the_job(tmp_path / name, archive, unit=unit, merged=merged)
        for name, merged in (("whole", ("zarr", "pyramid")), ("parts", ("pyramid", "zarr")))
    )
    units = plan_job(whole).units
    assert len(units) == (4 if unit == "day" else 5)
    for one in units:
        compute_unit(whole, one)
    n = len(units)
    assert merge(whole, units) == [(n, 0, 0), (n, 0, 0)]
    for count, k in enumerate(np.random.default_rng(3).permutation(n), 1):
        compute_unit(parts, units[k])
        pyramids, store = merge(parts, units)
        assert store == (1, count - 1, n - count)
        assert pyramids[2] == n - count
    assert all_contents(parts) == all_contents(whole)
    assert problems(parts, units) == []


def test_only_what_has_changed_is_written(copied):
    """A second merge writes nothing; a changed unit costs its chunk and its days, not the rest."""
    job, units = copied
    merge(job, units)
    results = Path(job.output)
    folders = [results / "archive.zarr", results / "history"]
    kept = "archive.zarr/north/psd/c/0/0/0", "history/archive/north/pyramid/1min/20260501.cells"
    before = [path.stat().st_ino for path in folders], [inode(results, name) for name in kept]
    assert merge(job, units) == [(0, 4, 0), (0, 4, 0)]
    assert [path.stat().st_ino for path in folders] == before[0]
    forget(job, units[3])
    assert merge(job, units) == [(0, 3, 1), (0, 3, 1)]
    without = all_contents(job)
    assert "north/psd/c/3/0/0" not in without[0]
    compute_unit(job, units[3])
    assert merge(job, units) == [(1, 3, 0), (1, 3, 0)]
    assert [inode(results, name) for name in kept] == before[1]
    assert not list((results / "state/merge").glob("*.*"))
    other = msgspec.structs.replace(job, compression=5)
    for unit in units:
        compute_unit(other, unit)
    assert merge(other, units)[0] == (4, 0, 0)


def inode(results, name):
    return (results / name).stat().st_ino


@pytest.mark.parametrize(
    ("name", "size", "text"),
    [
        ("archive.zarr/north/psd/c/2/1/0", 1000, "north/20260503: cannot be read; merge again"),
        ("archive.zarr/north/psd/c/2/1/0", None, "north/20260503: is not what was computed; merge"),
        ("archive.zarr/north/effort/c/2", 0, "north/20260503: cannot be read; merge again"),
        ("history/archive/north/pyramid/1min/20260503.cells", 5000, "20260503.cells: is torn; "),
        ("history/archive/north/pyramid/5min/20260507.cells", None, "20260507.cells: is torn; "),
    ],
)
def test_torn_chunks_are_named_and_written_again(copied, name, size, text):
    """A cut or missing file is found by ``verify``; the next merge makes it whole again."""
    job, units = copied
    merge(job, units)
    whole = all_contents(job)
    path = Path(job.output) / name
    if size is None and path.exists():
        path.unlink()
    else:
        with (path if path.exists() else path.with_name("20260407.cells")).open("r+b") as file:
            file.truncate(size or 0)
    found = problems(job, units)
    assert len(found) == 1
    assert text in found[0] or text.replace("20260507", "20260407") in found[0]
    merge(job, units)
    assert all_contents(job) == whole


def test_flipped_bits_are_found(copied):
    """Checksums of chunks and of cells find what has the right size."""
    job, units = copied
    merge(job, units)
    minutes = "history/archive/north/pyramid/1min/20260502.cells"
    for name in ("archive.zarr/north/psd/c/0/0/0", minutes):
        path = Path(job.output) / name
        content = bytearray(path.read_bytes())
        at = len(content) // 2 if "psd" in name else len(content) - 5
        content[at] ^= 1
        path.write_bytes(content)
    found = problems(job, units)
    assert [text.partition("results/")[2] for text in found] == [
        "archive.zarr: north/20260501: cannot be read; merge again",
        "history/archive/north/pyramid: 20260502: is not what was computed; merge again",
    ]


@pytest.mark.parametrize("folder", ["archive.zarr", "history"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("job", "is of the job 'test', not of 'other'; choose another output"),
        ("file", "; remove it"),
        ("folder", "or is damaged; remove it"),
        ("link", "; remove it"),
        ("torn", "or is damaged; remove it"),
        ("no UTF-8", "or is damaged; remove it"),
        ("deep", "or is damaged; remove it"),
    ],
)
def test_what_is_not_of_the_job_is_not_replaced(copied, tmp_path, folder, kind, text):
    """A folder of another job, and anything else of that name, is refused by name and stays."""
    job, units = copied
    job = msgspec.structs.replace(job, merged=("zarr" if folder == "archive.zarr" else "pyramid",))
    path = Path(job.output) / folder
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
        (path / "mine").write_text("mine")
    else:
        merge(job, units)
    if kind == "job":
        job = msgspec.structs.replace(job, name="other")
    elif kind == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    metadata = path / ("zarr.json" if folder == "archive.zarr" else "content.json")
    if kind == "torn":
        os.truncate(metadata, 100)
    elif kind == "no UTF-8":
        metadata.write_bytes(metadata.read_bytes().replace(b"test", b"\xffest"))
    elif kind == "deep":
        metadata.write_bytes(b'{"job":"test","deep":' + b"[" * 100_000)
    before = path.read_bytes() if kind == "file" else contents(path)
    with pytest.raises(StorageError) as error:
        merge(job, units)
    assert str(error.value).startswith(f"{path}: ")
    assert str(error.value).endswith(text)
    assert (path.read_bytes() if kind == "file" else contents(path)) == before


@pytest.mark.parametrize("merged", ["zarr", "pyramid"])
def test_a_disk_that_is_full_leaves_what_was_there(copied, merged):
    """If a write fails, one error names the folder; the one before stays, and no part of a new."""
    job, units = copied
    job = msgspec.structs.replace(job, merged=(merged,))
    forget(job, units[3])
    merge(job, units)
    folder = Path(job.output) / ("archive.zarr" if merged == "zarr" else "history")
    before = contents(folder)
    compute_unit(job, units[3])
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    try:
        with pytest.raises(StorageError, match=rf"{folder.name}.*: File too large"):
            merge(job, units)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert contents(folder) == before
    assert [path.name for path in (folder.parent / "state/merge").iterdir()] == ["lock"]


def test_a_folder_that_cannot_be_written_is_named(copied):
    """Without a folder for what is being written there is one error, and nothing else."""
    job, units = copied
    merge_folder = Path(job.output) / "state" / "merge"
    merge_folder.write_text("")
    with pytest.raises(StorageError, match="state/merge: Not a directory"):
        merge(job, units)
    assert not (Path(job.output) / "archive.zarr").exists()


def test_a_changed_daily_file_is_not_merged(copied):
    """A file that is not that of its record ends the merge with its name."""
    job, units = copied
    path = Path(job.output) / "north" / f"north_right_{DAYS[2]}.nc"
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(StorageError, match=f"{path.name}: is not what was computed"):
        merge(job, units)
    assert not (Path(job.output) / "archive.zarr").exists()


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_a_swap_that_fails_gives_the_folder_its_name_back(copied, monkeypatch, error):
    """Between the old folder's move and the new one's nothing is lost either."""
    job, units = copied
    forget(job, units[0])
    merge(job, units)
    before = all_contents(job)
    compute_unit(job, units[0])
    rename = Path.rename

    def failing(path, target):
        if path.suffix == ".part":
            raise error
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else StorageError
    with pytest.raises(expected):
        merge(job, units)
    assert all_contents(job) == before
    assert [path.name for path in (Path(job.output) / "state/merge").iterdir()] == ["lock"]


def test_a_fifo_in_place_of_metadata_does_not_block(copied):
    """What is no regular file ends a merge with its name."""
    job, units = copied
    merge(job, units)
    for name in ("archive.zarr/zarr.json", "history/content.json"):
        path = Path(job.output) / name
        path.unlink()
        os.mkfifo(path)
        job = msgspec.structs.replace(job, merged=("zarr" if "zarr" in name else "pyramid",))
        with pytest.raises(StorageError, match=rf"{path.name}: must be a regular file"):
            merge(job, units)


def test_a_merge_that_was_killed_leaves_the_folder_before(copied):
    """The next merge removes unfinished folders, and gives the one before its name back."""
    job, units = copied
    merge(job, units)
    whole = all_contents(job)
    results, state = Path(job.output), Path(job.output) / "state" / "merge"
    (results / "archive.zarr").rename(state / "archive.zarr.old")
    (state / "history.part").mkdir()
    shutil.copytree(results / "history", state / "history.old")
    assert merge(job, units) == [(0, 4, 0), (0, 4, 0)]
    assert all_contents(job) == whole
    assert [path.name for path in state.iterdir()] == ["lock"]
    with merging(results), pytest.raises(BusyError, match="results: another process merges"):
        merge(job, units)


def test_rates_and_channels_have_groups_of_their_own(tmp_path):
    """Units of a deployment with other rates or channels are other arrays and pyramids."""
    write(tmp_path / "card", sound(70 * FS), 300)
    write(tmp_path / "card", sound(70 * 2 * FS), 86400, fs=2 * FS)
    write(tmp_path / "card", sound(70 * FS, channels=2), 2 * 86400)
    job = job_of(tmp_path, tmp_path / "card", products=("millidecade",), merged=("zarr", "pyramid"))
    units = plan_job(job).units
    for unit in units:
        compute_unit(job, unit)
    assert merge(job, units) == [(3, 0, 0), (3, 0, 0)]
    root = zarr.open_group(Path(job.output) / "archive.zarr", mode="r")
    assert {name: group["psd"].shape for name, group in root["north"].groups()} == {
        "1000hz_1ch": (1440, 1, 496),
        "1000hz_2ch": (1440, 2, 496),
        "2000hz_1ch": (1440, 1, 797),
    }
    assert sorted(path.name for path in (Path(job.output) / "history").iterdir()) == [
        "archive_1000hz_1ch", "archive_1000hz_2ch", "archive_2000hz_1ch", "content.json",
    ]  # fmt: skip
    assert problems(job, units) == []


def test_units_that_cannot_be_computed_cost_no_others(tmp_path):
    """A rate too low for minutes has no group; all else is merged."""
    write(tmp_path / "card", sound(70 * FS), 300)
    write(tmp_path / "card", sound(70 * 4), 86400, fs=4)
    job = job_of(tmp_path, tmp_path / "card", products=("millidecade",), merged=("zarr", "pyramid"))
    units = plan_job(job).units
    assert [compute_unit(job, unit).state for unit in units] == ["done", "failed"]
    assert merge(job, units) == [(1, 0, 0), (1, 0, 0)]
    assert problems(job, units) == []


def test_channels_of_two_units_cost_no_others(tmp_path):
    """A deployment with one of two channels calibrated is set aside, and no part of a store."""
    write(tmp_path / "card", sound(70 * FS, channels=2), 300)
    path = tmp_path / "one.toml"
    path.write_text(
        'reference = "1 uPa"\n[channels.1]\nfull_scale_db = 170.0\nfull_scale = "rms"\n'
    )
    job = job_of(
        tmp_path, tmp_path / "card", products=("millidecade",), merged=("zarr",),
        calibration=str(path),
    )  # fmt: skip
    units = plan_job(job).units
    assert [compute_unit(job, unit).state for unit in units] == ["failed"]
    assert merge(job, units) == [(0, 0, 0)]


def test_too_many_units_are_refused(copied, monkeypatch):
    """A deployment with more units than a store may have is named."""
    job, units = copied
    monkeypatch.setattr("spectrod.apps.batch.series.UNITS_MAX", 3)
    with pytest.raises(ConfigError, match=r"deployments\.north: 4 units: must be at most 3"):
        merge(job, units)


# ---- pyramids


def test_cells_are_those_of_the_daemons_writer(copied, tmp_path):
    """Minutes and all coarser cells are those that a recording of the same rows has, to 0.01 dB."""
    job, units = copied
    merge(job, units)
    own = PyramidReader(Path(job.output) / "history/archive/north/pyramid")
    spec = own.about.spectrum_spec()
    writer = PyramidWriter(tmp_path / "other", description(own), PyramidOptions(60.0, 0, 1e9))
    for day in DAYS:
        level = [daily(job, day, signal)[0] for signal in ("left", "right")]
        effort = daily(job, day)[1]
        begin_ns = int(np.datetime64(f"{day[:4]}-{day[4:6]}-{day[6:]}", "ns").astype(int))
        for minute in np.flatnonzero(effort):
            power = level_to_power(np.stack([one[minute] for one in level]).astype(np.float64))
            writer.write(row(spec, power, begin_ns + minute * MINUTE_NS, effort[minute]))
    writer.finish()
    other = PyramidReader(tmp_path / "other")
    assert own.about.cells_ns == other.about.cells_ns
    for level, cell_ns in enumerate(own.about.cells_ns):
        span = (units[0].begin_utc_ns // cell_ns * cell_ns, units[-1].begin_utc_ns + DAY_NS)
        ours, theirs = (list(one.cells(level, *span)) for one in (own, other))
        for field in ("begin_utc_ns", "effort_s", "mean", "greatest"):
            a, b = (np.concatenate([getattr(x, field) for x in some]) for some in (ours, theirs))
            np.testing.assert_allclose(a.astype(float), b.astype(float), atol=1.0, rtol=0.01)
        assert len(np.concatenate([one.begin_utc_ns for one in ours])) >= 4
    own.close()
    other.close()


def description(reader):
    about = reader.about
    return Description(about.spectrum_spec(), about.source, about.signals, about.software)


def row(spec, power, begin_ns, effort_s):
    """Return a row of band powers of a minute, cut off if there is less sound."""
    bands = spec.band_table
    power = power[:, : len(bands)].copy()
    power[:, 0] *= 2.0  # a band from -0.5 Hz on in daily files
    frames = round((float(effort_s) * spec.fs - spec.win_length) / spec.hop) + 1
    cut = frames if frames < spec.averaging_frames else 0
    at = np.array([begin_ns], np.int64)
    values = power[np.newaxis].astype(np.float32)
    return SpectrumBatch(values, at * 0, at, at, spec, "numpy", cut_frames=cut)


@pytest.mark.parametrize("is_calibrated", [False, True])
def test_a_value_is_the_same_in_daily_files_the_store_and_the_page(
    tmp_path, archive, is_calibrated
):
    """The level of a band in a minute is one number, on the page rounded to 0.01 dB."""
    settings = {}
    if is_calibrated:
        (tmp_path / "cal.toml").write_text(CALIBRATION)
        settings["calibration"] = str(tmp_path / "cal.toml")
    job = the_job(tmp_path, archive, **settings)
    units = plan_job(job).units
    for unit in units[:2]:
        record = compute_unit(job, unit)
        assert record.state == "done", record.reason
    assert merge(job, units) == [(2, 0, 2), (2, 0, 2)]
    level, effort = daily(job, DAYS[1], "right")
    store = xarray.open_zarr(Path(job.output) / "archive.zarr", group="north", chunks=None)
    minute, band = int(np.flatnonzero(effort)[1]), 123
    begin = np.datetime64("2026-05-02") + np.timedelta64(minute, "m")
    stored = store.psd.sel(time=begin).isel(channel=1, frequency=band)
    assert float(stored) == float(level[minute, band])
    assert store.psd.attrs["spectrod_unit"] == (
        "dB re (20 uPa)^2/Hz" if is_calibrated else "dB re 1 FS^2/Hz"
    )
    begin_ms = int(begin.astype("datetime64[ms]").astype(int))
    found = history(job, begin_ms, begin_ms + 60_000, 1)
    codes = found.layers[0].astype(float)
    page_db = codes[0, band] * 0.01 - 327.67
    offset_db = 20.0 * np.log10(20e-6) if is_calibrated else 0.0  # the page's unit is the pascal
    assert abs(page_db - offset_db - float(level[minute, band])) <= 0.0051
    assert found.header["sources"] == ["pyramid"]
    assert found.effort_s.tolist() == [60.0]
    assert not found.is_final  # the archive may be merged again
    season = history(job, begin_ms - 86_400_000, begin_ms + 86_400_000, 48)
    heard = season.effort_s > 0
    assert heard.sum() == 2
    for column in np.flatnonzero(heard):
        assert season.effort_s[column] > 60


CALIBRATION = """
reference = "20 uPa"
full_scale_db = 120.0
full_scale = "rms"
"""


def history(job, t0_ms, t1_ms, width):
    """Return what the page's server answers about the right channel."""
    reader = PyramidReader(Path(job.output) / "history/archive/north/pyramid")
    unit = reader.about.spectrum_spec().scale.unit
    reader.close()
    topic = TopicInfo(
        7, "bands/north/right/millidecade/", "bands", "tcp://127.0.0.1:5556", "north", "right",
        "millidecade", f"dB re {unit}", float(FS),
    )  # fmt: skip
    request = HistoryRequest(
        7, t0_ms, t1_ms, -1e6, 1e6, width, 4096, ("max",), f"{topic.endpoint} {topic.topic}"
    )
    index = RecordingIndex([Path(job.output) / "history"])
    now_ns = int((BEGIN + dt.timedelta(days=400)).timestamp()) * 10**9
    return answer(request, {7: topic}, index, Ring(), Budget(), now_ns=now_ns)


# ---- commands and documentation


def test_the_commands_merge_and_verify(copied, tmp_path, archive, capsys):
    """``merge`` prints what each folder is made of, and ``verify`` what is torn."""
    _, units = copied
    path = tmp_path / "JOB.toml"
    path.write_text(
        '[job]\nname = "test"\noutput = "results"\nengine = "numpy"\n'
        'merged = ["zarr", "pyramid"]\n[deployments.north]\n'
        f'inputs = ["{archive / "card"}"]\nchannel_names = ["left", "right"]\n'
    )
    assert main(["batch", "plan", str(path)]) == 0
    assert main(["batch", "merge", str(path)]) == 0
    results = tmp_path / "results"
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        f"{results / name}: units: 4 written, 0 unchanged, 0 not computed"
        for name in ("archive.zarr", "history")
    ]
    assert main(["batch", "verify", str(path)]) == 0
    (results / "archive.zarr/north/psd/c/1/0/0").unlink()
    assert main(["batch", "verify", str(path)]) == 74
    assert "north/20260502: is not what was computed; merge again" in capsys.readouterr().out
    path.write_text(path.read_text().replace(', "pyramid"', ""))
    assert main(["batch", "merge", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        f"{results / 'archive.zarr'}: units: 1 written, 3 unchanged, 0 not computed",
        f"{results / 'history'}: is of an earlier merge: merged= names it no longer",
    ]
    path.write_text(path.read_text().replace("engine", 'products = ["levels"]\nengine'))
    assert main(["batch", "merge", str(path)]) == 2
    assert "merged=['zarr']: needs 'millidecade' among the products" in (capsys.readouterr().err)
    assert len(units) == 4


def test_the_example_of_the_documentation_runs(copied, tmp_path, monkeypatch, capsys):
    """The example with xarray in docs/archives.md prints a night's minutes, unit and loudest."""
    job, units = copied
    forget(job, units[3])
    merge(job, units)
    page = (Path(__file__).parents[4] / "docs" / "archives.md").read_text()
    begin = "import xarray\n"
    code = begin + page.partition(f"```python\n{begin}")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "archives.md", "exec"), {})  # noqa: S102
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("16 dB re 1 FS^2/Hz ")
    assert second == "['20260505']"


@pytest.mark.extended
@pytest.mark.timeout(600)
def test_memory_does_not_grow_with_the_days(tmp_path):
    """40 days of minutes in 2300 bands are merged in the memory of ten, and again at once."""
    script = Path(__file__).parents[3] / "archives" / "synthetic_year.py"
    found = {}
    for days in (10, 40):
        command = [sys.executable, str(script), str(tmp_path / str(days)), str(days)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[days] = msgspec.json.decode(done.stdout)
    assert found[40]["first"]["units"] == [[40, 0, 0], [40, 0, 0]]
    assert found[40]["again"]["units"] == [[0, 40, 0], [0, 40, 0]]
    assert found[40]["peak"] < found[10]["peak"] + (64 << 20)
    assert found[40]["peak"] < 256 << 20
    assert found[40]["again"]["processor_s"] < found[40]["first"]["processor_s"] / 10
