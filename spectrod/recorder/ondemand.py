"""One file that is written because somebody asked for it, by a thread of its own."""

import logging
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from spectrod.chunks import Chunk
from spectrod.errors import ConfigError, InternalError, SpectrodError, UnavailableError
from spectrod.record.part import PartFile
from spectrod.record.recording import Description
from spectrod.record.segment.writer import SegmentWriter
from spectrod.record.sound import SoundOptions, SoundWriter
from spectrod.recorder.chunk_queue import ChunkQueue
from spectrod.types import Block, SpectrumBatch

T = TypeVar("T", bound=Chunk)

_log = logging.getLogger(__name__)

QUEUE_MAX_BYTES: Final = 32 << 20
"""That may wait for the disk."""

_FINISH_S = 20.0
_TICK_S = 0.5
_NS = 1_000_000_000


class Writer(Protocol):
    """What makes a file."""

    @property
    def path(self) -> Path:
        """Its final name, which ``finish`` may change if it is taken."""

    def finish(self) -> None:
        """Give it its name; raises a SpectrodError."""

    def abort(self) -> None:
        """Leave it as it is, or nothing where it has no content."""


class _FileSink(Generic[T]):
    """Writes pieces to a file.

    At most 32 MB wait for the disk; where it is slower, the oldest are dropped, counted, and a gap
    in the file. An error ends it: ``is_full`` is true then, and ``finish`` raises it.

    Parameters
    ----------
    duration_s : float or None
        After which it is full [s].

    Attributes
    ----------
    size_bytes : int
        Memory that it takes at most.
    is_late : bool
        Whether the disk has not answered for 20 s at the end.
    """

    size_bytes = QUEUE_MAX_BYTES
    _writer: Writer
    """Made last, when nothing else can fail."""

    def __init__(
        self,
        duration_s: float | None,
    ) -> None:
        self._handover = ChunkQueue[T](QUEUE_MAX_BYTES)
        self._duration_ns = None if duration_s is None else round(duration_s * _NS)
        self._end_ns: int | None = None
        self._error: SpectrodError | None = None
        self._is_over = self._is_ending = self.is_late = False
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._run, name="record-file", daemon=True)
        self.n_frames = 0
        """Rows, or samples a channel, in the file."""

    def start(self) -> None:
        """Start the thread.

        Raises
        ------
        UnavailableError
            If the system has no thread to give; no file is left then.
        """
        try:
            self._thread.start()
        except RuntimeError as error:
            self._writer.abort()
            raise UnavailableError(f"{self.path}: {error}") from error

    @property
    def path(self) -> Path:
        """The file; where its name was taken, under the one that it got at the end."""
        return self._writer.path

    @property
    def is_full(self) -> bool:
        """Whether it takes nothing more."""
        return self._is_over or self._error is not None

    @property
    def dropped(self) -> int:
        """Rows or samples that the disk was too slow for."""
        return self._handover.dropped

    def finish(self) -> None:
        """Write what waits and complete the file, however long the disk takes.

        Raises
        ------
        SpectrodError
            What kept it from that; what was written before is left as a part.
        """
        self._is_ending = True
        self._news.set()
        self._thread.join(_FINISH_S)
        self.is_late = self._thread.is_alive()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def discard(self) -> None:
        """End it without a file; to be called where nothing was submitted."""
        with suppress(SpectrodError):
            self.finish()

    def _put(self, piece: T) -> None:
        """Take a piece; the analysis thread's."""
        if self.is_full:
            return
        if self._duration_ns is not None:
            if self._end_ns is None:
                self._end_ns = piece.begin_utc_ns + self._duration_ns
            head, tail = piece.split_at(self._end_ns)
            self._is_over = tail is not None
            if head is None:
                return
            piece = head
        self._handover.put(piece)
        self._news.set()

    # ---- the thread

    def _write(self, piece: T) -> None:
        """Give the writer a piece."""
        raise NotImplementedError

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
            _log.exception("recording %s failed", self.path)
            self._error = InternalError(f"{self.path}: {error!r}; please report this")
        try:
            self._writer.finish()
        except SpectrodError as error:
            self._error = self._error or error

    def _write_all(self) -> None:
        for _ in range(len(self._handover)):
            piece = self._handover.take()
            if piece is not None:
                self._write(piece)
                self.n_frames += piece.length


class SegmentSink(_FileSink[SpectrumBatch]):
    """Writes spectra to a segment.

    Parameters
    ----------
    part : PartFile
        Where to; closed with the sink.
    description : Description
        Of the rows.
    duration_s : float or None
        After which it is full [s].

    Raises
    ------
    StorageError
        If the file cannot be made.
    """

    def __init__(self, part: PartFile, description: Description, duration_s: float | None) -> None:
        super().__init__(duration_s)
        self._spec = description.spec
        self._writer: SegmentWriter = SegmentWriter(part, description)

    def submit(self, batch: SpectrumBatch) -> None:
        """Take a batch; raises ConfigError if the analysis has changed."""
        if batch.spec != self._spec:
            raise ConfigError("the analysis has changed, and a file holds one kind")
        if batch.n_frames:
            self._put(batch)

    def _write(self, piece: SpectrumBatch) -> None:
        self._writer.submit(piece)


class SoundSink(_FileSink[Block]):
    """Writes samples to a file of sound.

    Parameters
    ----------
    part : PartFile
        Where to; the suffix decides the format. Closed as by ``SegmentSink``.
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

    def __init__(self, part: PartFile, description: Description, duration_s: float | None) -> None:
        fs, channels = description.spec.fs, description.spec.channels
        options = SoundOptions(source=description.source, software=description.software)
        super().__init__(duration_s)
        self._writer: SoundWriter = SoundWriter(part, fs, channels, options=options)

    def take(self, block: Block) -> None:
        """Take a block."""
        self._put(block)

    def _write(self, piece: Block) -> None:
        self._writer.take(piece)
