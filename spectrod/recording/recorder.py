"""A recording with its own thread, so that the analysis never waits for a disk."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.values.measurement_chunk import MeasurementChunk
from spectrod.lib.backoff import Backoff
from spectrod.lib.worker import Worker
from spectrod.recording.chunk_queue import ChunkQueue
from spectrod.recording.configured import ConfiguredRecording
from spectrod.recording.triggers import LevelTrigger

_log = logging.getLogger(__name__)

QUEUE_MAX_BYTES: Final = 32 << 20
"""Largest size of the chunks that wait for the disk, for spectra and for samples each."""

_TICK_S = 0.5
FIRST_RESTART_S = 30.0
_LAST_RESTART_S = 3600.0

Checked = Callable[[], tuple[tuple[str, ...], int]]
"""Returns the present faults of the samples, and the number of clipped samples so far."""


class Recorder:
    """Takes batches and blocks from the analysis thread, and records them in its own thread.

    At most 32 MB of spectra and 32 MB of samples wait for the disk. If the disk is slower, the
    oldest are dropped and counted, and become a gap in the file; the analysis never waits. After an
    unexpected exception the recording restarts: the first time after 30 s, later after up to an
    hour. After an hour without a failure the wait is 30 s again.

    Parameters
    ----------
    make : callable
        Makes a recording, not started yet.
    fs : float
        Sample rate [Hz].
    checked : callable
        Returns the present faults of the samples, for triggers.
    first_restart_s : float
        Time from the first unexpected exception to the restart [s].
    """

    def __init__(
        self,
        make: Callable[[], ConfiguredRecording],
        fs: float,
        checked: Checked,
        *,
        first_restart_s: float = FIRST_RESTART_S,
    ) -> None:
        self._make, self._recording, self._checked = make, make(), checked
        config = self._recording.config
        self._rows = ChunkQueue[SpectrumBatch | MeasurementChunk](QUEUE_MAX_BYTES)
        self._samples = ChunkQueue[Block](QUEUE_MAX_BYTES)
        self._wants_samples = bool(config.samples)
        self._kinds = frozenset(config.triggers) - {*config.named_triggers}
        self._named = frozenset(config.named_triggers)
        self._level = LevelTrigger(config.trigger_dbfs, fs, self._on_level)
        self._odd: frozenset[str] = frozenset()
        self._n_clipped: int | None = None
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._failure, self._first_restart_s = "", first_restart_s
        self._worker = Worker(f"record {config.name}", self._run)

    @property
    def needs_samples(self) -> bool:
        """Whether the recorder needs blocks: to record them, or to find events in them."""
        return self._wants_samples or bool(self._kinds - {"control"})

    @property
    def needs_rows(self) -> bool:
        """Whether the recorder needs batches."""
        config = self._recording.config
        return config.spectra or config.pyramid

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def end(self) -> None:
        """Write all queued data and finish all files; call it when no more data arrive."""
        self._stopping.set()
        self._wake.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end, at most this long; log an error if the disk does not answer."""
        if not self._worker.wait(timeout_s):
            _log.error(
                "recording %s: the disk does not respond; stopping without it; unfinished files "
                "are recovered at the next start",
                self._recording.config.name,
            )

    def write(self, chunk: SpectrumBatch | MeasurementChunk | Block) -> None:
        """Queue a chunk; called by the analysis thread."""
        if isinstance(chunk, Block):
            self._look(chunk)
            if not self._wants_samples:
                return
            self._samples.put(chunk)
        else:
            self._rows.put(chunk)
        self._wake.set()

    def _look(self, block: Block) -> None:
        """Find events in samples."""
        if "level" in self._kinds:
            self._level.look(block)
        if self._kinds:
            self._look_at_checks(block)

    def trigger(self, t_utc_ns: int, why: str) -> None:
        """Record around a time [ns since 1970]; any thread."""
        self._recording.trigger(t_utc_ns, t_utc_ns, why)

    def take_event(self, name: str, first_ns: int, last_ns: int, text: str) -> None:
        """Record around an event of a trigger so far [ns since 1970], if it is one of its own."""
        if name in self._named:
            self._recording.trigger(first_ns, last_ns, f"{name}: {text}")

    def status(self) -> dict[str, Any]:
        """Return the status in built-in types; any thread."""
        status = self._recording.status()
        status["lost_rows"] += self._rows.dropped
        status["lost_samples"] += self._samples.dropped
        status["queued_peak_bytes"] = self._rows.peak + self._samples.peak
        if self._failure:
            status |= {"state": "failed", "error": self._failure}
        return status

    # ---- events

    def _on_level(self, first_ns: int, last_ns: int) -> None:
        level = f"level of {self._recording.config.trigger_dbfs:g} dBFS or more"
        self._recording.trigger(first_ns, last_ns, level)

    def _look_at_checks(self, block: Block) -> None:
        active, n_clipped = self._checked()
        odd = frozenset(text.partition(":")[0] for text in active) - {"clipping"}
        found = set(odd - self._odd)
        if self._n_clipped is not None and n_clipped > self._n_clipped:
            found.add("clipping")
        self._odd, self._n_clipped = odd, n_clipped
        for kind in sorted(found & self._kinds):
            self.trigger(block.t_utc_ns, kind)

    # ---- the thread

    def _run(self) -> None:
        backoff = Backoff(self._first_restart_s, _LAST_RESTART_S)
        start_s = time.monotonic()
        while not self._run_once():
            if time.monotonic() - start_s > _LAST_RESTART_S:
                backoff.reset()
            again_s = backoff.next_s()
            is_last = self._stopping.is_set()
            next_step = "" if is_last else f"; restarts in {again_s:.0f} s"
            self._recording.break_off(self._failure + next_step)
            if self._stopping.wait(again_s):
                return
            start_s = time.monotonic()
            self._recording, self._failure = self._make(), ""

    def _run_once(self) -> bool:
        """Record until stopped; return False if an unexpected exception ended it."""
        try:
            self._record()
        except Exception as error:  # noqa: BLE001
            # Top of a thread: log every exception, and let the stream continue.
            _log.exception("recording %s failed", self._recording.config.name)
            self._failure = f"{error!r}; please report this"
        return not self._failure

    def _record(self) -> None:
        self._recording.start()
        while not self._stopping.is_set():
            self._wake.wait(_TICK_S)
            self._wake.clear()
            self._write_waiting()
            self._recording.tick()
        self._write_waiting()
        self._recording.finish()

    def _write_waiting(self) -> None:
        """Write the queued data; data that arrive meanwhile wait, so that ``tick`` is not late."""
        for queue in (self._samples, self._rows):
            for _ in range(len(queue)):
                chunk = queue.take()
                if chunk is not None:
                    self._recording.write(chunk)
