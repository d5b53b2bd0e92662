"""``spectrod convert`` of pyramids: what it writes, parts, and refused arguments."""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray

from spectrod.apps.convert import pyramids
from spectrod.cli import main
from spectrod.formats.dataset.backend import SpectrodBackend
from spectrod.formats.segment.segment_writer import SegmentWriter

sys.path.insert(0, str(Path(__file__).parents[1] / "segments"))
from pyramid_rows import write_pyramid
from segment_rows import describe, make_batch, make_spec

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_pyramid(tmp_path / "pyramid")


def names(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


def cells_in(path):
    root = json.loads(Path(path, "zarr.json").read_text())
    return [one["cells"] for one in root["attributes"]["multiscales"]["layout"]]


def write_segment(path):
    made = SegmentWriter(path, describe(make_spec()))
    made.write(make_batch(make_spec(), 0, 5))
    made.finish()


@pytest.mark.parametrize(
    "arguments",
    [
        ["convert", "pyramid", "x.zarr"],
        ["convert", ".", "made/x.zarr"],
        ["pyramid", "x.zarr"],
    ],
)
def test_a_pyramid_becomes_a_store_of_its_levels(arguments):
    """The folder itself, or one with it, becomes a store whose groups are its levels."""
    assert main(arguments) == 0
    output = arguments[-1]
    assert cells_in(output)[:4] == ["1s", "5s", "15s", "1min"]
    found = xarray.open_zarr(output, group="2").load()
    with xarray.open_dataset("pyramid", engine=SpectrodBackend, cells="15s") as expected:
        xarray.testing.assert_identical(found, expected.load())


def test_beside_segments_it_is_the_pyramid_if_cells_are_named(capsys):
    """A folder with segments and a pyramid is its segments, unless --cells is given."""
    write_segment("a.spd")
    assert main(["convert", ".", "rows.zarr"]) == 0
    assert "multiscales" not in Path("rows.zarr/zarr.json").read_text()
    assert main(["convert", ".", "cells.zarr", "--cells", "1min"]) == 0
    assert cells_in("cells.zarr") == ["1min", "5min", "15min", "1h", "4h", "1d"]
    assert main(["convert", "a.spd", "b.zarr", "--cells", "1min"]) == 2
    assert capsys.readouterr().err == "spectrod: --cells 1min: a.spd has no pyramid\n"


def test_a_part_has_names_and_attributes_that_are_given():
    """Cells that overlap the part are copied whole, with other names and attributes."""
    part = ["--start", "2026-05-02T01:00:17Z", "--duration", "30"]
    about = ["--channel-names", "hydrophone", "--attribute", "title=Pier"]
    assert main(["convert", "pyramid", "x.zarr", *part, *about]) == 0
    found = xarray.open_zarr("x.zarr", group="0").load()
    assert found.sizes["time"] == 30
    assert found.time[0] == np.datetime64("2026-05-02T01:00:17")
    assert found.channel_name.to_numpy().tolist() == ["hydrophone"]
    assert found.attrs["title"] == "Pier"
    with xarray.open_dataset("pyramid", engine=SpectrodBackend, cells="15s") as whole:
        part = xarray.open_zarr("x.zarr", group="2").psd
        np.testing.assert_array_equal(part, whole.psd[1:4])


def test_a_store_of_the_same_name_is_replaced():
    """A Zarr store that is there is replaced as a whole."""
    assert main(["convert", "pyramid", "x.zarr"]) == 0
    assert main(["convert", "pyramid", "x.zarr", "--cells", "1d"]) == 0
    assert cells_in("x.zarr") == ["1d"]
    assert names("x.zarr") == ["0", "zarr.json"]
    assert names() == ["pyramid", "x.zarr"]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "text"),
    [
        (["x.nc"], 2, "x.nc: must be .zarr: pyramid is a pyramid"),
        (["x.png"], 2, "x.png: must be .zarr: pyramid is a pyramid"),
        (["x.zarr", "y.zarr"], 2, "y.zarr: must be the only output: pyramid is a pyramid"),
        (["pyramid/x.zarr"], 2, "pyramid/x.zarr: must not lie in the folder that is read"),
        (["."], 2, ".: must not be a folder that pyramid lies in"),
        (["x.zarr", "--profile", "millidecade"], 2, "x.zarr: profile='millidecade': must be a"),
        (["x.zarr", "--cells", "2s"], 2, "cells='2s': must be one of 1s, 5s, 15s, 1min, "),
        (["x.zarr", "--start", "2030-01-01"], 2, "--start 2030-01-01: is not within pyramid, 200"),
        (["x.zarr", "--start", "9", "--stop", "3"], 2, "--stop 3: must be later than --start 9"),
        (["x.zarr", "--stop", "1", "--duration", "1"], 2, "--duration 1: must be without --stop 1"),
        (["x.zarr", "--compression", "10"], 2, "compression=10: must be 0 to 9"),
        (["x.zarr", "--channel-names", "a,b"], 2, "signals=a,b: must be as many names as chann"),
        (["x.zarr", "--attribute", "é=1"], 2, "attribute 'é': must be ASCII letters"),
        (["made.zarr"], 74, "made.zarr: exists, and is no Zarr store that can be replaced"),
        (["zarr:-"], 2, "zarr:-: .zarr is more than one file, and needs a name"),
    ],
)
def test_an_impossible_argument_is_one_line(capsys, arguments, exit_code, text):
    """It is one line with the value and the rule, and nothing is written."""
    Path("made.zarr").mkdir()
    assert main(["convert", "pyramid", *arguments]) == exit_code
    error = capsys.readouterr().err
    assert error.startswith(f"spectrod: {text}")
    assert error.count("\n") == 1
    assert names() == ["made.zarr", "pyramid"]


