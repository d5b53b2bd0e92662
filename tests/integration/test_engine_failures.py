"""A failing device: one clear error, or NumPy continues without a missing or repeated frame."""

import logging
import re
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest

import spectrod
from spectrod.analysis.engine_pool import EnginePool
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.analysis.self_check import SelfCheck
from spectrod.analysis.stream import FrameStream
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import DeviceError, KernelBuildError
from spectrod.opencl import program
from spectrod.source.base import PulledSource

pytestmark = pytest.mark.opencl

FS = 48000.0
NOISE = np.random.default_rng(5).uniform(-1, 1, (2, 60_000)).astype(np.float32)
SPEC = SpectrumSpec(FS, 2, win_length=256, hop=100)
AVERAGED = replace(SPEC, hop=128, averaging="mean", averaging_frames=5)


@pytest.fixture(params=["shared", "mirrored"])
def device(request, opencl_device):
    """Make a device with the host's memory, and one as if it had its own."""
    shares = request.param == "shared" and opencl_device.shares_host_memory
    return replace(opencl_device, shares_host_memory=shares)


@pytest.fixture
def engine(device):
    """Open the engine that ``open_engine("auto")`` makes of the device."""
    opened = OpenCLEngine(device, fallback=NumpyEngine())
    yield opened
    opened.close()


def lose(engine, monkeypatch, where, after=0):
    """Make the device fail permanently at the driver's boundary after a number of calls."""
    context, calls = engine.context, iter(range(after))
    real = getattr(context, where)

    def failing(*args, **kwargs):
        if next(calls, None) is not None:
            return real(*args, **kwargs)
        with context.translated("is lost"):
            # The real error is pyopencl's, whatever its reason.
            return cl.Buffer(context.queue.context, cl.mem_flags.READ_ONLY, 0)

    monkeypatch.setattr(context, where, failing)


def joined(batches, spec):
    mine = [batch for batch in batches if batch.spec == spec]
    return (
        np.concatenate([b.values for b in mine]),
        np.concatenate([b.sample_index for b in mine]),
        [b.engine for b in mine],
    )


def blocks(n=1000):
    return [Block(NOISE[:, a : a + n], a, 0, 0) for a in range(0, NOISE.shape[1], n)]


def run(engine, specs, **kwargs):
    frames = FrameStream(specs, engine, **kwargs)
    batches = [batch for b in blocks() for batch in frames.push(b)]
    return frames, [*batches, *frames.flush()]


# ---- in mid-stream


@pytest.mark.parametrize("max_latency_s", [0.0, np.inf])
@pytest.mark.parametrize(
    ("where", "after"), [("launch", 0), ("launch", 7), ("wait", 0), ("wait", 9)]
)
def test_numpy_takes_over_from_a_lost_device(
    engine, monkeypatch, caplog, where, after, max_latency_s
):
    """No frame is missing or repeated, and headers name the computing engine."""
    frames = FrameStream(SPEC, engine, max_latency_s=max_latency_s, batch_frames=20)
    lose(engine, monkeypatch, where, after)
    batches = [batch for b in blocks() for batch in frames.push(b)]
    values, index, engines = joined([*batches, *frames.flush()], SPEC)
    np.testing.assert_array_equal(index, np.arange(0, NOISE.shape[1] - 255, 100))
    expected, *_ = joined(run(NumpyEngine(), SPEC)[1], SPEC)
    np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-9)
    assert not any(batch.discontinuity for batch in batches)
    first = engines.index("numpy")
    assert engines == [engine.name] * first + ["numpy"] * (len(engines) - first)
    assert (first > 0) == (after > 0)
    assert (frames.engine_failures, frames.gaps) == (1, 0)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"{engine.name} failed, continuing with numpy: " in caplog.text


@pytest.mark.parametrize("where", ["launch", "wait"])
def test_all_resolutions_fall_back_together(engine, monkeypatch, where):
    """Frames in flight of every resolution are computed again, also with different hops."""
    specs = [SPEC, replace(SPEC, win_length=4096, hop=3000, nfft=4096), replace(SPEC, hop=7000)]
    expected = run(NumpyEngine(), specs)[1]
    frames = FrameStream(specs, engine, max_latency_s=0.05, batch_frames=9)
    lose(engine, monkeypatch, where, 11)
    batches = [batch for b in blocks() for batch in frames.push(b)]
    batches += frames.flush()
    for spec in specs:
        values, index, engines = joined(batches, spec)
        values_right, index_right, _ = joined(expected, spec)
        np.testing.assert_array_equal(index, index_right)
        np.testing.assert_allclose(values, values_right, rtol=1e-3, atol=1e-9)
        assert engines[-1] == "numpy"


