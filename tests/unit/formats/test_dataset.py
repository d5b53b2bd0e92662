"""Recordings as datasets of xarray."""

import pickle
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray

from spectrod.formats.dataset import lazy_array
from spectrod.formats.dataset.backend import _SUFFIXES, SpectrodBackend
from spectrod.formats.dataset.lazy_array import numbers_of
from spectrod.formats.description import ELAPSED, TIME_REFERENCE
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.netcdf import NetcdfWriter, open_netcdf
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_series import SUFFIXES
from spectrod.formats.segment.segment_table import SegmentTable
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import InputError, StorageError
from spectrod.lib.site import Site

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from segment_rows import describe, make_batch, make_spec, rows_of, shifted

OF_A_FILE = ("history", "date_created")


def write(path, *batches, finish=True, place=None, **about):
    made = SegmentWriter(path, describe(batches[0].spec, **about), place=place)
    for batch in batches:
        made.write(batch)
    if finish:
        made.finish()
    return made


def write_gap(path, spec, **about):
    """Write 7 rows, a gap, and 6 of another engine, of which the second record has skipped rows."""
    flags = np.random.default_rng(3).integers(0, 256, (4, spec.n_signals)).astype(np.uint8)
    later = shifted(make_batch(spec, 7, 4), 990, engine="opencl:x", gap_samples=990)
    later = replace(later, conditions=flags)
    last = shifted(make_batch(spec, 13, 2), 990, engine="numpy", skipped_rows=2)
    return write(path, make_batch(spec, 0, 7), later, last, **about)


def opened(path, **options):
    return xarray.open_dataset(path, engine=SpectrodBackend, **options)


def as_netcdf(source, path):
    """Open what ``spectrod convert`` makes of a recording; return it without its own history."""
    reader = SegmentReader(source)
    writer = NetcdfWriter(path, reader.description, ExportOptions())
    for batch in reader.batches():
        writer.write(batch)
    writer.left_out_samples = reader.left_out_samples
    writer.finish()
    with xarray.open_dataset(path, engine="h5netcdf") as dataset:
        dataset.load()
    for name in OF_A_FILE:
        del dataset.attrs[name]
    return dataset


def assert_same(found, expected):
    """Compare names, attributes, coordinates and the bits of all values."""
    xarray.testing.assert_identical(found, expected)
    for name, one in found.variables.items():
        if one.dtype.kind not in "OU":  # texts are equal already
            assert one.dtype == expected[name].dtype, name
            assert one.to_numpy().tobytes() == expected[name].to_numpy().tobytes(), name


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"channels": 3, "scaling": "dbfs"},
        {"channels": 4, "iq": True, "nfft": 32, "center_frequency_hz": 1e8},
        {"bands": "octave", "fs": 48000.0, "nfft": 511, "channels": 2, "broadband": True},
        {"averaging": "mean", "averaging_frames": 7, "nfft": 31, "win_length": 15},
    ],
)
def test_a_dataset_is_that_of_the_netcdf_file(tmp_path, settings):
    """Variables, coordinates, attributes and bits are those of the file that convert makes."""
    site = Site(latitude=54.5, longitude=8.25, depth_m=12)
    about = {"license": "CC0"} | site.attributes
    write_gap(tmp_path / "x.spd", make_spec(**settings), attributes=about)
    assert_same(opened(tmp_path / "x.spd"), as_netcdf(tmp_path / "x.spd", tmp_path / "x.nc"))


def test_conditions_and_the_site_are_there(tmp_path):
    """Conditions of rows have CF's names of flags; the site is a coordinate of the values."""
    site = Site(latitude=54.5, longitude=8.25, height_m=1.5)
    about = site.attributes
    made = write_gap(tmp_path / "x.spd", make_spec(channels=2), attributes=about)
    found = opened(tmp_path / "x.spd")
    rows = SegmentReader(made.path).batches()
    checked = [one.conditions for one in rows if one.conditions is not None]
    np.testing.assert_array_equal(found.conditions[7:11], np.concatenate(checked))
    assert not found.conditions[:7].any()
    assert not found.conditions[11:].any()
    assert found.conditions.flag_masks.tolist() == [1, 2, 4, 8, 16, 32, 64, 128]
    names = "checked gap clipping dc silent missing stuck suspected"
    assert found.conditions.flag_meanings == names
    assert found.attrs["checked_rows"] == "some"
    place = [found.psd.coords[name].item() for name in ("latitude", "longitude", "height")]
    assert place == [54.5, 8.25, 1.5]


