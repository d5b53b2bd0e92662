"""Averages cut off by a gap or by the end, which become a shorter row."""

import numpy as np
import pytest

import spectrod
from spectrod.analysis.engine import open_engine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec

FS, WIN, HOP = 8000.0, 64, 32
PIECES = [(0, 1000), (1500, 1501), (1600, 1700), (1800, 1860), (2000, 5003)]
"""Stretches with gaps between them; the second and the fourth hold no whole frame."""


@pytest.fixture(params=["numpy", "auto"], scope="module")
def engine(request):
    engine = open_engine(request.param)
    yield engine
    engine.close()


def samples():
    return np.random.default_rng(2).uniform(-0.5, 0.5, (2, 5003)).astype(np.float32)


def rows_of(engine, averaging, frames, block_size, **settings):
    spec = SpectrumSpec(
        FS, 2, win_length=WIN, hop=HOP, averaging=averaging, averaging_frames=frames
    )
    stream = FrameStream(spec, engine, max_latency_s=float("inf"), **settings)
    x, out = samples(), []
    for begin, end in PIECES:
        for first in range(begin, end, block_size):
            last = min(first + block_size, end)
            out += stream.push(Block(x[:, first:last], first, 0, 0, discontinuity=first == begin))
    return out + stream.finish()


@pytest.mark.parametrize("averaging", ["mean", "max", "min"])
@pytest.mark.parametrize(("frames", "batch_frames"), [(7, None), (7, 4), (7, 1), (1000, 16)])
@pytest.mark.parametrize("block_size", [37, 4000])
def test_every_frame_is_in_one_row(engine, averaging, frames, batch_frames, block_size):
    """Rows of a stretch are complete except for its last, which has the remaining frames."""
    batches = rows_of(engine, averaging, frames, block_size, batch_frames=batch_frames)
    singles = rows_of(engine, "none", 1, 4000)
    frame_values = np.concatenate([batch.values for batch in singles])
    frame_index = np.concatenate([batch.sample_index for batch in singles])
    reduce = {"mean": np.mean, "max": np.max, "min": np.min}[averaging]
    seen = 0
    for batch in batches:
        n = batch.cut_frames or frames
        assert not batch.cut_frames or (batch.n_frames == 1 and batch.cut_frames < frames)
        for row, index in zip(batch.values, batch.sample_index, strict=True):
            assert index == frame_index[seen]
            np.testing.assert_allclose(
                row, reduce(frame_values[seen : seen + n], axis=0), rtol=1e-5
            )
            seen += n
    assert seen == len(frame_values)
    assert sum(batch.gap_samples for batch in batches) == sum(b.gap_samples for b in singles)


def test_an_exponential_average_ends_with_its_last_frame(engine):
    """The last row of an exponential average is the state after the last frame of the stretch."""
    frames = 7
    batches = rows_of(engine, "exponential", frames, 4000)
    every = rows_of(engine, "exponential", 1, 4000)
    last = {int(batch.sample_index[-1]): batch.values[-1] for batch in every}
    cut = [batch for batch in batches if batch.cut_frames]
    assert [batch.cut_frames for batch in cut] == [30 % 7, 2, 92 % 7]
    for batch in cut:
        index = int(batch.sample_index[0]) + (batch.cut_frames - 1) * HOP
        np.testing.assert_array_equal(batch.values[0], last[index])


def test_a_whole_row_waits_for_nothing(engine):
    """A row is returned with the last sample of its last frame, before the signal ends."""
    spec = SpectrumSpec(FS, 2, win_length=WIN, hop=HOP, averaging="mean", averaging_frames=7)
    stream = FrameStream(spec, engine)
    x, n_row = samples(), WIN + 6 * HOP
    assert stream.push(Block(x[:, : n_row - 1], 0, 0, 0)) == []
    (batch,) = stream.push(Block(x[:, n_row - 1 : n_row], n_row - 1, 0, 0))
    assert (batch.n_frames, batch.cut_frames) == (1, 0)
    assert stream.finish() == []


def test_samples_that_fill_no_frame_are_counted(engine):
    """Samples that fill no frame are counted before gaps and at the end, not between frames."""
    spec = SpectrumSpec(FS, 2, win_length=WIN, hop=HOP)
    wide = SpectrumSpec(FS, 2, win_length=WIN, hop=100)
    stream = FrameStream([spec, wide], engine)
    x = samples()
    for begin, end in PIECES:
        stream.push(Block(x[:, begin:end], begin, 0, 0, discontinuity=True))
    stream.finish()
    lengths = [end - begin for begin, end in PIECES]
    expected = sum(n if n < WIN else (n - WIN) % HOP for n in lengths)
    between = sum(n if n < WIN else max(0, (n - WIN) % 100 - (100 - WIN)) for n in lengths)
    assert stream.left_out_samples() == [expected, between]


@pytest.mark.parametrize("kind", ["numpy", "auto"])
@pytest.mark.parametrize("n_samples", [WIN, WIN + 6 * HOP, WIN + 40 * HOP + 5])
def test_a_spectrogram_ends_with_a_shorter_row(kind, n_samples):
    """The last row of a whole signal's spectrogram is the mean of the remaining frames."""
    x = samples()[0, :n_samples]
    settings = {"win_length": WIN, "hop": HOP, "engine": kind}
    found = spectrod.spectrogram(x, FS, averaging="mean", averaging_frames=7, **settings)
    single = spectrod.spectrogram(x, FS, **settings)
    n_frames = single.values.shape[1]
    groups = [slice(first, first + 7) for first in range(0, n_frames, 7)]
    expected = np.stack([single.values[:, group].mean(axis=1) for group in groups], axis=1)
    np.testing.assert_allclose(found.values, expected, rtol=1e-5)
    np.testing.assert_allclose(found.t, [single.t[group].mean() for group in groups])
    with spectrod.Stft(
        FS, win_length=WIN, hop=HOP, averaging="mean", averaging_frames=7, engine=kind
    ) as stft:
        batches = [*stft.push(x), *stft.flush(), *stft.finish()]
        assert stft.left_out_samples() == [(n_samples - WIN) % HOP]
    rows = np.concatenate([batch.values[:, 0] for batch in batches])
    np.testing.assert_allclose(rows.T, expected, rtol=1e-5)
    assert batches[-1].cut_frames == n_frames % 7
