"""Pyramids as datasets of xarray."""

import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray

from spectrod.formats.dataset import lazy_array, pyramid_dataset
from spectrod.formats.dataset.backend import SpectrodBackend
from spectrod.formats.directory import Directory
from spectrod.formats.pyramid import PyramidReader
from spectrod.formats.pyramid.pyramid_store import CellStore
from spectrod.lib.errors import ConfigError, InputError, StorageError

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from pyramid_rows import BEGIN_NS, S, spec_of, write_pyramid
from segment_rows import describe, make_batch, make_spec

from spectrod.formats.segment.segment_writer import SegmentWriter


def opened(path, **options):
    return xarray.open_dataset(path, engine=SpectrodBackend, **options)


@pytest.mark.parametrize(
    ("settings", "values_max", "name"),
    [
        ({}, 512, "psd"),
        ({"channels": 2, "scaling": "dbfs"}, 8, "level"),
        ({"bands": "octave", "scaling": "spectrum", "iq": False}, 512, "power"),
    ],
)
@pytest.mark.parametrize("cells", ["1s", "15s"])
def test_cells_are_those_of_the_reader(tmp_path, settings, values_max, name, cells):
    """Each cell has the statistics and the effort that the reader gives for its span."""
    writer = write_pyramid(tmp_path / "p", spec_of(**settings), values_max=values_max)
    found = opened(tmp_path / "p", cells=cells)
    cell_ns = int(cells.removesuffix("s")) * S
    begins = found.time.to_numpy().astype(np.int64)
    assert np.all(np.diff(begins) == cell_ns)
    assert begins[0] == BEGIN_NS // cell_ns * cell_ns
    ends = begins + cell_ns
    np.testing.assert_array_equal(found.time_bnds.astype(np.int64), np.stack([begins, ends], 1))
    assert found.time_bnds[-1, 1].to_numpy().astype(np.int64) == ends[-1]
    reader = PyramidReader(tmp_path / "p")
    columns = reader.columns(begins[0], begins[-1] + cell_ns, len(begins))
    reader.close()
    assert set(columns.cell_ns) == {cell_ns}
    for suffix, levels in (
        ("", columns.mean),
        ("_least", columns.least),
        ("_greatest", columns.greatest),
    ):
        values = found[name + suffix].to_numpy()
        levels_db = values if name == "level" else 10 * np.log10(values)
        assert values.dtype == np.float32
        np.testing.assert_allclose(levels_db, levels, atol=1e-4)
    np.testing.assert_array_equal(found.effort, columns.effort_s)
    np.testing.assert_array_equal(found.frequency, columns.f)
    assert found.channel_name.to_numpy().tolist() == list(writer.about.signals)
    assert found.attrs["license"] == "CC0"
    bounds = found.frequency_bnds.to_numpy()
    assert np.all((bounds[:, 0] <= columns.f) & (columns.f <= bounds[:, 1]))
    np.testing.assert_allclose(bounds[1:, 0], bounds[:-1, 1])


def test_units_are_those_of_rows_and_methods_those_of_cells(tmp_path):
    """Power keeps its unit; least and greatest say so, and times are UTC."""
    write_pyramid(tmp_path / "p")
    found = opened(tmp_path / "p")
    assert [found[name].attrs["cell_methods"] for name in ("psd", "psd_least", "psd_greatest")] == [
        "time: mean (of power)",
        "time: minimum (of power)",
        "time: maximum (of power)",
    ]
    assert found.psd.attrs["spectrod_unit"] == "FS^2/Hz"
    assert found.psd.attrs["long_name"] == "power spectral density in FS^2/Hz, mean of a cell"
    assert found.time.to_numpy()[0] == np.datetime64("2026-05-02T01:00:05")
    assert found.attrs["time_coverage_resolution"] == "PT1.000000000S"
    # Conditions are of rows.
    assert "ancillary_variables" not in found.psd.attrs
    assert found.attrs["time_coverage_start"] == "2026-05-02T01:00:05.000000000Z"


def test_gaps_are_nan_without_effort(tmp_path):
    """Cells without rows are NaN and have no effort; times stay regular."""
    write_pyramid(tmp_path / "p")
    found = opened(tmp_path / "p")
    is_missing = np.isnan(found.psd.to_numpy()).all(axis=(1, 2))
    assert np.array_equal(is_missing, found.effort.to_numpy() == 0.0)
    # A row lies in the cell of its middle, 32 ms after its begin: in that of its begin.
    assert np.array_equal(np.flatnonzero(is_missing), np.arange(50, 115))


def test_selections_read_what_they_need(tmp_path, monkeypatch):
    """Opening reads no cell but the first; a selection of rows those alone, in any order."""
    write_pyramid(tmp_path / "p", n_rows=1400)
    whole = opened(tmp_path / "p").psd.load()
    reads, read = [], CellStore.read

    def counted(store, level, start, stop):
        reads.append(stop - start)
        return read(store, level, start, stop)

    monkeypatch.setattr(CellStore, "read", counted)
    found = opened(tmp_path / "p")
    assert len(repr(found)) > 0
    del reads[:]
    xarray.testing.assert_identical(found.psd[7:20].load(), whole[7:20])
    assert reads == [13]
    del reads[:]
    keys = [699, 3, 4, 5, 0, -1]
    xarray.testing.assert_identical(found.psd[keys, 0, ::3].load(), whole[keys, 0, ::3])
    assert reads == [1, 3, 1]  # xarray sorts, and asks for each once
    assert found.psd[0:0].load().shape == (0, 1, 33)


