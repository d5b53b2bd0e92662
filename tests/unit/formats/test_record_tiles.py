"""Pictures with a fixed number of seconds per pixel, which continue in the next file."""

from dataclasses import replace

import numpy as np
import pytest

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.pixelmap import read_levels
from spectrod.formats.picture.plan import PicturePlan
from spectrod.formats.picture.tiles import TiledPicture
from spectrod.lib.errors import ConfigError, InputError

FS, HOP = 1000.0, 10
SPEC = SpectrumSpec(FS, win_length=20, hop=HOP, scaling="spectrum")
LOOK = PictureOptions(width=300, height=64, levels=(-60.0, 0.0), f_max=400.0)
BEGIN_NS = 1_777_609_800 * 10**9


def tiled(path, seconds_per_pixel=0.05, look=LOOK):
    plan = PicturePlan(look, lambda matrix: np.ascontiguousarray(matrix.T), seconds_per_pixel)
    return TiledPicture(path, plan, SPEC, "spectrod 1.2.3")


def rows(first, n, power=0.5):
    index = (first + np.arange(n, dtype=np.int64)) * HOP + 70
    t_ns = BEGIN_NS + index * 10**6
    values = np.broadcast_to(np.reshape(power, (-1, 1, 1)), (n, 1, SPEC.n_bins))
    return SpectrumBatch(values.astype(np.float32), index, t_ns, t_ns, SPEC, "numpy")


def test_a_raw_tile_is_as_narrow_as_its_rows(tmp_path):
    """A raw tile has no pixels after its last row."""
    writer = tiled(tmp_path / "x.png", look=replace(LOOK, raw=True, width=12))
    writer.write(rows(0, 21))
    writer.finish()
    read = read_levels(tmp_path / "x.png")
    assert (read.level.shape, read.pixels.duration_s) == ((64, 5), 0.25)


@pytest.mark.parametrize("size", [7, 500, 4000])
def test_a_long_recording_continues_in_the_next_file(tmp_path, size):
    """Each tile has its time, each row is in one tile, and all pixels have one duration."""
    writer = tiled(tmp_path / "x.png")
    levels_db = np.linspace(-50.0, -10.0, 4000)
    for first in range(0, 4000, size):
        part = levels_db[first : first + size]
        writer.write(rows(first, len(part), 0.5 * 10 ** (part / 10.0)))
    # A tile is 15 s; the second one is written when the first row of the third has come.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x-0001.png", "x-0002.png"]
    writer.finish()
    assert writer.n_frames == 4000
    read = [read_levels(tmp_path / f"x-000{number}.png") for number in (1, 2, 3)]
    assert [one.pixels.duration_s for one in read] == [15.0, 15.0, 10.05]
    begins = [one.pixels.begin_utc_ns - BEGIN_NS for one in read]
    assert begins == [70_000_000, 15_070_000_000, 30_070_000_000]
    joined = np.concatenate([one.level[20] for one in read])
    expected = np.interp((np.arange(len(joined)) + 0.5) * 5.0, np.arange(4000), levels_db)
    np.testing.assert_allclose(joined[:799], expected[:799], atol=0.3)


def test_a_recording_of_one_tile_has_the_plain_name(tmp_path):
    """A recording that fits one tile has the plain name and the usual width, the rest as a gap."""
    writer = tiled(tmp_path / "x.png")
    writer.write(rows(0, 501))
    writer.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]
    read = read_levels(tmp_path / "x.png")
    assert (read.level.shape[1], read.pixels.duration_s) == (200, 10.0)
    is_gap = np.isnan(read.level).all(axis=0)
    # 501 rows of 10 ms and the rest of the last window: 5.02 s at 50 ms a pixel.
    assert np.flatnonzero(is_gap).tolist() == list(range(100, 200))


def test_a_gap_of_whole_tiles_leaves_them_out(tmp_path):
    """Tiles are numbered by time, and a tile without rows has no file."""
    writer = tiled(tmp_path / "x.png")
    writer.write(rows(0, 100))
    writer.write(rows(5000, 100))
    writer.finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x-0001.png", "x-0004.png"]
    read = read_levels(tmp_path / "x-0004.png")
    first = np.flatnonzero(~np.isnan(read.level[20]))[0]
    assert first == pytest.approx((50.0 - 45.0) / 0.05, abs=1)


def test_abort_keeps_full_tiles(tmp_path):
    """An abort keeps finished tiles and discards the current one."""
    writer = tiled(tmp_path / "x.png")
    writer.write(rows(0, 2000))
    writer.abort()
    assert [path.name for path in tmp_path.iterdir()] == ["x-0001.png"]


def test_nothing_to_draw(tmp_path):
    """Without rows there is no picture but the usual error."""
    with pytest.raises(InputError, match="nothing to draw"):
        tiled(tmp_path / "x.png").finish()
    assert list(tmp_path.iterdir()) == []


def test_waveforms_are_refused(tmp_path):
    """Waveforms are refused, as samples come before their rows and would be in another tile."""
    look = PictureOptions(strips=("waveform",))
    with pytest.raises(ConfigError, match="strips=waveform: pictures with a time per pixel"):
        tiled(tmp_path / "x.png", look=look)
