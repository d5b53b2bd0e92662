"""A long run of capture and analysis that checks every sample.

A private PulseAudio plays a signal of numbered frames into its null sink. The daemon's own chain
records it through PortAudio, in its capture process, and analyses it; a busy process loads every
core but one.

A player is used instead of ALSA's file plugin: the plugin continues with its file's next sample
after any loss of the sound server, so the numbers would not show the loss.

The true rate: the null sink renders by the monotonic clock, at its own rate (38.7 ppm above nominal
on the development machine), and the numbers prove that no frame is missing. The arrival times of
frames are therefore sufficient: ``verifying_ring.rate_error_ppm`` uses them without the measured
fit.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from spectrod.analysis.engine import open_engine
from spectrod.analysis.warm_up import warm_up
from spectrod.apps.bench.pulseaudio import CHANNELS, FS, PulseServer
from spectrod.apps.bench.transforms import Row
from spectrod.apps.bench.usage import descriptors, processor_seconds, resident_bytes
from spectrod.apps.bench.verifying_ring import WatchedRing, rate_error_ppm
from spectrod.config.config import SourceConfig
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import ConfigError, InternalError, SpectrodError
from spectrod.opencl.devices import DeviceInfo
from spectrod.source.soundcard.soundcard import SoundCardSource

SECONDS_MIN, SECONDS_MAX = 3.0, 80_000.0
"""Shortest run that can measure a rate, and longest run that the numbers allow [s]."""

_SAMPLINGS = 20
_BEGIN_S = 5
_BLOCK_MS = 5.0
_FIT_S = 1024
"""Length of the clock's fit, so the true rate is computed over the same time [s]."""
_RATE_PPM = 1.0
_ARRIVALS_MIN = 8
_FLAT_BYTES = 1 << 20
# Copies memory at full speed, on one core.
_LOAD = "a = bytearray(1 << 24)\nwhile True:\n    bytes(a)\n"
_NONE_OF = (
    "unaccounted", "breaks", "silent", "overflows", "overruns", "suspected", "restarts", "gaps"
)  # fmt: skip


class SoakFailedError(SpectrodError):
    """A run lost samples, or has an unexplained result."""

    exit_code = 1


class _Sink:
    """Discards spectra."""

    def write(self, batch: SpectrumBatch) -> None:
        """Discard a batch."""


def measure(device: DeviceInfo, spec: SpectrumSpec, seconds: float) -> Iterator[Row]:
    """Record for a duration, after five seconds of start-up.

    Parameters
    ----------
    device : DeviceInfo
        Device to use.
    spec : SpectrumSpec
        Spectrum to compute, with 48000 Hz and 2 channels.
    seconds : float
        Duration, 3 to 80000 [s].

    Yields
    ------
    row : dict
        See ``spectrod.apps.bench.tables.SOAK``; twenty rows. The last one also has ``faults``, the
        list of wrong results.

    Raises
    ------
    ConfigError
        If a parameter is outside these limits.
    UnavailableError
        If PulseAudio or PortAudio is missing.
    SpectrodError
        The failure that ended the pipeline.
    """
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise ConfigError(f"soak={seconds:g}: must be {SECONDS_MIN:g} to {SECONDS_MAX:g} s")
    if (spec.fs, spec.channels) != (FS, CHANNELS):
        raise ConfigError(
            f"rate={spec.fs:g}, channels={spec.channels}: must be {FS} and {CHANNELS}, "
            "those of the soak's sound server"
        )
    with ExitStack() as stack:
        engine = open_engine("opencl", device.number)
        warm_up(engine, [spec], SampleLayout("int16", spec.channels, interleaved=True))
        server = stack.enter_context(PulseServer())
        stack.enter_context(server.environment())
        stack.callback(server.play_numbered().stop)
        for _ in range((os.cpu_count() or 1) - 1):
            stack.callback(_end, subprocess.Popen([sys.executable, "-c", _LOAD]))  # noqa: S603
        settings = SourceConfig(
            samplerate=FS, channels=CHANNELS, format="s16le", block_ms=_BLOCK_MS
        )
        source = SoundCardSource("pulse", settings)
        pipeline = Pipeline(source, spec, engine)
        pipeline.attach(_Sink())
        stack.callback(pipeline.stop)
        yield from _Soak(pipeline, source, seconds).rows()


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


