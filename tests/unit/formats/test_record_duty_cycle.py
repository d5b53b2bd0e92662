"""Pictures of recorders that sleep between recordings."""

from dataclasses import replace

import numpy as np
import pytest

from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.picture import recorded_spans
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.pixelmap import read_levels
from spectrod.formats.picture.plan import PicturePlan
from spectrod.formats.picture.sink import PictureSink
from spectrod.formats.picture.tiles import TiledPicture

FS = 16.0
SPEC = SpectrumSpec(fs=FS, win_length=16, hop=16, nfft=16, averaging="mean", averaging_frames=60)
"""Rows of a minute, as the long-term average has them."""
PERIOD, ON_FRAMES = 9600, 55


def transpose(matrix):
    return np.ascontiguousarray(matrix.T)


def rows(n, lost=(), on_frames=ON_FRAMES, period=PERIOD):
    """Yield the cut average of each recording: its power is 0.1 to 1, by its number."""
    missing = 0
    for k in range(n):
        if k in lost:
            missing += period
            continue
        index = np.array([k * period], np.int64)
        t_ns = (index * 1e9 / FS).astype(np.int64)
        power = np.full((1, 1, SPEC.n_bins), 0.1 * (1 + k % 10), np.float32)
        gap = missing + period - SPEC.hop * on_frames if k else 0
        yield SpectrumBatch(
            power, index, t_ns, t_ns, SPEC, "numpy", gap, bool(k), cut_frames=on_frames
        )
        missing = 0


def written(sink, batches):
    for batch in batches:
        sink.write(batch)
    sink.finish()
    return read_levels(sink.path)


def drawn(path, width, *args, **settings):
    options = PictureOptions(width=width, height=50, raw=True, levels=(-15.0, 5.0))
    return written(PictureSink(path, options, transpose, SPEC), rows(*args, **settings))


