"""The connected stages: every frame once, errors raised, changes at run time."""

from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from spectrod.analysis.numpy_engine import Computed, NumpyEngine, NumpyPlan
from spectrod.analysis.self_check import SelfCheck
from spectrod.config.config import SourceConfig
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.conditions import Condition
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import (
    DeviceError,
    InputError,
    InternalError,
    StorageError,
    UnavailableError,
)
from spectrod.lib.stats import CaptureStats
from spectrod.source.base import Discontinuity, PulledSource
from spectrod.source.condition_track import ConditionTrack
from spectrod.source.files.wavfile import WavFileSource
from spectrod.source.open_source import open_source

RNG = np.random.default_rng(21)


class ArraySource(PulledSource):
    """A source of given samples, which optionally fails at the end."""

    def __init__(self, samples, failure=None, pace="full"):
        super().__init__(pace)
        self.name, self.description = "array", "test array"
        self.fs, self.channels = 48000.0, samples.shape[0]
        self._samples, self._end = samples, failure

    def blocks(self, n_max):
        for start in range(0, self._samples.shape[1], n_max):
            yield self._samples[:, start : start + n_max]
        if self._end:
            raise self._end


class Collect:
    """A sink that keeps everything, or optionally raises."""

    def __init__(self, error=None):
        self.batches, self._error = [], error

    def write(self, batch):
        if self._error:
            raise self._error
        self.batches.append(batch)


def make(samples, *, sink, failure=None, win_length=256, hop=100, **kwargs):
    source = ArraySource(samples, failure)
    spec = SpectrumSpec(source.fs, source.channels, "hann", win_length, hop, scaling="spectrum")
    return attached(Pipeline(source, spec, NumpyEngine(), **kwargs), sink)


def attached(pipeline, sink):
    pipeline.attach(sink)
    return pipeline


def test_a_pipeline_runs_in_a_thread_that_waits_for_it():
    """What a pipeline of its own thread passes on, one in the caller's thread does, and its end."""
    samples = RNG.standard_normal((2, 5000))
    with_thread, without = Collect(), Collect()
    run(make(samples, sink=with_thread))
    pipeline = make(samples, sink=without)
    pipeline.run()
    pipeline.stop()
    assert pipeline.finished
    assert pipeline.stats().state == "finished"
    assert pipeline.range.read_samples == 5000
    rows = [np.concatenate([b.values for b in sink.batches]) for sink in (with_thread, without)]
    np.testing.assert_array_equal(*rows)


def test_a_pipeline_in_the_thread_of_its_caller_keeps_the_failure():
    """A sink that fails ends the pipeline, and the failure is that of the sink."""
    pipeline = make(RNG.standard_normal((1, 5000)), sink=Collect(StorageError("full")))
    pipeline.run()
    pipeline.stop()
    with pytest.raises(StorageError, match="full"):
        pipeline.raise_failure()


def run(pipeline):
    pipeline.start()
    try:
        while not pipeline.finished:
            assert pipeline.progress.wait(10.0)
    finally:
        pipeline.stop()
    return pipeline


@pytest.mark.parametrize("channels", [1, 3])
def test_every_frame_reaches_the_sink_once(channels):
    """A source at full speed loses nothing while the ring wraps many times."""
    sink = Collect()
    samples = RNG.uniform(-1, 1, (channels, 1_000_000)).astype(np.float32)
    stats = run(make(samples, sink=sink, hop=977)).stats()
    index = np.concatenate([batch.sample_index for batch in sink.batches])
    np.testing.assert_array_equal(index, np.arange(0, 1_000_000 - 255, 977))
    assert (stats.state, stats.rows, stats.samples) == ("finished", len(index), 1_000_000)
    assert (stats.overruns, stats.gaps, stats.gap_samples) == (0, 0, 0)
    assert 0.0 < stats.ring_peak <= 1.0


def test_a_backlog_of_many_channels_is_read_in_small_pieces(monkeypatch):
    """With any number of waiting channels, no read copies more than 4 MiB."""
    samples = np.zeros((64, 40_000), np.float32)
    sizes = []

    class Backlog(ArraySource):
        def start(self, ring, _on_change):
            ring.write(samples, 0, 0, 0)
            ring.close()

    source = Backlog(samples)
    spec = SpectrumSpec(source.fs, 64, "hann", 256, 4000, scaling="spectrum")
    pipeline = Pipeline(source, spec, NumpyEngine())
    read = pipeline.ring.read

    def watched(n_max, into):
        if block := read(n_max, into):
            sizes.append(block.samples.nbytes)
        return block

    monkeypatch.setattr(pipeline.ring, "read", watched)
    assert run(pipeline).stats().rows == 10
    assert sum(sizes) == samples.nbytes
    assert max(sizes) <= 1 << 22


