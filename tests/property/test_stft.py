"""Streams in any division: the same frames with any blocks, batches and latencies."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spectrod.analysis import batch_sizes, stream
from spectrod.analysis.engine import Engine
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec

FS = 1e6
N = 9000
NOISE = np.random.default_rng(12).uniform(-1, 1, (2, N)).astype(np.float32)

SPECS = [
    SpectrumSpec(FS, 2, win_length=128, hop=37),
    SpectrumSpec(FS, 2, "hamming", 501, 250, nfft=512, scaling="dbfs"),
    SpectrumSpec(FS, 2, win_length=64, hop=1500),
    SpectrumSpec(FS, 2, win_length=128, hop=64, averaging="mean", averaging_frames=3),
    SpectrumSpec(FS, 2, win_length=128, hop=200, averaging="exponential", averaging_s=0.001),
]

ANYHOW = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def _small_windows():
    """Make windows so small that samples are moved often, and read short blocks in place."""
    kept = batch_sizes._REACH_BYTES_MIN, stream._LONG_BLOCK_BYTES
    batch_sizes._REACH_BYTES_MIN, stream._LONG_BLOCK_BYTES = 0, 1 << 10
    yield
    batch_sizes._REACH_BYTES_MIN, stream._LONG_BLOCK_BYTES = kept


@pytest.fixture(scope="module", params=["as it is", "mirrored"])
def engine(request, any_device, _small_windows) -> Iterator[Engine]:
    """Return NumPy, and each device with the host's memory and as if it had its own."""
    if any_device is None:
        if request.param == "mirrored":
            pytest.skip("NumPy has no memory of its own")
        opened: Engine = NumpyEngine()
    elif request.param == "mirrored":
        opened = OpenCLEngine(replace(any_device, shares_host_memory=False))
    else:
        opened = OpenCLEngine(any_device)
    yield opened
    opened.close()


cuts = st.lists(st.integers(1, N - 1), max_size=12).map(lambda edges: sorted({0, N, *edges}))
specs = st.lists(st.sampled_from(SPECS), min_size=1, max_size=3, unique=True)
waits = {
    "max_latency_s": st.sampled_from([0.0, 0.0004, 0.003, np.inf]),
    "batch_frames": st.sampled_from([None, 1, 2, 7, 40]),
    "interleaved": st.booleans(),
}


def block(first, last, **kwargs):
    samples = np.ascontiguousarray(NOISE[:, first:last])
    return Block(samples, first, first * 1000, first * 1000, **kwargs)


def collected(batches, spec):
    """Return values, indices, times, and gaps with the index after them, of one spec."""
    mine = [batch for batch in batches if batch.spec == spec]
    if not mine:
        return np.empty(0), np.empty(0), np.empty(0), []
    gaps = [(int(b.sample_index[0]), b.gap_samples) for b in mine if b.discontinuity]
    parts = ([b.values for b in mine], [b.sample_index for b in mine], [b.t_utc_ns for b in mine])
    return *(np.concatenate(part) for part in parts), gaps


def pushed(frames, blocks):
    return [*(batch for b in blocks for batch in frames.push(b)), *frames.finish()]


@ANYHOW
@given(edges=cuts, chosen=specs, **waits)
@pytest.mark.forms(1)
def test_any_cut_into_blocks_and_batches_gives_the_same_rows(engine, edges, chosen, **waits):
    """In any blocks and batches every row comes once, with the same bits and the same time."""
    blocks = [block(a, z) for a, z in pairwise(edges)]
    batches = pushed(FrameStream(chosen, engine, **waits), blocks)
    for spec in chosen:
        expected = collected(pushed(FrameStream(spec, engine), [block(0, N)]), spec)
        for actual, right in zip(collected(batches, spec), expected, strict=True):
            np.testing.assert_array_equal(actual, right)
        assert collected(batches, spec)[3] == []


@ANYHOW
@given(edges=cuts, lost=st.sets(st.integers(0, 12), max_size=4), chosen=specs, **waits)
@pytest.mark.forms(1)
def test_gaps_anywhere_are_reported_and_never_bridged(engine, edges, lost, chosen, **waits):
    """With missing blocks, rows are those of each contiguous run, and gaps add up."""
    spans = list(pairwise(edges))
    kept = [span for number, span in enumerate(spans) if number not in lost]
    runs = []
    for first, last in kept:
        if runs and runs[-1][1] == first:
            runs[-1] = runs[-1][0], last
        else:
            runs.append((first, last))
    frames = FrameStream(chosen, engine, **waits)
    batches = pushed(frames, [block(*span) for span in kept])
    assert frames.gaps == max(0, len(runs) - 1)
    for spec in chosen:
        alone = [collected(pushed(FrameStream(spec, engine), [block(*run)]), spec) for run in runs]
        rows = [run for run in alone if len(run[1])]
        values, index, _, gaps = collected(batches, spec)
        assert len(index) == sum(len(run[1]) for run in rows)
        if rows:
            np.testing.assert_array_equal(values, np.concatenate([run[0] for run in rows]))
            np.testing.assert_array_equal(index, np.concatenate([run[1] for run in rows]))
        reported = sum(gap for _, gap in gaps)
        pending = frames.gap_pending or 0 if spec is chosen[0] else frames.gap_samples - reported
        assert reported + pending == frames.gap_samples
        starts = {run[1][0] for run in rows[1:]}
        assert starts <= {first for first, _ in gaps}


@ANYHOW
@given(edges=cuts, wait=st.sampled_from([0.0005, 0.002]))
def test_no_frame_waits_longer_than_allowed(engine, edges, wait):
    """After each push, frames held back have been complete for less than the latency bound."""
    spec = SPECS[0]
    frames = FrameStream(spec, engine, max_latency_s=wait)
    delivered = 0
    for first, last in pairwise(edges):
        delivered += sum(batch.n_frames for batch in frames.push(block(first, last)))
        due = last - round(wait * FS)
        assert delivered >= spec.n_frames(due)
