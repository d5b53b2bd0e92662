"""Memory use over many frames at full speed, to show that it does not grow."""

import time

from spectrod.analysis.engine import open_engine
from spectrod.apps.bench.noise_sources import FullSpeedSource
from spectrod.apps.bench.transforms import Row
from spectrod.apps.bench.usage import resident_bytes
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.opencl.devices import DeviceInfo

_SAMPLINGS = 20
_FLAT_BYTES = 1 << 20


class MemorySink:
    """Records the resident memory at equal intervals.

    Parameters
    ----------
    n_frames : int
        Number of frames to come.

    Attributes
    ----------
    rows : list of Row
        See ``spectrod.apps.bench.tables.MEMORY``.
    """

    def __init__(self, n_frames: int) -> None:
        self.rows: list[Row] = []
        self._n_frames, self._frames = n_frames, 0
        self._start = time.monotonic()

    def write(self, batch: SpectrumBatch) -> None:
        """Count the frames of a batch; record the memory when it is due."""
        self._frames += batch.n_frames
        if self._frames * _SAMPLINGS < (len(self.rows) + 1) * self._n_frames:
            return
        elapsed_s = time.monotonic() - self._start
        self.rows.append(
            {"frames": self._frames, "elapsed_s": elapsed_s, "rss_bytes": resident_bytes()}
        )


def measure(device: DeviceInfo, spec: SpectrumSpec, n_frames: int) -> list[Row]:
    """Run n_frames frames through the pipeline.

    Returns
    -------
    rows : list of Row
        See ``spectrod.apps.bench.tables.MEMORY``.

    Raises
    ------
    SpectrodError
        The failure that ended the pipeline.
    """
    n_samples = (n_frames - 1) * spec.hop + spec.win_length
    source, sink = FullSpeedSource(spec.fs, spec.channels, n_samples), MemorySink(n_frames)
    pipeline = Pipeline(source, spec, open_engine("opencl", device.number))
    pipeline.attach(sink)
    pipeline.start()
    try:
        while not pipeline.finished:
            pipeline.progress.wait()
    finally:
        pipeline.stop()
    pipeline.raise_failure()
    return sink.rows


def growth_bytes(rows: list[Row]) -> int:
    """Largest resident memory after the first tenth, minus that at its end [bytes]."""
    settled = [row["rss_bytes"] for row in rows[_SAMPLINGS // 10 - 1 :]]
    return max(settled) - settled[0] if settled else 0


def is_flat(rows: list[Row]) -> bool:
    """Return True if memory grew by at most 1 MiB."""
    return growth_bytes(rows) <= _FLAT_BYTES
