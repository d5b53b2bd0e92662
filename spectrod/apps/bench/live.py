"""The running pipeline at a sound card's pace: latency and load."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import spectrod
from spectrod.analysis.engine import open_engine
from spectrod.analysis.warm_up import warm_up
from spectrod.apps.bench.noise_sources import PacedSource, noise
from spectrod.apps.bench.transforms import Row
from spectrod.apps.bench.usage import CpuMeter, peak_resident_bytes, resident_bytes
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Float64Array, Int64Array
from spectrod.lib.errors import ConfigError
from spectrod.opencl.devices import DeviceInfo

SECONDS_MIN = 0.5
"""Shortest meaningful run [s]."""

# Fill the pipeline's ring once: until then its pages are new to the process.
_SETTLE_S = 5.0
_DRAIN_S = 0.5
_ENGINE_PUSHES = 2000


@dataclass(frozen=True, slots=True, eq=False)
class LiveRun:
    """Results of a run.

    Attributes
    ----------
    latencies : (frames,) float64
        Time from the write of a frame's last sample to the ring to its result in the sink, for the
        frames after the pipeline had settled, in order [s].
    row : dict
        See ``spectrod.apps.bench.tables.LATENCY``; also overruns, memory at the start, histogram.
    """

    latencies: Float64Array
    row: Row


class LatencySink:
    """Records the arrival time of each frame's result.

    Parameters
    ----------
    n_frames : int
        Maximum number of frames.
    """

    def __init__(self, n_frames: int) -> None:
        self.n_frames = 0
        self._last: Int64Array = np.zeros(n_frames, np.int64)
        self._seen_ns: Int64Array = np.zeros(n_frames, np.int64)

    def write(self, batch: SpectrumBatch) -> None:
        """Record the time of a batch."""
        now_ns = time.monotonic_ns()
        stop = self.n_frames + batch.n_frames
        self._last[self.n_frames : stop] = batch.sample_index + batch.spec.win_length - 1
        self._seen_ns[self.n_frames : stop] = now_ns
        self.n_frames = stop

    def latencies(self, source: PacedSource, first: int) -> Float64Array:
        """Return times since the source wrote a frame's last sample, from ``first`` on [s]."""
        come = slice(first, self.n_frames)
        written_ns = source.written_ns[self._last[come] // source.block_samples]
        return np.asarray((self._seen_ns[come] - written_ns) * 1e-9)


def run_pipeline(device: DeviceInfo, spec: SpectrumSpec, seconds: float) -> LiveRun:
    """Run source, ring, analysis and a sink for a duration.

    Parameters
    ----------
    device : DeviceInfo
        Device to measure.
    spec : SpectrumSpec
        Spectrum to compute, from noise of its rate and channels.
    seconds : float
        At least ``SECONDS_MIN``, and two frames. The first five seconds, at most half of the
        duration, do not count.

    Raises
    ------
    ConfigError
        If the duration is too short.
    SpectrodError
        The failure that ended the pipeline.
    """
    source = PacedSource(spec.fs, spec.channels, seconds)
    assert source.n_samples is not None
    n_expected = spec.n_frames(source.n_samples)
    if seconds < SECONDS_MIN or n_expected < 2:
        raise ConfigError(f"seconds={seconds:g}: must be at least {_seconds_min(spec):g}")
    sink = LatencySink(n_expected)
    engine = open_engine("opencl", device.number)
    warm_up(engine, [spec], source.layout)
    pipeline = Pipeline(source, spec, engine)
    pipeline.attach(sink)
    pipeline.start()
    try:
        measured = _observe(pipeline, source, sink, seconds)
    finally:
        pipeline.stop()
    pipeline.raise_failure()
    latencies = sink.latencies(source, measured.pop("first"))
    lost = {"lost": n_expected - sink.n_frames, "overruns": pipeline.ring.overruns}
    return LiveRun(latencies, _place("pipeline", spec) | _quantiles(latencies) | lost | measured)


def measure_engine(device: DeviceInfo, spec: SpectrumSpec) -> LiveRun:
    """Time the engine alone, repeatedly: from the samples of one more hop to its result."""
    samples = noise(spec.channels, spec.hop)
    times: list[float] = []
    with spectrod.Stft(
        spec.fs,
        channels=spec.channels,
        win_length=spec.win_length,
        hop=spec.hop,
        nfft=spec.nfft,
        engine="opencl",
        device=device.number,
    ) as stft:
        while len(times) < 2 * _ENGINE_PUSHES:
            start = time.perf_counter()
            batches = stft.push(samples)
            times.append(time.perf_counter() - start)
        assert batches
    latencies = np.array(times[_ENGINE_PUSHES:])
    return LiveRun(latencies, _place("engine", spec) | _quantiles(latencies))


def _observe(
    pipeline: Pipeline, source: PacedSource, sink: LatencySink, seconds: float
) -> dict[str, Any]:
    """Observe a pipeline after it has settled, until its source has ended."""
    source.ended.wait(min(_SETTLE_S, seconds / 2))
    cpu, source_cpu_s, start = CpuMeter(), source.cpu_s, time.monotonic()
    first, rss_start = sink.n_frames, resident_bytes()
    source.ended.wait()
    shares = {
        "cpu_share": cpu.share(),
        "source_share": (source.cpu_s - source_cpu_s) / (time.monotonic() - start),
    }
    if not pipeline.finished:
        pipeline.progress.wait(_DRAIN_S)
    memory = {
        "rss_start_bytes": rss_start,
        "rss_bytes": resident_bytes(),
        "rss_peak_bytes": peak_resident_bytes(),
    }
    return {"first": first, **shares, **memory}


def _place(what: str, spec: SpectrumSpec) -> Row:
    return {
        "what": what,
        "n": spec.nfft,
        "hop": spec.hop,
        "channels": spec.channels,
        "fs": spec.fs,
    }


def _quantiles(latencies: Float64Array) -> Row:
    if len(latencies) == 0:
        return {"frames": 0}
    p50, p90, p99, worst = np.quantile(latencies, (0.5, 0.9, 0.99, 1.0)).tolist()
    return {"frames": len(latencies), "p50": p50, "p90": p90, "p99": p99, "max": worst}


def _seconds_min(spec: SpectrumSpec) -> float:
    return max(SECONDS_MIN, 1.1 * (spec.win_length + spec.hop) / spec.fs)