def test_gaps_are_in_the_coordinates(tmp_path):
    """Rows before and after a gap are neighbours whose times are apart."""
    write_gap(tmp_path / "x.spd", make_spec())
    found = opened(tmp_path / "x.spd")
    steps_ns = np.diff(found.t_utc_ns.to_numpy()).astype(np.int64)
    row_ns = 1_250_000
    # The 2 skipped rows before the last record count as time, as the gap does.
    gap_ns = row_ns + 990 * 125_000
    assert steps_ns.tolist() == [row_ns] * 6 + [gap_ns] + [row_ns] * 3 + [3 * row_ns, row_ns]
    assert abs(found.time - found.t_utc_ns).max() < np.timedelta64(1, "us")
    assert (found.gap_start.item(), found.gap_length.item()) == (70, 990)


def test_complex_values_are_complex(tmp_path):
    """Complex spectra are complex numbers, of which NetCDF has the two parts."""
    write_gap(tmp_path / "x.spd", make_spec(output="complex", scaling="spectrum"))
    found = opened(tmp_path / "x.spd").amplitude
    parts = as_netcdf(tmp_path / "x.spd", tmp_path / "x.nc").amplitude
    assert found.dtype == np.complex64
    assert found.attrs == parts.attrs
    bits = np.ascontiguousarray(found.to_numpy()).view(np.float32)
    assert bits.tobytes() == parts.to_numpy().tobytes()


def test_times_without_a_date_count_from_the_beginning(tmp_path):
    """Without a date, times are seconds, and no date is made of them."""
    batch = make_batch(make_spec(), 0, 3)
    elapsed = replace(batch, t_utc_ns=batch.t_utc_ns - batch.t_utc_ns[0])
    write(tmp_path / "x.spd", elapsed, attributes={TIME_REFERENCE: ELAPSED})
    found = opened(tmp_path / "x.spd")
    assert found.time.dtype == np.float64
    assert_same(found, as_netcdf(tmp_path / "x.spd", tmp_path / "x.nc"))


def test_a_folder_is_one_dataset(tmp_path):
    """Segments of several recordings are joined in order; what is missing is a gap."""
    spec, place = make_spec(), None
    for number, name in enumerate(["b", "c", "a"]):
        place = write(
            tmp_path / f"{name}.spd", make_batch(spec, 4 * number, 4), place=place
        ).next_place
    (tmp_path / "c.spd").unlink()
    later = make_batch(spec, 0, 3)
    write(tmp_path / "0.spd", replace(later, t_utc_ns=later.t_utc_ns + 10**9))
    found = opened(tmp_path)
    assert_same(found, as_netcdf(tmp_path, tmp_path / "x.nc"))
    assert found.gap_length.to_numpy().tolist() == [40, 8000 - 120]


def test_an_unfinished_file_has_its_complete_records(tmp_path):
    """A file that is being written is read up to its last complete record, with engines' names."""
    made = write(tmp_path / "x.spd", make_batch(make_spec(), 0, 5), finish=False)
    part = tmp_path / "x.spd.part"
    with part.open("ab") as file:
        file.write(b"SPDR")
    found = opened(part)
    assert_same(found, as_netcdf(part, tmp_path / "x.nc"))
    assert found.attrs["spectrod_engines"] == '["numpy"]'
    made.finish()
    assert found.psd.shape == found.psd.load().shape == (5, 1, 9)


def test_indices_select_as_those_of_numpy(tmp_path):
    """Integers, slices of any step, vectors and their mixes select what they do in memory."""
    write_gap(tmp_path / "x.spd", make_spec(channels=3))
    whole = opened(tmp_path / "x.spd").psd.load()
    rng = np.random.default_rng(5)

    def index(n):
        step = int(rng.integers(1, 4))
        first, second = (int(one) for one in rng.integers(-n, n, 2))
        vector = rng.integers(-n, n, rng.integers(0, 2 * n))
        # Without limits: xarray refuses empty slices of a negative step.
        backward = slice(None, None, -step)
        return [first, slice(first, second, step), backward, vector][rng.integers(4)]

    for _ in range(100):
        keys = {name: index(n) for name, n in whole.sizes.items()}
        xarray.testing.assert_identical(opened(tmp_path / "x.spd").psd.isel(keys), whole.isel(keys))
    points = {
        "time": xarray.DataArray([9, 0, -1], dims="p"),
        "frequency": xarray.DataArray([8, 3, 3], dims="p"),
    }
    xarray.testing.assert_identical(opened(tmp_path / "x.spd").psd.isel(points), whole.isel(points))


@pytest.mark.parametrize("key", [13, -14, np.array([0, 13])])
def test_rows_out_of_range_are_refused(key):
    """A row that is not there is an IndexError with its number."""
    with pytest.raises(IndexError, match=r"row (13|-14): must be -13 to 12"):
        numbers_of(key, 13)


def test_values_are_read_when_they_are_used(tmp_path, monkeypatch):
    """Opening and metadata read no values; a selection reads its records once."""
    write_gap(tmp_path / "x.spd", make_spec())
    read, places = SegmentTable.read, []

    def counted(table, numbers):
        for one in read(table, numbers):
            places.append(one[0])
            yield one

    monkeypatch.setattr(SegmentTable, "read", counted)
    found = opened(tmp_path / "x.spd")
    assert "psd" in repr(found)
    assert not places
    found.psd.sel(frequency=1000.0, method="nearest").load()
    assert places == [slice(0, 7), slice(7, 11), slice(11, 13)]
    found.psd.isel(time=[8, 9]).load()
    assert places[3:] == [slice(0, 2)]


