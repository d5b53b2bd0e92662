"""Pyramids as Zarr stores with the convention ``multiscales``."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import xarray

from spectrod.formats.dataset.backend import SpectrodBackend
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.zarr_reader import open_zarr
from spectrod.formats.pyramid import PyramidReader, pyramid_zarr
from spectrod.formats.pyramid.ladder import name_of
from spectrod.formats.pyramid.pyramid_level import levels_of, span_utc_ns
from spectrod.formats.pyramid.pyramid_zarr import PyramidZarrWriter
from spectrod.lib.errors import ConfigError, InputError, StorageError, UnavailableError

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from pyramid_rows import BEGIN_NS, S, spec_of, write_pyramid

PATH = re.compile(r"(?!/)(?!.*\.\.)[^/]+(/[^/]+)*")
"""What the schema of the convention allows as ``asset`` and ``derived_from``."""


def levels(folder, cells=None):
    with closing(PyramidReader(folder)) as reader:
        return levels_of(reader, cells)


def started(folder, path, cells=None, **options):
    return PyramidZarrWriter(folder, levels(folder, cells), path, ExportOptions(**options))


def export(folder, path, cells=None, **options):
    writer = started(folder, path, cells, **options)
    assert sum(writer.write()) == writer.n_cells
    writer.finish()
    return layout(path)


def layout(path):
    return root(path)["multiscales"]["layout"]


def root(path):
    return json.loads((path / "zarr.json").read_text())["attributes"]


def left_in(folder):
    return sorted(one.name for one in folder.iterdir())


def assert_same(folder, path):
    """Compare each group with the dataset of its level, values, axes and attributes."""
    for one in layout(path):
        of_zarr = xarray.open_zarr(path, group=one["asset"]).load()
        with xarray.open_dataset(folder, engine=SpectrodBackend, cells=one["cells"]) as expected:
            xarray.testing.assert_identical(of_zarr, expected.load())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "values_max", "compression"),
    [
        ({}, 512, 1),
        ({"channels": 2, "scaling": "dbfs"}, 8, 0),
        ({"bands": "octave", "scaling": "spectrum"}, 512, 3),
    ],
)
def test_each_group_is_the_dataset_of_its_level(tmp_path, settings, values_max, compression):
    """Every level comes back to the last bit, with names, units, times and attributes."""
    write_pyramid(tmp_path / "p", spec_of(**settings), values_max=values_max)
    found = export(tmp_path / "p", tmp_path / "x.zarr", compression=compression)
    names = ["1s", "5s", "15s", "1min", "5min", "15min", "1h", "4h", "1d"]
    assert [one["cells"] for one in found] == names
    assert_same(tmp_path / "p", tmp_path / "x.zarr")
    with xarray.open_datatree(tmp_path / "x.zarr", engine="zarr") as tree:
        assert sorted(tree.children) == [str(number) for number in range(9)]
    assert left_in(tmp_path) == ["p", "x.zarr"]


@pytest.mark.slow
def test_the_root_declares_the_convention(tmp_path):
    """The root has what version 0.1 of the convention requires, and nothing that it forbids."""
    write_pyramid(tmp_path / "p")
    export(tmp_path / "p", tmp_path / "x.zarr", attributes={"title": "Pier"})
    metadata = json.loads((tmp_path / "x.zarr" / "zarr.json").read_text())
    assert (metadata["zarr_format"], metadata["node_type"]) == (3, "group")
    url = "https://raw.githubusercontent.com/zarr-conventions/multiscales/refs/tags/v0.1/"
    assert metadata["attributes"]["zarr_conventions"] == [
        {
            "uuid": "d35379db-88df-4056-af3a-620245f8e347",
            "schema_url": f"{url}schema.json",
            "spec_url": "https://github.com/zarr-conventions/multiscales/blob/v0.1/README.md",
            "name": "multiscales",
            "description": "Multiscale layout of zarr datasets",
        }
    ]
    multiscales = metadata["attributes"]["multiscales"]
    assert set(multiscales) == {"layout", "resampling_method"}
    first, *others = multiscales["layout"]
    assert set(first) == {"asset", "transform", "cells"}
    known = {first["asset"]}
    for one in others:
        assert set(one) == {*first, "derived_from", "resampling_method"}
        assert PATH.fullmatch(one["asset"])
        assert one["derived_from"] in known
        known.add(one["asset"])
    for one in multiscales["layout"]:
        assert set(one["transform"]) == {"scale", "translation"}
        assert all(len(numbers) == 3 for numbers in one["transform"].values())
        assert all(type(x) is float for numbers in one["transform"].values() for x in numbers)
    groups = {one.name for one in (tmp_path / "x.zarr").iterdir() if one.is_dir()}
    assert groups == known
    consolidated = metadata["consolidated_metadata"]["metadata"]
    assert {"0", "0/psd", "8/time"} < set(consolidated)
    assert metadata["attributes"]["title"] == "Pier"
    assert xarray.open_zarr(tmp_path / "x.zarr", group="3").attrs["title"] == "Pier"
    assert metadata["attributes"]["time_coverage_start"] == "2026-05-02T01:00:05.000000000Z"


@pytest.mark.slow
def test_transforms_lead_from_a_cell_to_those_that_it_is_made_of(tmp_path):
    """Cell n of a level begins where cell scale * n + translation of its source does."""
    write_pyramid(tmp_path / "p", n_rows=1300)
    found = export(tmp_path / "p", tmp_path / "x.zarr")
    bounds = {
        one["asset"]: xarray.open_zarr(tmp_path / "x.zarr", group=one["asset"]).time_bnds.to_numpy()
        for one in found
    }
    assert [len(bounds[one["asset"]]) for one in found[:5]] == [650, 130, 44, 11, 3]
    assert found[2]["transform"]["translation"][0] == -1.0
    for one in found[1:]:
        begin, end = bounds[one["derived_from"]][0]
        scale, translation = (one["transform"][name] for name in ("scale", "translation"))
        assert scale[1:] == [1.0, 1.0]
        assert translation[1:] == [0.0, 0.0]
        for n, cell in enumerate(bounds[one["asset"]]):
            assert cell[0] == begin + int(scale[0] * n + translation[0]) * (end - begin)


@pytest.mark.slow
@pytest.mark.parametrize(("chunk_bytes", "axis_cells"), [(33 * 4 * 7, 20), (33, 3), (1 << 20, 50)])
def test_gaps_take_no_room_and_stay_gaps(tmp_path, monkeypatch, chunk_bytes, axis_cells):
    """Cells without rows are NaN with an effort of 0; chunks of such cells alone have no file."""
    monkeypatch.setattr(pyramid_zarr, "CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(pyramid_zarr, "_AXIS_CELLS", axis_cells)
    write_pyramid(tmp_path / "p", spec_of(channels=2), n_rows=250)
    export(tmp_path / "p", tmp_path / "x.zarr")
    assert_same(tmp_path / "p", tmp_path / "x.zarr")
    found = xarray.open_zarr(tmp_path / "x.zarr", group="0")
    is_missing = np.isnan(found.psd.to_numpy()).all(axis=(1, 2))
    assert np.flatnonzero(is_missing).tolist() == list(range(50, 115))
    assert np.flatnonzero(found.effort.to_numpy() == 0.0).tolist() == list(range(50, 115))
    n_rows = found.psd.encoding["chunks"][0]
    there = {int(one.name) for one in (tmp_path / "x.zarr/0/psd/c").iterdir()}
    assert there == {n // n_rows for n in np.flatnonzero(~is_missing)}


@pytest.mark.slow
def test_levels_without_cells_are_left_out(tmp_path):
    """A coarser level is derived from the next finer one that there is."""
    writer = write_pyramid(tmp_path / "p")
    shutil.rmtree(tmp_path / "p" / "1s")
    shutil.rmtree(tmp_path / "p" / "1min")
    found = export(tmp_path / "p", tmp_path / "x.zarr")
    assert [one["cells"] for one in found[:4]] == ["5s", "15s", "5min", "15min"]
    assert [one["transform"]["scale"][0] for one in found[:4]] == [1.0, 3.0, 20.0, 3.0]
    assert [one.get("derived_from") for one in found[:4]] == [None, "0", "1", "2"]
    assert_same(tmp_path / "p", tmp_path / "x.zarr")
    for cell_ns in writer.about.cells_ns:
        shutil.rmtree(tmp_path / "p" / name_of(cell_ns), ignore_errors=True)
    with pytest.raises(InputError, match=r"p: has no cells$"):
        levels(tmp_path / "p")


@pytest.mark.slow
def test_the_finest_level_may_be_chosen(tmp_path):
    """Levels below a named one are not copied, and a name that is none is refused."""
    write_pyramid(tmp_path / "p")
    found = export(tmp_path / "p", tmp_path / "x.zarr", cells="1min")
    assert [one["cells"] for one in found] == ["1min", "5min", "15min", "1h", "4h", "1d"]
    assert_same(tmp_path / "p", tmp_path / "x.zarr")
    with pytest.raises(ConfigError, match="cells='10ms': must be one of 1s, 5s, 15s, 1min"):
        levels(tmp_path / "p", "10ms")


def test_the_span_is_as_exact_as_there_are_cells(tmp_path):
    """It begins with the finest cell, or with a coarser one where the finer are deleted."""
    write_pyramid(tmp_path / "p")
    found = levels(tmp_path / "p")
    assert span_utc_ns(found) == (BEGIN_NS, BEGIN_NS + 200 * S)
    later = [found[0].between(BEGIN_NS + 100 * S, None), *found[1:]]
    assert span_utc_ns(later) == (BEGIN_NS, BEGIN_NS + 200 * S)
    later = [one.between(BEGIN_NS + 100 * S, None) for one in found[:3]] + found[3:]
    begin_ns = BEGIN_NS // (60 * S) * 60 * S
    assert span_utc_ns(later) == (begin_ns, BEGIN_NS + 200 * S)
    earlier = [found[0].between(None, BEGIN_NS + 70 * S), *found[1:]]
    assert span_utc_ns(earlier) == (BEGIN_NS, BEGIN_NS + 200 * S)
    apart = [found[0].between(None, BEGIN_NS + S), found[1].between(BEGIN_NS + 100 * S, None)]
    assert span_utc_ns(apart) == (BEGIN_NS, BEGIN_NS + 200 * S)


def test_a_part_has_the_cells_that_overlap_it(tmp_path):
    """Cells at both ends of a time are whole; a time without cells leaves none."""
    write_pyramid(tmp_path / "p")
    found = levels(tmp_path / "p")
    part = [one.between(BEGIN_NS + 12 * S, BEGIN_NS + 42 * S) for one in found]
    assert [len(one) for one in part[:5]] == [30, 7, 3, 1, 1]
    assert len(found[0].between(BEGIN_NS + 900 * S, None)) == 0
    assert len(found[0].between(None, BEGIN_NS)) == 0
    with pytest.raises(InputError, match="p: has no cells"):
        PyramidZarrWriter(
            tmp_path / "p", [found[0].between(None, 0)], tmp_path / "x.zarr", ExportOptions()
        )


@pytest.mark.slow
def test_a_fault_of_the_disk_leaves_what_was_there(tmp_path, monkeypatch):
    """After an error while writing, the old store is as before, and no part of the new one is."""
    write_pyramid(tmp_path / "p")
    export(tmp_path / "p", tmp_path / "x.zarr", cells="1d")
    writer = started(tmp_path / "p", tmp_path / "x.zarr")
    assert len(left_in(tmp_path)) == 3
    pieces = writer.write()
    next(pieces)

    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pyramid_zarr, "make_array", full)
    with pytest.raises(StorageError, match=r"x\.zarr: No space left on device"):
        list(pieces)
    assert left_in(tmp_path) == ["p", "x.zarr"]
    assert [one["cells"] for one in layout(tmp_path / "x.zarr")] == ["1d"]
    writer.abort()


@pytest.mark.slow
def test_a_fault_at_the_end_leaves_nothing(tmp_path, monkeypatch):
    """If the store cannot be synchronised, it does not get its name."""
    write_pyramid(tmp_path / "p")
    writer = started(tmp_path / "p", tmp_path / "x.zarr")
    list(writer.write())

    def broken(_descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StorageError, match=r"x\.zarr: Input/output error"):
        writer.finish()
    assert left_in(tmp_path) == ["p"]


@pytest.mark.slow
def test_a_kill_leaves_no_store(tmp_path):
    """A process that is killed leaves a hidden folder of another name, which is no store."""
    write_pyramid(tmp_path / "p")
    program = f"""
