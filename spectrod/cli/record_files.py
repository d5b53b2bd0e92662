"""The files of one ``-o`` of ``spectrod record``: one in total, or one per period of UTC."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from spectrod.dsp.blocks import Block, Chunk
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import RowWriter, SampleWriter, note_left_out
from spectrod.lib.errors import InputError, SpectrodError
from spectrod.recording.rotating_writer import ALWAYS, FileSpan, Output, RotatingWriter

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Chunk)


class _Writer(Protocol):
    """Writer of a file, for any kind of chunk."""

    def finish(self) -> None: ...
    def abort(self) -> None: ...


WriterT = TypeVar("WriterT", bound=_Writer)


class _WholeFile(Generic[T]):
    """Adapter to ``Output`` for a writer that creates its file at the end."""

    size_bytes = cut_length = 0
    is_gone = False

    def __init__(self, path: Path, writer: _Writer, write: Callable[[T], None]) -> None:
        self.path, self.write = path, write
        self.finish, self.abort = writer.finish, writer.abort

    def fits(self, _chunk: T) -> bool:
        """Return True: the analysis of a recording does not change."""
        return True

    def flush(self) -> None:
        """Do nothing: an unfinished file has no name and cannot be kept."""


class OutputFiles(RotatingWriter[T], Generic[WriterT, T]):
    """Writes each chunk to the file of its period, in the calling thread.

    Periods start at whole multiples of their length since 1970 UTC. A file is finished when the
    first item of the next one arrives. If a file fails, the rest of its period is dropped, and the
    next period is tried.

    Parameters
    ----------
    name_at : callable
        Returns the path of the file whose period starts at a UTC [ns].
    make : callable
        Creates a file.
    period_ns : int
        Length of a period [ns]; 0 for a single file, which is created at once.

    Attributes
    ----------
    failure : SpectrodError or None
        The first failure. A single file also raises it; for files of periods it is logged.
    """

    def __init__(
        self, name_at: Callable[[int], Path], make: Callable[[Path], WriterT], period_ns: int = 0
    ) -> None:
        super().__init__()
        self.failure: SpectrodError | None = None
        self._name_at, self._make = name_at, make
        self._period_ns = period_ns
        self._writer: WriterT | None = None
        self._skips_rest = False
        if not period_ns:
            self._output, self._span = self._start_file(0), ALWAYS

    @property
    def writer(self) -> WriterT | None:
        """Writer of the current file."""
        return self._writer if self._output is not None else None

    @property
    def is_over(self) -> bool:
        """True if nothing more can be written, because the only file has failed."""
        return self.failure is not None and not self._period_ns

    def give_up(self, error: SpectrodError) -> None:
        """Record why the only file has failed, and remove it."""
        self.failure = self.failure or error
        self.abort()

    @abstractmethod
    def _give(self, writer: WriterT, chunk: T) -> None:
        """Pass a chunk to a writer."""

    def _span_at(self, t_utc_ns: int) -> FileSpan:
        self._skips_rest = False
        begin_ns = t_utc_ns // self._period_ns * self._period_ns
        return FileSpan(begin_ns, begin_ns + self._period_ns)

    def _open(self, _chunk: T) -> Output[T]:
        return self._start_file(self._span.begin_ns)

    def _start_file(self, begin_ns: int) -> Output[T]:
        path = self._name_at(begin_ns)
        self._writer = writer = self._make(path)
        return _WholeFile(path, writer, lambda chunk: self._give(writer, chunk))

    def _may_write(self) -> bool:
        return not (self._skips_rest or self.is_over)

    def _skip(self, chunk: T, *, by_fault: bool = False) -> None:
        """Drop a chunk; the missing file shows the loss."""

    def _fail(self, error: SpectrodError) -> None:
        self.give_up(error)
        if not self._period_ns:
            raise error
        _log.error("%s", error)
        self._skips_rest = True


class SampleFiles(OutputFiles[SampleWriter, Block]):
    """Writes blocks of samples; a sample belongs to the period in which it was captured."""

    def _give(self, writer: SampleWriter, chunk: Block) -> None:
        writer.take(chunk)


class RowFiles(OutputFiles[RowWriter, SpectrumBatch]):
    """Writes batches of spectra; a row belongs to the period in which it starts."""

    def _give(self, writer: RowWriter, chunk: SpectrumBatch) -> None:
        writer.submit(chunk)

    def note_left_out(self, n_samples: int) -> None:
        """Record in the current file how many samples are in no row, if its format allows it."""
        if self.writer is not None:
            note_left_out(self.writer, n_samples)

    @property
    def wants_samples(self) -> bool:
        """True if the picture needs samples as well; False for pictures of periods."""
        return bool(getattr(self.writer, "wants_samples", False))


class StripSamples:
    """A tap that passes samples to the picture of a ``RowFiles`` while it is drawn."""

    def __init__(self, files: RowFiles) -> None:
        self._files = files

    def take(self, block: Block) -> None:
        """Pass a block on if the picture needs it."""
        if self._files.wants_samples:
            self._files.writer.take(block)  # type: ignore[union-attr]


def finish_all(
    several: Sequence[OutputFiles[Any, Any]],
    within: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> SpectrodError | None:
    """Finish all outputs, even if some fail; return the first failure.

    Parameters
    ----------
    several : sequence of OutputFiles
        Outputs, in order.
    within : callable
        Returns the context in which each of them is finished.
    """
    failures: list[SpectrodError] = []
    for files in several:
        try:
            with within():
                files.finish()
        except SpectrodError as error:
            files.failure = files.failure or error
        if files.failure is not None:
            failures.append(files.failure)
    # Report an empty output only if no other one failed: it is the least informative failure.
    failures.sort(key=lambda error: isinstance(error, InputError))
    return failures[0] if failures else None