def test_it_survives_pickling_and_dask(tmp_path, monkeypatch):
    """Processes and threads of Dask read for themselves."""
    monkeypatch.setattr(lazy_array, "_CHUNK_BYTES", 77 * 33 * 4)
    write_pyramid(tmp_path / "p")
    expected = opened(tmp_path / "p").psd.mean("time").load()
    lazy = pickle.loads(pickle.dumps(opened(tmp_path / "p", chunks={})))  # noqa: S301
    assert lazy.psd.chunks[0] == (77, 77, 46)
    found = lazy.psd.mean("time").compute(scheduler="threads", num_workers=3)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_level_is_the_finest_with_few_cells(tmp_path, monkeypatch):
    """Without a name, it is the finest level within the limit; too many by name are refused."""
    write_pyramid(tmp_path / "p")
    assert opened(tmp_path / "p").sizes["time"] == 200
    monkeypatch.setattr(pyramid_dataset, "_CELLS_DEFAULT", 50)
    assert opened(tmp_path / "p").attrs["time_coverage_resolution"] == "PT5.000000000S"
    monkeypatch.setattr(pyramid_dataset, "CELLS_MAX", 100)
    with pytest.raises(ConfigError, match="cells='1s': 200 cells: must be at most 100; name lo"):
        opened(tmp_path / "p", cells="1s")
    with pytest.raises(ConfigError, match="cells='2s': must be one of 1s, 5s, 15s, 1min"):
        opened(tmp_path / "p", cells="2s")


def test_the_first_cell_is_found_after_holes_of_any_size(tmp_path):
    """A file whose first cells are missing begins with a hole, of less than a page or more."""
    writer = write_pyramid(tmp_path / "p", n_rows=3, finest_s=60.0)
    for name, begin_ns in (("1min", BEGIN_NS), ("1d", BEGIN_NS)):
        cell_ns = 60 * S if name == "1min" else 86400 * S
        found = opened(tmp_path / "p", cells=name)
        assert found.time.to_numpy().astype(np.int64).tolist() == [begin_ns // cell_ns * cell_ns]
    assert writer.about.cells_ns[0] == 60 * S


def test_a_folder_of_a_recording_has_its_pyramid(tmp_path):
    """Beside segments it is opened if cells are named; alone it is what the folder holds."""
    batch = make_batch(make_spec(), 0, 5)
    write_pyramid(tmp_path / "pyramid")
    assert "psd_least" in opened(tmp_path)
    made = SegmentWriter(tmp_path / "x.spd", describe(batch.spec))
    made.write(batch)
    made.finish()
    assert "psd_least" not in opened(tmp_path)
    assert "psd_least" in opened(tmp_path, cells="1s")
    with pytest.raises(ConfigError, match=r"cells='1s': .*x\.spd has no pyramid"):
        opened(tmp_path / "x.spd", cells="1s")


def test_what_is_damaged_is_refused_or_missing(tmp_path):
    """A pyramid without cells and a torn metadata file are errors; a torn cell is missing."""
    write_pyramid(tmp_path / "p")
    (file,) = (tmp_path / "p" / "1s").iterdir()
    whole = opened(tmp_path / "p").psd.load()
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # of the last cell
    file.write_bytes(content)
    torn = opened(tmp_path / "p").psd.load()
    assert np.isnan(torn[-1]).all()
    xarray.testing.assert_identical(torn[:-1], whole[:-1])
    shutil.rmtree(tmp_path / "p" / "1s")
    with pytest.raises(InputError, match="p: has no cells of 1s"):
        opened(tmp_path / "p", cells="1s")
    (tmp_path / "p" / "pyramid.json").write_text("{")
    with pytest.raises(StorageError, match=r"pyramid\.json: damaged"):
        opened(tmp_path / "p")


@pytest.mark.parametrize("day", [-62_091, 84_006], ids=["1800", "2200"])
def test_times_that_no_pyramid_has_are_refused(tmp_path, day):
    """A file of another century is an error: its times would not fit into 64 bits for long."""
    writer = write_pyramid(tmp_path / "p")
    store = CellStore(Directory.open(tmp_path / "p"), writer.about, is_writer=True)
    cell = store.get(0, BEGIN_NS // S)
    store.put(0, day * 86400, cell)
    store.close()
    with pytest.raises(StorageError, match=r"p/1s: must have cells of 1843 to 2096 only"):
        opened(tmp_path / "p", cells="1s")


def test_mixed_rates_in_one_folder_are_refused(tmp_path):
    """Recordings of two sample rates are no dataset, and the error names a file of each."""
    for name, fs in (("a", 8000.0), ("b", 48000.0)):
        made = SegmentWriter(tmp_path / f"{name}.spd", describe(make_spec(fs=fs)))
        made.write(make_batch(make_spec(fs=fs), 0, 2))
        made.finish()
    with pytest.raises(InputError, match=r"a\.spd and b\.spd are of different analyses: name one"):
        opened(tmp_path)