def test_max_samples_ends_the_source():
    """With a limit, exactly that many samples are analysed."""
    sink = Collect()
    run(make(np.zeros((1, 100_000), np.float32), sink=sink, max_samples=1055))
    assert sink.batches[-1].sample_index[-1] == 700
    assert sum(batch.n_frames for batch in sink.batches) == 8


@pytest.mark.parametrize(("limit", "last"), [(1055, 700), (5500, 700), (6500, 6200), (9000, 6700)])
def test_a_limit_within_a_gap_or_beyond_it(limit, last):
    """Missing samples count towards the limit, and nothing after it is analysed."""

    class Gap(ArraySource):
        def blocks(self, n_max):
            yield from super().blocks(n_max)
            yield Discontinuity(5000)
            yield from super().blocks(n_max)

    sink = Collect()
    source = Gap(np.zeros((1, 1000), np.float32))
    spec = SpectrumSpec(source.fs, 1, "hann", 256, 100, scaling="spectrum")
    run(attached(Pipeline(source, spec, NumpyEngine(), max_samples=limit), sink))
    assert sink.batches[-1].sample_index[-1] == last


def test_failure_of_the_source_is_raised_after_its_samples():
    """Samples delivered before a source's failure are analysed, and then it is raised."""
    sink = Collect()
    pipeline = run(make(np.zeros((1, 1000), np.float32), sink=sink, failure=InputError("x: torn")))
    assert sum(batch.n_frames for batch in sink.batches) == 8
    assert pipeline.stats().state == "failed"
    with pytest.raises(InputError, match=r"^x: torn$"):
        pipeline.raise_failure()


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (StorageError("disk full"), StorageError, r"^disk full$"),
        (
            MemoryError("Unable to allocate 9 TiB"),
            UnavailableError,
            r"^channels=1, nfft=256: no memory for the analysis: Unable to allocate 9 TiB$",
        ),
        (ZeroDivisionError("oops"), InternalError, r"analysis failed: ZeroDivisionError\('oops'\)"),
    ],
)
def test_failure_of_a_sink_is_raised(error, expected, message):
    """An error in the analysis thread ends the pipeline and reaches its owner."""
    pipeline = run(make(np.zeros((1, 1000), np.float32), sink=Collect(error)))
    with pytest.raises(expected, match=message):
        pipeline.raise_failure()


def test_samples_that_are_not_finite():
    """Samples that are not finite fail a recording by name and are a gap for a daemon."""
    samples = RNG.uniform(-1, 1, (1, 400_000)).astype(np.float32)
    samples[0, 200_000] = np.nan
    with pytest.raises(InputError, match=r"^test array: sample 200000 of channel 0 is nan"):
        run(make(samples, sink=Collect())).raise_failure()
    sink = Collect()
    stats = run(make(samples, sink=sink, on_nonfinite="gap")).stats()
    assert stats.gaps == 1
    assert sum(batch.gap_samples for batch in sink.batches) == stats.gap_samples > 0
    assert all(np.isfinite(batch.values).all() for batch in sink.batches)


def test_a_source_that_gives_nothing_is_waited_for():
    """A source without data sets the waiting state, and its capture counters are passed on."""

    class Away(ArraySource):
        def start(self, ring, _on_change):
            ring.write(self._samples, 0, 0, 0)

        def capture(self):
            return CaptureStats(waiting_for="unplugged", suspected=3)

    sink, reported = Collect(), []
    source = Away(np.zeros((1, 1000), np.float32))
    spec = SpectrumSpec(source.fs, 1, "hann", 256, 100, scaling="spectrum")
    pipeline = Pipeline(source, spec, NumpyEngine(), on_end=lambda: reported.append(1))
    pipeline.attach(sink)
    assert pipeline.stats().state == "starting"
    pipeline.start()
    stats = pipeline.stats()
    assert (stats.state, stats.capture.suspected) == ("waiting", 3)
    pipeline.stop()
    assert pipeline.stats().state == "stopped"
    assert reported == []


