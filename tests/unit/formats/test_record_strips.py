import numpy as np
import pytest

from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.picture.raster import PixelTimes
from spectrod.formats.picture.strips import RowStrips, SampleStrips

FS = 8000.0


def blocks_of(samples, size, first=0):
    for begin in range(0, samples.shape[1], size):
        yield Block(samples[:, begin : begin + size], first + begin, 0, 0)


def strips_of(samples, size, width=10, first=0):
    strips = SampleStrips(len(samples), width)
    for block in blocks_of(samples, size, first):
        strips.write(block)
    return strips


@pytest.mark.parametrize("n_samples", [10, 170, 2560, 99_990])
@pytest.mark.parametrize("size", [1, 37, 4096])
def test_every_sample_counts_once(n_samples, size):
    """In any division into blocks, pixels hold the minimum, the maximum and the power of theirs."""
    if size == 1 and n_samples > 1000:
        size = 1001
    samples = np.random.default_rng(n_samples).normal(0.0, 0.2, (2, n_samples)).astype(np.float32)
    envelope = strips_of(samples, size, first=5).over(PixelTimes(5, n_samples), 10)
    pixels = samples.reshape(2, 10, -1)
    # A pixel may cover a part of the cell that its limits cut: at most a quarter more on each side.
    reach = n_samples // 10 // 2 + 1
    padded = np.pad(samples, ((0, 0), (reach, reach)), mode="edge")
    wide = np.stack([padded[:, c * n_samples // 10 :][:, : n_samples // 10 + 2 * reach]
                     for c in range(10)], axis=1)  # fmt: skip
    assert (envelope.low <= pixels.min(axis=2)).all()
    assert (envelope.low >= wide.min(axis=2)).all()
    assert (envelope.high >= pixels.max(axis=2)).all()
    assert (envelope.high <= wide.max(axis=2)).all()
    squares = np.square(pixels.astype(np.float64)).mean(axis=2)
    is_aligned = n_samples in (10, 2560)
    np.testing.assert_allclose(envelope.mean_square, squares, rtol=1e-5 if is_aligned else 0.2)


def test_levels_are_those_of_a_sine():
    """A full-scale sine reads 0 dBFS in RMS and in peak, in every pixel."""
    t = np.arange(80_000) / FS
    sine = np.sin(2.0 * np.pi * 1000.0 * t + 0.25 * np.pi)[np.newaxis].astype(np.float32)
    sine /= np.abs(sine).max()
    envelope = strips_of(sine, 1024).over(PixelTimes(0, 80_000), 10)
    np.testing.assert_allclose(envelope.rms_dbfs, 0.0, atol=3.02)
    np.testing.assert_allclose(envelope.peak_dbfs, 0.0, atol=1e-3)


def test_gaps_are_missing_and_not_silent():
    """Pixels without samples are NaN without effect on neighbours, and zeros are silence."""
    strips = SampleStrips(1, 10)
    strips.write(Block(np.full((1, 300), 0.5, np.float32), 0, 0, 0))
    strips.write(
        Block(np.zeros((1, 300), np.float32), 700, 0, 0, discontinuity=True, lost_samples=400)
    )
    envelope = strips.over(PixelTimes(0, 1000), 10)
    is_gap = np.isnan(envelope.low[0])
    assert is_gap.tolist() == [False] * 3 + [True] * 4 + [False] * 3
    assert (np.isnan(envelope.mean_square[0]) == is_gap).all()
    assert (np.isnan(envelope.peak_dbfs[0]) == is_gap).all()
    assert envelope.rms_dbfs[0, 9] == -200.0


def test_samples_that_are_not_finite_are_missing():
    """A NaN affects only the cells that contain it."""
    samples = np.full((1, 1000), 0.25, np.float32)
    samples[0, 505] = np.nan
    samples[0, 507] = np.inf
    envelope = strips_of(samples, 100).over(PixelTimes(0, 1000), 10)
    assert np.isfinite(envelope.mean_square).all()
    np.testing.assert_allclose(envelope.mean_square, 0.0625)
    np.testing.assert_array_equal(np.delete(envelope.low, 5), 0.25)


def test_memory_does_not_grow():
    """A hundred times the samples take no more memory."""
    strips = SampleStrips(1, 50)
    block = np.ones((1, 1000), np.float32)
    strips.write(Block(block, 0, 0, 0))
    before = sum(table.nbytes for table in vars(strips._cells).values() if hasattr(table, "nbytes"))
    for index in range(1, 300):
        strips.write(Block(block, 1000 * index, 0, 0))
    after = sum(table.nbytes for table in vars(strips._cells).values() if hasattr(table, "nbytes"))
    assert after == before < 50 * 8 * 32
    assert np.isfinite(strips.over(PixelTimes(0, 300_000), 50).mean_square).all()


@pytest.mark.parametrize("scaling", ["spectrum", "density", "dbfs"])
@pytest.mark.parametrize("bands", ["", "third-octave"])
def test_rows_give_the_level_of_their_samples(scaling, bands):
    """Noise of a known mean square reads that level with any scaling of its rows."""
    spec = SpectrumSpec(fs=FS, win_length=1024, hop=512, scaling=scaling, bands=bands)
    density = 1e-3 / 4000.0
    width = np.full(spec.n_bins, spec.delta_f) if not bands else spec.band_table.width
    values = np.full(spec.n_values, density) if scaling == "density" else density * width
    if scaling != "density" and not bands:
        values = values * spec.enbw_hz / spec.delta_f
    if scaling == "dbfs":
        values = 10.0 * np.log10(2.0 * values)
    rows = np.tile(values.astype(np.float32), (40, 1, 1))
    index = 512 * np.arange(40, dtype=np.int64)
    strips = RowStrips(spec, 10)
    strips.write(SpectrumBatch(rows[:20], index[:20], index[:20], index[:20], spec, "numpy"))
    strips.write(
        SpectrumBatch(
            rows[20:],
            index[20:] + 5120,
            index[20:],
            index[20:],
            spec,
            "numpy",
            5120,
            discontinuity=True,
        )
    )
    envelope = strips.over(PixelTimes(0, 49 * 512 + 1024), 10)
    covered = width.sum() if bands else spec.n_bins * spec.delta_f
    found = envelope.mean_square[np.isfinite(envelope.mean_square)]
    np.testing.assert_allclose(found, density * covered, rtol=1e-4)
    assert np.isnan(envelope.mean_square[0]).tolist() == [False] * 4 + [True] * 2 + [False] * 4
    assert envelope.peak_dbfs is None


def test_i_and_q_are_one_signal():
    """A complex tone of amplitude 1 reads 0 dBFS from its samples and from its rows."""
    t = np.arange(8000) / FS
    tone = np.stack([np.cos(2.0 * np.pi * 1000.0 * t), np.sin(2.0 * np.pi * 1000.0 * t)])
    strips = SampleStrips(2, 10, is_iq=True)
    strips.write(Block(tone.astype(np.float32), 0, 0, 0))
    envelope = strips.over(PixelTimes(0, 8000), 10)
    assert envelope.low.shape == (1, 10)
    np.testing.assert_allclose(envelope.rms_dbfs, 0.0, atol=1e-3)
    np.testing.assert_allclose(envelope.peak_dbfs, 0.0, atol=1e-3)
    spec = SpectrumSpec(fs=FS, channels=2, iq=True, win_length=100, nfft=100, hop=100,
                        window="rectangular", scaling="dbfs")  # fmt: skip
    values = np.full((80, 1, 100), -200.0, np.float32)
    values[:, 0, 60] = 0.0
    index = 100 * np.arange(80, dtype=np.int64)
    rows = RowStrips(spec, 10)
    rows.write(SpectrumBatch(values, index, index, index, spec, "numpy"))
    np.testing.assert_allclose(rows.over(PixelTimes(0, 8000), 10).rms_dbfs, 0.0, atol=1e-3)


def test_a_level_is_of_a_least_time():
    """The level has a minimum averaging time, so in narrow pixels only extremes follow the wave."""
    t = np.arange(2000) / FS
    sine = np.sin(2.0 * np.pi * 100.0 * t)[np.newaxis].astype(np.float32)
    strips = SampleStrips(1, 500, least_samples=160)
    strips.write(Block(sine, 0, 0, 0))
    envelope = strips.over(PixelTimes(0, 2000), 500)
    np.testing.assert_allclose(envelope.rms_dbfs[0, 20:-20], 0.0, atol=0.2)
    assert np.ptp(envelope.high) > 1.9
    strips.write(Block(sine, 4000, 0, 0, discontinuity=True, lost_samples=2000))
    envelope = strips.over(PixelTimes(0, 6000), 500)
    assert np.isnan(envelope.rms_dbfs[0]).nonzero()[0].tolist() == [*range(167, 333)]
