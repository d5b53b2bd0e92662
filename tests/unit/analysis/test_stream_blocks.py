"""Long blocks, whose frames are computed in the memory of the block."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.analysis import batch_sizes, stream
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import DeviceError, InputError

FS = 1e6
N = 12_000
ONE_BATCH = 1 << 20
"""Size of a batch that holds all frames of a block [bytes]."""
NOISE = np.random.default_rng(20_261_122).uniform(-1, 1, (2, N)).astype(np.float32)

SPECS = [
    SpectrumSpec(FS, 2, win_length=128, hop=37),
    SpectrumSpec(FS, 2, win_length=64, hop=300),
    SpectrumSpec(FS, 2, win_length=128, hop=64, averaging="mean", averaging_frames=3),
    SpectrumSpec(FS, 2, win_length=128, hop=100, averaging="exponential", averaging_s=0.001),
    SpectrumSpec(FS, 2, win_length=128, hop=50, averaging="max", rate_hz=4321.0),
    SpectrumSpec(FS, 2, win_length=128, hop=64, averaging="mean", rate_hz=900.0, align="utc"),
]


class CountingEngine(NumpyEngine):
    """NumPy that counts the blocks it reads in place, and may fail at one submission."""

    batch_bytes = 1 << 14

    def __init__(self, fails_at=None, error=DeviceError, fallback=None, block_bytes=1 << 14):
        self.block_batch_bytes = block_bytes
        self.n_blocks = self.n_submitted = 0
        self.fails_at, self.error, self.fallback = fails_at, error, fallback

    def sample_buffer_over(self, layout, memory):
        self.n_blocks += 1
        return super().sample_buffer_over(layout, memory)

    def plan(self, spec, buffer, max_frames):
        plan = super().plan(spec, buffer, max_frames)
        submit = plan.submit

        def guarded(launch, out=None):
            assert launch.n_frames <= max_frames
            self.n_submitted += 1
            if self.n_submitted == self.fails_at:
                raise self.error("lost")
            return submit(launch, out)

        plan.submit = guarded
        return plan


@pytest.fixture(scope="module", autouse=True)
def _blocks_are_long():
    """Read blocks of 1 KiB in place, and move samples often."""
    kept = stream._LONG_BLOCK_BYTES, batch_sizes._REACH_BYTES_MIN
    stream._LONG_BLOCK_BYTES, batch_sizes._REACH_BYTES_MIN = 1 << 10, 0
    yield
    stream._LONG_BLOCK_BYTES, batch_sizes._REACH_BYTES_MIN = kept


def block(first, last, *, interleaved=False, samples=NOISE):
    """Return a block whose memory has the order of the stream."""
    order = "F" if interleaved else "C"
    memory = np.array(samples[:, first:last], order=order)
    return Block(memory, first, first * 1000, 7_000_000 + first * 1000, fs=FS)


def pushed(frames, edges, **order):
    """Push blocks, and overwrite the memory of each when ``push`` has returned."""
    batches = []
    for first, last in pairwise(edges):
        one = block(first, last, **order)
        batches += frames.push(one)
        one.samples[...] = np.nan
    return batches + frames.finish()


def rows(batches, spec):
    """Return values, indices and times of a spec's rows."""
    mine = [batch for batch in batches if batch.spec == spec]
    names = ("values", "sample_index", "t_utc_ns")
    return [np.concatenate([getattr(batch, name) for batch in mine]) for name in names]


def copied(chosen, edges, **settings_):
    """Return the rows of a stream that copies all blocks."""
    engine = NumpyEngine()
    engine.block_batch_bytes = 0
    return pushed(FrameStream(chosen, engine, **settings_), edges)


@settings(max_examples=60)
@given(
    cuts=st.lists(st.integers(1, N - 1), max_size=6),
    chosen=st.lists(st.sampled_from(SPECS), min_size=1, max_size=3, unique=True),
    interleaved=st.booleans(),
    max_latency_s=st.sampled_from([0.0, 0.001, np.inf]),
    block_bytes=st.sampled_from([1 << 14, ONE_BATCH]),
)
def test_long_blocks_give_the_same_rows(cuts, chosen, interleaved, max_latency_s, block_bytes):
    """Rows of long blocks read in place are those of copies, though the memory changes later."""
    edges = sorted({0, N, *cuts})
    frames = FrameStream(
        chosen,
        CountingEngine(block_bytes=block_bytes),
        interleaved=interleaved,
        max_latency_s=max_latency_s,
    )
    batches = pushed(frames, edges, interleaved=interleaved)
    right = copied(chosen, edges, max_latency_s=max_latency_s)
    for spec in chosen:
        for actual, expected in zip(rows(batches, spec), rows(right, spec), strict=True):
            np.testing.assert_array_equal(actual, expected)
    assert frames.gaps == 0