def test_the_end_is_notified_after_the_state_is_set():
    """At the notification of the end, the pipeline is finished with its failure set."""
    reported = []
    failure = InputError("x: torn")
    pipeline = make(
        np.zeros((1, 1000), np.float32),
        sink=Collect(),
        failure=failure,
        on_end=lambda: reported.append((pipeline.stats().state, pipeline.failure)),
    )
    run(pipeline)
    assert reported == [("failed", failure)]


def test_odd_samples_are_logged_and_reported(caplog):
    """Content checks see every sample once and only report."""

    class Checks:
        active, clipped_samples = ("silent: 0",), 7
        level = SimpleNamespace(rms_dbfs=(-20.0,), peak_dbfs=(-3.0,))

        def __init__(self):
            self.n = 0

        def look(self, samples):
            self.n += samples.shape[1]
            return ["channel 0: digital silence"] if self.n == 1000 else []

    checks, sink = Checks(), Collect()
    stats = run(make(np.zeros((1, 1000), np.float32), sink=sink, checks=checks)).stats()
    assert checks.n == 1000
    assert (stats.checks, stats.clipped_samples) == (("silent: 0",), 7)
    assert (stats.level_dbfs, stats.peak_dbfs) == ((-20.0,), (-3.0,))
    assert caplog.messages == ["array: channel 0: digital silence"]
    assert sum(batch.n_frames for batch in sink.batches) == 8


def test_stop_is_idempotent_and_leaves_no_thread(count_threads):
    """After stop, also a second one or one without a start, no thread remains."""
    before = count_threads()
    pipeline = make(np.zeros((1, 10_000_000), np.float32), sink=Collect())
    pipeline.start()
    pipeline.stop()
    pipeline.stop()
    make(np.zeros((1, 10), np.float32), sink=Collect()).stop()
    assert count_threads() == before


def test_a_change_that_memory_does_not_suffice_for_is_refused(monkeypatch):
    """A change beyond memory is refused with the size, and the old analysis continues."""
    pipeline = make(np.zeros((1, 1000), np.float32), sink=Collect())

    def full(*_):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(pipeline.engine, "sample_buffer", full)
    with pytest.raises(UnavailableError, match=r"^channels=1, nfft=1048576: no memory for the "):
        pipeline.reconfigure(SpectrumSpec(48000.0, nfft=1 << 20))
    assert run(pipeline).stats().rows == 8


class Keep:
    """A tap that keeps everything, or optionally raises at its second block."""

    def __init__(self, error=None):
        self.blocks, self._error = [], error

    def write(self, block):
        if self._error and self.blocks:
            raise self._error
        self.blocks.append(block)


def test_taps_get_every_sample_before_it_is_analysed():
    """Taps get every sample in order as the source delivered it, beside the spectra."""
    samples = RNG.uniform(-1.0, 1.0, (2, 100_001)).astype(np.float32)
    tap, sink = Keep(), Collect()
    pipeline = make(samples, sink=sink)
    pipeline.tap(tap)
    run(pipeline).raise_failure()
    assert np.array_equal(np.concatenate([b.samples for b in tap.blocks], axis=1), samples)
    assert sum(batch.n_frames for batch in sink.batches) == (100_001 - 256) // 100 + 1


@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
def test_taps_may_keep_blocks(tmp_path, subtype):
    """Blocks that a tap keeps stay unchanged if the analysis reads a file directly."""
    samples = RNG.uniform(-0.9, 0.9, (1, 3_000_001)).astype(np.float32)
    soundfile.write(tmp_path / "x.wav", samples.T, 48000, subtype)
    expected = soundfile.read(tmp_path / "x.wav", dtype="float32")[0]
    source = open_source(SourceConfig(uri=str(tmp_path / "x.wav")), "full")
    assert isinstance(source, WavFileSource)
    spec = SpectrumSpec(48000.0, 1, "hann", 256, 100, scaling="spectrum")
    tap, sink = Keep(), Collect()
    pipeline = attached(Pipeline(source, spec, NumpyEngine()), sink)
    pipeline.tap(tap)
    run(pipeline).raise_failure()
    assert np.array_equal(np.concatenate([b.samples[0] for b in tap.blocks]), expected)
    assert sum(batch.n_frames for batch in sink.batches) == (3_000_001 - 256) // 100 + 1