def test_a_pyramid_that_cannot_be_read_is_one_line(capsys):
    """Torn metadata and a pyramid without cells are one line, and nothing is written."""
    for folder in Path("pyramid").iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    assert main(["convert", "pyramid", "x.zarr"]) == 2
    assert capsys.readouterr().err == "spectrod: pyramid: has no cells\n"
    Path("pyramid/pyramid.json").write_text("{")
    assert main(["convert", "pyramid", "x.zarr"]) == 74
    assert capsys.readouterr().err.startswith("spectrod: pyramid/pyramid.json: damaged: ")
    assert names() == ["pyramid"]


def test_an_end_in_the_middle_leaves_what_was_there(monkeypatch, capsys):
    """SIGTERM in the middle removes the incomplete store, and the old one stays."""
    assert main(["convert", "pyramid", "x.zarr", "--cells", "1d"]) == 0
    write = pyramids.PyramidZarrWriter.write

    def interrupted(writer):
        pieces = write(writer)
        yield next(pieces)
        assert len(names()) == 3
        os.kill(os.getpid(), signal.SIGTERM)
        yield from pieces

    monkeypatch.setattr(pyramids.PyramidZarrWriter, "write", interrupted)
    assert main(["convert", "pyramid", "x.zarr"]) == 130
    assert capsys.readouterr().err == "spectrod: interrupted\n"
    assert names() == ["pyramid", "x.zarr"]
    assert cells_in("x.zarr") == ["1d"]


def test_a_store_is_not_replaced_by_what_lies_in_it(capsys):
    """A pyramid within a Zarr store does not become that store, which would remove it."""
    Path("x.zarr").mkdir()
    Path("x.zarr/zarr.json").write_text("{}")
    shutil.move("pyramid", "x.zarr/pyramid")
    assert main(["convert", "x.zarr/pyramid", "x.zarr"]) == 2
    error = "spectrod: x.zarr: must not be a folder that x.zarr/pyramid lies in\n"
    assert capsys.readouterr().err == error
    assert names("x.zarr") == ["pyramid", "zarr.json"]
