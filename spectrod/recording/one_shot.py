"""One file on request: a thread opens it, writes it and finishes it."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from spectrod.config.schedule import NEVER_NS
from spectrod.dsp.blocks import Block, Chunk
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.output import Output
from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    InputError,
    SpectrodError,
    UnavailableError,
)
from spectrod.lib.worker import Worker
from spectrod.recording.chunk_queue import ChunkQueue
from spectrod.recording.rotating_writer import (
    ALWAYS,
    FileSpan,
    RotatingWriter,
)

T = TypeVar("T", bound=Chunk)

QUEUE_MAX_BYTES: Final = 32 << 20
"""Largest size of the chunks that wait for the disk."""

MEMORY_MAX_BYTES: Final = 512 << 20
"""Limit for all pictures together: a stop has 2 s, enough to draw this much."""

_TICK_S = 0.5
_GRACE_S = 2.0
_LATE_S = 20.0
_NEVER_ON = FileSpan(-NEVER_NS, NEVER_NS, is_on=False)

State = Literal["starting", "recording", "finished", "failed"]


class Attachable(Protocol):
    """A pipeline that a one-shot recording attaches itself to."""

    @property
    def finished(self) -> bool:
        """True when the pipeline gives no more data."""

    def attach(self, sink: Any, product: str, on_failure: Callable[[SpectrodError], None]) -> None:
        """Give a sink all batches of a product from now on."""

    def detach(self, sink: Any) -> None:
        """Stop giving batches to a sink."""

    def tap(self, tap: Any, on_failure: Callable[[SpectrodError], None]) -> None:
        """Give a tap all samples from now on."""

    def untap(self, tap: Any) -> None:
        """Stop giving samples to a tap."""


@dataclass(frozen=True, slots=True)
class OneShotConfig:
    """Configuration of a one-shot recording.

    Attributes
    ----------
    path : Path
        The file.
    source : str
        Name of the source.
    product : str
        Product of the source; for samples, the product that names them in the status.
    is_of_samples : bool
        Whether to record samples instead of the product's rows.
    duration_s : float or None
        Duration from the first row or sample on [s]; None to record until stopped.
    """

    path: Path
    source: str
    product: str
    is_of_samples: bool
    duration_s: float | None = None


class _OneFile(RotatingWriter[T]):
    """Writes one span of time to a file that is already open.

    Attributes
    ----------
    is_full : bool
        Whether the file takes no more data: the span is over, or a fault occurred.
    error : SpectrodError or None
        The fault. A change of the analysis also ends the file and counts as one.
    n_bytes : int
        Length of the file at its end [bytes].
    """

    def __init__(self, output: Output[T], duration_ns: int | None) -> None:
        super().__init__()
        self.output, self._duration_ns = output, duration_ns
        self._has_started = False
        self.is_full = self.has_changed = False
        self.error: SpectrodError | None = None
        self.n_bytes = 0

    def finish(self) -> None:
        """Finish the file; ``error`` holds the fault, if there is one."""
        self.is_full = True
        if not self._has_started:
            self.abort()
            self.error = InputError(f"{self.output.path.name}: nothing came to be written")
        self.close()

    def abort(self) -> None:
        """Close the file as it is."""
        self.output.abort()

    def _span_at(self, t_utc_ns: int) -> FileSpan:
        if self._has_started:
            self.is_full = True
            return _NEVER_ON
        if self._duration_ns is None:
            return ALWAYS
        return FileSpan(ALWAYS.begin_ns, t_utc_ns + self._duration_ns)

    def _may_write(self) -> bool:
        return not self.is_full

    def _fits(self, output: Output[T], chunk: T) -> bool:
        # Sound goes on in the same file after a gap of any length.
        return isinstance(chunk, Block) or output.fits(chunk)

    def _open(self, _chunk: T) -> Output[T]:
        if self._has_started:
            self.has_changed = True
            raise ConfigError("the analysis has changed, and a file holds one kind")
        self._has_started = True
        return self.output

    def _note_written(self, _chunk: T) -> None:
        self.n_bytes = self.open_bytes

    def _note_finished(self, output: Output[T]) -> None:
        with contextlib.suppress(OSError):  # the file was moved: keep the earlier size
            self.n_bytes = output.path.stat().st_size

    def _fail(self, error: SpectrodError) -> None:
        self.error, self.is_full = self.error or error, True
        output = self._take_output()
        if output is not None:
            self._end_after_fault(output)
        self._count_cut()


class OneShot(Generic[T]):
    """A recording to one file. Only its thread waits for the disk; other methods return at once.

    At most 32 MB wait for the disk. If the disk is slower, the oldest chunks are dropped and
    counted, and become a gap in the file. The file ends after its duration, on ``stop``, at the end
    of the source, when the analysis changes, and after a write error.

    Parameters
    ----------
    config : OneShotConfig
        What to record.
    pipeline : Attachable
        The source's pipeline.
    who : str
        Name of the client that asked for the recording.
    open_output : callable
        Makes the file; the thread calls it.
    on_end : callable
        The thread calls it at its end, also if the file could not be opened.

    Attributes
    ----------
    state : {"starting", "recording", "finished", "failed"}
    has_ended : threading.Event
        Set when the thread has ended.
    """

    def __init__(
        self,
        config: OneShotConfig,
        pipeline: Attachable,
        who: str,
        open_output: Callable[[], Output[T]],
        on_end: "Callable[[OneShot[Any]], None]",
    ) -> None:
        self.config, self._pipeline, self.who = config, pipeline, who
        self._open_output, self._on_end = open_output, on_end
        self._queue = ChunkQueue[T](QUEUE_MAX_BYTES)
        self._file: _OneFile[T] | None = None
        self._deadline_s = float("inf")
        self._is_wanted, self._ending_s = True, float("inf")
        self._wake, self._is_open = threading.Event(), threading.Event()
        self._deciding = threading.Lock()
        self._begin_utc_ns = time.time_ns()
        self.state: State = "starting"
        self.error: SpectrodError | None = None
        self.has_ended = threading.Event()

    # ---- any thread

    def start(self, timeout_s: float) -> None:
        """Start the thread, and wait until the file is open and data arrive.

        Raises
        ------
        BusyError
            If the disk does not answer in time; a file that it makes later is removed.
        UnavailableError
            If the system cannot start a thread.
        SpectrodError
            If the file cannot be made.
        """
        try:
            Worker(f"recording {self.path.name}", self._run, self._end).start()
        except RuntimeError as error:
            self._end(UnavailableError(f"{self.path.name}: {error}"))
        if not self._is_open.wait(timeout_s):
            with self._deciding:
                self._is_wanted = self.state != "starting"
            if not self._is_wanted:
                raise BusyError(
                    f"{self.path.name}: the disk has not answered for {timeout_s:g} s: "
                    "nothing is recorded"
                )
            self._is_open.wait()  # for the pipeline; the disk has answered
        if self._file is None and self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Make the thread finish the file; it sets ``has_ended`` afterwards."""
        self._ending_s = min(self._ending_s, time.monotonic())
        self._wake.set()

    def write(self, chunk: T) -> None:
        """Queue a batch or a block; called by the analysis thread."""
        if self._ending_s == float("inf"):
            self._queue.put(chunk)
            self._wake.set()

    @property
    def is_open(self) -> bool:
        """Whether the file is or was open; nothing is recorded before."""
        return self._file is not None

    @property
    def frames(self) -> int:
        """Rows, or samples per channel, in the file."""
        return self._file.written if self._file else 0

    @property
    def source_name(self) -> str:
        """Name of the source."""
        return self.config.source

    @property
    def path(self) -> Path:
        """Path of the file; at the end it may get a numbered name if its own is taken."""
        return self._file.output.path if self._file else self.config.path

    def status(self) -> dict[str, Any]:
        """Return the status in built-in types: the fields of a configured recording, and more."""
        file, path = self._file, self.path
        n, dropped = self.frames, self._queue.dropped
        is_running = self.state == "recording"
        is_late = is_running and time.monotonic() - self._ending_s > _LATE_S
        unit, other = ("samples", "rows") if self.config.is_of_samples else ("rows", "samples")
        return {
            "name": path.name,
            "path": os.fspath(path),
            "source": self.config.source,
            "product": self.config.product,
            "state": self.state,
            "begun_utc_ns": self._begin_utc_ns,
            "frames": n,
            "dropped": dropped,
            "error": str(self.error or ("the disk does not answer" if is_late else "")),
            "who": self.who,
            "folder": os.fspath(path.parent),
            "files": [path.name] if is_running else [],
            unit: n,
            other: 0,
            f"lost_{unit}": dropped,
            f"lost_{other}": 0,
            "written_bytes": file.n_bytes if file else 0,
            "free_bytes": None,
        }

    # ---- the thread

    def _run(self) -> None:
        file = self._opened()
        if file is None:
            return
        try:
            self._record(file)
        except BaseException:  # a defect: the data written so far can be recovered
            file.abort()
            raise

    def _opened(self) -> _OneFile[T] | None:
        """Open the file and attach to the pipeline; return None if ``start`` has timed out."""
        duration_s = self.config.duration_s
        duration_ns = None if duration_s is None else round(duration_s * NS_PER_S)
        file = _OneFile(self._open_output(), duration_ns)
        try:
            with self._deciding:
                is_wanted = self._is_wanted
                self.state = "recording" if is_wanted else "starting"
            if not is_wanted:
                file.abort()
                return None
            self._attach()
        except BaseException:
            file.abort()
            raise
        if duration_s is not None:
            self._deadline_s = time.monotonic() + duration_s + _GRACE_S
        self._file = file
        self._is_open.set()
        return file

    def _attach(self) -> None:
        if self.config.is_of_samples:
            self._pipeline.tap(self, self._give_up)
        else:
            self._pipeline.attach(self, self.config.product, self._give_up)

    def _give_up(self, error: SpectrodError) -> None:
        """Stop after an error of the analysis thread, which gives no more data."""
        self.error = error
        self.stop()

    def _detach(self) -> None:
        self.stop()
        (self._pipeline.untap if self.config.is_of_samples else self._pipeline.detach)(self)

    def _record(self, file: _OneFile[T]) -> None:
        try:
            while not self._is_due(file):
                self._wake.wait(_TICK_S)
                self._wake.clear()
                self._write_waiting(file)
        finally:
            self._detach()
        self._write_waiting(file)
        file.finish()
        self.error = self.error or file.error

    def _is_due(self, file: _OneFile[T]) -> bool:
        is_over = min(self._deadline_s, self._ending_s) <= time.monotonic()
        return is_over or file.is_full or self._pipeline.finished

    def _write_waiting(self, file: _OneFile[T]) -> None:
        for _ in range(len(self._queue)):
            chunk = self._queue.take()
            if chunk is not None:
                file.write(chunk)

    def _end(self, failure: SpectrodError | None) -> None:
        self.error = failure or self.error
        has_changed = self._file is not None and self._file.has_changed
        self.state = "finished" if self.error is None or has_changed else "failed"
        self._on_end(self)
        self._is_open.set()
        self.has_ended.set()
