"""Sources of noise with negligible work, at a sound card's pace and at full speed."""

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np

from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import SpectrodError
from spectrod.lib.stats import CaptureStats
from spectrod.source.base import PulledSource
from spectrod.source.left_out import LeftOut
from spectrod.source.ring import SampleRing

BLOCK_S = 0.01
"""Duration of a block, like a sound card's [s]."""

_RMS = 0.1


class PacedSource:
    """A ``spectrod.source.open_source.Source`` that cannot wait, and records its write times.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Number of channels.
    seconds : float
        Duration [s].

    Attributes
    ----------
    block_samples : int
        Samples of each block: 10 ms.
    written_ns : (blocks,) int64
        Monotonic time just before each block was written to the ring [ns]; 0 if not written.
    cpu_s : float
        CPU time of its thread [s].
    ended : Event
        Set when the source has ended.
    """

    name = "paced"
    is_iq = False
    speakers = ()
    center_frequency_hz = 0.0
    is_live = True
    is_stored = False
    left_out = LeftOut()
    start_utc_ns: int | None = None
    failure: SpectrodError | None = None

    def __init__(self, fs: float, channels: int, seconds: float) -> None:
        self.fs, self.channels = fs, channels
        self.layout = SampleLayout(channels=channels)
        self.description = f"noise at {fs:g} Hz"
        self.block_samples = max(1, round(fs * BLOCK_S))
        n_blocks = max(1, round(fs * seconds / self.block_samples))
        self.n_samples: int | None = n_blocks * self.block_samples
        self.written_ns = np.zeros(n_blocks, np.int64)
        self.cpu_s = 0.0
        self.ended = threading.Event()
        self._samples = noise(channels, self.block_samples)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def open_reader(self) -> SampleRing:
        """Create the ring."""
        return SampleRing(self.fs, self.layout)

    def start(self, reader: SampleRing, on_change: Callable[[], None] = lambda: None) -> None:
        """Start to fill the ring."""
        del on_change  # ``capture`` never changes
        run = threading.Thread(target=self._run, args=(reader,), name="paced", daemon=True)
        self._thread = run
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def capture(self) -> CaptureStats:
        """Return empty statistics: this source measures others."""
        return CaptureStats()

    def _run(self, ring: SampleRing) -> None:
        try:
            self._fill(ring)
        finally:
            ring.close()
            self.ended.set()

    def _fill(self, ring: SampleRing) -> None:
        mono_ns, utc_ns = time.monotonic_ns(), time.time_ns()
        block_ns = self.block_samples * 1e9 / self.fs
        for number in range(len(self.written_ns)):
            due_ns = mono_ns + (number + 1) * block_ns
            if self._stopping.wait(max(0.0, (due_ns - time.monotonic_ns()) * 1e-9)):
                return
            since_ns = round(number * block_ns)
            self.written_ns[number] = time.monotonic_ns()
            index = number * self.block_samples
            ring.write(self._samples, index, mono_ns + since_ns, utc_ns + since_ns)
            self.cpu_s = time.thread_time()


class FullSpeedSource(PulledSource):
    """Noise at the speed of the analysis.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Number of channels.
    n_samples : int
        Samples per channel until the end.
    """

    name = "full-speed"

    def __init__(self, fs: float, channels: int, n_samples: int) -> None:
        super().__init__("full")
        self.fs, self.channels, self.n_samples = fs, channels, n_samples
        self.description = f"noise at {fs:g} Hz"

    def blocks(self, n_max: int) -> Iterator[Float32Array]:
        """Yield the same block repeatedly, and a part of it at the end."""
        assert self.n_samples is not None
        samples = noise(self.channels, n_max)
        for first in range(0, self.n_samples, n_max):
            yield samples[:, : self.n_samples - first]


def noise(channels: int, n: int) -> Float32Array:
    """Return deterministic (channels, n) samples [FS]."""
    samples = np.random.default_rng(0).standard_normal((channels, n), np.float32)
    samples *= _RMS
    return samples
