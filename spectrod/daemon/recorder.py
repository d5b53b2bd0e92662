"""A recording that runs on a source, in its own thread: the analysis never waits for a disk."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from spectrod.daemon.live_meters import LiveMeter
from spectrod.daemon.pipeline import Pipeline
from spectrod.daemon.source_runner import SourceRunner
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.values.measurement_chunk import MeasurementChunk
from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import InternalError, SpectrodError
from spectrod.lib.worker import Worker
from spectrod.recording.chunk_queue import ChunkQueue
from spectrod.recording.triggers import EventFinder

_log = logging.getLogger(__name__)

QUEUE_MAX_BYTES: Final = 32 << 20
"""Largest size of the chunks that wait for the disk, for rows and for samples each."""

FIRST_RESTART_S: Final = 30.0
"""Time from the first unexpected exception to the restart [s]."""

_TICK_S = 0.5
_LATE_S = 20.0
_LAST_RESTART_S = 3600.0

RecordedChunk = SpectrumBatch | MeasurementChunk | Block


class RecordingFiles(Protocol):
    """What is recorded of a source, without a thread: its files and their rules.

    Only ``start`` may raise a fault of the disk; ``status`` reports those of later. One thread,
    except ``status``.
    """

    @property
    def is_over(self) -> bool:
        """Whether the recording ends by itself now."""

    def start(self) -> None:
        """Access the disk for the first time."""

    def write(self, chunk: Any) -> None:
        """Write the next chunk, a ``RecordedChunk``, to the files of its kind."""

    def tick(self) -> None:
        """Do the periodic work; called about twice a second, with or without data."""

    def finish(self) -> None:
        """End all files."""

    def break_off(self, why: str) -> None:
        """Report a failure and abort all files."""

    def status(self) -> dict[str, Any]:
        """Return the status in built-in types; any thread."""


R = TypeVar("R", bound=RecordingFiles)


@dataclass(frozen=True, slots=True)
class RecordingFeed:
    """What a recording gets of its source.

    Attributes
    ----------
    runner : SourceRunner
        The source.
    pipeline : Pipeline
        Its present pipeline.
    product : str
        Name of the recorded product.
    spec : SpectrumSpec
        Spec of the product, or of the main one if the product is of measurements. A change starts
        another file, not another recording.
    values : LiveMeter or None
        The product, if it is of measurements.
    rows, samples : bool
        Whether the recording gets rows of the product, and samples of the source.
    latency_s : float
        See ``Triggers``.
    """

    runner: SourceRunner
    pipeline: Pipeline
    product: str
    spec: SpectrumSpec = field(compare=False)
    values: LiveMeter | None = None
    rows: bool = False
    samples: bool = False
    latency_s: float = 0.0

    def attach(self, recorder: "Recorder[Any]", finder: EventFinder | None) -> ExitStack:
        """Pass on data from the next block on, and show samples to the finder.

        Returns
        -------
        attached : ExitStack
            Its ``close`` passes on no more.

        Raises
        ------
        ConfigError
            If there is no such product any more.
        """
        pipeline, triggers = self.pipeline, self.runner.triggers
        with ExitStack() as attached:
            if self.rows and self.values:
                self.values.attach(recorder)
                attached.callback(self._detach_values, self.values, recorder)
            elif self.rows:
                pipeline.attach(recorder, self.product, recorder.give_up)
                attached.callback(pipeline.detach, recorder)
            if finder and finder.needs_samples:  # finds an event before its samples are recorded
                pipeline.tap(finder, recorder.give_up)
                attached.callback(pipeline.untap, finder)
            if self.samples:
                pipeline.tap(recorder, recorder.give_up)
                attached.callback(pipeline.untap, recorder)
            if finder and finder.needs_triggers:
                triggers.attach(finder)
                attached.callback(triggers.detach, finder)
            return attached.pop_all()

    def _detach_values(self, values: LiveMeter, recorder: "Recorder[Any]") -> None:
        has_ended = self.pipeline.finished or values not in self.runner.meters
        (values.end if has_ended else values.detach)(recorder)


class Recorder(Generic[R]):
    """Takes chunks from the analysis thread, and gives them to a recording in its own thread.

    At most 32 MB of rows and 32 MB of samples wait for the disk. If the disk is slower, the oldest
    are dropped and counted, and become a gap in the file; the analysis never waits. Only the thread
    waits for the disk.

    Parameters
    ----------
    name : str
        Name of the recording.
    recording : RecordingFiles
        The recording, not started yet.
    feed : RecordingFeed
        What it gets of its source.
    finder : EventFinder, optional
        Looks for the events around which it records.
    restart : callable, optional
        Makes the recording that follows one that an unexpected exception has ended: the first time
        after 30 s, later after up to an hour. After an hour without a failure the wait is 30 s
        again. Without ``restart`` such an exception ends the recorder.
    on_end : callable
        The thread calls it as its last action, with the recorder.

    Attributes
    ----------
    recording : RecordingFiles
        The present recording.
    feed : RecordingFeed
    failure : SpectrodError or None
        What has ended the recording before its time.
    has_started : threading.Event
        Set when the recording has started, or has ended without that.
    was_attached : bool
        Whether it has ever got data.
    """

    def __init__(
        self,
        name: str,
        recording: R,
        feed: RecordingFeed,
        *,
        finder: EventFinder | None = None,
        restart: Callable[[], R] | None = None,
        on_end: "Callable[[Recorder[R]], None]" = lambda _recorder: None,
    ) -> None:
        self.name, self.recording, self.feed = name, recording, feed
        self._finder, self._restart, self._on_end = finder, restart, on_end
        self._rows = ChunkQueue[SpectrumBatch | MeasurementChunk](QUEUE_MAX_BYTES)
        self._samples = ChunkQueue[Block](QUEUE_MAX_BYTES)
        self._wake, self._stopping = threading.Event(), threading.Event()
        self.has_started = threading.Event()
        self._takes_data, self.was_attached = True, False
        self._attached, self._detaching = ExitStack(), threading.Lock()
        self._stop_s = float("inf")
        self.failure: SpectrodError | None = None
        self._worker = Worker(f"record {name}", self._run, self._ended)

    # ---- any thread

    def attach(self) -> None:
        """Take data from the source; raises the errors of ``RecordingFeed.attach``."""
        self.was_attached = True  # before the first data, which may end it at once
        try:
            attached = self.feed.attach(self, self._finder)
        except BaseException:
            self.was_attached = False
            raise
        with self._detaching:
            if self._takes_data:
                self._attached = attached
                return
        attached.close()  # it has ended meanwhile

    def start(self) -> None:
        """Start the thread; raises UnavailableError if the system allows no more threads."""
        try:
            self._worker.start()
        except BaseException:
            self._detach()
            raise

    def end(self) -> None:
        """Take no more data, and let the thread write all that wait and finish the files."""
        self._detach()
        self._stop_s = min(self._stop_s, time.monotonic())
        self._stopping.set()
        self._wake.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end of the thread, at most this long; return whether it has ended."""
        return self._worker.wait(timeout_s)

    def write(self, chunk: RecordedChunk) -> None:
        """Queue a chunk; called by the analysis thread."""
        if isinstance(chunk, Block):
            self._samples.put(chunk)
        else:
            self._rows.put(chunk)
        self._wake.set()

    def give_up(self, error: SpectrodError) -> None:
        """End with an error after which no more data come; called by the analysis thread."""
        _log.error("%s: recording %s: %s", self.feed.runner.name, self.name, error)
        self.failure = error
        self.end()

    def status(self) -> dict[str, Any]:
        """Return the status of the recording, with what was lost before it."""
        status = self.recording.status()
        status["lost_rows"] += self._rows.dropped
        status["lost_samples"] += self._samples.dropped
        status["queued_peak_bytes"] = self._rows.peak + self._samples.peak
        if self.failure:
            status |= {"state": "failed", "error": str(self.failure)}
        elif status["state"] == "recording" and time.monotonic() - self._stop_s > _LATE_S:
            status["error"] = status["error"] or "the disk does not answer"
        return status

    def _detach(self) -> None:
        with self._detaching:
            self._takes_data = False
            attached = self._attached.pop_all()
        attached.close()

    # ---- the thread

    def _run(self) -> None:
        backoff = Backoff(FIRST_RESTART_S, _LAST_RESTART_S)
        start_s = time.monotonic()
        while failure := self._run_once():
            if time.monotonic() - start_s > _LAST_RESTART_S:
                backoff.reset()
            again_s = backoff.next_s()
            self.failure = failure
            if self._restart is None or self._stopping.is_set():
                self.recording.break_off(str(failure))
                return
            self.recording.break_off(f"{failure}; restarts in {again_s:.0f} s")
            if self._stopping.wait(again_s):
                return
            start_s = time.monotonic()
            self.recording, self.failure = self._restart(), None

    def _run_once(self) -> SpectrodError | None:
        """Record to the end; return what has ended it before."""
        try:
            self._record()
        except SpectrodError as error:
            return error
        except Exception as error:  # noqa: BLE001
            # Top of a thread: log every exception, and let the stream continue.
            _log.exception("recording %s failed", self.name)
            return InternalError(f"{error!r}; please report this")
        return None

    def _record(self) -> None:
        self.recording.start()
        self.has_started.set()
        while not (self._stopping.is_set() or self.recording.is_over):
            self._wake.wait(_TICK_S)
            self._wake.clear()
            self._write_waiting()
            self.recording.tick()
        self._detach()
        self._write_waiting()
        self.recording.finish()

    def _write_waiting(self) -> None:
        """Write the queued data; data that arrive meanwhile wait, so that ``tick`` is not late."""
        for queue in (self._samples, self._rows):
            for _ in range(len(queue)):
                chunk = queue.take()
                if chunk is not None:
                    self.recording.write(chunk)

    def _ended(self, _failure: object) -> None:
        self._detach()
        self._on_end(self)
        self.has_started.set()
