"""Chunks in order into files: one for each span of time, for each analysis, for each size."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from spectrod.chunks import Chunk
from spectrod.errors import SpectrodError, StorageError
from spectrod.recording.clock import SET_BACK_NS
from spectrod.schedule import NEVER_NS

T = TypeVar("T", bound=Chunk)
T_contra = TypeVar("T_contra", contravariant=True)


class Output(Protocol[T_contra]):
    """A file that is being written. Errors are SpectrodErrors."""

    @property
    def path(self) -> Path:
        """Its final name, which ``finish`` may change if it is taken."""

    @property
    def size_bytes(self) -> int:
        """Its length by now; 0 where that counts for no limit."""

    @property
    def is_gone(self) -> bool:
        """Whether somebody has removed it while it is being written."""

    def fits(self, chunk: T_contra) -> bool:
        """Whether a chunk belongs into this file, not into a new one."""

    def write(self, chunk: T_contra) -> None:
        """Append a chunk."""

    def flush(self) -> None:
        """Make what was written survive a power failure."""

    def finish(self) -> None:
        """Complete it and give it its name."""

    def abort(self) -> None:
        """Close it as it is. Does nothing after ``finish``."""


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time in which everything goes into one file, or nothing is recorded.

    Attributes
    ----------
    begin_ns, until_ns : int
        Its UTC [ns since 1970], the end not included.
    is_on : bool
        Whether anything is recorded.
    """

    begin_ns: int
    until_ns: int
    is_on: bool = True


ALWAYS = Span(-NEVER_NS, NEVER_NS)


class RotatingWriter(ABC, Generic[T]):
    """Writes chunks of one kind to files, and has a new file where a span of time or a rule ends.

    A chunk is split where a span ends: the next file begins with the item after the last one. A
    subclass names the spans, opens files and decides what follows from a fault. What is not written
    is missing before the next chunk that is, which says so. One thread.

    Parameters
    ----------
    limit_bytes : int
        Length at which a file ends; 0 for no limit.

    Attributes
    ----------
    written, missed : int
        Rows, or samples a channel, in files; and those that faults have cost.
    open_bytes : int
        Length of the file that is being written.
    """

    def __init__(self, limit_bytes: int = 0) -> None:
        self._limit_bytes = limit_bytes
        self._span = Span(0, 0)
        self._output: Output[T] | None = None
        self._in_file = 0
        self._missing_samples, self._has_written = 0, False
        self.written = self.missed = self.open_bytes = 0

    @property
    def path(self) -> Path | None:
        """The file that is being written, by its final name; any thread may read it."""
        output = self._output
        return output.path if output else None

    def take(self, chunk: T) -> None:
        """Write the next chunk."""
        rest: T | None = chunk if chunk.length else None
        while rest is not None:
            t_ns = rest.begin_utc_ns
            # A clock that was set back starts a new file, or a file might last for a year.
            if not self._span.begin_ns - SET_BACK_NS <= t_ns < self._span.until_ns:
                self.close()
                self._span = self._span_at(t_ns)
            part, rest = rest.split_at(self._span.until_ns)
            if part is not None and self._span.is_on:
                self._write(part)
            elif part is not None:
                self._skip(part)

    def submit(self, chunk: T) -> None:
        """See ``take``: the name that a ``spectrod.pipeline.Sink`` has for it."""
        self.take(chunk)

    def close(self) -> None:
        """Finish the file, if there is one; the next chunk starts a new one."""
        if self._output is None:
            return
        try:
            self._end_file()
        except SpectrodError as error:
            self._fail(error)

    def finish(self) -> None:
        """Finish the last file."""
        self.close()

    def abort(self) -> None:
        """Close the file as it is, without its name."""
        output, self._output = self._output, None
        if output is not None:
            output.abort()

    # ---- what a subclass decides

    @abstractmethod
    def _span_at(self, t_utc_ns: int) -> Span:
        """Return the span that a time lies in; it is the first there is, or the last has ended."""

    @abstractmethod
    def _open(self, chunk: T) -> Output[T]:
        """Make the file that a chunk is the first of; raises a SpectrodError."""

    @abstractmethod
    def _fail(self, error: SpectrodError) -> None:
        """Handle a fault, and give up the file if ``_take_output`` still has one."""

    def _may_write(self) -> bool:
        """Return whether writing is to be tried; if not, a fault has cost what comes."""
        return True

    def _note_written(self, chunk: T) -> None:
        """Note what is in the file now."""

    def _note_finished(self, output: Output[T]) -> None:
        """Note that a file has its name; raises a SpectrodError if it cannot stay."""

    # ---- files

    def _write(self, chunk: T) -> None:
        if not self._may_write():
            self._skip(chunk, by_fault=True)
            return
        told = chunk
        if self._missing_samples and self._has_written:
            told = chunk.after_gap(self._missing_samples)
        try:
            if self._output is not None and not self._output.fits(told):
                self._end_file()
            if self._output is None:
                self._in_file = 0
                self._output = self._open(told)
            self._output.write(told)
        except SpectrodError as error:
            self._fail(error)
            self._skip(chunk, by_fault=True)
            return
        self._missing_samples, self._has_written = 0, True
        self.open_bytes = self._output.size_bytes
        self.written += chunk.length
        self._in_file += chunk.length
        self._note_written(chunk)
        if self._limit_bytes and self.open_bytes >= self._limit_bytes:
            self.close()

    def _skip(self, chunk: T, *, by_fault: bool = False) -> None:
        self._missing_samples += chunk.span_samples
        if by_fault:
            self.missed += chunk.length

    def _end_file(self) -> None:
        assert self._output is not None
        require_there(self._output)  # or its rows would count as written
        output = self._take_output()
        assert output is not None
        try:
            output.finish()
            self._note_finished(output)
        except BaseException:  # Ctrl-C too
            output.abort()
            raise

    def _take_output(self) -> Output[T] | None:
        """Return the file, which is not written any more."""
        output, self._output, self.open_bytes = self._output, None, 0
        return output


def require_there(output: Output[T]) -> None:
    """Raise StorageError if somebody has removed the file."""
    if output.is_gone:
        raise StorageError(f"{output.path}: was removed while it was being written")


def finish_or_abort(output: Output[T]) -> None:
    """Finish a file that has failed if that is possible; else it is left to be recovered."""
    try:
        output.finish()
    except SpectrodError:
        output.abort()
