"""Devices with memory of their own, as which any device may serve."""

from dataclasses import replace

import numpy as np
import pytest

from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.analysis.spectrogram import _compute
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
