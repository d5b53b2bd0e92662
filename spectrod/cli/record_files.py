"""The files of one ``-o`` of ``spectrod record``: one for all, or one for each period of UTC."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from spectrod.chunks import Chunk
from spectrod.errors import InputError, SpectrodError
from spectrod.formats.description import RowWriter, SampleWriter, note_left_out
from spectrod.recording.rotating_writer import ALWAYS, Output, RotatingWriter, Span
from spectrod.types import Block, SpectrumBatch

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Chunk)


class _Writer(Protocol):
    """What makes a file, whatever it takes."""

    def finish(self) -> None: ...
    def abort(self) -> None: ...


WriterT = TypeVar("WriterT", bound=_Writer)


class _WholeFile(Generic[T]):
    """A writer that makes a file at its end, as an ``Output``."""

    size_bytes = 0
    is_gone = False

    def __init__(self, path: Path, writer: _Writer, write: Callable[[T], None]) -> None:
        self.path, self.write = path, write
        self.finish, self.abort = writer.finish, writer.abort

    def fits(self, _chunk: T) -> bool:
        """Return True: the analysis of a recording does not change."""
        return True

    def flush(self) -> None:
        """Do nothing: a file without a name is lost anyway."""


class OutputFiles(RotatingWriter[T], Generic[WriterT, T]):
    """Writes each chunk to the file of its period, in the thread that brings it.

    Periods begin at whole multiples of their length since 1970 UTC. A file is finished when the
    first item of the next one comes. Where it fails, the rest of its period is left out, and the
    next period is tried.

    Parameters
    ----------
    name_at : callable
        Returns the path of the file whose period begins at a UTC [ns].
    make : callable
        Starts a file.
    period_ns : int
        Length of a period [ns]; 0 for one file of everything, which is started at once.

    Attributes
    ----------
    failure : SpectrodError or None
        The first that there was. The only file raises it as well; of periods' files it is logged.
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
        """What writes the present file."""
        return self._writer if self._output is not None else None

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be written: the only file has failed."""
        return self.failure is not None and not self._period_ns

    def give_up(self, error: SpectrodError) -> None:
        """Note why the only file has failed; nothing is left of it."""
        self.failure = self.failure or error
        self.abort()

    @abstractmethod
    def _give(self, writer: WriterT, chunk: T) -> None:
        """Give a chunk to a writer."""

    def _span_at(self, t_utc_ns: int) -> Span:
        self._skips_rest = False
        begin_ns = t_utc_ns // self._period_ns * self._period_ns
        return Span(begin_ns, begin_ns + self._period_ns)

    def _open(self, _chunk: T) -> Output[T]:
        return self._start_file(self._span.begin_ns)

    def _start_file(self, begin_ns: int) -> Output[T]:
        path = self._name_at(begin_ns)
        self._writer = writer = self._make(path)
        return _WholeFile(path, writer, lambda chunk: self._give(writer, chunk))

    def _may_write(self) -> bool:
        return not (self._skips_rest or self.is_over)

    def _skip(self, chunk: T, *, by_fault: bool = False) -> None:
        """Leave out a chunk: the file that is missing says so."""

    def _fail(self, error: SpectrodError) -> None:
        self.give_up(error)
        if not self._period_ns:
            raise error
        _log.error("%s", error)
        self._skips_rest = True


class SampleFiles(OutputFiles[SampleWriter, Block]):
    """Takes blocks of samples; a sample belongs to the period in which it was taken."""

    def _give(self, writer: SampleWriter, chunk: Block) -> None:
        writer.take(chunk)


class RowFiles(OutputFiles[RowWriter, SpectrumBatch]):
    """Takes batches of spectra; a row belongs to the period in which it begins."""

    def _give(self, writer: RowWriter, chunk: SpectrumBatch) -> None:
        writer.submit(chunk)

    def note_left_out(self, n_samples: int) -> None:
        """Tell the present file how many samples are in no row, if its format can store that."""
        if self.writer is not None:
            note_left_out(self.writer, n_samples)

    @property
    def wants_samples(self) -> bool:
        """Whether its picture shall be given samples too; never one of a period."""
        return bool(getattr(self.writer, "wants_samples", False))


class StripSamples:
    """A tap that gives samples to the picture of a ``RowFiles``, as long as it is drawn."""

    def __init__(self, files: RowFiles) -> None:
        self._files = files

    def take(self, block: Block) -> None:
        """Take a block."""
        if self._files.wants_samples:
            self._files.writer.take(block)  # type: ignore[union-attr]


def finish_all(
    several: Sequence[OutputFiles[Any, Any]],
    within: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> SpectrodError | None:
    """Finish all outputs, whatever becomes of the others; return the first failure.

    Parameters
    ----------
    several : sequence of OutputFiles
        In this order.
    within : callable
        Makes the context in which each of them is finished.
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
    # An output that got nothing says less than why another one failed.
    failures.sort(key=lambda error: isinstance(error, InputError))
    return failures[0] if failures else None