import os, signal
from pathlib import Path
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.pyramid import PyramidReader
from spectrod.formats.pyramid.pyramid_level import levels_of
from spectrod.formats.pyramid.pyramid_zarr import PyramidZarrWriter
folder = Path({str(tmp_path)!r})
levels = levels_of(PyramidReader(folder / "p"))
writer = PyramidZarrWriter(folder / "p", levels, folder / "x.zarr", ExportOptions())
for _ in zip(range(3), writer.write()):
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    part, _ = left_in(tmp_path)
    assert re.fullmatch(r"\.spectrod-[0-9a-f]{12}\.part", part)
    # The levels are named last.
    assert root(tmp_path / part) == {}
    export(tmp_path / "p", tmp_path / "x.zarr")
    assert_same(tmp_path / "p", tmp_path / "x.zarr")


@pytest.mark.slow
def test_what_is_damaged_is_an_error_or_missing(tmp_path):
    """A file that is not of the pyramid is an error that names it; a torn cell is missing."""
    write_pyramid(tmp_path / "p")
    (file,) = (tmp_path / "p" / "1s").iterdir()
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # of the last cell
    file.write_bytes(content)
    export(tmp_path / "p", tmp_path / "x.zarr")
    found = xarray.open_zarr(tmp_path / "x.zarr", group="0")
    assert np.isnan(found.psd[-1]).all()
    assert found.effort[-1] == 0.0
    assert_same(tmp_path / "p", tmp_path / "x.zarr")
    writer = started(tmp_path / "p", tmp_path / "y.zarr")
    (file,) = (tmp_path / "p" / "5s").iterdir()
    file.write_bytes(b"x" + file.read_bytes()[1:])
    with pytest.raises(StorageError, match=rf"5s/{file.name}: damaged, or not of this pyramid"):
        list(writer.write())
    assert left_in(tmp_path) == ["p", "x.zarr"]


