"""Averages that a gap or the end cuts off: their frames are kept where that is asked for."""

import numpy as np
import pytest

from spectrod.analysis.engine import open_engine
from spectrod.analysis.stream import FrameStream
from spectrod.types import Block, SpectrumSpec

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
    """Each stretch's rows are whole but for its last, which has the frames that are left."""
    batches = rows_of(
        engine, averaging, frames, block_size, keep_cut={"density"}, batch_frames=batch_frames
    )
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


def test_they_are_dropped_otherwise(engine):
    """Unless asked for, an average that is cut off makes no row, and is counted."""
    batches = rows_of(engine, "mean", 7, 4000)
    assert not any(batch.cut_frames for batch in batches)
    assert sum(batch.n_frames for batch in batches) == 30 // 7 + 2 // 7 + 92 // 7