@pytest.mark.parametrize(
    ("averaging", "of_frames"),
    [("mean", lambda power: power.mean(axis=0)), ("L60", lambda power: np.sort(power, axis=0)[1])],
    ids=["mean", "L60"],
)
def test_an_average_restarts_with_the_undelivered_frames(engine, monkeypatch, averaging, of_frames):
    """After a failure rows are whole averages, marked as not contiguous, and losses are counted."""
    spec = replace(AVERAGED, averaging=averaging)
    frames = FrameStream(spec, engine)
    batches = frames.push(Block(NOISE[:, :1024], 0, 0, 0))  # seven frames: a row and two
    lose(engine, monkeypatch, "launch")
    batches += frames.push(Block(NOISE[:, 1024:3000], 1024, 0, 0))
    values, index, _ = joined(batches, spec)
    # One was computed in vain; the newest waited for the next one.
    np.testing.assert_array_equal(index, [0, 6 * 128, 11 * 128, 16 * 128])
    assert [batch.discontinuity for batch in batches] == [False, True]
    assert [batch.gap_samples for batch in batches] == [0, 0]
    assert (frames.cut_frames, frames.gaps) == (1, 0)
    single = replace(AVERAGED, averaging="none", averaging_frames=1)
    power, *_ = joined(run(NumpyEngine(), single)[1], single)
    np.testing.assert_allclose(values[1], of_frames(power[6:11]), rtol=1e-4)


@pytest.mark.parametrize("where", ["launch", "wait"])
def test_a_device_that_was_asked_for_is_not_replaced(device, monkeypatch, where):
    """A requested device is not replaced: its failure is one error, and closing is clean."""
    engine = OpenCLEngine(device)
    frames = FrameStream(SPEC, engine)
    lose(engine, monkeypatch, where, 1)
    assert frames.push(blocks()[0])
    with pytest.raises(DeviceError, match=f"^{re.escape(device.label)} is lost: create_"):
        frames.push(blocks()[1])
    lose(engine, monkeypatch, "finish")
    engine.close()


# ---- before the first frame


def broken_source(file, defines):
    return "__kernel void broken( {"


def test_a_build_that_fails(device, monkeypatch, caplog):
    """A failed build makes NumPy compute from the first frame on, or is an error."""
    monkeypatch.setattr(program, "program_source", broken_source)
    engine = OpenCLEngine(device, fallback=NumpyEngine())
    frames, batches = run(engine, SPEC)
    assert {batch.engine for batch in batches} == {"numpy"}
    assert sum(batch.n_frames for batch in batches) == SPEC.n_frames(NOISE.shape[1])
    assert (frames.engine.name, frames.engine_failures) == ("numpy", 1)
    assert "does not compile for" in caplog.text
    with pytest.raises(KernelBuildError, match="does not compile for"):
        FrameStream(SPEC, OpenCLEngine(device))


def test_a_device_without_the_memory(device):
    """Frames beyond the device's memory are refused with sizes, or NumPy computes them."""
    small = replace(device, max_alloc_bytes=1 << 18)
    with pytest.raises(DeviceError, match=r"cannot hold a buffer of [\d.]+ MiB: its limit is 0.2 "):
        FrameStream(SPEC, OpenCLEngine(small))
    frames = FrameStream(SPEC, OpenCLEngine(small, fallback=NumpyEngine()))
    assert frames.engine.name == "numpy"


def test_a_spectrogram_falls_back(engine, device, monkeypatch):
    """A whole signal's spectrogram continues with NumPy, or is one error."""
    lose(engine, monkeypatch, "launch")
    monkeypatch.setattr("spectrod.analysis.spectrogram.ENGINE_POOL", EnginePool())
    monkeypatch.setattr("spectrod.analysis.engine_pool.open_engine", lambda *_: engine)
    s = spectrod.spectrogram(NOISE, FS, win_length=256, hop=100)
    assert s.engine == "numpy"
    engine.fallback = None
    with pytest.raises(DeviceError, match="is lost"):
        spectrod.spectrogram(NOISE, FS, win_length=256, hop=100)


