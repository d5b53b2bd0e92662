"""Devices with memory of their own, as which any device may serve."""

from dataclasses import replace

import numpy as np
import pytest

from spectrod.analysis import device_memory
from spectrod.analysis.buffer_pool import Lease, PooledBuffer
from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.analysis.result_pool import ResultPool
from spectrod.analysis.spectrogram import _compute
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec

pytestmark = pytest.mark.opencl


@pytest.fixture
def engine(opencl_device):
    """Open a device as if it had its own memory."""
    opened = OpenCLEngine(replace(opencl_device, shares_host_memory=False))
    yield opened
    opened.close()


def address(buffer):
    return buffer.data.__array_interface__["data"][0]


def test_locked_memory_of_a_released_buffer_serves_the_next(engine):
    """Two buffers at once have memory of their own; a third one has that of a released one."""
    layout = SampleLayout("int16", 2)
    one, other = engine.sample_buffer(layout, 5001), engine.sample_buffer(layout, 5001)
    released = address(one)
    assert released != address(other)
    del one
    assert address(engine.sample_buffer(layout, 4999)) == released


def test_rows_of_a_whole_signal_are_written_where_they_stay(engine):
    """The device writes to the memory of the result, which serves again once it is released."""
    noise = np.random.default_rng(8).integers(-30_000, 30_000, (1, 100_003)).astype(np.int16)
    spec = SpectrumSpec(48000.0, 1, "hann", 256, 100)
    values, _ = _compute(engine, spec, noise)
    lease = Lease.of(values[3:, :, ::2])
    assert lease is not None
    assert lease.pooled.buffer is not None
    ordinary = np.empty(values.shape, values.dtype)
    stream = FrameStream(spec, engine, sample_format="int16", out=ordinary)
    assert np.may_share_memory(stream.push(Block(noise, 0, 0, 0))[0].values, ordinary)
    np.testing.assert_array_equal(ordinary, values)
    out = engine.result_memory(values.shape, values.dtype)
    stream = FrameStream(spec, engine, sample_format="int16", max_latency_s=np.inf, out=out)
    rows = [batch.values for batch in [*stream.push(Block(noise, 0, 0, 0)), *stream.flush()]]
    assert all(Lease.of(some) is Lease.of(out) for some in rows)
    np.testing.assert_array_equal(out, values)
    first = values.__array_interface__["data"][0]
    del values, lease
    again = engine.result_memory((500, 1, 129), np.dtype(np.float32))
    assert again.__array_interface__["data"][0] == first


def test_page_locked_results_are_bounded(engine, monkeypatch):
    """Results above a size, or beyond what all may have together, are in ordinary memory."""
    monkeypatch.setattr(device_memory, "_LOCKED_RESULT_BYTES_MAX", 8192)
    monkeypatch.setattr(device_memory, "_LOCKED_BYTES_MAX", 4 * 8192)
    dtype = np.dtype(np.float32)
    assert Lease.of(engine.result_memory((2049,), dtype)) is None
    kept = [engine.result_memory((2048,), dtype) for _ in range(4)]
    assert all(Lease.of(one) is not None for one in kept)
    assert Lease.of(engine.result_memory((1,), dtype)) is None
    kept.pop()
    assert Lease.of(engine.result_memory((1,), dtype)) is not None


def test_a_pool_keeps_the_memory_of_two_results():
    """It is lent again for results of at least half its size, to one at a time."""
    made = []

    def make(n_bytes):
        made.append(n_bytes)
        return PooledBuffer(np.zeros(n_bytes, np.uint8), None)

    pool, byte = ResultPool(make), np.dtype(np.uint8)
    arrays = [pool.lend((n,), byte) for n in (0, 1, 4097, 12288, 40000)]
    assert made == [4096, 4096, 8192, 12288, 40960]
    assert pool.lent_bytes == sum(made)
    addresses = [one.__array_interface__["data"][0] for one in arrays]
    while arrays:
        del arrays[0]
    assert pool.lent_bytes == 0
    too_small = pool.lend((4096,), byte)
    assert made[5:] == [4096]
    fits = pool.lend((4097,), byte)
    assert fits.__array_interface__["data"][0] == addresses[3]
    del too_small, fits
    pool.lend((40960,), byte)
    assert made[6:] == [40960]


@pytest.mark.parametrize("averaging_frames", [1, 3])
@pytest.mark.parametrize("dtype", ["int16", "float64"])
def test_a_spectrogram_of_many_blocks_is_that_of_one(
    engine, opencl_device, monkeypatch, dtype, averaging_frames
):
    """Rows do not depend on how many blocks and batches the signal is cut into."""
    noise = np.random.default_rng(8).integers(-30_000, 30_000, (2, 100_003))
    rows = noise.astype(dtype) if dtype == "int16" else noise / 32768.0
    averaging = "mean" if averaging_frames > 1 else "none"
    spec = SpectrumSpec(
        48000.0, 2, "hann", 256, 100, averaging=averaging, averaging_frames=averaging_frames
    )
    monkeypatch.setattr("spectrod.analysis.spectrogram._CONVERTED_SAMPLES", 1000)
    one_batch, _ = _compute(engine, spec, rows)
    engine.batch_bytes = 1 << 14
    many, _ = _compute(engine, spec, rows)
    np.testing.assert_array_equal(many, one_batch)
    shared = OpenCLEngine(opencl_device)
    np.testing.assert_array_equal(_compute(shared, spec, rows)[0], many)
    shared.close()