def test_refused_outputs_are_named(tmp_path, monkeypatch):
    """Folders that are no stores stay, and so many cells that an axis has no room are refused."""
    write_pyramid(tmp_path / "p")
    (tmp_path / "x.zarr").mkdir()
    with pytest.raises(StorageError, match=r"x\.zarr: exists, and is no Zarr store that can be"):
        started(tmp_path / "p", tmp_path / "x.zarr")
    with pytest.raises(StorageError, match=r"none/y\.zarr: No such file or directory"):
        started(tmp_path / "p", tmp_path / "none" / "y.zarr")
    monkeypatch.setattr(pyramid_zarr, "CELLS_MAX", 100)
    rule = "must be at most 100; choose longer ones, or a shorter time"
    with pytest.raises(ConfigError, match=rf"p: 200 cells of 1s: {rule}"):
        started(tmp_path / "p", tmp_path / "y.zarr")
    assert left_in(tmp_path) == ["p", "x.zarr"]


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    """Without zarr it is one line with what to install."""
    write_pyramid(tmp_path / "p")
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(UnavailableError, match=r"zarr .*pip install 'spectrod\[zarr\]'$"):
        started(tmp_path / "p", tmp_path / "x.zarr")
    assert left_in(tmp_path) == ["p"]


@pytest.mark.slow
def test_it_is_no_recording_of_rows(tmp_path):
    """Where rows are read, a store of a pyramid is refused in one line."""
    write_pyramid(tmp_path / "p")
    export(tmp_path / "p", tmp_path / "x.zarr")
    with pytest.raises(StorageError, match=r"x\.zarr: damaged, or not one of spectrod's"):
        open_zarr(tmp_path / "x.zarr")