@pytest.mark.parametrize("spec", [SPEC, AVERAGED])
def test_a_spectrogram_that_fails_in_the_middle_has_all_rows(engine, monkeypatch, spec):
    """NumPy computes all rows, also those of averages that the device had started."""
    lose(engine, monkeypatch, "launch", after=3)
    engine.batch_bytes = 1 << 14
    monkeypatch.setattr("spectrod.analysis.spectrogram.ENGINE_POOL", EnginePool())
    monkeypatch.setattr("spectrod.analysis.spectrogram._PIECE_BYTES", 1 << 14)
    monkeypatch.setattr("spectrod.analysis.engine_pool.open_engine", lambda *_: engine)
    settings_ = {"win_length": spec.win_length, "hop": spec.hop, "averaging": spec.averaging}
    if spec is AVERAGED:
        settings_["averaging_frames"] = spec.averaging_frames
    s = spectrod.spectrogram(NOISE, FS, **settings_)
    monkeypatch.undo()
    assert s.engine == "numpy"
    expected = spectrod.spectrogram(NOISE, FS, engine="numpy", **settings_)
    np.testing.assert_array_equal(s.values, expected.values)


# ---- in the daemon


class NoiseSource(PulledSource):
    """The noise, delivered as fast as it is taken."""

    name = description = "noise"
    fs, channels = FS, 2

    def blocks(self, n_max):
        step = min(n_max, 1000)
        for first in range(0, NOISE.shape[1], step):
            yield NOISE[:, first : first + step]


class Collect:
    """A sink that keeps everything."""

    def __init__(self):
        self.batches = []

    def write(self, batch):
        self.batches.append(batch)


def run_pipeline(engine):
    sink = Collect()
    pipeline = Pipeline(NoiseSource("full"), SPEC, engine)
    pipeline.attach(sink)
    pipeline.start()
    try:
        while not pipeline.finished:
            assert pipeline.progress.wait(20.0)
    finally:
        pipeline.stop()
    return pipeline, sink.batches


@pytest.mark.parametrize("where", ["launch", "wait"])
def test_a_pipeline_falls_back(device, monkeypatch, where):
    """Sinks get every frame once, and the counters report the engine failure."""
    engine = OpenCLEngine(device, fallback=NumpyEngine())
    engine.batch_bytes = 1 << 14  # many batches
    lose(engine, monkeypatch, where, 3)
    pipeline, batches = run_pipeline(engine)
    pipeline.raise_failure()
    _, index, engines = joined(batches, SPEC)
    np.testing.assert_array_equal(index, np.arange(0, NOISE.shape[1] - 255, 100))
    assert engines[-1] == "numpy"
    stats = pipeline.stats()
    assert (stats.state, stats.engine, stats.engine_failures) == ("finished", "numpy", 1)
    assert (stats.rows, stats.gaps) == (len(index), 0)


def test_a_pipeline_whose_device_was_asked_for_fails(device, monkeypatch):
    """The error of a requested device ends the pipeline and reaches its owner."""
    engine = OpenCLEngine(device)
    engine.batch_bytes = 1 << 14
    lose(engine, monkeypatch, "wait", 3)
    pipeline, _ = run_pipeline(engine)
    assert pipeline.stats().state == "failed"
    with pytest.raises(DeviceError, match="is lost"):
        pipeline.raise_failure()


@pytest.mark.parametrize("scaling", ["density", "dbfs"])
def test_the_rows_of_a_device_agree_with_float64(engine, scaling):
    """Rows that were computed on the device are recomputed with an error of float32's rounding."""
    stream = FrameStream(replace(SPEC, scaling=scaling, product=""), engine)
    check = SelfCheck(FS, period_s=0.1, first_s=0.1)
    errors = []
    for start in range(0, NOISE.shape[1], 1000):
        block = Block(NOISE[:, start : start + 1000], start, 0, 0, fs=FS)
        check.take(block, stream)
        check.note(stream.push(block))
        if check.is_ready:
            errors.append(check.run(stream.layout))
    assert len(errors) > 5
    # Kernels have 3e-7, and levels are rounded to float32: 1.8e-6 at -200 dB.
    assert 0.0 < max(errors) <= 3e-7 + 1.8e-6