class _Soak:
    """A run of a pipeline that is not started yet."""

    def __init__(self, pipeline: Pipeline, source: SoundCardSource, seconds: float) -> None:
        self._pipeline, self._source, self._seconds = pipeline, source, seconds
        pipeline.ring.release()
        self._ring = WatchedRing(FS, source.layout, shared=source.open_memory())
        pipeline.ring = self._ring

    def rows(self) -> Iterator[Row]:
        """Start the pipeline, and yield rows at equal intervals."""
        self._pipeline.start()
        self._wait_until(time.monotonic() + _BEGIN_S)
        meter, start_s = _ResourceMeter(_capture_process()), time.monotonic()
        rows: list[Row] = []
        for number in range(1, _SAMPLINGS + 1):
            self._wait_until(start_s + self._seconds * number / _SAMPLINGS)
            rows.append(self._counts() | self._rates() | self._costs() | meter.row())
            if number == _SAMPLINGS:
                rows[-1]["faults"] = list(faults(rows))
            yield rows[-1]

    def _wait_until(self, due_s: float) -> None:
        while (left_s := due_s - time.monotonic()) > 0 and not self._pipeline.finished:
            self._pipeline.progress.wait(left_s)
        self._pipeline.raise_failure()

    def _counts(self) -> Row:
        stats, check = self._pipeline.stats(), self._ring.check
        return {
            "samples": check.frames,
            "unaccounted": check.unaccounted,
            "breaks": check.n_breaks,
            "silent": check.silent,
            "overflows": stats.overflows,
            "overruns": stats.overruns,
            "suspected": stats.capture.suspected,
            "restarts": stats.capture.restarts,
            "gaps": stats.gaps,
            "frames": stats.rows,
        }

    def _rates(self) -> Row:
        capture = self._source.capture()
        arrivals = self._ring.arrivals[_BEGIN_S:][-_FIT_S:]
        true = rate_error_ppm(arrivals, FS) if len(arrivals) >= _ARRIVALS_MIN else (None, None)
        return {
            "rate_ppm": capture.rate_error_ppm,
            "rate_uncertainty_ppm": capture.rate_uncertainty_ppm,
            "true_rate_ppm": true[0],
            "true_rate_uncertainty_ppm": true[1],
        }

    def _costs(self) -> Row:
        cost_us = self._source.callback_cost_us
        median_us, slow_us = cost_us(0.5) or 0.0, cost_us(0.999) or 0.0
        return {
            "callback_p50_s": median_us * 1e-6,
            "callback_p999_s": slow_us * 1e-6,
            "callback_share": slow_us / (_BLOCK_MS * 1e3),
        }


class _ResourceMeter:
    """Resource use of this process and the capture process, from creation on."""

    def __init__(self, capture: int) -> None:
        self._pids = {"": os.getpid(), "capture_": capture}
        self._start_s = time.monotonic()
        self._cpu_s = {pid: processor_seconds(pid) for pid in self._pids.values()}

    def row(self) -> Row:
        """Return CPU shares, memory and descriptors."""
        elapsed_s = time.monotonic() - self._start_s
        row: Row = {"elapsed_s": elapsed_s}
        for name, pid in self._pids.items():
            row[f"{name}cpu_share"] = (processor_seconds(pid) - self._cpu_s[pid]) / elapsed_s
            row[f"{name}rss_bytes"] = resident_bytes(pid)
            row[f"{name}descriptors"] = descriptors(pid)
        return row


def _capture_process() -> int:
    """Return the id of the process that the source has started."""
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text(encoding="ascii").split():
            if b"spectrod.source.capture" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
    raise InternalError("soak: no capture process; please report this")


def faults(rows: list[Row]) -> Iterator[str]:
    """Yield the faults of a run.

    Parameters
    ----------
    rows : list of Row
        All rows of ``measure``.

    Yields
    ------
    fault : str
        Readable description.
    """
    last = rows[-1]
    yield from (f"{name}: {last[name]}" for name in _NONE_OF if last[name])
    yield from _rate_faults(last)
    for name in ("descriptors", "capture_descriptors"):
        if last[name] > rows[0][name]:
            yield f"{name}: {rows[0][name]}, later {last[name]}"
    for name in ("rss_bytes", "capture_rss_bytes"):
        grown = last[name] - rows[len(rows) // 2][name]
        if grown > _FLAT_BYTES:
            yield f"{name}: {grown / 2**20:.1f} MiB more than after half of the time"


def _rate_faults(last: Row) -> Iterator[str]:
    if last["rate_ppm"] is None:
        yield "rate: not known"
        return
    if last["true_rate_ppm"] is None:
        return  # the run is too short
    off = last["rate_ppm"] - last["true_rate_ppm"]
    allowed = _RATE_PPM + last["rate_uncertainty_ppm"] + last["true_rate_uncertainty_ppm"]
    if abs(off) > allowed:
        yield f"rate: {off:+.3f} ppm from truth, more than {allowed:.3f}"