def test_dask_computes_by_chunks(tmp_path, monkeypatch):
    """With Dask, chunks are neighbouring rows; the dataset survives pickling."""
    monkeypatch.setattr(lazy_array, "_CHUNK_BYTES", 5 * 9 * 4)
    write_gap(tmp_path / "x.spd", make_spec())
    lazy = opened(tmp_path / "x.spd", chunks={})
    assert lazy.psd.chunks == ((5, 5, 3), (1,), (9,))
    assert opened(tmp_path / "x.spd", chunks="auto").psd.chunks == ((13,), (1,), (9,))
    copied = pickle.loads(pickle.dumps(lazy))  # noqa: S301
    loaded = copied.psd.compute(scheduler="synchronous")
    assert loaded.to_numpy().tobytes() == opened(tmp_path / "x.spd").psd.to_numpy().tobytes()


def damaged(path, fraction):
    """Change a byte of a file."""
    content = bytearray(path.read_bytes())
    content[int(len(content) * fraction)] ^= 0x55
    path.write_bytes(content)


def test_damaged_values_are_an_error_or_left_out(tmp_path):
    """Damaged values raise an error with file and place; with check, their rows are a gap."""
    spec = make_spec(nfft=4096, win_length=4096)
    write(tmp_path / "x.spd", *(make_batch(spec, row, 1, engine="numpy") for row in range(5)))
    damaged(tmp_path / "x.spd", 0.7)
    found = opened(tmp_path / "x.spd")
    assert found.sizes["time"] == 5
    with pytest.raises(StorageError, match=r"x\.spd: record at [0-9]+: damaged"):
        found.psd.load()
    assert found.psd.isel(time=0).load().shape == (1, 2049)
    checked = opened(tmp_path / "x.spd", check=True)
    assert checked.sizes["time"] == 4
    assert_same(checked, as_netcdf(tmp_path / "x.spd", tmp_path / "x.nc"))


def test_other_inputs_are_refused(tmp_path):
    """What is no recording is one error with its name and the rule."""
    (tmp_path / "a.spd").write_bytes(b"RIFF")
    with pytest.raises(InputError, match=r"a\.spd: must be a segment of spectrod's"):
        opened(tmp_path / "a.spd")
    with pytest.raises(StorageError, match=r"b\.spd: No such file"):
        opened(tmp_path / "b.spd")
    with pytest.raises(TypeError, match="bytes: must be the path of a recording"):
        opened(b"RIFF")
    write(tmp_path / "c.spd", make_batch(make_spec(), 0, 1), finish=False)
    part = tmp_path / "c.spd.part"
    table = SegmentTable(part)
    part.write_bytes(part.read_bytes()[: table._places[0][1]])
    with pytest.raises(InputError, match=r"c\.spd\.part: has no rows"):
        opened(part)


def test_xarray_finds_the_engine_by_entry_point(tmp_path):
    """The installed package has the engine, which knows its files by their suffixes."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["xarray.backends"] == {
        "spectrod": f"{SpectrodBackend.__module__}:{SpectrodBackend.__name__}"
    }
    write_gap(tmp_path / "x.SPD", make_spec())
    found = xarray.open_dataset(tmp_path / "x.SPD", engine="spectrod")
    assert_same(xarray.open_dataset(tmp_path / "x.SPD"), found)
    assert _SUFFIXES == SUFFIXES
    backend = SpectrodBackend()
    assert backend.guess_can_open("X.SPD.PART")
    assert not backend.guess_can_open("x.nc")
    assert not backend.guess_can_open(b"x.spd")


def test_what_xarray_writes_is_a_recording(tmp_path):
    """A dataset that xarray writes as NetCDF is read as the recording that it was opened from."""
    write_gap(tmp_path / "x.spd", make_spec(channels=2))
    opened(tmp_path / "x.spd").to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    reader = open_netcdf(tmp_path / "x.nc")
    assert rows_of(reader.batches()) == rows_of(SegmentReader(tmp_path / "x.spd").batches())
    reader.close()


@pytest.mark.slow
def test_the_engine_imports_little():
    """Files of others, for which xarray loads the engine too, cost no module of spectrod's."""
    code = (
        "import sys, spectrod.formats.dataset.backend\n"
        "print(sorted(one for one in sys.modules if one.split('.')[0] == 'spectrod'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == str(
        [
            "spectrod",
            "spectrod.formats",
            "spectrod.formats.dataset",
            "spectrod.formats.dataset.backend",
            "spectrod.lib",
            "spectrod.lib.submodules",
        ]
    )