def periods_of(levels):
    """Return the period that the centre of each column lies in."""
    return (levels.t * FS // PERIOD).astype(int)


@pytest.mark.parametrize("width", [401, 432, 1000, 1999, 4000])
def test_three_days_have_no_moire(tmp_path, width):
    """55 s each 600 s: no column is missing, and narrow ones have their period's level."""
    levels = drawn(tmp_path / "x.png", width, 432)
    assert np.isfinite(levels.level).all()
    if width > 432:
        expected_db = 10.0 * np.log10(0.1 * (1 + periods_of(levels) % 10))
        np.testing.assert_allclose(levels.level[2], expected_db, atol=20.0 / 239 / 2 + 1e-3)
        assert levels.pixels.period_s == 600.0


@pytest.mark.parametrize("width", [1000, 1201, 4000])
def test_what_is_lost_is_missing(tmp_path, width):
    """A recording that the schedule has and the folder lacks is hatched for its period."""
    levels = drawn(tmp_path / "x.png", width, 432, lost=(100, 101, 102, 250))
    is_missing = np.isnan(levels.level[0])
    is_lost = np.isin(periods_of(levels), [100, 101, 102, 250])
    np.testing.assert_array_equal(is_missing, is_lost)
    assert (levels.pixels.gaps, levels.pixels.gap_samples) == (427, 427 * 8720 + 4 * PERIOD)


def test_the_footer_of_rows_as_long_as_the_period(tmp_path):
    """Pauses of a schedule are counted though rows end with the period, and frames as they are."""
    texts = []
    for on_frames, lost in ((9, (7, 8)), (9, ()), (60, ())):
        name = tmp_path / "x.svg"
        options = PictureOptions(width=1000, height=50)
        period = SPEC.hop * 60 if on_frames == 9 else PERIOD
        sink = PictureSink(name, options, transpose, SPEC)
        for batch in rows(20, lost, on_frames, period):
            whole = replace(batch, cut_frames=0) if on_frames == 60 else batch
            sink.write(whole)
        sink.finish()
        texts.append(name.read_text())
    assert "row: mean of at most 9 frames" in texts[0]
    assert "16 pauses of a schedule of 60 s" in texts[0]
    assert "gaps: 1, 171 s missing" in texts[0]
    assert "19 pauses of a schedule of 60 s" in texts[1]
    assert "gaps:" not in texts[1]
    assert "row: mean of 60 frames" in texts[2]


@pytest.mark.parametrize("width", [400, 1000, 4000])
def test_a_year_has_no_moire(tmp_path, width):
    """Of a recording each six hours no column is missing, but those of the lost one."""
    levels = drawn(tmp_path / "x.png", width, 1460, lost=(700,), period=36 * PERIOD)
    is_missing = np.isnan(levels.level[0])
    periods = (levels.t * FS // (36 * PERIOD)).astype(int)
    np.testing.assert_array_equal(is_missing, (periods == 700) & (width > 1460))


def test_losses_at_any_times_are_missing(tmp_path):
    """Gaps without a schedule are hatched as they are, whatever their length."""
    kept = np.flatnonzero(np.random.default_rng(7).random(1000) < 0.15)
    lost = set(range(1000)) - set(kept.tolist())
    levels = drawn(tmp_path / "x.png", 2000, 1000, lost=lost, on_frames=60, period=960)
    assert np.isnan(levels.level[0]).sum() > 1500
    assert not isinstance(levels.pixels.period_s, float)


def test_pauses_of_recordings_that_can_be_read_stay(tmp_path):
    """An hour of six recordings shows them as they are, with their pauses."""
    levels = drawn(tmp_path / "x.png", 600, 6, on_frames=60)
    assert 0.8 < np.isnan(levels.level[0]).mean() < 0.9


def test_tiles_meet_in_a_pause(tmp_path):
    """A tile that begins in a pause has no gap there, nor has one that ends in it."""
    options = PictureOptions(width=250, height=50, raw=True, levels=(-15.0, 5.0))
    plan = PicturePlan(options, transpose, seconds_per_pixel=61.0)
    sink = TiledPicture(tmp_path / "x.png", plan, SPEC, "spectrod")
    for batch in rows(60):
        sink.write(batch)
    sink.finish()
    tiles = [read_levels(tmp_path / f"x-000{k}.png") for k in (1, 2, 3)]
    assert all(np.isfinite(tile.level).all() for tile in tiles)


def test_strips_have_the_columns_of_the_plot(tmp_path):
    """Level and waveform of narrow columns are those of their period; a lost one is missing."""
    options = PictureOptions(width=1000, height=50, strips=("waveform", "level"))
    sink = PictureSink(tmp_path / "x.png", options, transpose, SPEC)
    kept = {}
    sink._samples.over, over = (
        lambda *args: kept.setdefault("envelope", over(*args)),
        (sink._samples.over),
    )
    for batch in rows(432, lost=(250,)):
        index = int(batch.sample_index[0])
        samples = np.full((1, SPEC.hop * ON_FRAMES), np.sqrt(batch.values[0, 0, 0]), np.float32)
        sink.strips.write(Block(samples, index, 0, 0))
        sink.write(batch)
    sink.finish()
    found = kept["envelope"]
    is_missing = np.isnan(found.mean_square[0])
    centres = (np.arange(1000) + 0.5) / 1000 * (431 * PERIOD + 880)
    period = (centres // PERIOD).astype(int)
    assert set(period[is_missing]) == {250}
    expected = 0.1 * (1 + period % 10)
    np.testing.assert_allclose(found.mean_square[0, ~is_missing], expected[~is_missing], rtol=1e-5)
    np.testing.assert_array_equal(np.isnan(found.low[0]), is_missing)


def test_too_many_spans_are_no_schedule(tmp_path, monkeypatch):
    """The memory of spans is bounded: with more of them columns keep their own time."""
    monkeypatch.setattr(recorded_spans, "SPANS_MAX", 100)
    levels = drawn(tmp_path / "x.png", 1000, 101)
    assert np.isnan(levels.level).any()
    levels = drawn(tmp_path / "x.png", 1000, 100)
    assert np.isfinite(levels.level).all()