def test_a_tap_that_fails_is_detached():
    """A failing tap is detached, its owner is informed, and the spectra continue."""
    error, reported = StorageError("full"), []
    tap, sink = Keep(error), Collect()
    pipeline = make(np.zeros((1, 300_000), np.float32), sink=sink)
    pipeline.tap(tap, reported.append)
    run(pipeline).raise_failure()
    assert reported == [error]
    assert len(tap.blocks) == 1
    assert sum(batch.n_frames for batch in sink.batches) == (300_000 - 256) // 100 + 1


@pytest.mark.parametrize(("fs", "seconds"), [(48_000.0, 4.0), (4e6, 4.0), (20e6, 0.84)])
def test_the_ring_of_a_fast_source_is_bounded(fs, seconds):
    """The ring holds 4 s and at most 2^24 samples per channel at any sample rate."""
    source = ArraySource(np.zeros((2, 10), np.float32))
    source.fs = fs
    pipeline = Pipeline(source, SpectrumSpec(fs, 2, iq=True), NumpyEngine())
    assert pipeline.ring.capacity / fs == pytest.approx(seconds, abs=0.2)
    assert pipeline.ring.capacity <= 1 << 24
    pipeline.stop()


class WrongPlan(NumpyPlan):
    """A plan whose rows are 1 % too large."""

    def submit(self, launch, out=None):
        rows = super().submit(launch, out).collect()
        return Computed(rows * np.float32(1.01))


class WrongDevice(NumpyEngine):
    """A device that computes, but wrongly."""

    name = "opencl:P/D"

    def __init__(self, fallback=None):
        self.fallback = fallback

    def plan(self, spec, buffer, _max_frames):
        return WrongPlan(spec, buffer)


def self_checked(device, sink, notes):
    source = ArraySource(RNG.uniform(-1, 1, (2, 48_000)).astype(np.float32), pace="realtime")
    spec = SpectrumSpec(source.fs, source.channels, "hann", 256, 100, scaling="spectrum")
    return Pipeline(
        source,
        spec,
        device,
        self_check=SelfCheck(source.fs, period_s=0.1, first_s=0.1),
        note=lambda kind, text: notes.append((kind, text)),
    )


@pytest.mark.slow
def test_a_device_whose_rows_are_wrong_is_replaced():
    """NumPy replaces a device whose rows differ from float64, with no frame lost or repeated."""
    sink, notes = Collect(), []
    pipeline = run(attached(self_checked(WrongDevice(NumpyEngine()), sink, notes), sink))
    stats = pipeline.stats()
    assert (stats.state, stats.engine, stats.engine_failures) == ("finished", "numpy", 1)
    assert stats.self_check_error == pytest.approx(0.01, rel=1e-3)
    assert stats.self_checks == 1
    assert notes[0] == (
        "engine.wrong",
        "opencl:P/D: a row is wrong: error 0.01 relative to float64, over 0.0001",
    )
    index = np.concatenate([batch.sample_index for batch in sink.batches])
    np.testing.assert_array_equal(index, np.arange(0, 48_000 - 255, 100))
    assert {batch.engine for batch in sink.batches} == {"opencl:P/D", "numpy"}


@pytest.mark.slow
def test_a_wrong_device_without_a_fallback_ends_the_pipeline():
    """Where a device was asked for, wrong rows are an error that names it and the bound."""
    pipeline = run(self_checked(WrongDevice(), Collect(), []))
    assert pipeline.stats().state == "failed"
    with pytest.raises(DeviceError, match=r"opencl:P/D: a row is wrong: error 0\.01 relative to"):
        pipeline.raise_failure()


def test_rows_have_the_conditions_of_their_samples():
    """With a track, each row says whether its samples clip; without one nobody knows."""
    samples = np.full((1, 48_000), 0.1, np.float32) * RNG.uniform(-1, 1, (1, 48_000))
    samples[0, 30_000:30_010] = 1.0
    samples = samples.astype(np.float32)
    marked, plain = Collect(), Collect()
    make(samples, sink=marked, conditions=ConditionTrack(1, 48_000.0)).run()
    make(samples, sink=plain).run()
    found = np.concatenate([one.conditions for one in marked.batches])
    index = np.concatenate([one.sample_index for one in marked.batches])
    is_clipped = (found[:, 0] & Condition.CLIPPING) != 0
    assert is_clipped[(index + 256 > 30_000) & (index < 30_010)].all()
    assert not is_clipped[(index + 256 < 24_000) | (index > 36_000)].any()
    assert all(one.conditions is None for one in plain.batches)