def test_long_blocks_are_read_in_place_and_others_copied():
    """Blocks of other order, short ones, and those of requested batches that wait are copied."""
    engine = CountingEngine()
    for settings_, order, n in [
        ({}, False, 1),
        ({"interleaved": True}, True, 1),
        ({"interleaved": True}, False, 0),
        ({"batch_frames": 7}, False, 1),
        ({"batch_frames": 7, "max_latency_s": np.inf}, False, 0),
    ]:
        engine.n_blocks = 0
        frames = FrameStream(SPECS[0], engine, **settings_)
        frames.push(block(0, 4000, interleaved=order))
        frames.push(block(4000, 4500, interleaved=order))
        assert engine.n_blocks == n, (settings_, order)


@pytest.mark.parametrize(
    ("fails_at", "block_bytes"),
    [*((at, 1 << 14) for at in range(1, 6)), *((at, ONE_BATCH) for at in range(1, 5))],
)
def test_a_failure_in_a_long_block(fails_at, block_bytes):
    """If the engine fails in a long block, its fallback computes every frame once."""
    edges = [0, 500, 6000, N]
    engine = CountingEngine(fails_at, fallback=NumpyEngine(), block_bytes=block_bytes)
    frames = FrameStream(SPECS[0], engine, max_latency_s=np.inf)
    batches = pushed(frames, edges)
    for actual, expected in zip(
        rows(batches, SPECS[0]), rows(copied(SPECS[0], edges), SPECS[0]), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)
    assert (frames.engine_failures, frames.gaps) == (1, 0)


@pytest.mark.parametrize("error", [DeviceError, KeyboardInterrupt])
@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_an_exception_in_a_long_block(error, fails_at):
    """After an exception in a long block, later frames are right and the rest is a gap."""
    frames = FrameStream(SPECS[0], CountingEngine(fails_at, error))
    one = block(0, 6000)
    with pytest.raises(error, match="lost"):
        frames.push(one)
    one.samples[...] = np.nan
    batches = [*frames.push(block(6000, N)), *frames.finish()]
    values, index, _ = rows(batches, SPECS[0])
    right, right_index, _ = rows(copied(SPECS[0], [6000, N]), SPECS[0])
    is_later = index >= 6000
    np.testing.assert_array_equal(index[is_later], right_index)
    np.testing.assert_array_equal(values[is_later], right)
    assert np.isfinite(values).all()
    assert frames.gaps == 1


def test_a_sample_that_is_not_finite_in_a_long_block():
    """A NaN in a long block is refused before any frame, and counts as a gap where it may."""
    damaged = NOISE[:, :6000].copy()
    damaged[1, 5999] = np.nan
    engine = CountingEngine()
    frames = FrameStream(SPECS[0], engine, "gap")
    assert frames.push(block(0, 6000, samples=damaged)) == []
    assert (frames.gaps, frames.gap_samples, engine.n_submitted) == (1, 6000, 0)
    values, index, _ = rows(frames.push(block(6000, N)), SPECS[0])
    assert index[0] == 6000
    assert np.isfinite(values).all()


@pytest.mark.parametrize("spec", SPECS[:2])
def test_frames_that_test_a_block_are_not_computed_again(spec):
    """Where the rows of a long block show that it is finite, they are those that are returned."""
    engine = CountingEngine(block_bytes=ONE_BATCH)
    frames = FrameStream(spec, engine, max_latency_s=np.inf)
    batches = [frames.push(block(first, last)) for first, last in pairwise([0, 4000, 8000, N])]
    assert engine.n_submitted == sum(map(len, batches))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 60, 127, 2000, 4998, 4999])
@pytest.mark.parametrize("on_nonfinite", ["raise", "gap"])
def test_a_sample_that_rows_show_not_to_be_finite(bad, where, on_nonfinite):
    """A block with such a sample anywhere is refused or a gap; nothing else changes."""
    damaged = NOISE.copy()
    damaged[1, 3000 + where] = bad
    frames = FrameStream(SPECS[0], CountingEngine(block_bytes=ONE_BATCH), on_nonfinite)
    batches = frames.push(block(0, 3000))
    if on_nonfinite == "raise":
        message = f"sample {3000 + where} of channel 1 is {bad}: must be finite"
        with pytest.raises(InputError, match=message):
            frames.push(block(3000, 8000, samples=damaged))
        assert (frames.gaps, frames.next_index) == (0, 3000)
        batches += pushed(frames, [3000, 8000, N])
        right = copied(SPECS[0], [0, 3000, 8000, N])
    else:
        assert frames.push(block(3000, 8000, samples=damaged)) == []
        assert (frames.gaps, frames.gap_samples, frames.next_index) == (1, 5000, 8000)
        batches += pushed(frames, [8000, N])
        right = copied(SPECS[0], [0, 3000]) + copied(SPECS[0], [8000, N])
    for actual, expected in zip(rows(batches, SPECS[0]), rows(right, SPECS[0]), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_a_long_block_of_huge_samples_is_finite():
    """Finite samples of infinite power are no error, and their rows the same as those of copies."""
    huge = NOISE * np.float32(1e30)
    frames = FrameStream(SPECS[0], CountingEngine(block_bytes=ONE_BATCH))
    (batch,) = frames.push(block(0, 6000, samples=huge))
    assert np.isinf(batch.values).all()
