"""One file that is written because somebody asked for it, by a thread of its own."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from spectrod.errors import ConfigError, InternalError, SpectrodError, StorageError
from spectrod.record.recording import Description
from spectrod.record.segment.writer import SegmentWriter
from spectrod.record.sound import SoundOptions, SoundWriter
from spectrod.recorder.cutting import Cutter, RowCutter, SampleCutter
from spectrod.recorder.handover import Handover
from spectrod.types import Block, SpectrumBatch

T = TypeVar("T")

_log = logging.getLogger(__name__)

QUEUE_MAX_BYTES: Final = 32 << 20
"""That may wait for the disk."""

_FINISH_S = 20.0
_TICK_S = 0.5
_NS = 1_000_000_000


class _FileSink(Generic[T]):
    """Writes pieces to a file.

    At most 32 MB wait for the disk; where it is slower, the oldest are dropped, counted, and a gap
    in the file. An error ends it: ``is_full`` is true then, and ``finish`` raises it.

    Parameters
    ----------
    path : Path
        Of the file.
    cutter : Cutter
        Of the kind of pieces.
    duration_s : float or None
        After which it is full [s].
    write : callable
        Takes a piece; the thread's.
    complete : callable
        Gives the file its name, once nothing more comes; the thread's.

    Attributes
    ----------
    size_bytes : int
        Memory that it takes at most.
    """

    size_bytes = QUEUE_MAX_BYTES

    def __init__(
        self,
        path: Path,
        cutter: Cutter[T],
        duration_s: float | None,
        write: Callable[[T], None],
        complete: Callable[[], None],
    ) -> None:
        self._path, self._cutter = path, cutter
        self._write, self._complete = write, complete
        self._handover = Handover(cutter, QUEUE_MAX_BYTES)
        self._duration_ns = None if duration_s is None else round(duration_s * _NS)
        self._end_ns: int | None = None
        self._error: SpectrodError | None = None
        self._is_over = self._is_ending = False
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._run, name="record-file", daemon=True)
        self.n_frames = 0
        """Rows, or samples a channel, in the file."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """Whether it takes nothing more."""
        return self._is_over or self._error is not None

    @property
    def dropped(self) -> int:
        """Rows or samples that the disk was too slow for."""
        return self._handover.dropped

    def finish(self) -> None:
        """Write what waits and complete the file.

        Raises
        ------
        SpectrodError
            What kept it from that; what was written before is left as a part.
        """
        self._is_ending = True
        self._news.set()
        self._thread.join(_FINISH_S)
        if self._thread.is_alive():
            raise StorageError(f"{self._path}: the disk does not answer")
        if self._error is not None:
            raise self._error

    def _put(self, piece: T) -> None:
        """Take a piece; the analysis thread's."""
        if self.is_full:
            return
        if self._duration_ns is not None:
            if self._end_ns is None:
                self._end_ns = self._cutter.begin_ns(piece) + self._duration_ns
            head, tail = self._cutter.cut(piece, self._end_ns)
            self._is_over = tail is not None
            if head is None:
                return
            piece = head
        self._handover.put(piece)
        self._news.set()

    # ---- the thread

    def _run(self) -> None:
        try:
            while not self._is_ending:
                self._news.wait(_TICK_S)
                self._news.clear()
                self._write_all()
            self._write_all()
        except SpectrodError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001
            # The top of a thread: whatever it is must reach whoever finishes the recording.
            _log.exception("recording %s failed", self._path)
            self._error = InternalError(f"{self._path}: {error!r}; please report this")
        try:
            self._complete()
        except SpectrodError as error:
            self._error = self._error or error

    def _write_all(self) -> None:
        for _ in range(len(self._handover)):
            piece = self._handover.take()
            if piece is not None:
                self._write(piece)
                self.n_frames += self._cutter.count(piece)


class SegmentSink(_FileSink[SpectrumBatch]):
    """Writes spectra to a segment.

    Parameters
    ----------
    path : Path
        Where to.
    description : Description
        Of the rows.
    duration_s : float or None
        After which it is full [s].

    Raises
    ------
    StorageError
        If the file cannot be made.
    """

    def __init__(self, path: Path, description: Description, duration_s: float | None) -> None:
        writer = SegmentWriter(path, description)
        super().__init__(path, RowCutter(), duration_s, writer.submit, writer.finish)
        self._spec = description.spec

    def submit(self, batch: SpectrumBatch) -> None:
        """Take a batch; raises ConfigError if the analysis has changed."""
        if batch.spec != self._spec:
            raise ConfigError("the analysis has changed, and a file holds one kind")
        if batch.n_frames:
            self._put(batch)


class SoundSink(_FileSink[Block]):
    """Writes samples to a file of sound.

    Parameters
    ----------
    path : Path
        Where to; the suffix decides the format.
    description : Description
        Of the source.
    duration_s : float or None
        After which it is full [s].

    Raises
    ------
    ConfigError
        If the format has no room for such samples.
    StorageError
        If the file cannot be made.
    """

    def __init__(self, path: Path, description: Description, duration_s: float | None) -> None:
        fs, channels = description.spec.fs, description.spec.channels
        options = SoundOptions(source=description.source, software=description.software)
        writer = SoundWriter(path, fs, channels, options=options)
        super().__init__(path, SampleCutter(fs), duration_s, writer.take, writer.finish)

    def take(self, block: Block) -> None:
        """Take a block."""
        self._put(block)
